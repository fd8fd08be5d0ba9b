"""What a training loop may be made of: jagged sequences, accumulated gradients, compiled networks, schedules."""
import copy
import unittest

from engine_case import EngineCase, Net, loss_of, make_trainer, satrap, torch, train

SEQUENCE = {"features.history": {"table": "own", "pooling": "sequence"}}


class Jagged(EngineCase):
    def run_with(self, name, total_of):
        """A run whose logits are the sums of `total_of` each example's history; the digest."""
        job = self.job(name, {**SEQUENCE, "train.epochs": 2})
        torch.manual_seed(1)
        net = torch.nn.Linear(job.widths["history"], 1)

        def logits_of(batch):
            return net(total_of(batch))

        trainer, _, _ = make_trainer(job, net, predict=logits_of)
        for batch in trainer:
            logits = logits_of(batch)
            trainer.step(loss_of(logits, batch), scores=logits)
        return net.weight.detach(), trainer.summary

    def test_values_and_offsets_are_those_of_the_padded_sequence(self):
        job = self.job(overrides={**SEQUENCE, "train.max_steps": 3})
        net = torch.nn.Linear(4, 1)
        trainer, _, _ = make_trainer(job, net, predict=lambda batch: net(batch["item"]))
        for batch in trainer:
            values, offsets = batch.jagged("history")
            padded, lengths = batch["history"], batch.mask("history").sum(1).tolist()
            wanted = [padded[row, :length] for row, length in enumerate(lengths)]
            self.assertIn(0, lengths)
            self.assertTrue(torch.equal(values, torch.cat(wanted)))
            self.assertEqual(offsets.dtype, torch.int64)
            self.assertEqual(offsets.tolist(), [sum(lengths[:row]) for row in range(len(lengths) + 1)])
            weights = torch.rand(len(values), 4)
            (values * weights).sum().backward()
            self.assertTrue(torch.equal(padded.grad[batch.mask("history")], weights))
            self.assertEqual(float(padded.grad[~batch.mask("history")].abs().sum()), 0)
            padded.grad.zero_()
            trainer.step(loss_of(net(batch["item"]), batch))

    def test_it_trains_rows_as_the_padded_sequence_does(self):
        def jagged(batch):
            values, offsets = batch.jagged("history")
            rows = torch.repeat_interleave(torch.arange(len(batch)), offsets.diff())
            return torch.zeros(len(batch), values.shape[1]).index_add(0, rows, values)

        wanted, summary = self.run_with("padded", lambda batch: batch["history"].sum(1))
        weight, got = self.run_with("jagged", jagged)
        self.assertLess(float((weight - wanted).abs().max()), 1e-6)
        self.assertAlmostEqual(got["train"]["loss"], summary["train"]["loss"], places=6)

    def test_a_batch_whose_sequences_are_all_empty(self):
        lines = (self.dir / "train.csv").read_text().splitlines()
        (self.dir / "train.csv").write_text("".join(line.rsplit(",", 1)[0] + ("," if number else ",history") + "\n"
                                                    for number, line in enumerate(lines[:101])))
        job = self.job(overrides=SEQUENCE)
        net = torch.nn.Linear(4, 1)
        trainer, _, _ = make_trainer(job, net, predict=lambda batch: net(batch["item"]))
        for batch in trainer:
            values, offsets = batch.jagged("history")
            self.assertEqual((list(values.shape), offsets.tolist()), ([0, 4], [0] * 101))
            trainer.step(loss_of(net(batch["item"]), batch) + values.sum())
        self.assertTrue(trainer.finished)

    def test_a_bag_has_none(self):
        job = self.job()
        trainer, net, _ = make_trainer(job)

        def run():
            for batch in trainer:
                batch.jagged("item")

        self.assert_refused(satrap.Error, run, "jagged('item')", "pooling: sequence")


class Plain(torch.nn.Module):
    """Without dropout and batch normalisation: its output depends on parameters and inputs alone."""

    def __init__(self, job):
        super().__init__()
        torch.manual_seed(2)
        self.layers = torch.nn.Sequential(torch.nn.Linear(job.numeric_width + job.pooled_width, 8), torch.nn.ReLU(),
                                          torch.nn.Linear(8, 1))
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, batch):
        return self.layers(torch.cat([batch.numeric, batch.pooled], 1))


