"""satrap trains a network written in PyTorch as its own: `model: {type: torchscript}`."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import python_torch  # noqa: E402

python_torch.require()
import torch  # noqa: E402
from torch import nn  # noqa: E402

SATRAP = os.environ["SATRAP_BIN"]
SOURCE = pathlib.Path(os.environ["SATRAP_SOURCE_DIR"])

JOB = """\
run_dir: {dir}/{name}
device: cpu
data:
  schema: criteo
  train: {{path: "{dir}/train.tsv"}}
  eval: {{path: "{dir}/eval.tsv"}}
  batch_size: 100
tables:
  default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.1}}}}
model: {model}
dense_optimizer: {{type: adam, lr: 0.002}}
train: {{mode: sync, precision: fp32, threads: 2, max_steps: {steps}}}
"""


class Net(nn.Module):
    """The network of `ffnn` with bottom: [8], top: [16]."""

    def __init__(self, numeric, pooled):
        super().__init__()
        self.bottom = nn.Linear(numeric, 8)
        self.top = nn.Sequential(nn.Linear(pooled + 8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numeric, pooled):
        d = torch.relu(self.bottom(numeric))
        return self.top(torch.cat([pooled, d], 1))


class Broken(nn.Module):
    """Computes what is no number, or never ends."""

    def __init__(self, width, endless):
        super().__init__()
        self.top = nn.Linear(width, 1)
        self.endless = endless

    def forward(self, numeric, pooled):
        while self.endless:
            pass
        return self.top(torch.cat([numeric, pooled], 1)) * float("nan")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class TorchScript(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-torchscript-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.satrap("data", "generate", "--rows", 4000, "--scale", "0.001", "--out",
                    self.dir / "train.tsv", "--eval-rows", 300, "--eval-out", self.dir / "eval.tsv")

    def satrap(self, *args, status=0):
        done = subprocess.run([SATRAP, *map(str, args)], cwd=self.dir, capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return done.stdout if status == 0 else done.stderr

    def job(self, name, model, steps=40):
        path = self.dir / f"{name}.yaml"
        path.write_text(JOB.format(dir=self.dir, name=name, model=model, steps=steps))
        return path

    def probabilities(self, name, model, steps=40):
        job = self.job(name, model, steps)
        self.satrap("train", job)
        page = self.satrap("predict", job, "--checkpoint", self.dir / name)
        return np.array(page.split()[1:], float)

    def initial_ffnn(self):
        """Net with the initial weights of ffnn, taken after one step that changes nothing."""
        job = self.job("start", FFNN, steps=1)
        start = ["dense_optimizer.lr=1e-30", "dense_optimizer.type=sgd"]
        self.satrap("train", job, *start)
        self.satrap("export", job, "--checkpoint", self.dir / "start", "--out", self.dir / "first",
                    "--network", "torchscript", *start)
        values = torch.jit.load(self.dir / "first/dense.pt").state_dict()
        net = Net(13, 26 * 4)
        for ours, theirs in [("bottom", "bottom_0"), ("top.0", "top_0"), ("top.2", "top_1")]:
            layer = net.get_submodule(ours)
            layer.load_state_dict({k: values[f"{theirs}_{k}"] for k in ["weight", "bias"]})
        return net

    def test_a_module_trains_as_the_same_network_of_satrap(self):
        torch.jit.save(torch.jit.script(self.initial_ffnn()), self.dir / "net.pt")
        expected = self.probabilities("ours", FFNN)
        got = self.probabilities("theirs", "{type: torchscript, path: net.pt}")
        self.assertGreater(expected.std(), 0.01)
        self.assertLess(np.abs(got - expected).max(), 1e-5)
        self.assertGreater(np.abs(self.probabilities("untrained", FFNN, 1) - expected).max(), 0.01)

    def test_a_trained_module_is_exported_and_scores_alike(self):
        torch.manual_seed(3)
        torch.jit.save(torch.jit.script(Net(13, 26 * 4)), self.dir / "net.pt")
        model = "{type: torchscript, path: net.pt}"
        self.probabilities("run", model)
        self.satrap("export", self.dir / "run.yaml", "--checkpoint", self.dir / "run", "--out",
                    self.dir / "model")
        refused = self.satrap("export", self.dir / "run.yaml", "--checkpoint", self.dir / "run", "--out",
                              self.dir / "other", "--network", "onnx", status=2)
        self.assertIn("model 'torchscript' computes what its module says", refused)
        self.assertFalse((self.dir / "other").exists())
        exported = torch.jit.load(self.dir / "model/dense.pt").state_dict()
        before = torch.jit.load(self.dir / "net.pt").state_dict()
        self.assertEqual({f"module.{name}" for name in before}, set(exported))
        for name, values in before.items():
            self.assertFalse(torch.equal(values, exported[f"module.{name}"]), name)

    def test_the_module_of_the_page_runs_in_its_job(self):
        page = (SOURCE / "docs/models.md").read_text()
        for name, pattern in [("net.py", r"```python\n(import torch\n.*?)```"),
                              ("own.yaml", r"```yaml\n(# own.yaml\n.*?)```")]:
            (self.dir / name).write_text(re.search(pattern, page, re.S).group(1))
        subprocess.run([sys.executable, "-W", "ignore", "net.py"], cwd=self.dir, check=True)
        self.satrap("train", self.dir / "own.yaml", "train.max_steps=2", "model={type: torchscript, path: net.pt}")

    def test_what_cannot_be_trained_is_refused_before_anything_starts(self):
        path = self.dir / "net.pt"
        for module, words in [
            (Net(12, 26 * 4), r"net.pt.*forward\(numeric \[2, 13\], pooled \[2, 104\]\) fails"),
            (nn.Sequential(), "no parameters"),
            (Net(13, 26 * 4).double(), "not fp32"),
        ]:
            torch.jit.save(torch.jit.script(module), path)
            error = self.satrap("config", "check",
                                self.job("bad", "{type: torchscript, path: net.pt}"), status=2)
            self.assertRegex(re.sub(r"\s+", " ", error), words)
            self.assertEqual(error.count("error:"), 1, error)
        self.assertIn("model.path", self.satrap("config", "check", self.job("bad", "{type: torchscript}"),
                                                status=2))

    def test_a_file_that_is_no_torchscript_is_named_by_what_it_is(self):
        net = Net(13, 26 * 4)
        path = self.dir / "net.pt"
        example = torch.zeros(2, 13), torch.zeros(2, 26 * 4)
        for write, words in [
            (lambda: torch.save(net.state_dict(), path), "is a pickle of torch.save, not TorchScript; torch.jit.save("),
            (lambda: torch.save(net, path), "is a pickle of torch.save, not TorchScript; torch.jit.save("),
            (lambda: torch.save(net.state_dict(), path, _use_new_zipfile_serialization=False),
             "is a pickle of torch.save, not TorchScript"),
            (lambda: torch.export.save(torch.export.export(net, example), path),
             "is a program of torch.export, not TorchScript"),
            (lambda: path.write_text("hello"), "cannot be loaded as TorchScript: PytorchStreamReader failed"),
            (lambda: path.write_bytes(b""), "cannot be loaded as TorchScript"),
        ]:
            write()
            error = self.satrap("config", "check", self.job("bad", "{type: torchscript, path: net.pt}"), status=2)
            self.assertIn(words, error)
            self.assertNotIn("miniz", error)
            self.assertEqual(error.count("error:"), 1, error)

    def test_an_error_in_a_module_is_a_line_with_shapes_and_its_place(self):
        torch.jit.save(torch.jit.script(Net(12, 26 * 4)), self.dir / "net.pt")
        error = self.satrap("config", "check", self.job("bad", "{type: torchscript, path: net.pt}"), status=2)
        self.assertRegex(error, r"forward\(numeric \[2, 13\], pooled \[2, 104\]\) fails: mat1 and mat2 shapes cannot be "
                                r"multiplied \(2x13 and 12x8\) \(File \"\S+torchscript_test.py\", line \d+\)\n")

    def test_a_module_whose_logits_are_no_numbers_fails(self):
        torch.jit.save(torch.jit.script(Broken(13 + 26 * 4, endless=False)), self.dir / "net.pt")
        error = self.satrap("train", self.job("nan", "{type: torchscript, path: net.pt}", steps=4), status=1)
        self.assertIn("error: nothing was learned: in all of 4 steps", error)

    def test_a_signal_ends_a_module_that_never_returns(self):
        torch.jit.save(torch.jit.script(Broken(13 + 26 * 4, endless=True)), self.dir / "net.pt")
        job = self.job("endless", "{type: torchscript, path: net.pt}")
        with subprocess.Popen([SATRAP, "train", job], cwd=self.dir) as program:
            deadline = time.monotonic() + 60
            while cpu_seconds(program.pid) < 2:  # much longer than it takes to load: the module is tried out
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            program.terminate()
            self.assertEqual(program.wait(60), -signal.SIGTERM)


FFNN = "{type: ffnn, bottom: [8], top: [16]}"

if __name__ == "__main__":
    unittest.main(verbosity=2)
