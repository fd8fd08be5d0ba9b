"""Faults around a job: data, directories, disks, checkpoints. Each gives one clear line and a status other than 0, and
nothing is lost."""
import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import threading
import unittest

from cli import SATRAP, SANITIZED, CliTest, satrap


class Data(CliTest):
    def test_a_missing_file(self):
        error = self.fail_with(1, "train", self.job(rows=100), "data.train.path=/no/such/file.tsv")
        self.assert_words(error, "/no/such/file.tsv", "no such file")

    def test_a_pattern_without_files(self):
        error = self.fail_with(1, "train", self.job(rows=100), f"data.train.path={self.dir}/day_*.gz")
        self.assert_words(error, "day_*.gz", "no data file")

    def test_a_missing_evaluation_file_is_found_before_training(self):
        error = self.fail_with(1, "train", self.job(rows=100), "data.eval.path=/no/such/file.tsv")
        self.assert_words(error, "/no/such/file.tsv")
        self.assertFalse(list(self.dir.glob("run/checkpoints/step-*")))

    def test_an_empty_file(self):
        job = self.job(rows=100)
        self.write("train.tsv", "")
        self.assert_words(self.fail_with(1, "train", job), "train.tsv", "empty")

    def test_a_directory_for_a_file(self):
        error = self.fail_with(1, "train", self.job(rows=100), f"data.train.path={self.dir}")
        self.assert_words(error, str(self.dir), "directory")

    def test_a_truncated_gzip(self):
        job = self.job(rows=3000)
        subprocess.run(["gzip", self.dir / "train.tsv"], check=True)
        whole = (self.dir / "train.tsv.gz").read_bytes()
        (self.dir / "train.tsv.gz").write_bytes(whole[: len(whole) // 2])
        error = self.fail_with(1, "train", job, f"data.train.path={self.dir}/train.tsv.gz")
        self.assert_words(error, "train.tsv.gz", "truncated")

    def test_a_truncated_zstd(self):
        job = self.job(rows=3000)
        subprocess.run(["zstd", "-q", self.dir / "train.tsv"], check=True)
        whole = (self.dir / "train.tsv.zst").read_bytes()
        (self.dir / "train.tsv.zst").write_bytes(whole[: len(whole) // 2])
        error = self.fail_with(1, "train", job, f"data.train.path={self.dir}/train.tsv.zst")
        self.assert_words(error, "train.tsv.zst", "truncated")

    def spoil(self, count):
        """Makes every tenth row bad, `count` of them; returns their line numbers."""
        rows = (self.dir / "train.tsv").read_text().splitlines(keepends=True)
        lines = [10 * i + 5 for i in range(count)]
        for line in lines:
            fields = rows[line - 1].split("\t")
            fields[3] = "x?y"  # I3
            rows[line - 1] = "\t".join(fields)
        (self.dir / "train.tsv").write_text("".join(rows))
        return lines

    def test_bad_rows_are_skipped_counted_and_the_first_ten_shown(self):
        job = self.job(rows=1000)
        lines = self.spoil(15)
        done = self.succeed("train", job, "data.on_bad_row=skip")
        shown = [int(n) for n in re.findall(r"row skipped: .*train\.tsv:(\d+)", done.stderr)]
        self.assertEqual(shown, lines[:10])
        self.assert_words(done.stderr, "I3", "x?y", "15 of 1000 rows (1.5 %) could not be read; the first: ")
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(summary["examples"], 985)

    def test_a_bad_row_commands_no_terminal(self):
        job = self.job(rows=500)
        rows = (self.dir / "train.tsv").read_bytes().split(b"\t")
        rows[3] = b"\x1b[31mRED\x1b]0;own\x07\r\x9b2Kinfo \xc3\xa9"
        (self.dir / "train.tsv").write_bytes(b"\t".join(rows))
        for settings, status in [([], 0), (["data.on_bad_row=stop", "--overwrite"], 1)]:
            done = satrap("train", job, *settings)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(r"\x1b[31mRED\x1b]0;own\x07\x0d\x9b2Kinfo é", done.stderr)
            self.assertNotRegex(done.stderr, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_a_bad_row_ends_the_run_where_asked_to(self):
        job = self.job(rows=1000)
        lines = self.spoil(3)
        error = self.fail_with(1, "train", job, "data.on_bad_row=stop")
        self.assert_words(error, f"train.tsv:{lines[0]}", "I3", "x?y")

    def test_data_that_is_bad_throughout(self):
        job = self.job(rows=100)
        self.write("train.tsv", "this is no click log\n" * 1000)
        error = self.fail_with(1, "train", job)
        self.assert_words(error, "train.tsv")

    def test_a_bad_row_late_in_the_run_loses_no_checkpoint(self):
        job = self.job(rows=3000)
        with open(self.dir / "train.tsv", "a") as file:
            file.write("2\tbad\n")
        self.fail_with(1, "train", job, "data.on_bad_row=stop")
        self.succeed("checkpoint", "verify", self.dir / "run")


class Directories(CliTest):
    def test_a_run_dir_below_a_file(self):
        self.write("file", "")
        error = self.fail_with(1, "train", self.job(rows=100), f"run_dir={self.dir}/file/run")
        self.assert_words(error, f"{self.dir}/file", "not a directory")

    def test_a_run_dir_that_cannot_be_written(self):
        error = self.fail_with(1, "train", self.job(rows=100), "run_dir=/proc/satrap")
        self.assert_words(error, "/proc/satrap")

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_a_run_dir_without_permission(self):
        job = self.job(rows=100)
        (self.dir / "locked").mkdir(mode=0o755)
        for path in [self.dir, *self.dir.iterdir()]:
            path.chmod(0o755)
        program = self.dir / "satrap"  # the user nobody may not enter the folders above the real one
        shutil.copy(SATRAP, program)
        done = subprocess.run([program, "--version"], user=65534, capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("libraries are not readable by other users here")
        done = subprocess.run([program, "train", job, f"run_dir={self.dir}/locked/run"], user=65534,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_words(done.stderr, "error: ", "locked/run", "permission denied")


class FullDisk(CliTest):
    def first_and_last_size(self, job):
        """Sizes of the largest file in the first and the last checkpoint of the undisturbed run."""
        self.succeed("train", job, f"run_dir={self.dir}/probe", "checkpoint.keep=100")
        sizes = [max(file.stat().st_size for file in (self.dir / "probe" / "checkpoints" / name).iterdir())
                 for name in self.checkpoints("probe")]
        self.assertLess(sizes[0] * 1.2, sizes[-1], "tables grow during the run")
        return sizes[0], sizes[-1]

    def check_what_is_left(self):
        names = self.checkpoints()
        self.assertGreaterEqual(len(names), 1)
        self.succeed("checkpoint", "verify", self.dir / "run")
        self.assertNotIn("step-000000000060", names)
        return names

    def growing_job(self):
        # One table has most of the rows, so that its file is the one that grows.
        return self.job(rows=6000)

    def test_a_file_size_limit_is_an_error_and_the_previous_checkpoint_stays(self):
        job = self.growing_job()
        first, last = self.first_and_last_size(job)
        limit = (first + last) // 2
        done = satrap("train", job, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_words(done.stderr.splitlines()[-1], "error: ", "checkpoint", "file too large")
        self.check_what_is_left()
        # With enough room it continues and ends where the undisturbed run ended.
        self.succeed("train", job, "--resume")
        self.assertEqual(self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1]),
                         self.digest(self.dir / "probe" / "checkpoints" /
                                     self.checkpoints("probe")[-1]))

    def test_a_small_stack(self):
        job = self.growing_job()

        def limit_to(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_STACK, (soft << 10, hard << 10))

        for command in ("train", "predict"):
            error = self.fail_with(1, command, job, preexec_fn=limit_to(64, 64))
            self.assert_words(error, "limit of a stack is 64.0KiB", "ulimit -s", "1.00MiB are needed")
        self.succeed("train", job, preexec_fn=limit_to(64, 8192))

    def test_a_full_disk(self):
        job = self.growing_job()
        self.succeed("train", job, f"run_dir={self.dir}/probe", "checkpoint.keep=100")
        totals = [sum(file.stat().st_size for file in (self.dir / "probe" / "checkpoints" / name).iterdir())
                  for name in self.checkpoints("probe")]
        small = self.dir / "small"
        small.mkdir()
        # Room for the first two checkpoints and some pages, but not for the second and the last.
        size_kib = (totals[0] + totals[1]) // 1024 + 400
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", small],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        error = self.fail_with(1, "train", job, f"run_dir={small}/run", "checkpoint.keep=1")
        self.assert_words(error, "no space left", str(small / "run"))
        self.succeed("checkpoint", "verify", small / "run")
        self.assertEqual([name for name in os.listdir(small / "run" / "checkpoints")
                          if not name.startswith("step-")], [], "the unfinished one is removed")


class BrokenCheckpoints(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.job(rows=3000)
        self.succeed("train", self.config)
        names = self.checkpoints()
        self.newest = self.dir / "run" / "checkpoints" / names[-1]
        self.previous = self.dir / "run" / "checkpoints" / names[-2]

    def largest_file(self):
        return max(self.newest.iterdir(), key=lambda path: path.stat().st_size)

    def refused(self, *names):
        """Commands name the file, refuse the checkpoint and suggest the previous one."""
        for command in [("checkpoint", "verify", self.newest),
                        ("train", self.config, "--resume", "train.epochs=2")]:
            with self.subTest(command=command[0]):
                error = self.fail_with(1, *command)
                self.assert_words(error, str(self.newest), str(self.previous), *names)
        self.assertTrue(self.newest.is_dir(), "nothing is removed")

    def test_what_can_be_done_about_it(self):
        os.truncate(self.largest_file(), 10)
        error = self.fail_with(1, "eval", self.config, "--checkpoint", self.dir / "run")
        self.assert_words(error, str(self.newest), str(self.previous))
        self.succeed("eval", self.config, "--checkpoint", self.previous)
        self.succeed("train", self.config, "--resume-from", self.previous,
                     f"run_dir={self.dir}/second")

    def test_one_changed_bit(self):
        file = self.largest_file()
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        file.write_bytes(content)
        self.refused(file.name, "checksum")

    def test_a_truncated_file(self):
        file = self.largest_file()
        os.truncate(file, file.stat().st_size - 1)
        self.refused(file.name)

    def test_a_file_with_more_behind(self):
        with open(self.largest_file(), "ab") as file:
            file.write(b"\0")
        self.refused(self.largest_file().name)

    def test_a_missing_file(self):
        file = self.largest_file()
        file.unlink()
        self.refused(file.name)

    def test_a_missing_manifest(self):
        (self.newest / "manifest.json").unlink()
        self.refused("manifest.json")

    def test_a_changed_manifest(self):
        file = self.newest / "manifest.json"
        file.write_text(file.read_text().replace('"examples": 3000', '"examples": 3001')
                        .replace('"examples":3000', '"examples":3001'))
        self.assertIn("3001", file.read_text())
        self.refused("manifest.json")

    def test_an_empty_manifest(self):
        (self.newest / "manifest.json").write_text("")
        self.refused("manifest.json")

    def test_the_list_shows_what_is_unreadable_and_the_rest(self):
        (self.newest / "manifest.json").write_text("{}")
        listed = self.succeed("checkpoint", "ls", self.dir / "run").stdout
        self.assert_words(listed, self.previous.name, self.newest.name, "unreadable")

    def test_verify_tells_good_from_bad(self):
        os.truncate(self.largest_file(), 10)
        done = satrap("checkpoint", "verify", self.dir / "run")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"{self.previous.name}: ok")
        self.assertRegex(done.stdout, rf"{self.newest.name}: corrupt")

    def test_an_unfinished_checkpoint_does_not_count(self):
        unfinished = self.newest.parent / ".tmp-step-000000000999"
        shutil.copytree(self.newest, unfinished)
        self.assertNotIn("step-000000000999", self.succeed("checkpoint", "ls", self.dir / "run").stdout)
        self.succeed("train", self.config, "--resume", "train.epochs=2")
        self.assertFalse(unfinished.exists(), "what a crash left is removed")

    def test_a_checkpoint_of_another_model(self):
        wider = satrap("eval", self.config, "tables.default.dim=8", "model.bottom=[16, 8]",
                       "--checkpoint", self.newest)
        self.assertEqual(wider.returncode, 2)
        self.assert_words(wider.stderr, "another tables.default.dim: 4 -> 8", "another model.bottom")
        for override, words in [("model.top=[32]", ["top"]),
                                ("tables.default.optimizer.type=adam", ["c1", "optimizer"]),
                                ("tables.default.optimizer.type=rowwise_adagrad",  # the same size
                                 ["c1", "optimizer"]),
                                ("dense_optimizer.type=adagrad", ["adam", "optimizer"])]:
            with self.subTest(override=override):
                error = self.fail_with(2, "eval", self.config, override, "--checkpoint",
                                       self.newest)
                self.assert_words(error, *words)

    def test_row_optimizers_whose_state_has_the_same_size(self):
        self.succeed("train", self.config, "tables.default.optimizer.type=adam", "--overwrite")
        error = self.fail_with(2, "train", self.config, "tables.default.optimizer.type=ftrl",
                               "--resume", "train.epochs=2")
        self.assert_words(error, "adam", "ftrl")

    def test_going_back_to_an_older_checkpoint_of_the_same_run(self):
        self.succeed("train", self.config, "--resume-from", self.previous, "train.max_steps=25")
        self.assertIn("step-000000000025", self.checkpoints())
        # The newest checkpoint is now one of the continued run, not one left by the run before it.
        self.succeed("train", self.config, "--resume", "train.max_steps=26")
        self.assertEqual(self.checkpoints()[-1], "step-000000000026")

    def test_directories_without_a_checkpoint(self):
        (self.dir / "nothing").mkdir()
        for place in [self.dir / "nothing", self.dir / "no_such_folder"]:
            for command in [("checkpoint", "ls", place), ("checkpoint", "verify", place),
                            ("eval", self.config, "--checkpoint", place),
                            ("train", self.config, "--resume-from", place,
                             f"run_dir={self.dir}/second")]:
                self.assert_words(self.fail_with(1, *command), str(place), "checkpoint")


class OneClass(CliTest):
    def test_rows_without_a_click(self):
        """AUC and NE are undefined: null in files, a dash on the terminal, and not a failure."""
        job = self.job(rows=1000)
        for name in ["train.tsv", "eval.tsv"]:
            rows = (self.dir / name).read_text().splitlines(keepends=True)
            self.write(name, "".join("0" + row[1:] for row in rows))
        done = self.succeed("train", job)
        self.assertRegex(done.stdout, r"(?m)^eval .*auc +-")
        self.assertIsNone(json.loads((self.dir / "run" / "summary.json").read_text())["eval"]["auc"])
        for line in (self.dir / "run" / "metrics.jsonl").read_text().splitlines():
            self.assertNotIn("NaN", line)
            json.loads(line)
        self.succeed("checkpoint", "verify", self.dir / "run")
        self.assertNotIn("unreadable", self.succeed("checkpoint", "ls", self.dir / "run").stdout)
        self.succeed("eval", job, "--checkpoint", self.dir / "run")
        self.succeed("train", job, "--resume", "train.epochs=2")


class Divergence(CliTest):
    def test_a_run_that_diverges_ends_and_keeps_its_checkpoints(self):
        job = self.job(rows=3000)
        error = self.fail_with(1, "train", job, "dense_optimizer={type: sgd, lr: 1e30}",
                               "train.max_nonfinite_steps=3")
        self.assert_words(error, "diverged", "3", "max_nonfinite_steps")


    def test_a_run_in_which_no_step_is_finite_fails_though_it_is_short(self):
        job = self.job(rows=500)
        error = self.fail_with(1, "train", job, "tables.default.init={scale: 1e38}")
        self.assert_words(error, "nothing was learned", "5 steps")
        self.assertFalse((self.dir / "run" / "summary.json").exists())
        self.succeed("train", job, "--overwrite")


@contextlib.contextmanager
def killed_after(seconds, process):
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Memory(CliTest):
    @unittest.skipIf(SANITIZED, "sanitizers reserve terabytes of address space")
    def test_no_memory_is_one_line(self):
        job = self.job(rows=3000)
        limit = 1536 << 20
        done = satrap("train", job, "tables.default.dim=65536",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"^error: .*memory")

    @unittest.skipIf(SANITIZED, "sanitizers reserve terabytes of address space")
    def test_with_any_memory_a_job_ends_or_says_what_it_lacks(self):
        """Each run gets a little more, from what the program needs to start to what the job needs, with threads."""
        job = self.job(rows=300)

        def run(limit, *args):
            return satrap(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

        limits = iter(range(8 << 20, 2 << 30, 3 << 20))
        while run(next(limits), "--version").returncode != 0:  # that is the dynamic linker's
            pass
        errors = []
        for limit in limits:
            done = run(limit, "train", job, "--overwrite", "data.reader_threads=8", "train.threads=4")
            last = (done.stderr.splitlines() or [""])[-1]
            self.assertIn(done.returncode, (0, 1), f"with {limit >> 20} MiB: {last}")
            if done.returncode == 0:
                break
            self.assertRegex(last, "^error: .+[^ :]$", f"with {limit >> 20} MiB")
            errors.append(last)
        self.assertEqual(done.returncode, 0)
        for thread in ["pool-1", "data-parse"]:
            self.assertTrue(any(f"thread '{thread}' cannot be started: " in error for error in errors), errors)

    @unittest.skipIf(SANITIZED, "sanitizers reserve terabytes of address space")
    def test_a_shard_that_cannot_start_for_want_of_memory_says_so(self):
        command = [os.path.join(os.path.dirname(SATRAP), "satrap-ps"), self.job(), "--shard", "0", "--shards", "1",
                   "embedding.store=ps"]
        env = {**os.environ, "SATRAP_STORE": f"file://{self.dir}/store", "SATRAP_TOKEN": "t"}
        ends = []
        for limit in range(8 << 20, 1 << 30, 2 << 20):  # until it runs
            shard = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, preexec_fn=lambda:
                                     resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            with shard, killed_after(60, shard):
                last = ""
                for last in shard.stderr:
                    if "serves at" in last:
                        shard.terminate()
                        break
            if "serves at" in last:
                break
            if shard.returncode == 1:  # neither the dynamic linker nor library code before main()
                ends.append(last)
                self.assertRegex(last, "^error: (out of memory|thread '.+' cannot be started: ).*[a-z]",
                                 f"with {limit >> 20} MiB")
        self.assertIn("serves at", last)
        self.assertGreater(len(ends), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
