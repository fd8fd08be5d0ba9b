"""Jobs that have one run in S3 or HDFS: what one has published, another does not damage."""
import json
import os
import subprocess
import threading
import unittest

from cli import SATRAP, TIMEOUT_S, satrap
from store_run_case import SCHEMES, StoreRunCase


class StoreOwners(StoreRunCase):
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


if __name__ == "__main__":
    unittest.main()
