"""satrap.read_metrics: the columns of a run's metrics; the package's version is that of the program."""
import json
import os
import pathlib
import sys
import unittest

import numpy as np

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/app")]
from cli import CliTest  # noqa: E402

import satrap  # noqa: E402


class Metrics(CliTest):
    def columns(self, text):
        self.write("metrics.jsonl", text)
        return {name: values.tolist() for name, values in satrap.read_metrics(self.dir).items()}

    def test_reports_and_evaluations_are_rows(self):
        lines = [{"step": 0, "start": {"ranks": 2}},
                 {"step": 5, "train": {"auc": 0.5, "loss": None}, "cache": {"miss_curve": [[1, 2]]}},
                 {"step": 5, "eval": {"auc": 0.75}, "device": "cpu", "ok": True}]
        columns = self.columns("".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(list(columns), ["step", "train.auc", "train.loss", "eval.auc"])
        np.testing.assert_equal(columns, {"step": [5, 5], "train.auc": [0.5, np.nan], "train.loss": [np.nan, np.nan],
                                          "eval.auc": [np.nan, 0.75]})

    def test_no_report_yet(self):
        self.assertEqual(self.columns(""), {})
        self.assertEqual(self.columns('{"step": 0, "start": {}}\n{"step": 1, "tr'), {})

    def test_what_is_no_run(self):
        with self.assertRaisesRegex(FileNotFoundError, "no metrics.jsonl"):
            satrap.read_metrics(self.dir / "nowhere")
        with self.assertRaisesRegex(ValueError, "metrics.jsonl:2: not a line of metrics"):
            self.columns('{"step": 1}\noops\n')

    def test_a_run(self):
        self.succeed("train", self.job(rows=1000))
        metrics = satrap.read_metrics(self.dir / "run")
        summary = json.loads((self.dir / "run/summary.json").read_text())
        is_report = ~np.isnan(metrics["train.auc"])
        self.assertEqual(metrics["step"][is_report].tolist(), [5, 10])
        self.assertEqual(metrics["eval.auc"][-1], summary["eval"]["auc"])
        self.assertEqual({len(column) for column in metrics.values()}, {3})

    def test_the_version_is_that_of_the_program(self):
        self.assertEqual(self.succeed("--version").stdout, f"satrap {satrap.__version__}\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
