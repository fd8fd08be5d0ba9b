"""What the tests of losses and metrics share: a small job that is evaluated on the rows that it is trained on, and its
predictions."""
import json

import numpy as np

from cli import CliTest

JOB = """\
run_dir: {run}
seed: 3
device: cpu
data:
  schema:
    {label}
    features: [{{name: f, type: int}}, {{name: g, type: int}}]
  train: {{path: {rows}}}
  eval: {{path: {rows}}}
  batch_size: 100
  {data}
tables:
  default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.1}}}}
model: {{type: ffnn, bottom: [], top: [16]}}
dense_optimizer: {{type: adam, lr: 0.01}}
train: {{mode: sync, threads: 1, precision: fp32, {train}}}
"""


class EvaluatedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.dir / "run"

    def write_rows(self, names, rows):
        lines = [",".join(map(str, row)) for row in [names, *rows]]
        self.path = self.write("rows.csv", "\n".join(lines) + "\n")

    def write_job(self, label, train, data=""):
        return self.write("job.yaml", JOB.format(run=self.run_dir, rows=self.path, label=label, train=train, data=data))

    def train_and_predict(self, job, *settings):
        """The evaluation's numbers, and the header and numbers of the predictions, [rows, columns of the header]."""
        self.log = self.succeed("train", job, "--overwrite", *settings)
        found = json.loads((self.run_dir / "summary.json").read_text())["eval"]
        lines = self.succeed("predict", "--checkpoint", self.run_dir).stdout.splitlines()
        p = np.array([line.split("\t") for line in lines[1:]], dtype=np.float32).astype(np.float64)
        return found, lines[0].split("\t"), p
