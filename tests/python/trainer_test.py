"""satrap.Trainer: what a run of it writes."""
import contextlib
import io
import math
import pathlib
import subprocess
import unittest

from engine_case import SATRAP, EngineCase, Net, loss_of, make_trainer, satrap, torch, train


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

    def test_gradients_of_what_the_optimizer_does_not_have_do_not_stay(self):
        job = self.job(overrides={"train.max_steps": 4})
        net = Net(job)
        last = list(net.layers)[-1]
        trainer = satrap.Trainer(job, net, torch.optim.SGD(last.parameters(), lr=0.1))
        for batch in trainer:
            trainer.step(loss_of(net(batch), batch) * (float("nan") if batch.step == 2 else 1))
        self.assertEqual(trainer.summary["nonfinite_steps"], 1)

    def test_too_many_end_the_run(self):
        job = self.job(overrides={"train.max_nonfinite_steps": 2})
        trainer, net, _ = make_trainer(job)

        def run():
            for batch in trainer:
                trainer.step(loss_of(net(batch), batch) * float("inf"))

        self.assert_refused(satrap.DivergedError, run, "training diverged: 2 steps", "train.max_nonfinite_steps")


if __name__ == "__main__":
    unittest.main()