class Accumulation(EngineCase):
    def run_of(self, name, accumulate, stop=None, resume=False, **overrides):
        job = self.job(name, {"train.max_steps": 30, **overrides})
        net = Net(job)
        trainer, _, _ = make_trainer(job, net, accumulate=accumulate, resume=resume)
        return trainer, train(trainer, net, stop)

    def test_the_net_is_that_of_plain_pytorch_with_the_mean_of_k_gradients(self):
        job = self.job(overrides={"train.max_steps": 10})
        net = Plain(job)
        plain = copy.deepcopy(net)
        trainer, _, _ = make_trainer(job, net, accumulate=3)
        optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
        stepped, losses = [], []
        for batch in trainer:
            inputs = torch.cat([batch.numeric, batch.pooled], 1).detach().clone()
            labels, weight = batch.labels.clone(), batch.weight.clone()
            stepped.append(trainer.step(loss_of(net(batch), batch)))
            losses.append(torch.nn.functional.binary_cross_entropy_with_logits(plain.layers(inputs), labels, weight,
                                                                               reduction="sum") / len(labels))
            if len(losses) == 3:
                optimizer.zero_grad()
                (sum(losses) / 3).backward()
                optimizer.step()
                losses.clear()
            for name, value in plain.named_parameters():
                self.assertTrue(torch.allclose(net.get_parameter(name), value, rtol=0, atol=1e-6), (len(stepped), name))
        self.assertEqual(stepped, [False, False, True] * 3 + [False])

    def test_rows_are_updated_by_each_batch(self):
        _, losses = self.run_of("never", accumulate=1000)
        job = self.job("still", {"train.max_steps": 30})
        net = Net(job)
        trainer = satrap.Trainer(job, net, torch.optim.SGD(net.parameters(), lr=0.0))
        self.assertEqual(train(trainer, net), losses)
        self.assertLess(losses[-1], losses[0])

    def test_a_run_that_is_interrupted_within_a_group_has_the_same_bits(self):
        self.run_of("whole", 4)
        self.run_of("parts", 4, stop=10)
        self.assert_refused(satrap.Error, lambda: self.run_of("parts", 3, resume=True), "2 of 4 batches", "accumulate=3")
        self.assert_refused(satrap.Error, lambda: self.run_of("parts", 1, resume=True), "give it accumulate=4")
        self.run_of("parts", 4, stop=7, resume=True)
        self.run_of("parts", 4, resume=True)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_other_counts_may_follow_a_whole_group(self):
        self.run_of("parts", 4, stop=8)
        trainer, losses = self.run_of("parts", 1, resume=True)
        self.assertEqual((len(losses), trainer.finished), (22, True))

    def test_a_batch_that_is_not_finite_is_not_one_of_them(self):
        job = self.job(overrides={"train.max_steps": 7})
        trainer, net, _ = make_trainer(job, accumulate=3)
        stepped = [trainer.step(loss_of(net(batch), batch) * (float("nan") if batch.step in (2, 6) else 1.0))
                   for batch in trainer]
        self.assertEqual(stepped, [False, False, False, True, False, False, False])

    def test_counts_that_are_wrong(self):
        job = self.job()
        for wrong in (0, -1, 2.5, "4"):
            self.assert_refused(satrap.ConfigError, lambda: make_trainer(job, accumulate=wrong), "accumulate", repr(wrong))


class Attention(torch.nn.Module):
    """Looks at a batch in each way that a network may."""

    def __init__(self, job):
        super().__init__()
        torch.manual_seed(3)
        self.plain = Plain(job)
        self.query = torch.nn.Linear(4, 4)

    def forward(self, batch):
        scores = (batch["history"] @ self.query(batch["item"])[:, :, None])[:, :, 0]
        weights = torch.where(batch.mask("history"), torch.sigmoid(scores), 0.0)
        return self.plain(batch) + (weights[:, :, None] * batch["history"]).sum(1).sum(1, keepdim=True) / len(batch)


class Compiled(EngineCase):
    def run_of(self, name, compiled):
        """The losses and the logloss of an evaluation."""
        job = self.job(name, {"train.max_steps": 12, "train.eval_every": "6 steps", **SEQUENCE})
        net = Attention(job)
        called = compiled(net)
        trainer = satrap.Trainer(job, called, torch.optim.Adam(net.parameters(), lr=0.01))
        losses = train(trainer, called)
        return losses, trainer.summary["eval"]["logloss"]

    def test_losses_are_those_of_the_net_itself_and_one_graph_serves_all_batches(self):
        wanted = self.run_of("plain", lambda net: net)
        for name in ("eager", "aot_eager"):  # inductor takes a minute
            with self.subTest(name):
                backend, graphs = torch._dynamo.lookup_backend(name), []

                def counting(graph, inputs):
                    graphs.append(graph)
                    return backend(graph, inputs)

                torch._dynamo.reset()
                losses, logloss = self.run_of(name, lambda net: torch.compile(net, backend=counting, fullgraph=True))
                self.assertEqual(len(graphs), 2, "one for training and one for evaluations")
                for got, loss in zip(losses, wanted[0], strict=True):
                    self.assertAlmostEqual(got, loss, places=5)
                self.assertAlmostEqual(logloss, wanted[1], places=5)


class Schedules(EngineCase):
    def test_a_schedule_of_the_optimizers_steps(self):
        job = self.job(overrides={"train.max_steps": 6})
        net = Net(job)
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        rates = []
        trainer = satrap.Trainer(job, net, optimizer, accumulate=2, state={"schedule": schedule})
        for batch in trainer:
            if trainer.step(loss_of(net(batch), batch)):
                schedule.step()
            rates.append(schedule.get_last_lr()[0])
        self.assertEqual(rates, [1.0, 0.5, 0.5, 0.25, 0.25, 0.125])


if __name__ == "__main__":
    unittest.main()
