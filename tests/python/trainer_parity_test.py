"""satrap.Trainer: losses of the built-in network, the same bits of equal runs, gradients."""
import json
import math
import subprocess
import sys
import unittest

from engine_case import SATRAP, SOURCE, EngineCase, Net, loss_of, make_trainer, satrap, torch, train

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


if __name__ == "__main__":
    unittest.main()
