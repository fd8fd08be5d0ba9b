"""The events of `train.tensorboard`, as TensorBoard itself reads them."""
import importlib.util
import json
import unittest

from cli import CliTest


class Events(CliTest):
    def read(self, run="run"):
        """{tag: [(step, value), ...]} of a run."""
        from tensorboard.backend.event_processing import event_accumulator
        events = event_accumulator.EventAccumulator(str(self.dir / run / "tensorboard"),
                                                    size_guidance={"scalars": 0})
        events.Reload()
        return {tag: [(event.step, event.value) for event in events.Scalars(tag)]
                for tag in events.Tags()["scalars"]}

    def lines(self):
        return [json.loads(line) for line in (self.dir / "run" / "metrics.jsonl").read_text().splitlines()]

    def assert_same(self, tag, *path):
        """Asserts that the scalars of `tag` are the numbers at `path` in metrics.jsonl."""
        expected = []
        for line in self.lines():
            value = line
            for name in path:
                value = value.get(name, {})
            if isinstance(value, (int, float)):
                expected.append((line["step"], value))
        scalars = self.read()[tag]
        self.assertEqual([step for step, _ in scalars], [step for step, _ in expected])
        for (_, scalar), (_, value) in zip(scalars, expected):
            self.assertAlmostEqual(scalar, value, delta=1e-6 * max(1, abs(value)))
        self.assertGreater(len(scalars), 0)

    def test_hold_the_numbers_of_metrics_jsonl(self):
        self.succeed("train", self.job(), "train.tensorboard=true", "train.eval_every=10 steps")
        self.assertEqual(len(self.read()["train/auc"]), 6)
        for tag in ["train/loss", "train/auc", "train/ne", "train/calibration", "eval/auc",
                    "eval/logloss", "examples_per_second", "staleness/mean", "stage_seconds/dense",
                    "rows", "table_bytes", "resident_bytes", "wait_share"]:
            self.assert_same(tag, *tag.split("/"))

    def test_a_resumed_run_takes_back_what_it_trains_again(self):
        job = self.job()
        self.succeed("train", job, "train.tensorboard=true", "train.max_steps=20")
        # As if killed after step 20: continued from the checkpoint of step 10.
        self.succeed("train", job, "train.tensorboard=true", "--resume-from",
                     self.dir / "run" / "checkpoints" / "step-000000000010")
        self.assertEqual(len(list((self.dir / "run" / "tensorboard").iterdir())), 2)
        self.assertEqual([step for step, _ in self.read()["train/auc"]], [5, 10, 15, 20, 25, 30])
        self.assert_same("train/auc", "train", "auc")
        self.assert_same("seconds", "seconds")

    def test_undefined_metrics_are_left_out(self):
        job = self.job(rows=500)
        rows = (self.dir / "train.tsv").read_text().splitlines(keepends=True)
        self.write("train.tsv", "".join("0" + row[1:] for row in rows))
        self.succeed("train", job, "train.tensorboard=true")
        self.assertNotIn("train/auc", self.read())
        self.assert_same("train/loss", "train", "loss")

    def test_are_not_written_unasked_and_go_with_an_overwritten_run(self):
        job = self.job(rows=500)
        self.succeed("train", job, "train.tensorboard=true")
        self.assertEqual([step for step, _ in self.read()["train/loss"]], [5])
        self.succeed("train", job, "--overwrite")
        self.assertFalse((self.dir / "run" / "tensorboard").exists())


if __name__ == "__main__":
    if importlib.util.find_spec("tensorboard") is None:
        print("skipped: no tensorboard in this Python; launch/setup.sh test installs it")
        raise SystemExit(77)
    unittest.main(verbosity=2)
