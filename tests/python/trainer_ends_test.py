"""satrap.Trainer: a run ends in order, and leaves nothing behind."""
import contextlib
import gc
import os
import pathlib
import unittest

from engine_case import EngineCase, loss_of, make_trainer, satrap, torch, train


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

    def test_no_tensor_and_no_batch_outlives_its_step(self):
        kinds = (torch.Tensor, satrap.batch.Batch, satrap.batch.Lease)
        trainer, net, _ = make_trainer(self.job(overrides={"train.epochs": 10, "train.max_steps": 120}), accumulate=2)
        held = []
        for batch in trainer:
            logits = net(batch)
            trainer.step(loss_of(logits, batch), scores=logits)
            if batch.step in (20, 120):
                gc.collect()
                held.append(sum(isinstance(thing, kinds) for thing in gc.get_objects()))
        self.assertEqual(held[0], held[1])

    def test_a_trainer_that_is_dropped_before_its_first_batch_ends(self):
        before = threads()
        trainer, _, _ = make_trainer(self.job())
        batches = iter(trainer)
        del batches, trainer
        gc.collect()
        self.assertEqual(threads(), before)


if __name__ == "__main__":
    unittest.main()
