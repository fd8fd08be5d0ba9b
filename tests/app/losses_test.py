"""Labels that are numbers, and labels of classes, through the whole program: beside NumPy's numbers."""
import json
import random
import unittest

import numpy as np

from evaluated_case import EvaluatedTest

WATCH = "label: {column: watch, type: number}"
KIND = "label: {column: kind, classes: 4}"
COLOUR = "label: {column: colour, classes: 3, values: [red, green, blue]}"
BOTH = "labels: [{column: click}, {column: watch, type: number, weight: 0.1}]"
COLOURS = ["red", "green", "blue"]
ROWS = 1200


def log():
    """`watch` and `kind` follow from f and g; a row in ten lacks `watch`."""
    draw = random.Random(5)
    for row in range(ROWS):
        f, g = draw.randrange(12), draw.randrange(5)
        click = int(draw.random() < 0.1 + 0.06 * f)
        watch = round(20 + 3 * f - 4 * g + draw.gauss(0, 2), 3)
        kind = (f + draw.choice([0, 0, 0, 1])) % 4
        yield {"click": click, "watch": watch, "kind": kind, "colour": COLOURS[kind % 3], "f": f, "g": g,
               "sometimes": "" if row % 10 == 0 else watch}


def number_metrics(y, p, w):
    mean = np.average(y, weights=w)
    squares = np.average((p - y) ** 2, weights=w)
    return {"examples": len(y), "rmse": np.sqrt(squares), "mae": np.average(np.abs(p - y), weights=w),
            "r2": 1 - squares / np.average((y - mean) ** 2, weights=w)}


def class_metrics(y, p, w):
    """p: [rows, classes]."""
    loss = -np.average(np.log(p[np.arange(len(y)), y]), weights=w)
    shares = np.array([w[y == c].sum() for c in range(p.shape[1])]) / w.sum()
    return {"examples": len(y), "accuracy": np.average(p.argmax(1) == y, weights=w), "logloss": loss,
            "ne": loss / -sum(q * np.log(q) for q in shares if q > 0)}


