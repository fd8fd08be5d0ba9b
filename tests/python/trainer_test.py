"""satrap.Trainer: what a run of it learns and writes, and that it ends in order."""
import contextlib
import gc
import io
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from engine_case import PACKAGE, SATRAP, SOURCE, EngineCase, Net, loss_of, make_trainer, satrap, torch, train

sys.path.insert(0, str(SOURCE / "python/examples"))
import dlrm  # noqa: E402


def built_in_state(run):
    """The dense tensors of a checkpoint of satrap's own network, by name."""
    checkpoint, = (run / "checkpoints").iterdir()
    values = torch.frombuffer(bytearray((checkpoint / "dense.bin").read_bytes()), dtype=torch.float32)
    tensors = {}
    for about in json.loads((checkpoint / "manifest.json").read_text())["dense"]:
        count = math.prod(about["shape"])
        tensors[about["name"]], values = values[:count].reshape(about["shape"]), values[count:]
    return tensors


class Parity(EngineCase):
    """DLRM in Python against satrap's own, on the Adult census data."""

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

    def test_200_losses_are_those_of_the_built_in_network(self):
        # A step that is too small to change anything leaves the initial values in its checkpoint.
        self.built_in("initial", "train.max_steps=1", "dense_optimizer={type: sgd, lr: 1e-30}")
        initial = [tensor for tensor in built_in_state(self.dir / "initial").values()]
        self.built_in("built_in", f"train.max_steps={self.STEPS}")
        wanted = satrap.read_metrics(self.dir / "built_in")["train.loss"]

        job = satrap.Job(self.job_file, {"run_dir": self.dir / "python", "train.max_steps": self.STEPS})
        net = dlrm.Dlrm(job, bottom=(32,), top=(32,))
        parameters = list(net.parameters())
        self.assertEqual([list(p.shape) for p in parameters], [list(value.shape) for value in initial])
        with torch.no_grad():
            for parameter, value in zip(parameters, initial):
                parameter.copy_(value)
        losses = train(satrap.Trainer(job, net, torch.optim.Adam(parameters, lr=0.001)), net)
        reported = satrap.read_metrics(self.dir / "python")["train.loss"]

        self.assertEqual(len(wanted), self.STEPS)
        self.assertEqual(len(losses), self.STEPS)
        largest = max(abs(a - b) for a, b in zip(losses, wanted))
        print(f"largest difference of {self.STEPS} losses: {largest:.2e}", file=sys.stderr)
        self.assertLess(largest, 1e-5)
        self.assertLess(max(abs(a - b) for a, b in zip(losses, reported)), 1e-6)
        self.assertLess(wanted[-1], 0.8 * wanted[0])  # it has learned


class Determinism(EngineCase):
    STEPS = 60

    def run_of(self, name, mode, stops=(), steps=STEPS, epochs=3):
        """A run with dropout, batch normalisation and a schedule that is interrupted after these steps."""
        overrides = {"train.epochs": epochs, "train.max_steps": steps, **mode}
        for number, stop in enumerate([*stops, None]):
            job = self.job(name, overrides)
            net = Net(job, seed=1 if number == 0 else 100 + number)
            optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [10, 30], gamma=0.5)
            trainer = satrap.Trainer(job, net, optimizer, state={"schedule": schedule}, resume=number > 0)
            train(trainer, net, stop, schedule)
        return self.digest(name)

    def test_the_same_run_twice_and_interrupted_gives_the_same_bits(self):
        for mode in ({"train.mode": "sync"},
                     {"train.mode": "hybrid", "train.staleness": 2, "train.staleness_schedule": "constant"}):
            with self.subTest(mode):
                name = mode["train.mode"]
                whole = self.run_of(f"{name}-whole", mode)
                self.assertEqual(whole, self.run_of(f"{name}-again", mode))
                self.assertEqual(whole, self.run_of(f"{name}-parts", mode, stops=[17, 20]))

    def test_another_seed_gives_other_bits(self):
        self.assertNotEqual(self.run_of("a", {}, steps=5), self.run_of("b", {"seed": 4}, steps=5))


