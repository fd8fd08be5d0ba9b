"""Jobs whose run_dir is in S3 or HDFS: what is in the store is what a local run_dir has, and never half of it."""
import json
import os
import pathlib
import random
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S
from store_run_case import flipped, plain, SCHEMES, SECRET, StoreRunCase
from store_writes import take_first


class StoreRuns(StoreRunCase):
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
                    if victim == "manifest.json":  # the metrics of a checkpoint are there before it is
                        self.assertIn(15, [line["step"] for line in self.metrics(scheme)])
                    self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005", "step-000000000010"])
                    done = self.train(self.url(scheme), "--resume",
                                      SATRAP_SCRATCH=str(self.dir / f"second-{scheme}-{number}"))
                    self.assert_words(done.stderr, f"{self.url(scheme)}/checkpoints/step-000000000010 copied to")
                    self.assertEqual(self.digests(self.url(scheme)), expected)
                    self.assert_same_files(scheme)

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
                key, dense = (next(key for key in self.server.files if plain(key) == f"{folder}/{name}")
                              for name in ("table-0.bin", "dense.bin"))
                intact = self.server.files
                lost = {name: content for name, content in intact.items() if name != key}
                for words, files in (("size or checksum", {**intact, key: flipped(intact[key])}), ("missing", lost)):
                    self.server.files = files
                    for command in (("checkpoint", "verify", url), resume):
                        error = self.fail_with(1, *command, cwd=self.dir)
                        self.assert_words(error, f"{key}: {words}", "--resume-from",
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
                        fault if plain(key).endswith("10/dense.bin") or "10/.tmp" in plain(key) else None)
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

                self.kill_in_upload("dense.onnx", *command)
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
                program = self.start_command("checkpoint", "verify", f"{url}/checkpoints/step-000000000005")

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
    unittest.main()
