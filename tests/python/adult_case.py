"""Shared by tests that compare networks in Python with satrap's own on the Adult census data."""
import json
import math
import subprocess

from engine_case import SATRAP, SOURCE, EngineCase, torch


def built_in_state(run):
    """The dense tensors of a checkpoint of satrap's own network, by name."""
    checkpoint, = (run / "checkpoints").iterdir()
    values = torch.frombuffer(bytearray((checkpoint / "dense.bin").read_bytes()), dtype=torch.float32)
    tensors = {}
    for about in json.loads((checkpoint / "manifest.json").read_text())["dense"]:
        count = math.prod(about["shape"])
        tensors[about["name"]], values = values[:count].reshape(about["shape"]), values[count:]
    return tensors


class AdultCase(EngineCase):
    """A job of satrap's own DLRM, whose initial values are those of the run `initial`."""

    STEPS = 200

    def setUp(self):
        super().setUp()
        self.job_file = self.dir / "adult.yaml"
        adult = SOURCE / "datasets/adult"
        self.job_file.write_text(f"""\
run_dir: {self.dir}/run
seed: 1
device: cpu
data: {{schema: {adult}/schema.yaml, train: {{path: {adult}/adult.data}}, batch_size: 128}}
tables: {{default: {{dim: 16, optimizer: {{type: adagrad, lr: 0.015}}, init: {{type: uniform, scale: 0.01}}}}}}
model: {{type: dlrm, bottom: [32, 16], top: [32]}}
dense_optimizer: {{type: adam, lr: 0.001}}
train: {{mode: sync, deterministic: true, precision: fp32, metric_window: 128, report_every: 1 steps,
        start_from_average: false}}
checkpoint: {{every: never}}
""")

    def built_in(self, run, *overrides):
        done = subprocess.run([SATRAP, "train", self.job_file, f"run_dir={self.dir / run}", *overrides], capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
