"""Networks in Python: losses of the built-in network, of a loop and of a job that names them; the same bits of equal runs,
gradients."""
import math
import sys
import unittest

from adult_case import AdultCase, built_in_state
from engine_case import SOURCE, EngineCase, Net, loss_of, make_trainer, run_command, satrap, torch, train

from satrap import job_training, network_file  # noqa: E402

sys.path.insert(0, str(SOURCE / "python/examples"))
import dlrm  # noqa: E402


class Parity(AdultCase):
    """DLRM in Python against satrap's own."""

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


class NamedByTheJob(AdultCase):
    """DLRM that model.path names, satrap's own, and a loop."""

    def setUp(self):
        super().setUp()
        self.built_in("initial", "train.max_steps=1", "dense_optimizer={type: sgd, lr: 1e-30}")  # it changes nothing
        torch.save(list(built_in_state(self.dir / "initial").values()), self.dir / "initial.pt")
        (self.dir / "net.py").write_text(f"""
import sys
import torch
sys.path.insert(0, {str(SOURCE / "python/examples")!r})
import dlrm

def net(job):
    net = dlrm.Dlrm(job, bottom=(32,), top=(32,))
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), torch.load({str(self.dir / "initial.pt")!r}), strict=True):
            parameter.copy_(value)
    return net
""")
        self.own = f"model={{type: python, path: {self.dir}/net.py:net}}"

    def losses(self, run):
        return satrap.read_metrics(self.dir / run)["train.loss"]

    def difference(self, run, other):
        """The largest of the losses of two runs of as many steps."""
        self.assertEqual(len(self.losses(run)), len(self.losses(other)))
        return max(abs(a - b) for a, b in zip(self.losses(run), self.losses(other)))

    def test_200_losses_are_those_of_a_loop_and_of_the_built_in_network(self):
        optimizer = ("dense_optimizer={type: adamw, lr: 0.002, weight_decay: 0.05, beta1: 0.8, clip_norm: 0.5, "
                     "schedule: {warmup_steps: 20, decay: cosine, decay_steps: 150, min_factor: 0.1}}")
        steps = f"train.max_steps={self.STEPS}"
        self.built_in("built_in", steps, optimizer)
        self.assertEqual(run_command("train", self.job_file, f"run_dir={self.dir / 'own'}", steps, optimizer, self.own), 0)

        job = satrap.Job(self.job_file, {"run_dir": self.dir / "loop", "train.max_steps": self.STEPS})
        net = network_file.make_network(job, f"{self.dir}/net.py:net")
        adamw = torch.optim.AdamW(net.parameters(), lr=0.002, weight_decay=0.05, betas=(0.8, 0.999))
        adamw.register_step_pre_hook(lambda *_: self.clip(net, 0.5))
        trainer = satrap.Trainer(job, net, adamw)
        for batch in trainer:
            after = min((batch.step - 20) / 150, 1)
            factor = batch.step / 20 if batch.step < 20 else max(0.1, (1 + math.cos(math.pi * after)) / 2)
            adamw.param_groups[0]["lr"] = 0.002 * factor
            logits = net(batch)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, batch.weight, reduction="sum")
            trainer.step(losses / len(batch), scores=logits)

        of_loop, of_built_in = self.difference("own", "loop"), self.difference("own", "built_in")
        print(f"largest difference of {self.STEPS} losses: {of_loop:.2e} of a loop, {of_built_in:.2e} of the built-in network",
              file=sys.stderr)
        self.assertLess(of_loop, 1e-6)
        self.assertLess(of_built_in, 1e-5)
        self.assertLess(self.losses("own")[-1], 0.8 * self.losses("own")[0])  # it has learned

    @staticmethod
    def clip(net, most):
        norm = math.sqrt(sum(float((parameter.grad ** 2).sum()) for parameter in net.parameters()))
        for parameter in net.parameters():
            parameter.grad.mul_(min(1.0, most / (norm + 1e-6)))

    def test_every_optimizer_is_that_of_the_built_in_network(self):
        for number, optimizer in enumerate(("{type: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.001}",
                                            "{type: adagrad, lr: 0.02, initial_accumulator: 0.1, eps: 1e-6}",
                                            "{type: adam, lr: 0.002, beta2: 0.99, eps: 1e-5, weight_decay: 0.01, "
                                            "schedule: {decay: exponential, decay_steps: 10}}")):
            with self.subTest(optimizer):
                words = ["train.max_steps=30", f"dense_optimizer={optimizer}"]
                self.built_in(f"built_in{number}", *words)
                run_command("train", self.job_file, f"run_dir={self.dir}/own{number}", self.own, *words)
                self.assertLess(self.difference(f"own{number}", f"built_in{number}"), 1e-5)
        self.assertGreater(self.difference("own0", "built_in1"), 1e-3)


class Losses(unittest.TestCase):
    def test_a_loss_is_the_weighted_sum_by_the_number_of_rows(self):
        class Some:
            losses, num_outputs, loss_shift = ["bce", "mse"], 2, 0.25

            def __len__(self):
                return len(self.labels)

        generator = torch.Generator().manual_seed(4)
        for rows in (1, 2, 50):
            both = Some()
            both.labels = torch.randint(0, 2, (rows, 2), generator=generator).float()
            both.weight = torch.rand(rows, 2, generator=generator)
            both.weight[0, 0] = 0.0
            logits = torch.randn(rows, 2, generator=generator)
            wanted = 0.0
            for z, y, w in zip(logits.tolist(), both.labels.tolist(), both.weight.tolist()):
                p = 1 / (1 + math.exp(-(z[0] + 0.25)))
                wanted -= w[0] * math.log(p if y[0] == 1 else 1 - p)
                wanted += w[1] * (z[1] - y[1]) ** 2
            self.assertAlmostEqual(float(job_training.loss_of(both, logits, both)), wanted / rows, places=5)

            classes = Some()
            classes.losses, classes.num_outputs = ["softmax"], 3
            classes.labels = torch.randint(0, 3, (rows, 1), generator=generator).float()
            classes.weight = torch.rand(rows, 1, generator=generator)
            logits = torch.randn(rows, 3, generator=generator)
            wanted = 0.0
            for z, y, w in zip(logits.tolist(), classes.labels.tolist(), classes.weight.tolist()):
                wanted += w[0] * (math.log(sum(map(math.exp, z))) - z[int(y[0])])
            self.assertAlmostEqual(float(job_training.loss_of(classes, logits, classes)), wanted / rows, places=5)


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
