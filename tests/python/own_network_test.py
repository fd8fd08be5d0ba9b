"""python -m satrap with a network that model.path names, and satrap.evaluate, predict and export."""
import csv
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import unittest

from engine_case import PACKAGE, SATRAP, SOURCE, EngineCase, Net, loss_of, make_trainer, run_command, satrap, torch, train

# A file that a user may have: engine_case has the net, with dropout and batch normalisation.
NET = f"""
import sys
sys.path.insert(0, {str(SOURCE / "tests/python")!r})
from engine_case import Net, torch

def wrong_shape(job):
    class Wrong(Net):
        def forward(self, batch):
            return super().forward(batch)[:, [0, 0]]
    return Wrong(job)

def of_sequences(job):
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.top = torch.nn.Linear(1 + 2 + 2 * job.widths["item"], job.num_outputs)
        def forward(self, batch):
            scores = (batch["history"] * batch["item"][:, None]).sum(2).masked_fill(~batch.mask("history"), 0.0)
            history = (scores[:, :, None] * batch["history"]).sum(1)
            return self.top(torch.cat([batch.numeric, batch["item"], batch["shop"], history], 1))
    return Attention()

def keeps_the_number_of_rows(job):
    class Constant(Net):
        def forward(self, batch):
            return super().forward(batch) * int(batch.numeric.shape[0] > 3)
    return Constant(job)

def raising(job):
    raise LookupError("no such layer")

def no_module(job):
    return [job]

def nothing_to_train(job):
    return torch.nn.ReLU()
"""


