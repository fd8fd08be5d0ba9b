"""`din` detects whether the candidate is in the history, which a model of summed histories cannot."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SATRAP = os.environ["SATRAP_BIN"]

JOB = """\
run_dir: {dir}/{name}
device: cpu
data:
  schema:
    label: {{column: clicked}}
    features:
      - {{name: item, type: int}}
      - {{name: history, type: int, separator: " ", max_length: 10}}
  train: {{path: {dir}/train.csv}}
  eval: {{path: {dir}/eval.csv}}
  batch_size: 200
tables: {{items: {{dim: 8, optimizer: {{type: adagrad, lr: 0.05}}, init: {{type: uniform, scale: 0.5}}}}}}
features:
  item: {{table: items}}
  history: {{table: items, pooling: {pooling}}}
model: {model}
dense_optimizer: {{type: adam, lr: 0.005}}
train: {{mode: sync, deterministic: true, precision: fp32, epochs: {epochs}}}
"""
EPOCHS = 3


def write_clicks(path, rows, rng):
    """Half of the candidates occur in the history: those are clicked. Some histories are empty."""
    with open(path, "w") as file:
        file.write("clicked,item,history\n")
        for _ in range(rows):
            history = rng.sample(range(60), rng.randrange(11))
            clicked = len(history) > 0 and rng.random() < 0.5
            others = [i for i in range(60) if i not in history]
            item = rng.choice(history if clicked else others)
            file.write(f"{int(clicked)},{item},{' '.join(map(str, history))}\n")


class Din(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-din-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        rng = random.Random(5)
        write_clicks(self.dir / "train.csv", 20000, rng)
        write_clicks(self.dir / "eval.csv", 4000, rng)

    def auc(self, name, model, pooling):
        job = self.dir / f"{name}.yaml"
        job.write_text(JOB.format(dir=self.dir, name=name, model=model, pooling=pooling,
                                  epochs=EPOCHS))
        done = subprocess.run([SATRAP, "train", job], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        metrics = json.loads((self.dir / name / "summary.json").read_text())["eval"]
        self.assertEqual(metrics["examples"], 4000)
        print(f"{name}: AUC {metrics['auc']:.4f}", file=sys.stderr)
        return metrics["auc"]

    def test_a_label_that_is_in_the_history(self):
        din = self.auc("din", "{type: din, attention: [16], top: [16], "
                              "attend: [{sequence: history, query: item}]}", "sequence")
        summed = self.auc("summed", "{type: ffnn, bottom: [], sparse: [], top: [64, 16]}", "sum")
        self.assertGreater(din, 0.97)
        self.assertGreater(din, summed + 0.05)


if __name__ == "__main__":
    unittest.main(verbosity=2)