class Gradients(EngineCase):
    def run_with(self, name, inputs):
        job = self.job(name)
        net = Net(job)
        trainer, _, _ = make_trainer(job, net)
        for batch in trainer:
            logits = net.layers(torch.cat([batch.numeric, inputs(batch)], 1))
            trainer.step(loss_of(logits, batch), scores=logits)
        return self.digest(name)

    def test_features_one_by_one_train_as_all_together(self):
        whole = self.run_with("whole", lambda batch: batch.pooled)
        features = self.run_with("features", lambda b: torch.cat([b["item"], b["shop"], b["history"]], 1))
        mixed = self.run_with("mixed", lambda b: torch.cat([b["item"], b.pooled[:, 4:]], 1))
        self.assertEqual(whole, features)
        self.assertEqual(whole, mixed)

    def test_a_gradient_that_was_taken_away_is_added(self):
        def inputs(batch):
            batch.pooled.grad = None
            return batch.pooled

        self.assertEqual(self.run_with("kept", lambda batch: batch.pooled), self.run_with("taken", inputs))

    def test_the_engine_has_what_autograd_computes(self):
        job = self.job("one", {"train.max_steps": 1})
        net = Net(job).eval()
        trainer, _, _ = make_trainer(job, net)
        for batch in trainer:
            given = batch.pooled
            address = given.grad.data_ptr()
            apart = given.detach().clone().requires_grad_()
            logits = net.layers(torch.cat([batch.numeric, apart], 1))
            loss_of(logits, batch).backward()
            loss_of(net(batch), batch).backward()
            self.assertEqual(given.grad.data_ptr(), address)
            self.assertTrue(torch.equal(given.grad, apart.grad))
            self.assertGreater(float(given.grad.abs().sum()), 0)
            break

    def test_a_sequence_is_padded_and_has_a_mask(self):
        job = self.job("sequence", {"features.history": {"table": "own", "pooling": "sequence"}, "train.max_steps": 2,
                                    "data.shuffle_rows": 0})
        self.assertEqual((job.lengths, job.widths), ({"history": 3}, {"item": 4, "shop": 2, "history": 4}))
        self.assertEqual(job.pooled_width, 4 + 2 + 3 * 4)
        net = torch.nn.Linear(job.pooled_width, 1)
        trainer, _, _ = make_trainer(job, net, predict=lambda batch: net(batch.pooled))
        rows = [line.rstrip("\n").split(",")[5].split() for line in open(self.dir / "train.csv").readlines()[1:201]]
        for batch in trainer:
            first = (batch.step - 1) * 100
            lengths = [len(ids) for ids in rows[first:first + 100]]
            self.assertEqual(batch.mask("history").sum(1).tolist(), lengths)
            history = batch["history"]
            self.assertEqual(list(history.shape), [100, 3, 4])
            self.assertTrue(torch.equal(history.flatten(1), batch.pooled[:, 6:]))
            self.assertTrue(torch.all(history[~batch.mask("history")] == 0))
            self.assertEqual(list(batch.numeric.shape), [100, 1])
            trainer.step(net(torch.cat([batch["item"], batch["shop"], history.flatten(1)], 1)).mean())
        self.assertTrue(trainer.finished)


