"""The metrics of an evaluation, beside NumPy's numbers from what `predict` says of the same rows."""
import json
import random
import unittest

import numpy as np

from evaluated_case import EvaluatedTest

ROWS = 1200


def log():
    """Few different inputs, so that predictions are tied; a user is missing now and then."""
    draw = random.Random(5)
    for _ in range(ROWS):
        f, g = draw.randrange(6), draw.randrange(4)
        click = int(draw.random() < 0.1 + 0.1 * f)
        # Few rows have a country of their own, but many do: "other" is not among the 20 most frequent.
        country = draw.choice(["DE", "FR", "FR", "", "Ünï <b>", f"c{draw.randrange(30)}", f"rare{draw.randrange(9999)}"])
        yield [click, f, g, draw.choice(["", *range(400)]), country]


def auc(y, p, w):
    wins = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    pairs = np.outer(w * y, w * (1 - y))
    return (wins * pairs).sum() / pairs.sum()


def average_precision(y, p, w):
    """The sum over thresholds, descending, of precision times what recall gains."""
    thresholds = np.unique(p)[::-1]
    found = np.array([(w * y)[p >= t].sum() for t in thresholds])
    taken = np.array([w[p >= t].sum() for t in thresholds])
    return (found / taken * np.diff(found, prepend=0)).sum() / (w * y).sum()


def metrics_of(y, p, w):
    rate = np.average(y, weights=w)
    loss = -np.average(np.where(y == 1, np.log(p), np.log1p(-p)), weights=w)
    return {"examples": len(y), "auc": auc(y, p, w), "logloss": loss,
            "ne": loss / -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)),
            "calibration": np.average(p, weights=w) / rate, "ap": average_precision(y, p, w),
            "brier": np.average((p - y) ** 2, weights=w)}


def of_first(y, p, k):
    """NDCG@k and recall@k; rows of equal p have the mean of their labels, as in scikit-learn."""
    order = np.argsort(-p)
    mean = np.array([y[p == one].mean() for one in p])[order]
    discount = np.where(np.arange(len(y)) < k, 1 / np.log2(np.arange(len(y)) + 2), 0)
    return (mean * discount).sum() / (np.sort(y)[::-1] * discount).sum(), mean[:k].sum() / y.sum()


