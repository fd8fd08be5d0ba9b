"""One job from the first row to the last checkpoint: generate, inspect, train, evaluate, list, verify."""
import json
import math
import os
import pathlib
import re
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest


class Generate(CliTest):
    def test_criteo_rows(self):
        rows = self.generate("a.tsv", 500, "--scale", "0.001").read_text().splitlines()
        self.assertEqual(len(rows), 500)
        for row in rows:
            fields = row.split("\t")
            self.assertEqual(len(fields), 40)
            self.assertIn(fields[0], "01")
            for number in fields[1:14]:
                self.assertRegex(number, r"^(-?\d+)?$")
            for category in fields[14:]:
                self.assertRegex(category, r"^([0-9a-f]{8}|[0-9a-f]{16})?$")

    def test_tells_the_best_reachable_metrics(self):
        done = self.succeed("data", "generate", "--rows", 2000, "--scale", "0.001", "--out",
                            self.dir / "a.tsv")
        auc = float(re.search(r"(?i)auc\D*?(0\.\d+)", done.stdout).group(1))
        logloss = float(re.search(r"(?i)logloss\D*?(0\.\d+)", done.stdout).group(1))
        self.assertTrue(0.6 < auc < 1.0, auc)
        self.assertTrue(0.2 < logloss < 0.6, logloss)

    def test_to_standard_output_the_same_rows_and_nothing_else(self):
        path = self.generate("a.tsv", 300, "--seed", "5")
        done = self.succeed("data", "generate", "--rows", 300, "--seed", "5", "--out", "-")
        self.assertEqual(done.stdout, path.read_text())
        self.assert_words(done.stderr, "auc", "logloss")

    def test_threads_do_not_change_the_rows_and_the_seed_does(self):
        one = self.generate("1.tsv", 20000, "--seed", "3", "--threads", "1").read_bytes()
        self.assertEqual(self.generate("2.tsv", 20000, "--seed", "3", "--threads", "4").read_bytes(),
                         one)
        self.assertNotEqual(self.generate("3.tsv", 20000, "--seed", "4").read_bytes(), one)

    def test_base_rate(self):
        rows = self.generate("a.tsv", 20000, "--base-rate", "0.03").read_text().splitlines()
        share = sum(row[0] == "1" for row in rows) / len(rows)
        self.assertTrue(0.02 < share < 0.04, share)

    def test_impossible_wishes(self):
        for option, value in [("--rows", "0"), ("--rows", "-1"), ("--base-rate", "1.5"),
                              ("--scale", "0"), ("--threads", "-1"), ("--drift", "-1")]:
            with self.subTest(option=option, value=value):
                rows = [] if option == "--rows" else ["--rows", 5]
                error = self.fail_with(2, "data", "generate", *rows, option, value, "--out",
                                       self.dir / "x.tsv")
                self.assert_words(error, option.strip("-").replace("-", "_").split("_")[0])
                self.assertFalse((self.dir / "x.tsv").exists())

    def test_places_that_cannot_be_written(self):
        error = self.fail_with(2, "data", "generate", "--rows", 5, "--out", self.dir / "x", "--eval-out",
                               self.dir / "." / "x")
        self.assert_words(error, "--eval-out", "x", "--out")
        error = self.fail_with(1, "data", "generate", "--rows", 5, "--out", self.dir / "no" / "x")
        self.assert_words(error, str(self.dir / "no" / "x"), "no such file")
        error = self.fail_with(1, "data", "generate", "--rows", 50000, "--out", "/dev/full")
        self.assert_words(error, "/dev/full", "no space left")


class Look(CliTest):
    def test_head(self):
        text = self.succeed("data", "head", self.job(rows=50), "--rows", 3).stdout
        self.assertGreater(len(text.splitlines()), 3)
        self.assert_words(text, "label", "I1", "C26")

    def test_stats(self):
        text = self.succeed("data", "stats", self.job(rows=400)).stdout
        self.assert_words(text, "positive", "I1", "C26", "400 rows")

    def test_stats_of_the_evaluation_data(self):
        job = self.job(rows=400)
        (self.dir / "eval.tsv").write_text("".join(
            (self.dir / "train.tsv").read_text().splitlines(keepends=True)[:123]))
        self.assertIn("123 rows", self.succeed("data", "stats", job, "--eval").stdout)
        self.assertIn("400 rows", self.succeed("data", "stats", job).stdout)
        self.assertIn("50 rows", self.succeed("data", "stats", job, "--rows", 50).stdout)