class Outputs(EngineCase):
    def test_a_run_writes_what_the_command_writes(self):
        job = self.job(overrides={"train.eval_every": "10 steps", "checkpoint.every": "10 steps", "train.epochs": 2})
        trainer, net, _ = make_trainer(job)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            losses = train(trainer, net)
        self.assertTrue(trainer.finished)
        self.assertEqual(len(losses), 60)
        for name in ("config.yaml", "metrics.jsonl", "summary.json", "report.html", "checkpoints"):
            self.assertTrue(pathlib.Path(trainer.run_dir, name).exists(), name)
        summary = trainer.summary
        self.assertEqual((summary["step"], summary["examples"], summary["finished"]), (60, 6000, True))
        self.assertGreater(summary["eval"]["auc"], 0.6)
        metrics = satrap.read_metrics(trainer.run_dir)
        self.assertEqual(len([value for value in metrics["eval.auc"] if not math.isnan(value)]), 6)
        self.assertGreater(summary["train"]["auc"], 0.55)
        self.assertIn("trained     60 steps", out.getvalue())
        self.assertIn(f"next        satrap report {trainer.run_dir}", out.getvalue())
        self.assertIn("type: python", pathlib.Path(trainer.run_dir, "config.yaml").read_text())

    def test_metrics_of_scores_are_absent_without_them_and_the_loss_is_the_programs(self):
        job = self.job(overrides={"train.metric_window": 200})
        trainer, net, _ = make_trainer(job)
        losses = []
        for batch in trainer:
            loss = 3 * loss_of(net(batch), batch)
            trainer.step(loss)
            losses.append(loss.item())
        metrics = satrap.read_metrics(trainer.run_dir)
        for name in ("train.auc", "train.ne", "train.calibration", "train.ap", "train.brier"):
            self.assertTrue(all(math.isnan(value) for value in metrics[name]), name)
        self.assertAlmostEqual(metrics["train.loss"][0], losses[0], places=6)
        self.assertAlmostEqual(metrics["train.loss"][9], (losses[8] + losses[9]) / 2, places=6)

    def test_evaluation_is_in_evaluation_mode_and_leaves_the_modes_as_they_were(self):
        job = self.job(overrides={"train.eval_every": "5 steps", "train.max_steps": 10})
        net = Net(job)
        net.layers[1].eval()
        seen = []

        def predict(batch):
            seen.append((net.training, net.layers[3].training, torch.is_grad_enabled(), batch.step))
            return net(batch)

        trainer, _, _ = make_trainer(job, net, predict=predict)
        train(trainer, net)
        self.assertEqual(set(seen), {(False, False, False, 0)})
        self.assertTrue(net.training and net.layers[3].training)
        self.assertFalse(net.layers[1].training)

    def test_early_stopping_ends_the_loop(self):
        job = self.job(overrides={"train.eval_every": "5 steps", "train.epochs": 50,
                                  "train.early_stopping": {"patience": 2, "metric": "logloss", "min_delta": 0.5}})
        trainer, net, _ = make_trainer(job)
        losses = train(trainer, net)
        self.assertTrue(trainer.finished)
        self.assertEqual(len(losses), 15)
        self.assertTrue(trainer.summary["early_stopping"]["stopped"])

    def test_weights_and_missing_labels(self):
        rows = (self.dir / "train.csv").read_text().splitlines(keepends=True)
        (self.dir / "train.csv").write_text("".join([rows[0], rows[1], *(f",{row.split(',', 1)[1]}" for row in rows[2:100])]))
        config = self.config()
        del config["data"]["schema"]["label"]
        config["data"]["schema"] |= {"weight": "weight", "labels": [
            {"name": "a", "column": "clicked"},
            {"name": "b", "column": "shop", "weight": 0.5, "positive": ["2", "3"]}]}
        del config["data"]["schema"]["features"][1], config["features"]["shop"], config["tables"]["shops"]
        job = satrap.Job(config)
        net = Net(job)
        trainer, _, _ = make_trainer(job, net)
        for batch in trainer:
            weights = torch.tensor([float(row.split(",")[1]) for row in rows[1:100]])
            self.assertTrue(torch.equal(batch.weight[:, 1], 0.5 * weights))
            self.assertEqual(float(batch.weight[0, 0]), float(weights[0]))
            self.assertEqual(float(batch.weight[1:, 0].abs().sum()), 0)
            self.assertEqual(float(batch.labels[1:, 0].abs().sum()), 0)
            logits = net(batch)
            trainer.step(loss_of(logits, batch), scores=logits)
        self.assertTrue(trainer.finished)

    def test_a_checkpoint_is_safetensors(self):
        from safetensors.torch import load_file
        trainer, net, _ = make_trainer(self.job(overrides={"train.max_steps": 3}))
        train(trainer, net)
        tensors = load_file(pathlib.Path(trainer.last_checkpoint, "dense.bin"))
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(tensors[f"net.{name}"], value), name)
        self.assertIn("optimizer.state.0.exp_avg", tensors)

    def test_commands_name_the_model(self):
        trainer, net, _ = make_trainer(self.job(overrides={"train.max_steps": 3}))
        train(trainer, net)
        for command in (["eval"], ["predict", "--data", self.dir / "eval.csv"], ["export", "--out", self.dir / "out"]):
            done = subprocess.run([SATRAP, *command, "--checkpoint", trainer.run_dir], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("model: 'python' is a network of a program in Python", done.stderr)


class NonFinite(EngineCase):
    def test_a_step_that_is_not_finite_changes_nothing(self):
        def digest_after(name, poison):
            job = self.job(name, {"train.max_steps": 3})
            trainer, net, _ = make_trainer(job)
            for batch in trainer:
                loss = loss_of(net(batch), batch)
                if batch.step == 3:
                    loss = poison(loss, batch)
                trainer.step(loss)
                if batch.step == 3:
                    for old, new in zip(before_forward, net.state_dict().values()):
                        self.assertTrue(torch.equal(old, new))
                before_forward = [value.clone() for value in net.state_dict().values()]
            self.assertEqual(trainer.summary["nonfinite_steps"], 1)

        digest_after("loss", lambda loss, batch: loss * float("nan"))
        digest_after("rows", lambda loss, batch: loss + (batch.pooled.sum() * 0 + 1e38) * 1e38)
        digest_after("gradient", lambda loss, batch: loss + torch.sqrt(batch.pooled.sum() * 0))

    def test_too_many_end_the_run(self):
        job = self.job(overrides={"train.max_nonfinite_steps": 2})
        trainer, net, _ = make_trainer(job)

        def run():
            for batch in trainer:
                trainer.step(loss_of(net(batch), batch) * float("inf"))

        self.assert_refused(satrap.DivergedError, run, "training diverged: 2 steps", "train.max_nonfinite_steps")


class Errors(EngineCase):
    def loop(self, body, **options):
        """Calls body(trainer, net, batch) in the loop of a fresh run."""
        name = f"run{len(list(self.dir.iterdir()))}"
        trainer, net, _ = make_trainer(self.job(name, {"train.max_steps": 6}), **options)
        for batch in trainer:
            body(trainer, net, batch)
        return trainer

    def test_shapes_of_scores(self):
        def body(trainer, net, batch):
            trainer.step(loss_of(net(batch), batch), scores=net(batch)[:50])

        self.assert_refused(satrap.Error, lambda: self.loop(body), "scores: has the shape [50, 1]", "= [100, 1]")

    def test_losses_of_other_shapes_and_without_a_gradient(self):
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: t.step(n(b))), "one number", "[100, 1]")
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: t.step(0.5)), "got float")
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: t.step(loss_of(n(b), b).detach())),
                            "the loss of step 1: it has no gradient")

    def test_a_batch_without_a_step_and_with_two(self):
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: None), "batch of step 1 was not trained on")

        def twice(trainer, net, batch):
            loss = loss_of(net(batch), batch)
            trainer.step(loss)
            trainer.step(loss)

        self.assert_refused(satrap.Error, lambda: self.loop(twice), "no batch to train on")

    def test_a_batch_that_is_used_after_its_step(self):
        batches = []

        def body(trainer, net, batch):
            trainer.step(loss_of(net(batch), batch))
            batches.append(batch)
            batches[0].numeric

        self.assert_refused(satrap.Error, lambda: self.loop(body), "the batch of step 1 is used after its step")

    def test_what_is_kept_beyond_the_next_step_is_found(self):
        for keep in (lambda net, batch, loss: batch.pooled, lambda net, batch, loss: batch["item"][:3],
                     lambda net, batch, loss: loss, lambda net, batch, loss: batch.labels):
            kept = []

            def body(trainer, net, batch):
                loss = loss_of(net(batch), batch)
                kept.append(keep(net, batch, loss))
                trainer.step(loss)

            self.assert_refused(satrap.Error, lambda: self.loop(body), "the batch of step 1 is still referred to", "loss.item()")

    def test_copies_may_be_kept(self):
        kept = []

        def body(trainer, net, batch):
            loss = loss_of(net(batch), batch)
            kept.append((loss.item(), batch.pooled.detach().clone(), loss.detach()))
            trainer.step(loss)

        self.assertTrue(self.loop(body).finished)

    def test_a_trainer_trains_once(self):
        trainer = self.loop(lambda t, n, b: t.step(loss_of(n(b), b)))
        self.assert_refused(satrap.Error, lambda: iter(trainer), "a trainer trains once", "resume=True")

    def test_a_feature_that_does_not_exist(self):
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: b["itme"]), "batch['itme']", "item, shop, history")
        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: b.mask("item")), "pooling: sequence")

    def test_a_run_that_is_there(self):
        trainer, net, _ = make_trainer(self.job("there", {"train.max_steps": 2}))
        train(trainer, net)
        again, net, _ = make_trainer(self.job("there", {"train.max_steps": 2}))
        self.assert_refused(satrap.Error, lambda: train(again, net), "there")
        replaced, net, _ = make_trainer(self.job("there", {"train.max_steps": 2}), overwrite=True)
        self.assertEqual(len(train(replaced, net)), 2)

    def test_parts_that_are_wrong(self):
        job = self.job()
        net = Net(job)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for arguments, word in (((job, net, None), "optimizer: must be a torch.optim.Optimizer, got NoneType"),
                                ((job, net.forward, optimizer), "net: must be a torch.nn.Module, got method"),
                                (("job.yaml", net, optimizer), "job: must be a satrap.Job, got str"),
                                ((job, torch.nn.ReLU(), optimizer), "a module with parameters to train, got none")):
            self.assert_refused(satrap.ConfigError, lambda: satrap.Trainer(*arguments), word)
        self.assert_refused(satrap.ConfigError, lambda: satrap.Trainer(job, net, optimizer, state={"a": 1}), "state['a']")
        self.assert_refused(satrap.ConfigError, lambda: satrap.Trainer(job, net, optimizer, resume=True, overwrite=True),
                            "exclude each other")

    def test_a_checkpoint_of_another_network(self):
        trainer, net, _ = make_trainer(self.job("other", {"train.max_steps": 2}))
        train(trainer, net)
        job = self.job("other", {"train.max_steps": 4})
        other = torch.nn.Linear(job.pooled_width, 1)
        trainer, _, _ = make_trainer(job, other, resume=True)
        self.assert_refused(satrap.Error, lambda: train(trainer, other), "checkpoint: net does not fit", "Missing key")
        trainer, net, _ = make_trainer(job, state={"a": torch.nn.Linear(1, 1)}, resume=True)
        self.assert_refused(satrap.Error, lambda: train(trainer, net), "states []", "['a']")

    def test_a_state_that_cannot_be_kept(self):
        class Odd:
            def state_dict(self):
                return {"file": object()}

            def load_state_dict(self, state):
                pass

        self.assert_refused(satrap.Error, lambda: self.loop(lambda t, n, b: t.step(loss_of(n(b), b)), state={"odd": Odd()}),
                            "state 'state.odd.file': object cannot be kept")

    def test_pickling_and_a_copy_of_the_process(self):
        import pickle

        def body(trainer, net, batch):
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(trainer)
            child = os.fork()
            if child == 0:
                try:
                    trainer.step(None)
                except satrap.Error as error:
                    os._exit(7 if "is a copy (fork)" in str(error) else 8)
                os._exit(9)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            trainer.step(loss_of(net(batch), batch))

        self.assertTrue(self.loop(body).finished)