class OwnNetworkCase(EngineCase):
    def setUp(self):
        super().setUp()
        (self.dir / "net.py").write_text(NET)

    def write_job(self, run="run", net="Net", **more):
        """The YAML file of a job with the net."""
        config = {**self.config(run), "model": {"type": "python", "path": f"net.py:{net}"}, **more}
        path = self.dir / f"{run}.yaml"
        path.write_text(json.dumps(config, default=str))  # JSON is YAML
        return path

    def program(self, *words, **options):
        # NumPy has threads, and PyTorch the one that its bits are of.
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}
        return subprocess.Popen([sys.executable, *options.get("interpreter", ["-m", "satrap"]), *map(str, words)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def predictions(path):
    with open(path) as file:
        header, *lines = file.read().split("\n")[:-1]
    return header, [[float(value) for value in line.split("\t")] for line in lines]


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


class Use(OwnNetworkCase):
    def logloss(self, probabilities):
        labels = [int(row["clicked"]) for row in rows_of(self.dir / "eval.csv")]
        self.assertEqual(len(labels), len(probabilities))
        return sum(-math.log(p if y else 1 - p) for (p,), y in zip(probabilities, labels)) / len(labels)

    def assert_scored_alike(self, folder, scores):
        scored = satrap.Scorer(folder).score(rows_of(self.dir / "eval.csv"))
        self.assertEqual(len(scored), len(scores))
        self.assertLess(max(abs(float(a) - b) for a, (b,) in zip(scored, scores)), 1e-6)

    def test_commands_use_what_train_has_trained(self):
        job_file = self.write_job(dense_optimizer={"type": "adam", "lr": 0.01})
        self.assertEqual(run_command("train", job_file), 0)
        run, out, model = self.dir / "run", self.dir / "scores.tsv", self.dir / "model"
        summary = json.loads((run / "summary.json").read_text())
        self.assertGreater(summary["eval"]["auc"], 0.6)
        run_command("predict", "--checkpoint", run, "--out", out)
        header, scores = predictions(out)
        self.assertEqual((header, len(scores)), ("probability", 500))
        self.assertAlmostEqual(self.logloss(scores), summary["eval"]["logloss"], places=6)
        run_command("export", "--checkpoint", run, "--out", model)
        self.assert_scored_alike(model, scores)
        self.assertEqual(len(satrap.Scorer(model).score([])), 0)
        self.assert_scored_alike(model, scores[:500])

        from safetensors.torch import load_file
        tensors = load_file(model / "dense.safetensors")
        checkpoint, = (run / "checkpoints").iterdir()
        kept = load_file(checkpoint / "dense.bin")
        self.assertIn("layers.1.running_mean", tensors)
        for name, value in tensors.items():
            if name != "padding":
                self.assertTrue(torch.equal(value, kept[f"net.{name}"]), name)

        # The same by functions, for the class and its job.
        job = self.job()
        net = Net(job, seed=77)
        self.assertEqual(satrap.evaluate(job, net), summary["eval"])
        self.assertTrue(torch.equal(net.layers[0].weight, tensors["layers.0.weight"]))
        self.assertTrue(net.training)
        self.assertEqual(satrap.evaluate(job, Net(job).requires_grad_(False)), summary["eval"])

    def test_functions_use_what_a_loop_has_trained(self):
        job = self.job(overrides={"train.epochs": 2})
        net = torch.nn.Linear(job.pooled_width, 1)

        def logits_of(batch):
            return net(batch.pooled)

        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        trainer = satrap.Trainer(job, net, optimizer, predict=logits_of, state={"schedule": schedule})
        for batch in trainer:
            logits = logits_of(batch)
            trainer.step(loss_of(logits, batch), scores=logits)
        other = torch.nn.Linear(job.pooled_width, 1)
        metrics = satrap.evaluate(job, other, predict=lambda batch: other(batch.pooled))
        self.assertEqual(metrics, trainer.summary["eval"])
        self.assertTrue(torch.equal(other.weight, net.weight))

        on_training = satrap.evaluate(job, net, predict=logits_of, data=self.dir / "train.csv",
                                      checkpoint=trainer.last_checkpoint)
        self.assertEqual(on_training["examples"], 3000)
        out, model = self.dir / "scores.tsv", self.dir / "model"
        satrap.predict(job, net, out, predict=logits_of, keep="item")
        lines = out.read_text().split("\n")[:-1]
        self.assertEqual(lines[0], "item\tprobability")
        self.assertEqual([line.split("\t")[0] for line in lines[1:]],
                         [row["item"] for row in rows_of(self.dir / "eval.csv")])
        scores = [[float(line.split("\t")[1])] for line in lines[1:]]
        self.assertAlmostEqual(self.logloss(scores), metrics["logloss"], places=6)
        satrap.export(job, net, model, predict=logits_of, rows="safetensors")
        self.assert_scored_alike(model, scores)
        self.assert_refused(satrap.ConfigError, lambda: satrap.export(job, net, model, predict=logits_of), "--overwrite")
        satrap.export(job, net, model, predict=logits_of, overwrite=True)
        self.assertTrue((model / "item.keys.npy").exists())

    def test_sequences_and_several_labels_are_exported(self):
        data = self.config()["data"]
        data["schema"] = {**data["schema"], "label": None, "labels": [{"name": "click", "column": "clicked"},
                                                                      {"name": "weight", "column": "weight", "type": "number"}]}
        del data["schema"]["label"]
        features = {"default": {"table": "own"}, "shop": {"table": "shops"},
                    "history": {"table": "item", "pooling": "sequence"}}
        job_file = self.write_job(net="of_sequences", data=data, features=features)
        run_command("train", job_file)
        out, model = self.dir / "scores.tsv", self.dir / "model"
        run_command("predict", "--checkpoint", self.dir / "run", "--out", out)
        header, scores = predictions(out)
        self.assertEqual(header, "click\tweight")
        run_command("export", "--checkpoint", self.dir / "run", "--out", model)
        scored = satrap.Scorer(model).score(rows_of(self.dir / "eval.csv"))
        self.assertEqual(list(scored.shape), [500, 2])
        self.assertLess(float(abs(torch.tensor(scored) - torch.tensor(scores)).max()), 1e-6)

    def test_onnx(self):
        run_command("train", self.write_job(), "train.max_steps=5")
        words = ["export", "--checkpoint", self.dir / "run", "--out", self.dir / "model", "--network", "onnx"]
        try:
            import onnxscript  # noqa: F401
        except ModuleNotFoundError:
            self.assert_refused(satrap.ConfigError, lambda: run_command(*words), "package onnxscript", "--network pt2")
            self.assertFalse((self.dir / "model").exists())
            return
        run_command(*words)
        run_command("predict", "--checkpoint", self.dir / "run", "--out", self.dir / "scores.tsv")
        self.assert_scored_alike(self.dir / "model", predictions(self.dir / "scores.tsv")[1])


class Page(EngineCase):
    def test_the_module_and_the_job_of_models_md_run_as_they_stand(self):
        page = (SOURCE / "docs/models.md").read_text()
        for name, language in (("net.py", "python"), ("own.yaml", "yaml")):
            (self.dir / name).write_text(re.search(rf"```{language}\n(# {name}\n.*?)```", page, re.S)[1])
        draw = random.Random(4)
        for name in ("train.tsv", "eval.tsv"):
            rows = [[draw.randrange(2), *(draw.randrange(90) for _ in range(13)),
                     *(f"{draw.randrange(40):08x}" for _ in range(26))] for _ in range(300)]
            (self.dir / name).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        self.assertEqual(run_command("train", self.dir / "own.yaml", "train.max_steps=2"), 0)
        self.digest("runs/own")


class Programs(OwnNetworkCase):
    def test_a_killed_run_continues_with_the_same_bits(self):
        steps = ["train.epochs=3", "train.max_steps=45", "checkpoint.every=10 steps"]
        self.assertEqual(run_command("train", self.write_job("whole"), *steps), 0)
        job_file = self.write_job("killed")
        killed = self.program("train", job_file, *steps)
        self.addCleanup(killed.wait)
        self.addCleanup(killed.kill)
        self.assertTrue(any(re.search(r"step 27\b", line) for line in killed.stderr))
        killed.kill()
        killed.communicate()
        again = self.program("train", job_file, *steps, "--resume")
        _, errors = again.communicate(timeout=120)
        self.assertEqual(again.returncode, 0, errors)
        self.assertIn("resumed from", errors)
        self.assertEqual(self.digest("whole"), self.digest("killed"))

    def test_a_signal_ends_it_as_the_command(self):
        job_file = self.write_job()
        program = self.program("train", job_file, "train.epochs=100000")
        self.assertTrue(any(re.search(r"step 5\b", line) for line in program.stderr))
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=120)
        self.assertEqual(program.returncode, 130, errors)
        self.assertIn("`python -m satrap train", errors)
        self.digest()

    def test_without_pytorch_it_says_what_to_install(self):
        code = ("import sys; sys.modules['torch'] = None; from satrap.commands import main; "
                "sys.exit(main(sys.argv[1:]))")
        program = self.program("train", self.write_job(), interpreter=["-c", code])
        out, errors = program.communicate(timeout=60)
        self.assertEqual((program.returncode, out), (1, ""), errors)
        self.assertIn("error: model: 'python' is computed by PyTorch, which is not installed: pip install torch", errors)
        self.assertFalse((self.dir / "run").exists())
        program = self.program("config", "check", self.write_job(), interpreter=["-c", code])
        _, errors = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, errors)

    def test_the_program_without_python_says_what_to_run(self):
        job_file = self.write_job()
        done = subprocess.run([SATRAP, "train", job_file, "train.epochs=2"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"run `python -m satrap train {job_file} train.epochs=2`", done.stderr)
        self.assertFalse((self.dir / "run").exists())

    def test_an_exception_of_the_net_is_shown_with_its_lines(self):
        program = self.program("train", self.write_job(net="raising"))
        _, errors = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 2, errors)
        self.assertIn('raise LookupError("no such layer")', errors)
        self.assertIn(f"error: model.path: '{self.dir}/net.py:raising': raising(job) raised LookupError: no such layer",
                      errors)


