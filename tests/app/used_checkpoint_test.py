"""Which checkpoint and configuration `eval`, `predict` and `export` use, and how a stopped run is continued."""
import json
import re
import shutil
import signal
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, satrap


class Checkpoint(CliTest):
    def overfitted(self):
        """A run directory whose best checkpoint is not its newest: it overfits 400 rows, which 400 others show."""
        job = self.job(rows=800, **{"threads: 1": "threads: 1, epochs: 60, eval_every: 4 steps, "
                                                  "early_stopping: {metric: logloss, patience: 3}"})
        rows = (self.dir / "train.tsv").read_text().splitlines(keepends=True)
        self.write("train.tsv", "".join(rows[:400]))
        self.write("eval.tsv", "".join(rows[400:]))
        self.succeed("train", job)
        self.run_dir = self.dir / "run"
        early = json.loads((self.run_dir / "summary.json").read_text())["early_stopping"]
        self.best = f"step-{early['best_step']:012}"
        self.assertNotEqual(self.best, self.checkpoints()[-1])
        return job

    def test_the_best_one_is_used_after_early_stopping(self):
        job = self.overfitted()
        for checkpoint, name in [(self.run_dir, self.best), (f"{self.run_dir}@best", self.best),
                                 (f"{self.run_dir}@last", self.checkpoints()[-1]),
                                 (self.run_dir / "checkpoints", self.best),
                                 (self.run_dir / "checkpoints" / self.checkpoints()[-1], self.checkpoints()[-1])]:
            with self.subTest(checkpoint=checkpoint):
                evaluated = self.succeed("eval", job, "--checkpoint", checkpoint)
                self.assertRegex(evaluated.stdout, rf"checkpoint +\S+/{name}\n")
                said = f"{name}: the best by logloss; the newest is step"
                # That of a whole run is chosen; one that is named needs no word.
                self.assertEqual(said in evaluated.stderr, name == self.best, evaluated.stderr)
                predicted = self.succeed("predict", job, "--checkpoint", checkpoint)
                self.assertIn(f"{name}: predictions of 400 rows", predicted.stderr)
                exported = self.succeed("export", job, "--checkpoint", checkpoint, "--out", self.dir / "model",
                                        "--overwrite")
                self.assertIn(name, exported.stdout)

    def test_its_metrics_are_those_that_early_stopping_saw(self):
        self.overfitted()
        value = json.loads((self.run_dir / "summary.json").read_text())["early_stopping"]["best_value"]
        page = self.succeed("eval", "--checkpoint", self.run_dir).stdout
        self.assertAlmostEqual(float(re.search(r"logloss +([0-9.]+)", page).group(1)), value, places=5)

    def test_without_early_stopping_it_is_the_newest(self):
        job = self.job(rows=1500)
        self.succeed("train", job)
        page = self.succeed("eval", job, "--checkpoint", self.dir / "run")
        self.assertIn(self.checkpoints()[-1], page.stdout)
        self.assertNotIn("best", page.stderr)
        self.assert_words(self.fail_with(1, "eval", job, "--checkpoint", f"{self.dir}/run@best"),
                          "none of its checkpoints is known as the best", "train.early_stopping")

    def test_a_name_may_end_like_that(self):
        job = self.job(rows=500)
        self.succeed("train", job)
        shutil.copytree(self.dir / "run", self.dir / "run@best")
        self.assertIn("run@best/", self.succeed("eval", job, "--checkpoint", self.dir / "run@best").stdout)


class Configuration(CliTest):
    def test_it_is_that_of_the_checkpoint_if_none_is_named(self):
        job = self.job(rows=500)
        self.succeed("train", job, "tables.default.dim=8", "model.bottom=[16, 8]")
        expected = self.succeed("eval", job, "tables.default.dim=8", "model.bottom=[16, 8]", "--checkpoint",
                                self.dir / "run").stdout
        job.unlink()
        for arguments in (["--checkpoint", self.dir / "run"], ["train.threads=2", "--checkpoint", self.dir / "run"],
                          ["--checkpoint", self.dir / "run", "train.threads=2", "data.eval.max_rows=0"]):
            self.assertEqual(self.succeed("eval", *arguments).stdout, expected)
        page = self.succeed("predict", "--checkpoint", self.dir / "run", "data.eval.max_rows=7").stdout
        self.assertEqual(page.count("\n"), 8)
        self.assertRegex(self.fail_with(2, "eval", "--checkpoint", self.dir / "run", "train.threds=2"),
                         r"train\.threds.*threads")
        self.assert_words(self.fail_with(2, "eval", "nothing.yaml", "--checkpoint", self.dir / "run"), "nothing.yaml")

    def test_nothing_is_printed_before_the_checks(self):
        job = self.job(rows=500)
        self.succeed("train", job)
        done = satrap("predict", job, "tables.default.dim=8", "model.bottom=[16, 8]", "--checkpoint", self.dir / "run")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)


class Hint(CliTest):
    def test_the_hint_of_a_stopped_run_continues_that_run(self):
        job = self.job(rows=500)
        other = self.dir / "other"
        program = subprocess.Popen([SATRAP, "train", job, f"run_dir={other}", "train.epochs=1000000"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with program.stderr:
            for line in program.stderr:
                if "examples/s" in line:
                    break
            program.send_signal(signal.SIGINT)
            rest = program.stderr.read()
        self.assertEqual(program.wait(TIMEOUT_S), 130)
        hint = re.search(r"stopped by SIGINT; `satrap (train .* --resume)` continues from (\S+)", rest)
        self.assertTrue(hint, rest)
        step = int(hint.group(2)[-12:])
        self.succeed(*hint.group(1).split(), f"train.max_steps={step + 5}")
        self.assertEqual(self.checkpoints("other")[-1], f"step-{step + 5:012}")
        self.assertFalse((self.dir / "run").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
