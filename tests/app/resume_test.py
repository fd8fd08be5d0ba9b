"""Resuming with another configuration, warm starts and resharding, as a user sees them."""
import json
import unittest

from cli import CliTest, satrap


class Resume(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.job(rows=1500)
        self.succeed("train", self.config)
        self.newest = self.dir / "run" / "checkpoints" / self.checkpoints()[-1]

    def test_what_changed_is_shown_and_trained_with(self):
        done = self.succeed("train", self.config, "--resume", "train.epochs=2",
                            "tables.default.optimizer.lr=0.01", "train.report_every=7 steps")
        self.assertRegex(done.stderr, r"changed: train\.epochs: 1 -> 2\n")
        self.assertRegex(done.stderr, r"changed: tables\.default\.optimizer\.lr: 0\.05 -> 0\.01\n")
        self.assertRegex(done.stderr, r"changed \(does not affect.*\): train\.report_every: .*7 steps")
        self.assertEqual(self.checkpoints()[-1], "step-000000000030")
        # The next configuration is compared with the last one that trained.
        done = self.succeed("train", self.config, "--resume", "train.epochs=3",
                            "tables.default.optimizer.lr=0.01", "train.report_every=7 steps")
        self.assertRegex(done.stderr, r"changed: train\.epochs: 2 -> 3\n")
        self.assertNotIn("optimizer.lr", done.stderr)

    def test_nothing_is_said_where_nothing_changed(self):
        self.assertNotIn("changed", self.succeed("train", self.config, "--resume").stderr)

    def test_a_finished_run_keeps_what_it_has_written(self):
        summary = (self.dir / "run" / "summary.json").read_text()
        done = self.succeed("train", self.config, "--resume")
        self.assertIn("this run had finished, after step 15", done.stderr)
        self.assertEqual((self.dir / "run" / "summary.json").read_text(), summary)
        self.assertIn("trained     15 steps", done.stdout)

    def test_every_impossible_change_is_a_line(self):
        done = satrap("train", self.config, "--resume", "train.epochs=2", "model.top=[32]", "seed=8",
                      "tables.default.optimizer.type=sgd")
        self.assertEqual(done.returncode, 2, done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 3, done.stderr)
        for line, words in zip(errors, [["seed: 7 -> 8"],
                                        ["tables.default.optimizer.type: adagrad -> sgd"],
                                        ["model.top: [16] -> [32]"]]):
            self.assert_words(line, str(self.newest), *words)
        self.assertEqual(self.checkpoints()[-1], self.newest.name)


class WarmStart(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.job(rows=1500)
        self.succeed("train", self.config)

    def test_a_run_that_begins_with_what_another_has_learned(self):
        done = self.succeed("train", self.config, f"run_dir={self.dir}/warm",
                            f"train.warm_start.from={self.dir}/run", 'train.warm_start.tables=[C1, "C2*"]',
                            "train.warm_start.dense=false", "train.max_steps=5")
        self.assertRegex(done.stderr, r"warm start from .*step-000000000015 \(step 15\): .* of 9 of its 26 tables")
        summary = json.loads((self.dir / "warm" / "summary.json").read_text())
        self.assertEqual(summary["step"], 5)
        self.assertEqual(len(summary["warm_start"]["tables"]), 9)  # C1, C2, C20 to C26
        self.assertIn("step-000000000015", summary["warm_start"]["from"])
        done = self.succeed("train", self.config, "--resume", f"run_dir={self.dir}/warm",
                            f"train.warm_start.from={self.dir}/run", 'train.warm_start.tables=[C1, "C2*"]',
                            "train.warm_start.dense=false", "train.max_steps=6")
        self.assertIn("train.warm_start is not repeated", done.stderr)

    def test_mistakes_leave_nothing(self):
        for override, words in [
                (f"train.warm_start.from={self.dir}/none", ["train.warm_start.from", "none"]),
                ("train.warm_start.dense=false", ["train.warm_start", "from is missing"])]:
            error = self.fail_with(2, "train", self.config, f"run_dir={self.dir}/warm", override)
            self.assert_words(error, *words)
        error = self.fail_with(2, "train", self.config, f"run_dir={self.dir}/warm",
                               f"train.warm_start.from={self.dir}/run", "train.warm_start.tables=[C27]")
        self.assert_words(error, "'C27' is not a table of", str(self.dir / "run"), "C26")
        self.assertFalse((self.dir / "warm" / "config.yaml").exists())


class Reshard(CliTest):
    def test_the_content_stays_and_training_goes_on(self):
        config = self.job(rows=1500)
        self.succeed("train", config, "train.max_steps=10")
        before = self.dir / "run" / "checkpoints" / self.checkpoints()[-1]
        digest = self.digest(before)
        done = self.succeed("checkpoint", "reshard", self.dir / "run", "--shards", "3", "--out",
                            self.dir / "out")
        resharded = self.dir / "out" / before.name
        self.assertEqual(done.stdout, f"{resharded}\n")
        self.assertEqual(self.digest(resharded), digest)
        self.assertTrue((resharded / "table-0.shard-2.bin").exists())
        ends = []
        for checkpoint in [before, resharded]:
            run = self.dir / f"after-{len(ends)}"
            self.succeed("train", config, "--resume-from", checkpoint, f"run_dir={run}")
            ends.append(self.digest(run / "checkpoints" / self.checkpoints(run.name)[-1]))
        self.assertEqual(*ends)
        self.succeed("checkpoint", "reshard", before, "--shards", "2")  # in place
        self.assertEqual(self.digest(before), digest)

    def test_what_cannot_be_asked_for(self):
        (self.dir / "nothing").mkdir()
        self.assert_words(self.fail_with(1, "checkpoint", "reshard", self.dir / "nothing",
                                         "--shards", "2"), "nothing", "checkpoint")
        self.assert_words(self.fail_with(2, "checkpoint", "reshard", self.dir), "--shards", "required")


if __name__ == "__main__":
    unittest.main(verbosity=2)