class Errors(OwnNetworkCase):
    def test_what_the_path_names(self):
        for net, words in (("missing", ["has no class or function 'missing'", "it has wrong_shape, of_sequences"]),
                           ("raising", ["raising(job) raised LookupError: no such layer"]),
                           ("no_module", ["no_module(job) must return a torch.nn.Module, got list"]),
                           ("nothing_to_train", ["has no parameters to train"])):
            with self.subTest(net):
                job_file = self.write_job(net=net)
                self.assert_refused(satrap.ConfigError, lambda: run_command("train", job_file), "model.path: ", *words)
                self.assertFalse((self.dir / "run").exists())
        (self.dir / "net.py").write_text("import no_such_module\n")
        self.assert_refused(satrap.ConfigError, lambda: run_command("train", self.write_job()), "net.py' raised",
                            "No module named 'no_such_module'")
        (self.dir / "net.py").unlink()
        self.assert_refused(satrap.ConfigError, lambda: run_command("train", self.write_job()), "there is no file")
        job_file = self.write_job(model={"type": "python", "path": "net.py"})
        self.assert_refused(satrap.ConfigError, lambda: run_command("train", job_file), "such as net.py:Net")
        job_file = self.write_job(model={"type": "python"})
        self.assert_refused(satrap.ConfigError, lambda: run_command("train", job_file), "has no path", "model.path=net.py:Net")

    def test_a_wrong_shape(self):
        job_file = self.write_job(net="wrong_shape")
        self.assert_refused(satrap.Error, lambda: run_command("train", job_file), "net: has the shape [100, 2]",
                            "[examples, labels] = [100, 1]")

    def test_a_net_that_depends_on_the_number_of_rows_is_not_exported(self):
        run_command("train", self.write_job(net="keeps_the_number_of_rows"), "train.max_steps=2")
        self.assert_refused(satrap.Error, lambda: run_command("export", "--checkpoint", self.dir / "run", "--out",
                                                              self.dir / "model"), "export: ", "rows")
        self.assertFalse((self.dir / "model").exists())

    def test_functions_refuse_what_does_not_fit(self):
        trainer, net, _ = make_trainer(self.job(overrides={"train.max_steps": 3}))
        train(trainer, net)
        job = self.job()
        other = torch.nn.Linear(job.pooled_width, 1)
        self.assert_refused(satrap.Error, lambda: satrap.evaluate(job, other), "net does not fit", "Missing key")
        self.assert_refused(satrap.Error, lambda: satrap.evaluate(job, net, predict=lambda batch: batch.numeric[:, 0][:3]),
                            "predict: has the shape [3]")
        self.assert_refused(satrap.ConfigError, lambda: satrap.evaluate("job.yaml", net), "must be a satrap.Job, got str")
        for wrong in (torch.nn.Linear, 5):
            self.assert_refused(satrap.ConfigError, lambda: satrap.evaluate(job, wrong), "net: must be a torch.nn.Module, got")
        self.assert_refused(satrap.Error, lambda: satrap.evaluate(job, net, checkpoint=self.dir / "none"), "none")

        def raising(batch):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            satrap.predict(job, net, self.dir / "out.tsv", predict=raising)
        self.assertFalse((self.dir / "out.tsv").exists())


if __name__ == "__main__":
    unittest.main()