class Train(CliTest):
    def test_a_whole_run(self):
        job = self.job(rows=3000)
        done = self.succeed("train", job)
        run = self.dir / "run"
        self.assertIn(str(run / "summary.json"), done.stdout)
        self.assert_words(done.stdout, "eval", "auc", "logloss")
        self.assertNotIn("error", done.stderr)

        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["step"], summary["examples"]), (30, 3000))
        self.assertEqual((summary["mode"], summary["seed"], summary["device"]), ("hybrid", 7, "cpu"))
        for name in ["loss", "auc", "ne"]:
            self.assertTrue(math.isfinite(summary["train"][name]), name)
        for name in ["auc", "logloss", "ne", "calibration"]:
            self.assertTrue(math.isfinite(summary["eval"][name]), name)
        self.assertEqual(summary["staleness"]["bound"], 2)
        self.assertLessEqual(summary["staleness"]["max"], 2)
        self.assertEqual(sum(summary["staleness"]["histogram"]), 30)
        for name in ["read", "plan", "forward", "dense", "backward", "wait"]:
            self.assertGreaterEqual(summary["stage_seconds"][name], 0.0)
        self.assertGreater(summary["rows"], 100)
        self.assertGreater(summary["resident_bytes"], 0)
        self.assertGreater(summary["examples_per_second"], 0)
        version = self.succeed("--version").stdout.split()[1]
        self.assertEqual(summary["version"], version)

        lines = (run / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(steps[-1], 30)
        self.assertEqual((run / "config.yaml").read_text(), self.succeed("config", "dump", job).stdout)

        # Evaluating the last checkpoint gives the numbers of the run, however the command names it.
        for place in [run, run / "checkpoints", run / "checkpoints" / self.checkpoints()[-1],
                      str(run) + "/"]:
            text = self.succeed("eval", job, "--checkpoint", place).stdout
            for name in ["auc", "logloss", "ne", "calibration"]:
                value = float(re.search(rf"(?m)^{name}\s+(\S+)", text).group(1))
                self.assertAlmostEqual(value, summary["eval"][name], places=5)
        older = self.succeed("eval", job, "--checkpoint",
                             run / "checkpoints" / self.checkpoints()[0]).stdout
        self.assertNotEqual(re.search(r"(?m)^auc.*", older).group(0),
                            re.search(r"(?m)^auc.*", text).group(0))

    def test_grouped_auc(self):
        job = self.job(rows=3000)
        done = self.succeed("train", job, "data.group_by=C3")
        metrics = json.loads((self.dir / "run" / "summary.json").read_text())["eval"]
        self.assertGreater(metrics["groups"], 1)
        self.assertTrue(0.0 < metrics["gauc"] < 1.0, metrics)
        self.assertIn(f"gauc {metrics['gauc']:.5f} of {metrics['groups']} groups", done.stdout)
        lines = (self.dir / "run" / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(lines[-1])["eval"], metrics)
        listed = self.succeed("checkpoint", "ls", self.dir / "run").stdout
        self.assertIn(f"eval.gauc={metrics['gauc']:.5f}", listed)
        scored = self.succeed("eval", job, "--checkpoint", self.dir / "run", "data.group_by=C3").stdout
        self.assertIn(f"gauc         {metrics['gauc']:.6f}\ngroups       {metrics['groups']}\n", scored)
        # All rows have one label value: each group has one class, so none counts.
        scored = self.succeed("eval", job, "--checkpoint", self.dir / "run",
                              "data.group_by=label").stdout
        self.assertIn("gauc         nan\ngroups       0\n", scored)
        self.assertNotIn("gauc", self.succeed("eval", job, "--checkpoint", self.dir / "run").stdout)
        error = self.fail_with(2, "eval", job, "--checkpoint", self.dir / "run", "data.group_by=user")
        self.assert_words(error, "data.group_by", "'user'")

    def test_checkpoints_are_kept_listed_and_verified(self):
        self.succeed("train", self.job(rows=5000))
        self.assertEqual(self.checkpoints(),
                         [f"step-{step:012}" for step in (30, 40, 50)])
        listed = self.succeed("checkpoint", "ls", self.dir / "run").stdout
        self.assertEqual([int(step) for step in re.findall(r"(?m)^\s+(\d+) ", listed)], [30, 40, 50])
        self.assert_words(listed, "train.auc", "eval.auc", "examples")
        verified = self.succeed("checkpoint", "verify", self.dir / "run").stdout
        self.assertEqual(len(verified.splitlines()), 3)
        self.assertEqual(len(set(re.findall(r"digest (\S+)", verified))), 3)

    def test_the_same_command_gives_the_same_digest_whatever_the_threads(self):
        job = self.job(rows=2000)
        digests = set()
        for run, threads in [("a", 1), ("b", 1), ("c", 2)]:
            self.succeed("train", job, f"run_dir={self.dir / run}", f"train.threads={threads}")
            digests.add(self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1]))
        self.assertEqual(len(digests), 1)
        self.succeed("train", job, f"run_dir={self.dir / 'd'}", "seed=8")
        digests.add(self.digest(self.dir / "d" / "checkpoints" / self.checkpoints("d")[-1]))
        self.assertEqual(len(digests), 2)

    def test_an_earlier_run_is_not_touched_unasked(self):
        job = self.job(rows=1000)
        self.succeed("train", job)
        before = self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1])
        (self.dir / "run" / "notes.txt").write_text("mine")
        error = self.fail_with(2, "train", job, "seed=9")
        self.assert_words(error, "run_dir", str(self.dir / "run"), "--resume", "--overwrite")
        self.assertEqual(self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1]),
                         before)
        self.succeed("train", job, "--overwrite", "seed=9")
        self.assertNotEqual(self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1]),
                            before)
        self.assertEqual((self.dir / "run" / "notes.txt").read_text(), "mine")

    def test_resume_of_a_finished_run_with_more_epochs(self):
        # In sync mode: with staleness, the lookups ahead end with the data as well.
        job = self.job(rows=1000, **{"staleness: 2": "staleness: 0"})
        self.succeed("train", job, "train.epochs=2", f"run_dir={self.dir / 'whole'}")
        self.succeed("train", job)
        self.succeed("train", job, "--resume", "train.epochs=2")
        self.assertEqual(self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1]),
                         self.digest(self.dir / "whole" / "checkpoints" /
                                     self.checkpoints("whole")[-1]))

    def test_resume_with_nothing_to_resume_starts_afresh(self):
        self.succeed("train", self.job(rows=500), "--resume")
        self.assertEqual(self.checkpoints(), ["step-000000000005"])

    def test_resume_from_another_run(self):
        job = self.job(rows=1000, **{"staleness: 2": "staleness: 0"})
        self.succeed("train", job, "train.max_steps=6")
        self.succeed("train", job, "--resume-from", self.dir / "run",
                     f"run_dir={self.dir / 'second'}")
        self.succeed("train", job, f"run_dir={self.dir / 'whole'}")
        self.assertEqual(*(self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1])
                           for run in ("second", "whole")))

    def test_rows_from_standard_input(self):
        job = self.job(rows=700)
        with open(self.dir / "train.tsv") as rows:
            self.succeed("train", job, "data.train.path=-", stdin=rows)
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(summary["examples"], 700)

    def test_rows_made_up_on_the_way(self):
        job = self.write("job.yaml", f"""\
run_dir: {self.dir / "run"}
device: cpu
data:
  format: synthetic
  synthetic: {{rows: 1000, eval_rows: 200, scale: 0.001}}
  batch_size: 100
tables: {{default: {{dim: 4}}}}
model: {{type: deepfm, hidden: [8]}}
""")
        self.succeed("train", job)
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual((summary["examples"], summary["eval"]["examples"]), (1000, 200))

    def test_every_model(self):
        job = self.job(rows=600)
        models = {"fm": "{type: fm}",
                  "wide_deep": "{type: wide_deep, hidden: [8]}",
                  "deepfm": "{type: deepfm, hidden: [8]}",
                  "dcn_v2": "{type: dcn_v2, hidden: [8], cross_layers: 2}",
                  "dlrm": "{type: dlrm, bottom: [8, 4], top: [8]}",
                  "ffnn": "{type: ffnn, bottom: [8], top: [8]}"}
        for name, text in models.items():
            with self.subTest(model=name):
                plain = job.read_text().replace("{type: dlrm, bottom: [16, 4], top: [16]}", text)
                self.succeed("train", self.write(f"{name}.yaml", plain), "--overwrite")
        plain = job.read_text().replace("{type: dlrm, bottom: [16, 4], top: [16]}", "{type: logistic}")
        plain = plain.replace("dim: 4", "dim: 1")
        self.succeed("train", self.write("logistic.yaml", plain), "--overwrite")

    def test_a_globbed_gzip(self):
        job = self.job(rows=600)
        subprocess.run(["gzip", "-k", self.dir / "train.tsv"], check=True)
        self.succeed("train", job, f"data.train.path={self.dir}/tr*.gz")
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(summary["examples"], 600)

    def test_paths_of_a_config_are_those_of_the_shell(self):
        job = self.job(rows=300)
        here = pathlib.Path.cwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, here)
        program = here / SATRAP if not os.path.isabs(SATRAP) else SATRAP
        done = subprocess.run([program, "train", job.name, "data.train.path=train.tsv",
                               "data.eval.path=eval.tsv", "run_dir=here"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.dir / "here" / "summary.json").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
