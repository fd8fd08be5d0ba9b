"""Shared by the tests of satrap.Job and satrap.Trainer: the package of the build, small data, digests of checkpoints."""
import importlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["SATRAP_SOURCE_DIR"])
PACKAGE = pathlib.Path(os.environ["SATRAP_BUILD_DIR"], "python")
SATRAP = os.environ["SATRAP_BIN"]
sys.path.insert(0, str(SOURCE / "tests/support"))
import python_torch  # noqa: E402

python_torch.require()
if not list(PACKAGE.glob("satrap/_engine*.so")):
    print("skipped: this build is without the engine of the Python package, for which launch/setup.sh python installs nanobind")
    sys.exit(77)
sys.path.insert(0, str(PACKAGE))
import satrap  # noqa: E402
import torch  # noqa: E402

# 40 items; a click depends on the item and on whether the item is in the history.
COLUMNS = "clicked,weight,price,item,shop,history\n"


def write_clicks(path, rows, seed=5):
    rng = random.Random(seed)
    with open(path, "w") as file:
        file.write(COLUMNS)
        for _ in range(rows):
            item, history = rng.randrange(40), [rng.randrange(40) for _ in range(rng.randrange(4))]
            clicked = int(rng.random() < (0.7 if item % 3 == 0 or item in history else 0.2))
            file.write(f"{clicked},{rng.choice([1, 2])},{rng.random():.3f},{item},{rng.randrange(7)},"
                       f"{' '.join(map(str, history))}\n")


class EngineCase(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-engine-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        write_clicks(self.dir / "train.csv", 3000)
        write_clicks(self.dir / "eval.csv", 500, seed=6)

    def config(self, run="run", **more):
        return {"run_dir": self.dir / run, "device": "cpu", "seed": 3,
                "data": {"schema": {"label": {"column": "clicked"}, "numeric": [{"name": "price"}],
                                    "features": [{"name": "item", "type": "int"}, {"name": "shop", "type": "int"},
                                                 {"name": "history", "type": "int", "separator": " ", "max_length": 3}]},
                         "train": {"path": self.dir / "train.csv"}, "eval": {"path": self.dir / "eval.csv"},
                         "batch_size": 100},
                "tables": {"default": {"dim": 4, "optimizer": {"type": "adagrad", "lr": 0.05}},
                           "shops": {"dim": 2}},
                "features": {"default": {"table": "own"}, "shop": {"table": "shops"}},
                "train": {"mode": "sync", "deterministic": True, "report_every": "1 steps", "threads": 2},
                "checkpoint": {"every": "never"}, **more}

    def job(self, run="run", overrides=None, **more):
        return satrap.Job(self.config(run, **more), overrides)

    def digest(self, run="run"):
        """The newest checkpoint's."""
        done = subprocess.run([SATRAP, "checkpoint", "verify", self.dir / run], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.findall(r"ok, digest (\w+)", done.stdout)[-1]

    def assert_refused(self, kind, call, *words):
        with self.assertRaises(kind) as refused:
            call()
        for word in words:
            self.assertIn(word, str(refused.exception))
        return refused.exception


class Net(torch.nn.Module):
    """An MLP with dropout and batch normalisation over all inputs."""

    def __init__(self, job, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        inputs = job.numeric_width + job.pooled_width
        self.layers = torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
                                          torch.nn.Dropout(0.2), torch.nn.Linear(16, len(job.labels)))

    def forward(self, batch):
        return self.layers(torch.cat([batch.numeric, batch.pooled], 1))


def loss_of(logits, batch):
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, batch.weight, reduction="sum")
    return losses / len(batch)


def make_trainer(job, net=None, **options):
    net = net or Net(job)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return satrap.Trainer(job, net, optimizer, **options), net, optimizer


def train(trainer, net, steps=None, schedule=None):
    """The losses of a run, which ends after so many steps."""
    losses = []
    for batch in trainer:
        logits = net(batch)
        loss = loss_of(logits, batch)
        trainer.step(loss, scores=logits)
        losses.append(loss.item())
        if schedule is not None:
            schedule.step()
        if len(losses) == steps:
            break
    return losses


def run_command(*words):
    """A command in this process. Returns its exit status, raises its error."""
    commands = importlib.import_module("satrap.commands")
    run = commands._engine.Run([str(word) for word in words], None)
    commands.serve(run, lambda run: commands.network_of_job(run, trains=words[0] == "train"))
    return run.status