class Losses(EvaluatedTest):
    def setUp(self):
        super().setUp()
        self.rows = list(log())
        self.write_rows(list(self.rows[0]), (row.values() for row in self.rows))

    def job(self, labels):
        return self.write_job(labels, "epochs: 4, report_every: 10 steps")

    def column(self, name):
        return np.array([row[name] for row in self.rows])

    def trained(self, labels, *settings):
        return self.train_and_predict(self.job(labels), *settings)

    def assert_near(self, found, expected):
        for name, value in expected.items():
            self.assertAlmostEqual(found[name], value, delta=1e-9 * max(1, abs(value)), msg=name)

    def reports(self):
        lines = [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]
        return [line["train"] for line in lines if "train" in line]

    def test_a_number_is_learned_and_its_metrics_are_those_of_numpy(self):
        found, header, p = self.trained(WATCH)
        self.assertEqual(header, ["value"])
        y = self.column("watch").astype(np.float32).astype(np.float64)
        self.assert_near(found, number_metrics(y, p[:, 0], np.ones(ROWS)))
        self.assertEqual(set(found), {"examples", "rmse", "mae", "r2"})
        self.assertGreater(found["r2"], 0.9)
        summary = json.loads((self.run_dir / "summary.json").read_text())
        self.assertAlmostEqual(summary["mean_label"]["watch"], y.mean(), places=6)
        self.assertEqual(summary["positive_share"], {})
        for train in self.reports():
            self.assertEqual(set(train), {"loss", "rmse", "mae", "r2"})
            self.assertAlmostEqual(train["loss"], train["rmse"] ** 2, delta=1e-9 * train["loss"])
        self.assertRegex(self.log.stderr, r"loss \d+\.\d+  rmse \d+\.\d+")
        self.assertRegex(self.log.stdout, r"\neval        rmse \d\.\d+  mae \d\.\d+  r2 0\.9\d+\n")
        shown = self.succeed("eval", "--checkpoint", self.run_dir).stdout
        self.assertIn(f"rmse         {found['rmse']:.6f}\nmae          {found['mae']:.6f}\n", shown)
        self.assertIn("(rmse: root of the mean squared error;", shown)

    def test_a_new_network_begins_with_the_mean_number(self):
        found, _, p = self.trained(WATCH, "train.epochs=1", "train.max_steps=1", "tables.default.optimizer.lr=1e-9",
                                   "dense_optimizer.lr=1e-9")
        first = self.column("watch")[:100].mean()
        self.assertLess(abs(p.mean() - first), 1.0)
        self.assertLess(abs(found["r2"]), 0.2, "about that of always predicting the mean")

    def test_weights_count_and_slices_have_metrics_of_their_own(self):
        found, _, p = self.trained(WATCH, "data.schema.weight=g", "train.slices=[colour]")
        y, w, p = self.column("watch").astype(np.float32).astype(np.float64), self.column("g").astype(float), p[:, 0]
        counts = w > 0  # rows of weight 0 are predicted, and count nowhere
        self.assertLess(counts.sum(), ROWS)
        self.assert_near(found, {**number_metrics(y[counts], p[counts], w[counts]), "weight": w.sum()})
        self.assertEqual(len(found["slices"]["colour"]), 3)
        for piece in found["slices"]["colour"]:
            of = counts & (self.column("colour") == piece["value"])
            self.assert_near(piece, number_metrics(y[of], p[of], w[of]))
        shown = self.succeed("eval", "--checkpoint", self.run_dir, self.job(WATCH), "data.schema.weight=g",
                             "train.slices=[colour]").stdout
        self.assertRegex(shown, r"colour +examples +rmse +mae +r2\n")

    def test_numbers_stand_beside_labels_of_0_and_1(self):
        labels = BOTH.replace("column: watch", "name: watch, column: sometimes")
        found, header, p = self.trained(labels, "model.head=[8]")
        self.assertEqual(header, ["click", "watch"])
        self.assertEqual(found["auc"], found["labels"]["click"]["auc"])
        there = self.column("sometimes") != ""
        y = self.column("watch").astype(np.float32).astype(np.float64)
        self.assert_near(found["labels"]["watch"], number_metrics(y[there], p[there, 1], np.ones(there.sum())))
        self.assertGreater(found["labels"]["watch"]["r2"], 0.8)
        self.assertGreater(found["auc"], 0.6)
        click = self.column("click")
        self.assertAlmostEqual(found["labels"]["click"]["brier"], ((p[:, 0] - click) ** 2).mean(), delta=1e-9)
        lines = [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([[one["label"] for one in line["reliability"]] for line in lines if "eval" in line], [["click"]])

    def test_classes_have_a_probability_each(self):
        found, header, p = self.trained(KIND)
        self.assertEqual(header, ["class_0", "class_1", "class_2", "class_3"])
        self.assertLess(np.abs(p.sum(1) - 1).max(), 1e-6)
        self.assert_near(found, class_metrics(self.column("kind"), p, np.ones(ROWS)))
        self.assertEqual(set(found), {"examples", "accuracy", "logloss", "ne"})
        self.assertGreater(found["accuracy"], 0.7)
        for train in self.reports():
            self.assertEqual(set(train), {"loss", "accuracy", "ne"})
        self.assertRegex(self.log.stderr, r"loss \d\.\d+  accuracy 0\.\d+")

    def test_classes_may_be_texts_and_have_weights(self):
        found, header, p = self.trained(COLOUR, "data.schema.weight=g")
        self.assertEqual(header, COLOURS)
        w = self.column("g").astype(float)
        y = np.array([COLOURS.index(text) for text in self.column("colour")])
        self.assert_near(found, class_metrics(y[w > 0], p[w > 0], w[w > 0]))

    def test_0_and_1_may_have_the_loss_of_numbers(self):
        found, header, p = self.trained("label: click", "model.loss=mse")
        self.assertEqual(header, ["value"])
        self.assert_near(found, number_metrics(self.column("click"), p[:, 0], np.ones(ROWS)))

    def test_the_loss_that_follows_from_the_label_may_be_written(self):
        digests = []
        for settings in [[], ["model.loss=bce"]]:
            self.trained("label: click", *settings)
            [newest] = [self.digest(self.run_dir / "checkpoints" / name) for name in self.checkpoints()][-1:]
            digests.append(newest)
        self.assertEqual(digests[0], digests[1])

    def test_early_stopping_uses_a_metric_of_the_loss(self):
        for labels, metric in [(WATCH, "rmse"), (KIND, "logloss"), ("label: click", "auc")]:
            self.trained(labels, "train.eval_every=1 epoch", "train.early_stopping.patience=1")
            early = json.loads((self.run_dir / "summary.json").read_text())["early_stopping"]
            self.assertEqual(early["metric"], metric)
            self.assertAlmostEqual(early["eval"][metric], early["best_value"])
        error = self.fail_with(2, "train", self.job(WATCH), "--overwrite", "train.eval_every=1 epoch",
                               "train.early_stopping={metric: ne, patience: 1}")
        self.assert_words(error, "train.early_stopping.metric", "loss mse has no ne, but rmse, mae")

    def test_importance_is_by_the_metrics_of_the_loss(self):
        for labels, keys in [(WATCH, ["rmse_rise", "mae_rise"]), (KIND, ["logloss_rise", "accuracy_fall"])]:
            self.trained(labels)
            shown = self.succeed("eval", "--checkpoint", self.run_dir, "--importance").stdout
            self.assertRegex(shown, "input +" + " +.- +".join(key.replace("_", " ") + "s" for key in keys))
            inputs = json.loads((self.run_dir / "importance.json").read_text())["inputs"]
            self.assertEqual(inputs[0]["input"], "f")
            self.assertEqual(set(inputs[0]), {"input", *keys, *(f"{key}_interval" for key in keys)})
            for key in keys:
                self.assertGreater(inputs[0][key], 10 * inputs[0][f"{key}_interval"])
            self.succeed("report", self.run_dir)
            self.assertIn(f'"{keys[0]}_interval":', (self.run_dir / "report.html").read_text())

    def test_parsed_rows_and_json_lines_are_the_same_rows(self):
        _, _, plain = self.trained(WATCH)
        for settings in [[f"data.cache.folder={self.dir}/cache"]] * 2:
            self.assertTrue((self.trained(WATCH, *settings)[2] == plain).all())
        lines = self.write("rows.json", "".join(json.dumps(row) + "\n" for row in self.rows))
        files = [f"data.train.path={lines}", f"data.eval.path={lines}"]
        self.assertTrue((self.trained(WATCH, *files)[2] == plain).all())
        _, _, of_kind = self.trained(KIND)
        self.assertTrue((self.trained(KIND, *files)[2] == of_kind).all())

    def test_a_run_goes_on_with_its_label_and_loss_alone(self):
        self.trained(WATCH, "train.epochs=1")
        error = self.fail_with(2, "train", self.job("label: {column: watch, threshold: [30]}"), "--resume",
                               "train.epochs=3")
        self.assert_words(error, "data.schema.label.type", "number -> binary", "the network predicts the label as it was")
        self.succeed("train", self.job(WATCH), "--resume", "train.epochs=2", "model.loss=mse")  # what auto means
        self.trained("label: click", "train.epochs=1")
        error = self.fail_with(2, "train", self.job("label: click"), "--resume", "train.epochs=2", "model.loss=mse")
        self.assert_words(error, "another model.loss", "auto -> mse")
        for command in ["eval", "predict"]:
            error = self.fail_with(2, command, self.job("label: {column: kind, type: number}"), "--checkpoint", self.run_dir)
            self.assert_words(error, "data.schema.label.type: binary -> number", "undo the change")

    def test_what_does_not_go_together_is_refused(self):
        for labels, settings, words in [
                (WATCH, ["model.loss=bce"], ["model.loss: bce needs labels of 0 and 1", "label 'watch' is a number"]),
                (WATCH, ["model.loss=softmax"], ["model.loss: softmax needs a label with `classes`"]),
                (KIND, ["model.loss=mse"], ["model.loss: mse needs numbers", "'kind' is one of several classes"]),
                (WATCH, ["data.train.negatives=0.5"], ["data.train.negatives", "needs loss bce"]),
                (WATCH, ["data.group_by=f"], ["data.group_by", "leave it out"]),
                (WATCH, ["train.expect.auc=[0.5, 1]"], ["train.expect.auc", "has no AUC"]),
                (WATCH, ["data.schema.label.positive_weight=2"], ["positive_weight", "data.schema.weight"]),
                (WATCH, ["data.schema.label.threshold=[3]"], ["threshold", "type: number"]),
                (KIND, ["model=deepfm"], ["data.schema.label.classes", "model 'deepfm' has one output, got 4 classes"]),
                (KIND, ["model.heads=mmoe"], ["model.heads: mmoe is for several labels"]),
                (KIND, ["data.schema.label.classes=1001"], ["classes", "1000"]),
                (KIND, ["data.schema.label.values=[a, b]"], ["values", "classes: 2"])]:
            with self.subTest(labels=labels, settings=settings):
                self.assert_words(self.fail_with(2, "train", self.job(labels), "--overwrite", *settings), *words)

    def test_a_label_that_is_none_makes_a_bad_row_with_its_reason(self):
        path = self.write("odd.csv", "watch,kind,f,g\n1.5,0,1,1\nlong,4,2,2\ninf,1.5,3,3\n,x,4,4\n2.5,3,5,5\n")
        for labels, reasons in [(WATCH, ['expected a number, got "long"', "infinity is no number to learn from",
                                         "column 'watch': the label is missing"]),
                                (KIND, ['expected the number of a class, from 0 to `classes` - 1, got "4"',
                                        'got "1.5"', 'expected a number, got "x"'])]:
            log = self.succeed("train", self.job(labels), "--overwrite", f"data.train.path={path}", "data.eval=none",
                               "data.max_bad_rows=0").stderr
            self.assert_words(log, *reasons)

    def test_what_is_shown_of_the_data_is_of_the_label(self):
        for labels, stats, preview, first in [
                (WATCH, r"1200 rows, mean 2\d\.\d{4}, -?\d+\.\d+ to \d+\.\d+, 0 bad", r"100 examples, mean \d+", "rmse"),
                (KIND, r"1200 rows, class_\d in \d+\.\d{4}%, 0 bad", r"100 examples, 4 classes", "logloss"),
                (BOTH, r"1200 rows, click \d+\.\d{4}% positive, watch mean", r"click \d+\.\d\d% positive, watch mean",
                 "logloss")]:
            job = self.job(labels)
            self.assertRegex(self.succeed("data", "stats", job).stdout, stats)
            dry = self.succeed("train", job, "--dry-run").stdout
            self.assertRegex(dry, preview)
            self.assertRegex(dry, rf"{first} of the first batch \d+\.\d+")

    def test_init_says_what_to_write_for_a_number_and_for_texts(self):
        rows = self.write("few.csv", "watch,f\n" + "".join(f"{i % 37},{i % 5}\n" for i in range(200)))
        self.succeed("init", rows, "--label", "watch", "--out", self.dir / "few.yaml")
        self.assertIn("to predict the number itself: {column: watch, type: number}", (self.dir / "few.yaml").read_text())
        rows = self.write("texts.csv", "colour,f\n" + "".join(f"{COLOURS[i % 3]},{i % 5}\n" for i in range(200)))
        error = self.fail_with(2, "init", rows, "--label", "colour", "--out", self.dir / "texts.yaml")
        self.assert_words(error, "label: {column: colour, classes: 3, values: [...]}")


if __name__ == "__main__":
    unittest.main()
