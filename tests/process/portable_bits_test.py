"""The same bits on x86-64 and aarch64: jobs on the Adult data end with the digests and the metrics in
portable_bits.json, which was recorded on one architecture and must match on every other one.

The jobs hash strings, transform numbers and cut them into quantiles; rows are initialised, rounded stochastically
(bf16) and updated; the dense network uses satrap's own products, in fp32. The promise does not cover products in
bf16, those of libtorch, nor results of libm (see docs/training.md).

SATRAP_RECORD=1 writes the file."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
SATRAP = pathlib.Path(os.environ["SATRAP_BIN"])
RECORD = pathlib.Path(__file__).with_name("portable_bits.json")
DEADLINE_S = 600

JOB = """\
run_dir: {run_dir}
seed: 1
device: cpu
data:
  schema: {root}/datasets/adult/schema.yaml
  train: {{path: {root}/datasets/adult/adult.data}}
  eval: {{path: {root}/datasets/adult/adult.test}}
  batch_size: 512
  shuffle_rows: 4096
tables:
  default:
    dim: 16
    weights: {weights}
    optimizer: {{type: adagrad, lr: 0.03, schedule: {{decay: linear, decay_steps: 64}}}}
    init: {{type: uniform, scale: 0.01}}
model: {model}
dense_optimizer: {{type: adam, lr: 0.002}}
embedding: {{store: {store}}}
train: {{{mode}, deterministic: true, max_steps: 40, threads: 2, precision: fp32}}
"""
MODELS = {"dlrm": "{type: dlrm, bottom: [32, 16], top: [64, 32]}",
          "deepfm": "{type: deepfm, hidden: [64, 32], dropout: 0.2}"}
MODES = {"hybrid": "mode: hybrid, staleness: 4, staleness_factor: 0.5", "sync": "mode: sync"}
METRICS = ["auc", "logloss", "ne", "calibration"]


def command(shards):
    if shards == 0:
        return [SATRAP, "train"]
    return [sys.executable, ROOT / "launch/satrap-run", "--bin-dir", SATRAP.parent, "--ps", str(shards)]


def train(run_dir, model, mode, weights, shards):
    """The digest of the last checkpoint, and the metrics of the evaluation."""
    job = run_dir.with_suffix(".yaml")
    job.write_text(JOB.format(run_dir=run_dir, root=ROOT, weights=weights, model=MODELS[model], mode=MODES[mode],
                              store="ps" if shards else "embedded"))
    done = subprocess.run([*command(shards), job], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr[-3000:]
    checkpoint, = (run_dir / "checkpoints").iterdir()
    said = subprocess.run([SATRAP, "checkpoint", "verify", checkpoint], capture_output=True, text=True,
                          timeout=DEADLINE_S, check=True).stdout
    metrics = json.loads((run_dir / "summary.json").read_text())["eval"]
    return {"digest": re.search(r"\b[0-9a-f]{16}\b", said).group(), **{name: metrics[name] for name in METRICS}}


class PortableBits(unittest.TestCase):
    def test_every_architecture_ends_where_the_recorded_one_did(self):
        recorded = {} if os.environ.get("SATRAP_RECORD") else json.loads(RECORD.read_text())
        found = {}
        with tempfile.TemporaryDirectory(prefix="satrap-bits-") as scratch:
            for model, mode, weights, shards in itertools.product(MODELS, MODES, ["fp32", "bf16"], [0, 1, 2]):
                name = f"{model} {mode} {weights}"
                result = train(pathlib.Path(scratch, f"{name}-{shards}".replace(" ", "-")), model, mode, weights,
                               shards)
                print(f"{name}, {shards} shards: {result}", file=sys.stderr)
                with self.subTest(job=name, shards=shards):
                    self.assertEqual(result, recorded.get(name, found.get(name, result)))
                found[name] = result
        self.assertEqual(len({result["digest"] for result in found.values()}), len(found))
        if os.environ.get("SATRAP_RECORD"):
            RECORD.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
