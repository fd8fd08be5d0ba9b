"""satrap.Trainer: what is wrong is said in the words of the user."""
import os
import unittest

from engine_case import EngineCase, Net, loss_of, make_trainer, satrap, torch, train


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


if __name__ == "__main__":
    unittest.main()
