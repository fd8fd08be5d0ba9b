"""satrap.Job reads what the command reads and says what it says; what the package loads, and the bytes of a state."""
import collections
import json
import os
import subprocess
import sys
import unittest

import numpy as np

from engine_case import PACKAGE, SATRAP, EngineCase, satrap, torch

from satrap.state import BadState, decode, encode


class Jobs(EngineCase):
    def write(self, **changes):
        path = self.dir / "job.yaml"
        path.write_text(json.dumps({**json.loads(json.dumps(self.config(), default=str)), **changes}))
        return path

    def command_error(self, *arguments):
        done = subprocess.run([SATRAP, "config", "check", *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stdout)
        return "\n".join(line.removeprefix("error: ") for line in done.stderr.splitlines() if line.startswith("error: "))

    def test_errors_are_those_of_the_command(self):
        path = self.write()
        for setting, value in (("train.epoch", 3), ("train.epochs", -1), ("train.mode", "fast"), ("data.batch_size", 2.5),
                               ("train.eval_every", "often"), ("tables.default.dim", "wide")):
            with self.subTest(setting):
                error = self.assert_refused(satrap.ConfigError, lambda: satrap.Job(path, {setting: value}), setting)
                self.assertEqual(str(error), self.command_error(path, f"{setting}={value}"))
                self.assertIsInstance(error, ValueError)
                self.assertIsInstance(error, satrap.Error)
        path = self.write(trian={"epochs": 1}, seed="x")
        error = self.assert_refused(satrap.ConfigError, lambda: satrap.Job(path), "job.yaml:1")
        self.assertEqual(str(error), self.command_error(path))
        self.assertEqual(len(str(error).splitlines()), 2)
        missing = self.dir / "missing.yaml"
        self.assertEqual(str(self.assert_refused(satrap.ConfigError, lambda: satrap.Job(missing))), self.command_error(missing))

    def test_a_dict_is_the_file(self):
        from_file, from_dict = satrap.Job(self.write()), self.job()
        settings = [[line for line in job.yaml.splitlines() if not line.startswith("folder:")] for job in (from_file, from_dict)]
        self.assertEqual(*settings)
        self.assertEqual(from_dict.run_dir, str(self.dir / "run"))
        self.assertEqual(from_dict.features, ["item", "shop", "history"])
        self.assertEqual((from_dict.numeric_names, from_dict.labels), (["price"], ["clicked"]))
        self.assertEqual((from_dict.widths, from_dict.pooled_width), ({"item": 4, "shop": 2, "history": 4}, 10))
        self.assertEqual(from_dict.loss_shift, 0.0)

    def test_values_of_overrides(self):
        job = self.job(overrides={"train.epochs": np.int64(2), "train.deterministic": False, "checkpoint.every": "5 steps",
                                  "data.train.path": [self.dir / "train.csv"], "train.report_every": "2s"})
        for line in ("epochs: 2", "deterministic: false", 'every: "5 steps"', 'report_every: "2s"'):
            self.assertIn(line, job.yaml)
        self.assert_refused(satrap.ConfigError, lambda: self.job(overrides={"train.epochs": object()}), "not object")

    def test_the_programs_network_takes_the_place_of_the_files(self):
        job = self.job(model={"type": "dlrm", "bottom": [8]}, dense_optimizer={"lr": 0.5})
        self.assertIn("type: python", job.yaml)
        self.assertNotIn("lr: 0.5", job.yaml)

    def test_sampled_negatives_shift_the_loss(self):
        self.assertAlmostEqual(self.job(overrides={"data.train.negatives": 0.25}).loss_shift, float(np.log(4)), places=6)

    def test_a_dict_needs_a_folder_for_the_run(self):
        config = self.config()
        del config["run_dir"]
        self.assert_refused(satrap.ConfigError, lambda: satrap.Job(config), "run_dir: is not set")


class Imports(unittest.TestCase):
    def run_code(self, code, path=PACKAGE):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": f"{path}:{os.environ.get('PYTHONPATH', '')}"})

    def test_torch_is_loaded_when_it_is_used(self):
        done = self.run_code("import sys, satrap; satrap.Job; print('torch' in sys.modules); satrap.Trainer; print('torch' in sys.modules)")
        self.assertEqual(done.stdout, "False\nTrue\n", done.stderr)

    def test_a_package_without_the_engine_says_so(self):
        done = self.run_code("import satrap; satrap.Scorer; satrap.Job", PACKAGE.parents[2] / "python")
        self.assertIn("ImportError: satrap.Job, satrap.Trainer, satrap.fit and satrap.load need the compiled part", done.stderr)
        done = self.run_code("import satrap; satrap.Jobs")
        self.assertIn("module 'satrap' has no attribute 'Jobs'", done.stderr)

    def test_the_engine_is_not_linked_with_libtorch(self):
        engine, = PACKAGE.glob("satrap/_engine*.so")
        done = subprocess.run(["ldd", engine], capture_output=True, text=True, check=True)
        self.assertNotIn("torch", done.stdout)
        self.assertNotIn("not found", done.stdout)


class States(unittest.TestCase):
    def assert_same(self, a, b):
        self.assertIs(type(a), type(b))
        if isinstance(a, torch.Tensor):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            self.assertTrue(torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)))
        elif isinstance(a, dict):
            self.assertEqual(list(a), list(b))
            for key in a:
                self.assert_same(a[key], b[key])
        elif isinstance(a, (list, tuple)):
            self.assertEqual(len(a), len(b))
            for x, y in zip(a, b):
                self.assert_same(x, y)
        else:
            self.assertEqual(repr(a), repr(b))

    def test_a_tree_comes_back(self):
        tree = {"numbers": [1, 0.1, float("inf"), -0.0, True, None, "ä\n", 2**70], 3: (1, (2.5,)), "empty": [{}, [], ()],
                "counter": collections.Counter({7: 2}),
                "tensors": [torch.arange(5).to(dtype) for dtype in
                            (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool)],
                "scalar": torch.tensor(1.5), "none": torch.empty(0, 3), "turned": torch.arange(6.0).reshape(2, 3).T,
                "nan": torch.tensor([float("nan"), float("-inf")])}
        data = encode(tree)
        self.assertEqual(len(data) % 8, 0)
        self.assert_same(tree, decode(data))
        self.assertEqual(data, encode(decode(data)))

    def test_states_of_optimizers_and_schedules_come_back(self):
        net = torch.nn.Linear(3, 2)
        for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), torch.optim.Adam, torch.optim.Adagrad,
                     lambda p: torch.optim.AdamW(p, amsgrad=True)):
            optimizer = make(net.parameters())
            schedules = [torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10, cycle_momentum=False),
                         torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
                         torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)]
            net(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            for part in (optimizer, *schedules):
                self.assert_same(part.state_dict(), decode(encode(part.state_dict())))

    def test_what_is_no_state_is_refused(self):
        for data in (b"", b"\0" * 8, encode({"a": 1})[:40], b"\xff" * 64):
            with self.assertRaises(BadState):
                decode(data)
        with self.assertRaisesRegex(BadState, "state 'a.0': object cannot be kept"):
            encode({"a": [object()]})


if __name__ == "__main__":
    unittest.main()