class Metrics(EvaluatedTest):
    def setUp(self):
        super().setUp()
        self.rows = list(log())
        self.write_rows(["click", "f", "g", "user", "country"], self.rows)
        self.job_file = self.write_job("label: click", "report_every: never, metrics_at: [1, 3]", "group_by: user")

    def trained(self, *settings):
        """The evaluation's numbers, and the rows' labels, predictions and weights."""
        found, _, p = self.train_and_predict(self.job_file, *settings)
        y = np.array([row[0] for row in self.rows], dtype=float)
        return found, y, p[:, 0], np.ones(len(y))

    def assert_near(self, found, expected):
        for name, value in expected.items():
            if not np.isfinite(value):
                self.assertIsNone(found[name], name)
                continue
            self.assertAlmostEqual(found[name], value, delta=1e-9, msg=name)

    def test_are_those_of_numpy(self):
        found, y, p, w = self.trained()
        self.assertLess(len(np.unique(p)), 30, "predictions are tied")
        self.assert_near(found, metrics_of(y, p, w))

    def test_with_weights_are_those_of_numpy(self):
        for positive_weight in [1, 3]:
            found, y, p, _ = self.trained("data.schema.weight=g", f"data.schema.label.positive_weight={positive_weight}",
                                          "train.slices=[f]")
            weights = np.array([row[2] for row in self.rows]) * np.where(y == 1, positive_weight, 1.0)
            counts = weights > 0  # rows of weight 0 are predicted, and count nowhere
            self.assertLess(counts.sum(), ROWS)
            y, p, w = y[counts], p[counts], weights[counts]
            self.assert_near(found, {**metrics_of(y, p, w), "weight": w.sum()})
            users = np.array([str(row[3]) for row in self.rows])[counts]
            both = [at for at in (users == user for user in np.unique(users) if user) if 0 < y[at].sum() < at.sum()]
            self.assert_near(found, {"groups": len(both), "gauc": np.average(
                [auc(y[at], p[at], w[at]) for at in both], weights=[w[at].sum() for at in both])})
            of_rows = np.array([str(row[1]) for row in self.rows])[counts]
            for one in found["slices"]["f"]:
                at = of_rows == one["value"]
                expected = metrics_of(y[at], p[at], w[at])
                self.assert_near(one, {name: expected[name] for name in one if name in expected})

    def test_within_groups_are_those_of_numpy(self):
        found, y, p, w = self.trained()
        users = np.array([str(row[3]) for row in self.rows])
        groups = [users == user for user in np.unique(users) if user]
        both = [at for at in groups if 0 < y[at].sum() < at.sum()]
        self.assert_near(found, {"groups": len(both), "gauc": np.average(
            [auc(y[at], p[at], w[at]) for at in both], weights=[w[at].sum() for at in both])})
        positive = [at for at in groups if y[at].sum() > 0]
        self.assertGreater(len(positive), len(both))
        for k in (1, 3):
            ndcg, recall = np.mean([of_first(y[at], p[at], k) for at in positive], axis=0)
            self.assert_near(found, {f"ndcg@{k}": ndcg, f"recall@{k}": recall, "positive_groups": len(positive)})
        scored = self.succeed("eval", self.job_file, "--checkpoint", self.run_dir).stdout
        for name in ["auc", "ap", "brier", "gauc", "ndcg@1", "recall@3"]:
            self.assertIn(f"{name:<12} {found[name]:.6f}\n", scored)

    def test_by_slice_are_those_of_numpy(self):
        found, y, p, w = self.trained("train.slices=[country,f]")
        self.assertEqual(list(found["slices"]), ["country", "f"])
        countries = np.array([row[4] for row in self.rows])
        names, counts = np.unique(countries, return_counts=True)
        slices = found["slices"]["country"]
        self.assertEqual(len(slices), 21)
        self.assertEqual(slices[-1]["value"], None)
        self.assertEqual([s["value"] for s in slices[:4]], [names[i] for i in np.argsort(-counts)[:4]])
        self.assertEqual([s["examples"] for s in slices[:-1]], sorted(counts)[::-1][:20])
        self.assertEqual(sum(s["examples"] for s in slices), ROWS)
        named = {s["value"]: s for s in slices}
        for value, numbers in named.items():
            at = countries == value if value is not None else ~np.isin(countries, [v for v in named if v is not None])
            expected = metrics_of(y[at], p[at], w[at])
            self.assert_near(numbers, {name: expected[name] for name in numbers if name in expected})
        self.assertEqual([s["examples"] for s in found["slices"]["f"]],
                         sorted(np.unique([row[1] for row in self.rows], return_counts=True)[1])[::-1])
        scored = self.succeed("eval", self.job_file, "--checkpoint", self.run_dir, "train.slices=[country]").stdout
        self.assertRegex(scored, rf"\nFR +{named['FR']['examples']}  {named['FR']['auc']:.6f}  ")
        self.assertRegex(scored, r"\n\(empty\) +\d+ .*(\n.*)+\n\(others\) +\d+ ")
        report = (self.run_dir / "report.html").read_text()
        self.assertIn('"value":"DE"', report)

    def test_what_slices_need(self):
        for settings, words in [(["data.eval=none", "train.metrics_at=[]"], ["evaluation data"]),
                                (["data.format=synthetic"], ["synthetic"]), (["train.slices=[f,f]"], ["'f' twice"])]:
            with self.subTest(settings=settings):
                error = self.fail_with(2, "config", "check", self.job_file, "train.slices=[country]", *settings)
                self.assert_words(error, "train.slices", *words)
        error = self.fail_with(2, "train", self.job_file, "train.slices=[countri]")
        self.assert_words(error, "no column 'countri'", "train.slices", "did you mean 'country'")
        self.assertFalse((self.run_dir).exists(), "nothing has begun")
        for command in [["config", "check", self.job_file, "--data"], ["train", self.job_file, "--dry-run"]]:
            self.assert_words(self.fail_with(2, *command, "train.slices=[countri]"), "no column 'countri'")
            shown = self.succeed(*command, "train.slices=[country]").stdout
            self.assertRegex(shown, r"country +kept \(train.slices\)")
        self.succeed("train", self.job_file)
        self.assert_words(self.fail_with(2, "train", self.job_file, "--resume", "train.slices=[countri]"), "'countri'")
        self.assert_words(self.fail_with(2, "eval", self.job_file, "--checkpoint", self.run_dir,
                                         "train.slices=[countri]"), "no column 'countri'", "train.slices")

    def test_slices_go_with_a_part_of_the_rows_and_the_cache(self):
        settings = ["data.eval={fraction: 0.5, by: hash}", "train.slices=[g]", "train.epochs=2",
                    "train.eval_every=1 epoch"]
        self.succeed("train", self.job_file, *settings, "data.group_by=", "train.metrics_at=[]")
        plain = json.loads((self.run_dir / "summary.json").read_text())["eval"]
        self.succeed("train", self.job_file, *settings, f"data.cache={self.dir / 'cache'}", "--overwrite")
        cached = json.loads((self.run_dir / "summary.json").read_text())["eval"]
        self.assertEqual(cached["slices"], plain["slices"])

    def test_rows_that_all_count_nowhere_are_an_error(self):
        self.write("zero.csv", "click,f,g,user,country\n" + "1,1,0,u,DE\n" * 9)
        self.succeed("train", self.job_file, "data.schema.weight=g")
        error = self.fail_with(1, "eval", self.job_file, "--checkpoint", self.run_dir, "data.schema.weight=g",
                               "--data", self.dir / "zero.csv")
        self.assert_words(error, "no row of the evaluation data counts")
        done = self.succeed("train", self.job_file, "--overwrite", "data.schema.weight=g",
                            f"data.eval.path={self.dir / 'zero.csv'}", "data.group_by=", "train.metrics_at=[]")
        self.assertIn("evaluation: no row counts; all have weight 0, or lack the label 'click'", done.stderr)

    def test_importance_counts_positives_by_their_weight(self):
        self.trained("train.epochs=2", "data.schema.label.positive_weight=3")
        weighted = self.write("weighted.csv", "click,f,g,user,country,w\n" + "".join(
            ",".join(map(str, [*row, 3 if row[0] else 1])) + "\n" for row in self.rows))
        eval_ = ["eval", self.job_file, "--checkpoint", self.run_dir, "--importance"]
        of_positives = self.succeed(*eval_, "data.schema.label.positive_weight=3").stdout
        of_rows = self.succeed(*eval_, "data.schema.weight=w", f"data.eval.path={weighted}").stdout
        self.assertEqual(of_rows, of_positives)
        path = self.run_dir / "importance.json"
        self.assertTrue(path.exists())
        self.succeed("train", self.job_file, "--overwrite")
        self.assertFalse(path.exists(), "it was of the run before")
        self.succeed(*eval_, "--data", weighted)
        self.assertFalse(path.exists(), "it is of other data")
        self.assert_words(self.fail_with(2, *eval_, "--data", "-"), "--importance", "standard input")

    def test_importance_is_the_loss_without_what_an_input_says(self):
        _, y, p, _ = self.trained("train.epochs=4")
        values = np.array([row[1:3] for row in self.rows])
        of_values = {tuple(pair): score for pair, score in zip(values, p)}
        loss = lambda y, p: -np.where(y == 1, np.log(p), np.log1p(-p)).mean()
        expected = {}
        for column, name in enumerate("fg"):  # every row with the value of every row
            mixed = np.array([[of_values[(other[0], own[1]) if column == 0 else (own[0], other[1])]
                               for other in values] for own in values])
            expected[name] = loss(np.repeat(y[:, None], ROWS, axis=1), mixed) - loss(y, p)
        command = ["eval", self.job_file, "--checkpoint", self.run_dir, "--importance"]
        shown = self.succeed(*command).stdout
        path = self.run_dir / "importance.json"
        text = path.read_text()
        found = json.loads(text)
        self.assertEqual(found["examples"], ROWS)
        self.assertEqual(found["checkpoint"], self.checkpoints()[-1])
        self.assertEqual([one["input"] for one in found["inputs"]], ["f", "g"])
        for one in found["inputs"]:
            self.assertAlmostEqual(one["logloss_rise"], expected[one["input"]], delta=2 * one["logloss_rise_interval"])
        first = found["inputs"][0]
        self.assertGreater(first["logloss_rise"], 10 * first["logloss_rise_interval"])
        self.assertGreater(first["auc_fall"], 10 * first["auc_fall_interval"])
        self.assertRegex(shown, rf"\ninput +logloss rises .*\nf +{first['logloss_rise']:.6f}  .*\ng +")
        path.unlink()
        self.assertEqual(self.succeed(*command, "train.threads=2").stdout, shown)
        self.assertEqual(path.read_text(), text, "threads change no bit")
        self.succeed("report", self.run_dir)
        self.assertIn('"logloss_rise_interval":', (self.run_dir / "report.html").read_text())

    def test_what_ranks_need(self):
        for settings, words in [(["data.group_by="], ["data.group_by"]), (["data.eval=none"], ["evaluation data"]),
                                (["train.metrics_at=[3,3]"], ["3 twice"]), (["train.metrics_at=[0]"], ["1"])]:
            with self.subTest(settings=settings):
                error = self.fail_with(2, "config", "check", self.job_file, *settings)
                self.assert_words(error, "train.metrics_at", *words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