def threads():
    return sorted((path / "comm").read_text().strip() for path in pathlib.Path("/proc/self/task").iterdir())


class Ends(EngineCase):
    def test_an_exception_in_the_loop_keeps_the_state_before_its_step(self):
        whole, net, _ = make_trainer(self.job("whole", {"train.max_steps": 8}))
        train(whole, net)

        def fail_at_5(trainer, net):
            for batch in trainer:
                loss = loss_of(net(batch), batch)  # moves batch normalisation and the generator
                if batch.step == 5:
                    raise LookupError("mine")
                trainer.step(loss)

        trainer, net, _ = make_trainer(self.job("parts", {"train.max_steps": 8}))
        with self.assertRaisesRegex(LookupError, "mine"):
            fail_at_5(trainer, net)
        self.assertTrue(trainer.last_checkpoint.endswith("step-000000000004"), trainer.last_checkpoint)
        self.assertFalse(trainer.finished)
        trainer, net, _ = make_trainer(self.job("parts", {"train.max_steps": 8}), resume=True)
        self.assertEqual(len(train(trainer, net)), 4)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_an_exception_of_the_optimizer_writes_no_checkpoint_of_a_half_done_step(self):
        job = self.job(overrides={"checkpoint.every": "2 steps"})
        trainer, net, optimizer = make_trainer(job)

        def run():
            for batch in trainer:
                if batch.step == 4:
                    optimizer.step = lambda: 1 / 0
                trainer.step(loss_of(net(batch), batch))

        with self.assertRaises(ZeroDivisionError):
            run()
        names = sorted(path.name for path in pathlib.Path(trainer.run_dir, "checkpoints").iterdir())
        self.assertEqual(names, ["step-000000000002"])

    def test_an_exception_of_an_evaluation_ends_the_run_with_it(self):
        def predict(batch):
            raise LookupError("no scores")

        job = self.job(overrides={"train.eval_every": "3 steps", "checkpoint.every": "2 steps"})
        trainer, net, _ = make_trainer(job, predict=predict)
        with self.assertRaisesRegex(LookupError, "no scores"):
            train(trainer, net)
        trainer, net, _ = make_trainer(self.job("wrong", {"train.eval_every": "3 steps"}),
                                       predict=lambda batch: torch.zeros(7))
        self.assert_refused(satrap.Error, lambda: train(trainer, net), "predict: has the shape [7]", "labels] = [100, 1]")

    def test_bad_data_ends_it_with_the_engines_error(self):
        with open(self.dir / "train.csv", "a") as file:
            file.write("x,1,2,3,4,5\n")
        job = self.job(overrides={"data.on_bad_row": "stop"})
        trainer, net, _ = make_trainer(job)
        self.assert_refused(satrap.DataError, lambda: train(trainer, net), "train.csv:3002")

    def test_nothing_is_left_behind(self):
        def run(number):
            trainer, net, _ = make_trainer(self.job(f"run{number}", {"train.max_steps": 5}))
            with contextlib.suppress(LookupError):
                for batch in trainer:
                    if number % 2 and batch.step == 3:
                        raise LookupError
                    trainer.step(loss_of(net(batch), batch))
            again, net, _ = make_trainer(self.job(f"run{number}", {"train.max_steps": 5}), resume=True)
            train(again, net)

        run(0)
        gc.collect()
        before, files = threads(), len(os.listdir("/proc/self/fd"))
        for number in range(1, 7):
            run(number)
        gc.collect()
        self.assertEqual(threads(), before)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_a_trainer_that_is_dropped_before_its_first_batch_ends(self):
        before = threads()
        trainer, _, _ = make_trainer(self.job())
        batches = iter(trainer)
        del batches, trainer
        gc.collect()
        self.assertEqual(threads(), before)


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}]
from engine_case import *
job = satrap.Job({{**{config!r}, "data": {data!r}}}, {{"train.epochs": {epochs}, "checkpoint.every": "{every}", "train.max_steps": {steps}}})
trainer, net, _ = make_trainer(job, resume={resume})
for batch in trainer:
    logits = net(batch)
    trainer.step(loss_of(logits, batch), scores=logits)
    print(batch.step, flush=True)
