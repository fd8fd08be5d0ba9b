"""One run directory has one job at a time."""
import os
import signal
import subprocess
import time
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest


class TwoJobs(CliTest):
    def running(self):
        """A job that has written its first checkpoint and will not end by itself."""
        self.config = self.job(**{"every: 10 steps": "every: 5 steps",
                                  "train: {mode": "train: {epochs: 100000, mode"})
        job = subprocess.Popen([SATRAP, "train", str(self.config)], stderr=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        deadline = time.monotonic() + TIMEOUT_S
        folder = self.dir / "run" / "checkpoints"
        while not (folder.is_dir() and any(name.startswith("step-") for name in os.listdir(folder))):
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return job

    def test_the_second_is_refused_and_the_first_goes_on(self):
        first = self.running()
        for option in ("--resume", "--overwrite", f"--resume-from={self.dir / 'run'}"):
            error = self.fail_with(2, "train", self.config, option)
            self.assert_words(error, "run_dir", f"is in use by process {first.pid}", "since")
        # By another name of the same folder.
        (self.dir / "link").symlink_to(self.dir / "run")
        self.assert_words(self.fail_with(2, "train", self.config, f"run_dir={self.dir / 'link'}",
                                         "--resume"), f"process {first.pid}")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(TIMEOUT_S), 143)
        self.assertFalse((self.dir / "run" / ".lock").exists())
        self.succeed("train", self.config, "--resume", "train.epochs=1")
        self.digest(self.dir / "run")

    def test_a_killed_one_does_not_keep_the_directory(self):
        first = self.running()
        first.kill()
        first.wait(TIMEOUT_S)
        self.assertTrue((self.dir / "run" / ".lock").exists())
        self.succeed("train", self.config, "--resume", "train.epochs=1")


if __name__ == "__main__":
    unittest.main()
