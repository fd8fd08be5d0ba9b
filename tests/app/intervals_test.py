"""Intervals of the configuration, as a user sees them: train.eval_every, train.report_every, checkpoint.every."""
import json
import unittest

from cli import CliTest

EVERY_EPOCH = ["train.mode=sync", "train.staleness=0", "train.epochs=4", "train.eval_every=1 epoch",
               "train.report_every=2 epochs", "checkpoint={every: 2 epochs, keep: 10}"]


class Epochs(CliTest):
    def train(self, config, run, *overrides):
        return self.succeed("train", config, f"run_dir={self.dir / run}", *EVERY_EPOCH, *overrides)

    def lines_of(self, run):
        return [json.loads(line) for line in (self.dir / run / "metrics.jsonl").read_text().splitlines()]

    def evaluations_of(self, run):
        return [(line["step"], line["eval"]["auc"]) for line in self.lines_of(run) if "eval" in line]

    def test_end_after_the_last_step_of_each(self):
        for rows, batches in [(400, 4), (450, 5)]:  # of 100, the last one full or not
            run = f"rows-{rows}"
            self.train(self.job(rows=rows), run)
            ends = [epoch * batches for epoch in (1, 2, 3, 4)]
            self.assertEqual([step for step, _ in self.evaluations_of(run)], ends)
            self.assertEqual([line["step"] for line in self.lines_of(run) if "train" in line], ends[1::2])
            listed = [line.split()[0] for line in self.succeed("checkpoint", "ls", self.dir / run).stdout.splitlines()]
            self.assertEqual([int(word) for word in listed if word.isdigit()], ends[1::2])

    def test_are_the_same_after_a_run_was_continued(self):
        config = self.job(rows=450)
        self.train(config, "whole")
        self.train(config, "parts", "train.max_steps=7")
        self.train(config, "parts", "train.max_steps=10", "--resume")
        self.train(config, "parts", "--resume")
        self.assertEqual([pair for pair in self.evaluations_of("parts") if pair[0] != 7], self.evaluations_of("whole"))

    def test_parts_are_refused(self):
        config = self.job(rows=100)
        for key in ["train.eval_every", "train.report_every", "checkpoint.every"]:
            self.assert_words(self.fail_with(2, "config", "check", config, f"{key}=0.5 epochs"), key, "'1 epoch'",
                              "got '0.5 epochs'; parts of epochs are intervals of steps")


if __name__ == "__main__":
    unittest.main(verbosity=2)
