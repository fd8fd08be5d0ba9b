"""Shared parts of the end-to-end tests of the `satrap` program: running it, small data, small jobs."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SATRAP = os.path.abspath(os.environ.get("SATRAP_BIN") or "build/release/bin/satrap")
SANITIZED = bool(os.environ.get("SATRAP_SANITIZE"))
TIMEOUT_S = 600 if SANITIZED else 120  # for a program that hangs; no test here takes long

# Small enough to train in a fraction of a second; every name in it is part of the contract.
JOB = """\
run_dir: {run_dir}
device: cpu
seed: 7
data:
  schema: criteo
  train: {{path: "{train}"}}
  eval: {{path: "{eval}"}}
  batch_size: 100
tables:
  default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}
features:
  default: {{table: own, pooling: sum}}
model: {{type: dlrm, bottom: [16, 4], top: [16]}}
dense_optimizer: {{type: adam, lr: 0.005}}
train: {{mode: hybrid, staleness: 2, staleness_schedule: constant, deterministic: true,
         precision: fp32, threads: 1, report_every: 5 steps}}
checkpoint: {{every: 10 steps, keep: 3}}
"""


def satrap(*args, **kwargs):
    """Runs the program to its end; returns stdout and stderr as text."""
    kwargs.setdefault("timeout", TIMEOUT_S)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([SATRAP, *map(str, args)], text=True, **kwargs)


def read_terminal(ours):
    """All that is written to the other side of a pseudo-terminal until it is closed; closes this side."""
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how Linux reports that the other side is closed
        pass
    os.close(ours)
    return shown


class CliTest(unittest.TestCase):
    """A test with its own folder, and assertions on how a program ended."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-app-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def succeed(self, *args, **kwargs):
        done = satrap(*args, **kwargs)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}\n{done.stderr}")
        return done

    def fail_with(self, status, *args, **kwargs):
        """The one `error: …` line of a program that must end with `status`."""
        done = satrap(*args, **kwargs)
        self.assertEqual(done.returncode, status, f"{args}\n{done.stdout}\n{done.stderr}")
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, f"{args}\n{done.stderr}")
        last = done.stderr.rstrip("\n").splitlines()[-1]
        self.assertEqual(last, errors[0], "the error is the last line")
        self.assertNotIn("terminate called", done.stderr)
        self.assertGreater(len(errors[0]), len("error: "))
        return errors[0]

    def assert_words(self, text, *words):
        """Asserts that every word occurs in `text`, in upper or lower case."""
        for word in words:
            self.assertIn(word.lower(), text.lower())

    def generate(self, name, rows, *options):
        path = self.dir / name
        self.succeed("data", "generate", "--rows", rows, "--out", path, *options)
        return path

    def job(self, rows=3000, **edits):
        """A job file and its data. Edits replace text in JOB."""
        train = self.write("train.tsv", "".join(click_log()[:rows]))
        held_out = self.write("eval.tsv", train.read_text())
        text = JOB.format(run_dir=self.dir / "run", train=train, eval=held_out)
        for old, new in edits.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write("job.yaml", text)

    def checkpoints(self, run="run"):
        """Names of the published checkpoints, oldest first."""
        folder = self.dir / run / "checkpoints"
        return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))

    def digest(self, checkpoint):
        done = self.succeed("checkpoint", "verify", checkpoint)
        return re.search(r"digest ([0-9a-f]+)", done.stdout).group(1)


@functools.cache
def click_log():
    """Rows to train on; generated once, because starting the program takes longer than anything here."""
    done = satrap("data", "generate", "--rows", 6000, "--scale", "0.001", "--out", "-")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(keepends=True)


def without_escapes(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
