"""Jobs whose run_dir is in S3 or HDFS: what is in the store is what a local run_dir has, and never half of it."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest
from unittest import mock

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import store_server
from store_writes import take_first

DOCTOR = satrap("doctor").stdout
SCHEMES = [scheme for scheme in ("s3", "hdfs") if f"\n{scheme:10} off:" not in DOCTOR]
if not SCHEMES:
    print("skipped: this satrap was built without S3 and HDFS")
    sys.exit(77)

SECRET = "secret-of-the-tests"
ROWS = 2500  # 25 steps
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: rows.csv
  eval: rows.csv
  batch_size: 100
  schema: {label: click, numeric: [price], features: [user]}
tables: {default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}}
model: {type: deepfm, hidden: [8]}
train: {mode: hybrid, staleness: 2, deterministic: true, threads: 1, report_every: 5 steps}
checkpoint: {every: 5 steps, keep: 2}
"""


def flipped(content):
    """With another bit in its last byte."""
    return content[:-1] + bytes([content[-1] ^ 1])


class StoreRuns(CliTest):
    def setUp(self):
        super().setUp()
        self.server = store_server.Server()
        self.addCleanup(self.server.close)
        patched = mock.patch.dict(os.environ, {
            **self.server.environment(), "HADOOP_USER_NAME": "satrap", "SATRAP_REMOTE_TIMEOUT": "5min",
            "SATRAP_REMOTE_STALL": "1min", "SATRAP_SCRATCH": str(self.dir / "scratch")})
        patched.start()
        self.addCleanup(patched.stop)
        lines = (f"{int(i * 7 % 5 < 2)},{i * 13 % 97 / 4},user {i * i % 501}\n" for i in range(ROWS))
        self.write("rows.csv", "click,price,user\n" + "".join(lines))
        self.write("job.yaml", JOB)

    def url(self, scheme):
        return self.server.url(scheme, f"runs/{scheme}")

    def train(self, url, *more, **environment):
        return self.succeed("train", "job.yaml", f"run_dir={url}", *more, cwd=self.dir,
                            env={**os.environ, **environment})

    def digests(self, run):
        """Of its checkpoints, by their names."""
        said = self.succeed("checkpoint", "verify", run, cwd=self.dir).stdout
        return dict(re.findall(r"(step-\d+): ok, digest ([0-9a-f]+)", said))

    def names_in_store(self, scheme):
        folder = f"runs/{scheme}/"
        return sorted(key.removeprefix(folder) for key in self.server.files
                      if key.startswith(folder) and not key.endswith("/"))

    def train_locally(self):
        self.succeed("train", "job.yaml", cwd=self.dir)
        return self.digests("run")

    def test_a_job_killed_while_it_uploads_continues_on_another_machine_with_the_same_bits(self):
        expected = self.train_locally()
        for scheme in SCHEMES:
            for number, victim in enumerate(("manifest.json", "table-0.bin")[:2 if scheme == SCHEMES[0] else 1]):
                with self.subTest(scheme=scheme, victim=victim):
                    self.server.files = {}
                    environment = {**os.environ, "SATRAP_SCRATCH": str(self.dir / f"first-{scheme}-{number}")}
                    program = subprocess.Popen([SATRAP, "train", "job.yaml", f"run_dir={self.url(scheme)}"],
                                               cwd=self.dir, env=environment, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

                    def kill(key):
                        if "step-000000000015/" not in key or not key.endswith(victim):
                            return None
                        program.kill()
                        return "lost" if victim == "table-0.bin" else "reset"

                    self.server.write_fault = kill
                    _, said = program.communicate(timeout=TIMEOUT_S)
                    self.assertEqual(program.returncode, -9, said)
                    self.server.write_fault = lambda key: None
                    self.assertIn("checkpoints/step-000000000015/dense.bin", self.names_in_store(scheme))
                    self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005", "step-000000000010"])
                    done = self.train(self.url(scheme), "--resume",
                                      SATRAP_SCRATCH=str(self.dir / f"second-{scheme}-{number}"))
                    self.assert_words(done.stderr, f"{self.url(scheme)}/checkpoints/step-000000000010 copied to")
                    self.assertEqual(self.digests(self.url(scheme)), expected)
                    self.assert_same_files(scheme)

    def assert_same_files(self, scheme):
        """The store has what the local run has."""
        local = sorted(str(path.relative_to(self.dir / "run")) for path in (self.dir / "run").rglob("*")
                       if path.is_file())
        self.assertEqual(self.names_in_store(scheme), sorted([*local, "owner.json"]))
        text = self.server.files[f"runs/{scheme}/metrics.jsonl"].decode()
        reports = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([line["step"] for line in reports if "train" in line], [5, 10, 15, 20, 25])
        summary = json.loads(self.server.files[f"runs/{scheme}/summary.json"])
        self.assertTrue(summary["finished"])
        self.assertNotIn(SECRET.encode(), b"".join(self.server.files.values()))

    def kill_in_upload(self, file, *command):
        """Runs a command until it would upload `file`, and kills it there."""
        program = self.start(*command)

        def kill(key):
            if not key.endswith(file):
                return None
            program.kill()
            return "reset"

        self.server.write_fault = kill
        self.expect_killed(program)
        self.server.write_fault = lambda key: None

    def start(self, *command):
        return subprocess.Popen([SATRAP, *command], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def expect_killed(self, program):
        _, said = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, -9, said)

    def local_file(self, name):
        """Of the newest checkpoint that a killed job has left on this machine."""
        return sorted((self.dir / "scratch").glob(f"*/*/checkpoints/step-*/{name}"))[-1]

    def test_a_damaged_copy_on_this_machine_is_fetched_again(self):
        expected = self.train_locally()
        for scheme in SCHEMES:
            for name, damage in (("table-0.bin", lambda path: path.write_bytes(flipped(path.read_bytes()))),
                                 ("dense.bin", pathlib.Path.unlink)):
                with self.subTest(scheme=scheme, name=name):
                    self.server.files = {}
                    self.kill_in_upload("15/table-0.bin", "train", "job.yaml", f"run_dir={self.url(scheme)}")
                    damage(self.local_file(name))
                    self.train(self.url(scheme), "--resume")
                    self.assertEqual(self.digests(self.url(scheme)), expected)

    def test_a_damaged_checkpoint_in_the_store_is_refused_and_the_one_before_it_offered(self):
        expected = self.train_locally()
        for scheme in SCHEMES:
            with self.subTest(scheme):
                url = self.url(scheme)
                resume = ("train", "job.yaml", f"run_dir={url}", "--resume")
                self.train(url, "train.max_steps=10")
                folder = f"runs/{scheme}/checkpoints/step-000000000010"
                key, dense = f"{folder}/table-0.bin", f"{folder}/dense.bin"
                intact = self.server.files
                lost = {name: content for name, content in intact.items() if name != key}
                for words, files in (("size or checksum", {**intact, key: flipped(intact[key])}), ("missing", lost)):
                    self.server.files = files
                    for command in (("checkpoint", "verify", url), resume):
                        error = self.fail_with(1, *command, cwd=self.dir)
                        self.assert_words(error, f"step-000000000010/table-0.bin: {words}", "--resume-from",
                                          f"the one before it is {url}/checkpoints/step-000000000005 ")
                        self.assertNotIn("scratch", error)
                self.server.files = {name: content for name, content in lost.items() if "step-000000000005" not in name}
                self.assert_words(self.fail_with(1, *resume, cwd=self.dir), "no earlier one in the store")
                # What those starts have fetched and checked is not fetched again.
                self.server.files = {**intact, dense: flipped(intact[dense])}
                self.train(url, "--resume")
                self.assertEqual(self.digests(url), expected)

    def test_faults_that_pass_change_nothing(self):
        expected = self.train_locally()
        for scheme in SCHEMES:
            with self.subTest(scheme):
                faults = ["reset", "lost", "500", "503", "stall"]
                random.Random(29).shuffle(faults)
                left = [fault for one in faults for fault in (one, None, None)]
                self.server.write_fault = take_first(left)
                self.train(self.url(scheme), SATRAP_REMOTE_STALL="2s")
                self.assertEqual(left, [])
                self.assertEqual(self.digests(self.url(scheme)), expected)
                self.assert_same_files(scheme)

    def test_faults_that_stay_end_the_job_and_leave_no_half_checkpoint(self):
        for scheme in SCHEMES:
            for fault, timeout, words in (("403", "5min", ["403" if scheme == "hdfs" else "ACCESS_DENIED"]),
                                          ("503", "1s", ["SATRAP_REMOTE_TIMEOUT = 1.0s"])):
                with self.subTest(scheme=scheme, fault=fault):
                    self.server.files = {}
                    self.server.write_fault = lambda key: (
                        fault if key.endswith("10/dense.bin") or "10/.tmp" in key else None)
                    error = self.fail_with(1, "train", "job.yaml", f"run_dir={self.url(scheme)}",
                                           "checkpoint.max_failures=1", cwd=self.dir,
                                           env={**os.environ, "SATRAP_REMOTE_TIMEOUT": timeout})
                    url = f"{self.url(scheme)}/checkpoints"
                    self.assert_words(error, "checkpoint of step 10 failed", f"cannot write '{url}/step-000000000010/",
                                      f"the newest one is {url}/step-000000000005", *words)
                    self.assertNotIn(SECRET, error)
                    self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005"])

    def test_every_command_takes_the_url_of_a_run_or_a_checkpoint(self):
        self.train_locally()
        predict = ["predict", "--checkpoint"]
        expected = self.succeed(*predict, "run", cwd=self.dir).stdout
        for scheme in SCHEMES:
            with self.subTest(scheme):
                url = self.url(scheme)
                self.train(url)
                newest = f"{url}/checkpoints/step-000000000025"
                listed = self.succeed("checkpoint", "ls", url, cwd=self.dir).stdout
                self.assert_words(listed, newest, "step-000000000020", "train.auc=")
                for used in (url, f"{url}/checkpoints", newest, f"{newest}/", f"{url}@last"):
                    self.assertEqual(self.succeed(*predict, used, cwd=self.dir).stdout, expected)
                said = self.succeed("eval", "--checkpoint", url, cwd=self.dir).stdout
                self.assertIn(f"checkpoint   {newest}\n", said)
                out = self.dir / f"export-{scheme}"
                self.succeed("export", "--checkpoint", url, "--out", out, cwd=self.dir)
                self.assertEqual(json.loads((out / "export.json").read_text())["checkpoint"], newest)
                into = f"{self.url(scheme)}-exported/one"
                self.succeed("export", "--checkpoint", "run", "--out", into, cwd=self.dir)
                self.assert_words(self.fail_with(2, "export", "--checkpoint", "run", "--out", into, cwd=self.dir),
                                  f"'{into}' holds an earlier export", "--overwrite")
                self.succeed("export", "--checkpoint", url, "--out", into, "--overwrite", cwd=self.dir)
                for path in out.iterdir():
                    self.assertEqual(self.server.files[f"runs/{scheme}-exported/one/{path.name}"], path.read_bytes())
                self.assert_words(self.fail_with(2, "export", "--checkpoint", "run", "--out", url, cwd=self.dir),
                                  "not an export")
                report = self.server.files.pop(f"runs/{scheme}/report.html")
                self.assertEqual(self.succeed("report", url, cwd=self.dir).stdout, f"{url}/report.html\n")
                self.assertEqual(self.server.files[f"runs/{scheme}/report.html"], report)
                resharded = self.dir / f"resharded-{scheme}"
                self.succeed("checkpoint", "reshard", url, "--shards", "2", "--out", resharded, cwd=self.dir)
                self.assertEqual(self.digests(resharded), {k: v for k, v in self.digests(url).items() if "25" in k})
                self.assert_words(self.fail_with(2, "checkpoint", "reshard", url, "--shards", "2", cwd=self.dir),
                                  "--out")
                # Nothing stays on this machine but what the job itself has written.
                self.assertEqual(self.copies(), [])

    def test_an_export_that_was_cut_off_is_repeated_with_rights_to_its_folder_alone(self):
        self.succeed("train", "job.yaml", cwd=self.dir)
        self.succeed("export", "--checkpoint", "run", "--out", "expected", cwd=self.dir)
        expected = {path.name: path.read_bytes() for path in (self.dir / "expected").iterdir()}
        for scheme in SCHEMES:
            with self.subTest(scheme):
                folder = f"exports/{scheme}/one"
                out = self.server.url(scheme, folder)
                command = ("export", "--checkpoint", "run", "--out", out)

                def exported(folder=folder):
                    return {key.removeprefix(f"{folder}/"): content for key, content in self.server.files.items()
                            if key.startswith(f"{folder}/") and not key.endswith("/")}

                def only_there(key, folder=folder):
                    return None if key.startswith(folder) else "403"

                self.kill_in_upload("dense.pt", *command)
                self.assertEqual([*exported()], ["export-incomplete.json"])
                self.succeed(*command, cwd=self.dir)
                self.assertEqual(exported(), expected)
                self.kill_in_upload("/export.json", *command, "--overwrite")
                self.assertNotIn("export.json", exported())
                self.server.files = {**self.server.files, f"{folder}/rows-of-before.bin": b"1"}
                self.server.write_fault = only_there
                self.succeed(*command, cwd=self.dir)
                self.succeed(*command, "--overwrite", cwd=self.dir)
                self.assertEqual(exported(), expected)
                self.server.write_fault = lambda key: None

    def test_the_copy_of_a_killed_command_is_removed_by_the_next(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                url = self.url(scheme)
                self.train(url, "train.max_steps=5")
                program = self.start("checkpoint", "verify", f"{url}/checkpoints/step-000000000005")

                def kill(program=program):
                    if self.copies():
                        program.kill()

                self.server.changes = kill
                self.expect_killed(program)
                self.server.changes = lambda: None
                self.assertEqual(len(self.copies()), 1)
                self.digests(url)
                self.assertEqual(self.copies(), [])

    def copies(self):
        """Of checkpoints, on this machine."""
        return [*(self.dir / "scratch").glob("copy-*")]

    def test_another_job_begins_with_a_checkpoint_in_a_store(self):
        expected = self.train_locally()
        self.succeed("train", "job.yaml", "run_dir=warm", "train.warm_start.from=run", "train.max_steps=7",
                     cwd=self.dir)
        for scheme in SCHEMES:
            with self.subTest(scheme):
                self.train(self.url(scheme), "train.max_steps=10")
                self.train(f"from-{scheme}", "--resume-from", self.url(scheme))
                self.assertEqual(self.digests(f"from-{scheme}"), expected)
                self.train(self.url(scheme), "--overwrite")
                self.train(f"warm-{scheme}", f"train.warm_start.from={self.url(scheme)}", "train.max_steps=7")
                self.assertEqual(self.digests(f"warm-{scheme}"), self.digests("warm"))
                summary = json.loads((self.dir / f"warm-{scheme}" / "summary.json").read_text())
                self.assertEqual(summary["warm_start"]["from"], f"{self.url(scheme)}/checkpoints/step-000000000025")

    def test_a_run_that_is_there_is_kept_continued_or_removed_as_asked_for(self):
        expected = self.train_locally()
        for scheme in SCHEMES:
            with self.subTest(scheme):
                url = self.url(scheme)
                self.train(url, "train.max_steps=12")
                before = dict(self.server.files)
                error = self.fail_with(2, "train", "job.yaml", f"run_dir={url}", cwd=self.dir)
                self.assert_words(error, f"'{url}' holds an earlier run", "--resume", "--overwrite")
                self.assertEqual(self.server.files, before)
                # Steps after the checkpoint from which it continues are void.
                self.train(url, "--resume-from", f"{url}/checkpoints/step-000000000010")
                self.assertEqual(self.digests(url), expected)
                self.train(url, "--overwrite", "train.max_steps=5")
                self.assertEqual([*self.digests(url)], ["step-000000000005"])
                preview = self.succeed("train", "job.yaml", f"run_dir={url}", "--dry-run", cwd=self.dir).stdout
                self.assert_words(preview, f"{url}: holds a run")

    def test_a_job_that_another_has_taken_over_publishes_nothing_more(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                self.server.files = {}

                def take_over(key):
                    if "step-000000000010/" in key:
                        self.server.files = {**self.server.files, f"runs/{scheme}/owner.json": b'{"host": "other"}\n'}

                self.server.write_fault = take_over
                error = self.fail_with(1, "train", "job.yaml", f"run_dir={self.url(scheme)}", cwd=self.dir)
                self.assert_words(error, f"'{self.url(scheme)}' has been taken over by another job", '"other"')
                self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005"])

    def test_what_makes_no_sense_is_refused(self):
        for url, words in (("s3://key:password@bucket/run", ["AWS_ACCESS_KEY_ID"]),
                           ("gs://bucket/run", ["no URL of S3"]),
                           ("s3://bucket", ["names no"]), ("s3://bucket/", ["names no"])):
            with self.subTest(url):
                error = self.fail_with(2, "train", "job.yaml", f"run_dir={url}", cwd=self.dir)
                self.assert_words(error, "run_dir", *words)
                self.assertNotIn("password@", error)
        error = self.fail_with(1, "eval", "--checkpoint", self.url(SCHEMES[0]), cwd=self.dir)
        self.assert_words(error, self.url(SCHEMES[0]), "neither a checkpoint")


if __name__ == "__main__":
    unittest.main(verbosity=2)