"""


class Processes(EngineCase):
    def start(self, run, epochs=1000, every="never", steps=0, resume=False):
        config = json.loads(json.dumps(self.config(run), default=str))
        text = SCRIPT.format(tests=str(SOURCE / "tests/python"), config=config, data=config["data"], epochs=epochs, every=every,
                             steps=steps, resume=resume)
        program = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        return program

    def wait_for_step(self, program, step):
        for line in program.stdout:
            if line.strip() == str(step):
                return
        self.fail(program.stderr.read())

    def test_the_first_signal_ends_it_with_a_checkpoint(self):
        for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)):
            with self.subTest(number):
                run = f"run{int(number)}"
                program = self.start(run)
                self.wait_for_step(program, 5)
                program.send_signal(number)
                _, errors = program.communicate(timeout=120)
                self.assertEqual(program.returncode, status, errors)
                self.assertIn("resume=True) continues from", errors)
                if number == signal.SIGINT:
                    self.assertIn("KeyboardInterrupt", errors)
                self.digest(run)

    def test_a_killed_run_continues_with_the_same_bits(self):
        whole = self.start("whole", epochs=3, steps=45)
        _, errors = whole.communicate(timeout=120)
        self.assertEqual(whole.returncode, 0, errors)
        killed = self.start("killed", epochs=3, every="10 steps", steps=45)
        self.wait_for_step(killed, 27)
        killed.kill()
        killed.wait()
        again = self.start("killed", epochs=3, every="10 steps", steps=45, resume=True)
        out, errors = again.communicate(timeout=120)
        self.assertEqual(again.returncode, 0, errors)
        self.assertIn("resumed from", errors)
        self.assertNotEqual(out.split()[0], "1")
        self.assertEqual(self.digest("whole"), self.digest("killed"))

    def test_a_program_that_ends_in_the_middle_of_a_run_ends(self):
        code = SCRIPT.format(tests=str(SOURCE / "tests/python"), config=json.loads(json.dumps(self.config(), default=str)),
                             data=json.loads(json.dumps(self.config()["data"], default=str)), epochs=1000, every="never", steps=0,
                             resume=False).split("for batch")[0]
        done = subprocess.run([sys.executable, "-c", code + "\nbatches = iter(trainer)\nprint(next(batches).step)\n"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
