"""The output of a running job: one line that is rewritten on a terminal, plain lines everywhere else."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, without_escapes, read_terminal


class Progress(CliTest):
    def on_terminal(self, columns, *args):
        """Everything `satrap train` shows on a terminal of that width; its stdout is a pipe."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        program = subprocess.Popen([SATRAP, "train", *map(str, args)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        shown = read_terminal(ours)
        self.stdout = program.stdout.read().decode()
        program.stdout.close()
        self.assertEqual(program.wait(TIMEOUT_S), 0, shown)
        return shown.decode()

    def made_up_job(self):
        return self.write("made_up.yaml", f"""\
run_dir: {self.dir / "run"}
device: cpu
data:
  format: synthetic
  synthetic: {{rows: 3000, eval_rows: 200, scale: 0.001}}
  batch_size: 100
tables: {{default: {{dim: 4}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{report_every: 5 steps}}
checkpoint: {{every: 10 steps}}
""")

    def test_a_pipe_gets_plain_lines(self):
        done = self.succeed("train", self.job(rows=3000))
        self.assertNotIn("\r", done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        reports = [line for line in done.stderr.splitlines() if "examples/s" in line]
        self.assertGreaterEqual(len(reports), 6)
        for line in reports:
            self.assertRegex(line, r"step +\d+")
            self.assertRegex(line, r"loss +\d\.\d+")
            self.assertRegex(line, r"(?i)auc +(\d\.\d+|-|nan)")
        self.assertNotIn("examples/s", "".join(
            line for line in done.stdout.splitlines() if "step" in line and "eta" in line.lower()))

    def test_a_terminal_gets_a_line_that_is_rewritten(self):
        # Generated rows, because their number is known, and so is the time left.
        shown = self.on_terminal(120, self.made_up_job())
        self.assertIn("\r", shown)
        plain = without_escapes(shown)
        states = [state for state in re.split(r"[\r\n]+", plain) if "examples/s" in state]
        self.assertGreaterEqual(len(states), 5)
        for word in [r"\d+ ?%", r"loss +\d\.\d+", r"(?i)auc", r"(?i)wait"]:
            self.assertRegex(states[-1], word)
        self.assertTrue([state for state in states if "eta" in state])
        left = [row.split("\r")[-1] for row in plain.split("\r\n")]  # not overwritten
        self.assertFalse([row for row in left if "eta" in row], "no line per report")
        self.assertTrue([row for row in left if "checkpoint" in row], "the log stays")
        self.assertIn("summary.json", self.stdout)

    def test_it_has_a_phase_from_the_beginning_to_the_end(self):
        plain = without_escapes(self.on_terminal(160, self.made_up_job(), "train.report_every=10s"))
        phases = [next((word for word in ("starting", "training", "evaluating", "saving") if word in state), None)
                  for state in re.split(r"[\r\n]+", plain)]
        self.assertEqual(phases.index("starting"), next(i for i, phase in enumerate(phases) if phase))
        self.assertIn("training", phases)
        states = [state for state in re.split(r"[\r\n]+", plain) if "training" in state]
        shares = [int(share) for state in states for share in re.findall(r"(\d+)%  training", state)]
        steps = [int(step) for state in states for step in re.findall(r"step (\d+)", state)]
        self.assertEqual((shares, steps), (sorted(shares), sorted(steps)))
        for state in states:  # of 30 steps
            if found := re.search(r"(\d+)%  training .* step (\d+)", state):
                self.assertEqual(int(found[1]), int(found[2]) * 100 // 30)

    def test_it_never_wraps(self):
        job = self.job(rows=2000)
        for columns in [20, 40, 80]:
            with self.subTest(columns=columns):
                shown = self.on_terminal(columns, job, "--overwrite", "data.eval.path=[]",
                                         "train.eval_every=never")
                for state in re.split(r"[\r\n]+", without_escapes(shown)):
                    if "examples/s" in state or "%" in state:
                        self.assertLessEqual(len(state.rstrip()), columns, repr(state))

    def test_reports_can_be_turned_off(self):
        done = self.succeed("train", self.job(rows=1000), "train.report_every=never")
        reports = [line for line in done.stderr.splitlines() if "examples/s" in line]
        self.assertLessEqual(len(reports), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
