"""Jobs whose run_dir is in S3 or HDFS: what is in the store is what a local run_dir has, and never half of it."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
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


def plain(key):
    """Without the folder that only one process writes, in that of a checkpoint."""
    return re.sub(r"(/step-\d+)/[0-9a-f]{16}/", r"\1/", key)


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
        return sorted(plain(key).removeprefix(folder) for key in self.server.files
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
                    if victim == "manifest.json":  # the metrics of a checkpoint are there before it is
                        self.assertIn(15, [line["step"] for line in self.metrics(scheme)])
                    self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005", "step-000000000010"])
                    done = self.train(self.url(scheme), "--resume",
                                      SATRAP_SCRATCH=str(self.dir / f"second-{scheme}-{number}"))
                    self.assert_words(done.stderr, f"{self.url(scheme)}/checkpoints/step-000000000010 copied to")
                    self.assertEqual(self.digests(self.url(scheme)), expected)
                    self.assert_same_files(scheme)

    def metrics(self, scheme):
        text = self.server.files[f"runs/{scheme}/metrics.jsonl"].decode()
        return [json.loads(line) for line in text.splitlines()]

    def assert_same_files(self, scheme):
        """The store has what the local run has."""
        local = sorted(str(path.relative_to(self.dir / "run")) for path in (self.dir / "run").rglob("*")
                       if path.is_file())
        self.assertEqual(self.names_in_store(scheme), sorted([*local, "owner.json"]))
        self.assertEqual([line["step"] for line in self.metrics(scheme) if "train" in line], [5, 10, 15, 20, 25])
        summary = json.loads(self.server.files[f"runs/{scheme}/summary.json"])
        self.assertTrue(summary["finished"])
        self.assertNotIn(SECRET.encode(), b"".join(self.server.files.values()))

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
                self.assertEqual([path for path in (self.dir / "scratch").glob("copy-*")], [])

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
                error = self.fail_with(1, "train", "job.yaml", f"run_dir={self.url(scheme)}", "train.epochs=4",
                                       cwd=self.dir)
                self.assert_words(error, f"'{self.url(scheme)}' has been taken over by another job", '"other"')
                self.assertNotIn("in a row", error)  # it ends with the first refusal
                self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000005"])

    def start(self, url, *more):
        """A job beside others; its scratch folder is `first`."""
        environment = {**os.environ, "SATRAP_SCRATCH": str(self.dir / "first"), "SATRAP_REMOTE_STALL": "5min"}
        return subprocess.Popen([SATRAP, "train", "job.yaml", f"run_dir={url}", *more], cwd=self.dir, env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def continue_elsewhere(self, url, *more):
        """What another machine says that continues the run, to 15 steps."""
        return satrap("train", "job.yaml", f"run_dir={url}", "--resume", "train.max_steps=15", *more, cwd=self.dir,
                      env={**os.environ, "SATRAP_SCRATCH": str(self.dir / "second"), "SATRAP_REMOTE_STALL": "5min"})

    def test_a_former_owner_that_goes_on_uploading_leaves_what_the_new_one_has_published(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                seen = []

                def continue_it(key):
                    if not seen and "step-000000000015/" in key and "table-0.bin" in key:
                        seen.append(None)
                        done = self.continue_elsewhere(self.url(scheme), "tables.default.optimizer.lr=0.06")
                        seen[0] = (done, self.digests(self.url(scheme)))

                self.server.write_fault = continue_it
                _, said = (program := self.start(self.url(scheme))).communicate(timeout=TIMEOUT_S)
                done, published = seen[0]
                self.assertEqual((done.returncode, program.returncode), (0, 1), done.stderr + said)
                self.assert_words(said, "has been taken over by another job")
                self.assertEqual([*published], ["step-000000000010", "step-000000000015"])
                self.assertEqual(self.digests(self.url(scheme)), published)

    def test_a_former_owner_removes_nothing_of_an_upload_in_progress(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                held, goes_on, said = threading.Event(), threading.Event(), []
                self.addCleanup(goes_on.set)

                def interleave(key):
                    if "step-000000000010/" in key and key.endswith("manifest.json") and not held.is_set():
                        held.set()
                        goes_on.wait(TIMEOUT_S)
                    elif "step-000000000015/" in key and "table-0.bin" in key and not said:
                        goes_on.set()
                        said.append(program.communicate(timeout=TIMEOUT_S)[1])

                self.server.write_fault = interleave
                program = self.start(self.url(scheme))
                self.assertTrue(held.wait(TIMEOUT_S))
                done = self.continue_elsewhere(self.url(scheme))
                self.assertEqual((done.returncode, program.returncode), (0, 1), f"{done.stderr}{said}")
                self.assert_words(said[0], "has been taken over by another job")
                self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000010", "step-000000000015"])

    def test_a_start_that_is_refused_leaves_the_run_to_the_job_that_has_it(self):
        expected, refused = self.train_locally(), []
        scheme = SCHEMES[0]

        def start_another(key):
            if not refused and "step-000000000010/" in key:
                refused.append(None)
                refused[0] = self.continue_elsewhere(self.url(scheme), "model.hidden=[16]")

        self.server.write_fault = start_another
        self.train(self.url(scheme), "checkpoint.max_failures=1")
        self.assertEqual(refused[0].returncode, 2, refused[0].stderr)
        self.assert_words(refused[0].stderr, "model.hidden: [8] -> [16]")
        self.assertEqual(self.digests(self.url(scheme)), expected)

    def test_a_start_while_another_job_publishes_is_refused(self):
        scheme = SCHEMES[0]
        self.train(self.url(scheme), "train.max_steps=10")
        before, reads = dict(self.server.files), self.server.reads

        def publish():
            if self.server.reads - reads >= 6:  # metrics and manifest are read first
                self.server.files = {**before, **{key.replace("step-000000000010/", "step-000000000015/"): content
                                                  for key, content in before.items()}}

        self.server.changes = publish
        done = self.continue_elsewhere(self.url(scheme))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_words(done.stderr, "another job is training there", "checkpoints/step-000000000015; stop that job")
        self.assertEqual({key: self.server.files[key] for key in before}, before)

    def test_metrics_that_are_refused_follow_later(self):
        self.train_locally()
        scheme = SCHEMES[0]
        self.server.write_fault = lambda key: (
            "403" if key.endswith("metrics.jsonl") and any("manifest" in name for name in self.server.files) else None)
        error = self.fail_with(1, "train", "job.yaml", f"run_dir={self.url(scheme)}", "checkpoint.max_failures=1",
                               "train.max_steps=20", cwd=self.dir)
        self.assert_words(error, f"cannot write '{self.url(scheme)}/metrics.jsonl'")
        self.assertEqual([*self.digests(self.url(scheme))], ["step-000000000015", "step-000000000020"])
        self.server.write_fault = lambda key: None
        self.train(self.url(scheme), "--resume")
        self.assert_same_files(scheme)

    def test_an_evaluation_is_added_to_the_checkpoint_that_was_evaluated(self):
        url, manifest = self.url(SCHEMES[0]), f"runs/{SCHEMES[0]}/checkpoints/step-000000000025/manifest.json"

        def kill(key):
            if key.endswith("metrics.jsonl") and manifest in self.server.files:
                program.kill()  # its last checkpoint stays on its machine
                return "reset"

        self.server.write_fault = kill
        (program := self.start(url)).communicate(timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, -9)
        self.server.write_fault = lambda key: None
        another = "tables.default.optimizer.lr=0.06"
        self.train(url, "--overwrite", another)
        before = self.digests(url)
        self.train(url, "--resume-from", url, another, SATRAP_SCRATCH=str(self.dir / "first"))
        self.assertEqual(self.digests(url), before)
        self.assertIn("eval.auc", json.loads(self.server.files[manifest])["metrics"])

    def test_events_of_each_start_have_a_file_of_their_own(self):
        url, events = self.url(SCHEMES[0]), f"runs/{SCHEMES[0]}/tensorboard/events.out.tfevents."
        self.train(url, "train.max_steps=10")
        self.server.files = {**self.server.files, f"{events}9000000000.another": b"events"}
        self.train(url, "--resume", "train.tensorboard=true")
        names = [key.removeprefix(events)[:10] for key in self.server.files if key.startswith(events)]
        self.assertEqual(sorted(names), ["9000000000", "9000000001"])

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
