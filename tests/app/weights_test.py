"""Rows with weights, and rows that lack some of several labels."""
import json
import unittest

from cli import CliTest, satrap

JOB = """run_dir: run
seed: 3
data:
  schema: {label: click, weight: w, numeric: [n], features: [user]}
  train: %s
  eval: eval.csv
  batch_size: 50
tables: {default: {dim: 4}}
model: {type: deepfm, hidden: [8]}
train: {deterministic: true, threads: 1, epochs: 2}
checkpoint: {every: 5 steps, keep: 100}
"""


def rows(count):
    """click, buy, weight, number, user."""
    for r in range(count):
        yield [int(r * 7 % 5 < 2), int(r * 3 % 11 < 2), (r % 4) / 2, r * 13 % 97 / 8, f"u{r * r % 31}"]


def csv(lines):
    return "click,buy,w,n,user\n" + "".join(",".join(map(str, line)) + "\n" for line in lines)


class WeightsTest(CliTest):
    job_text = JOB

    def train(self, *more, train="log.csv", job=None):
        """The last checkpoint's name and digest."""
        self.write("job.yaml", (job or self.job_text) % train)
        self.succeed("train", "job.yaml", "--overwrite" if "--resume" not in more else "--resume",
                     *[word for word in more if word != "--resume"], cwd=self.dir)
        newest = self.checkpoints()[-1]
        return newest, self.digest(self.dir / "run/checkpoints" / newest)

    def summary(self):
        return json.loads((self.dir / "run/summary.json").read_text())

    def expect_the_same_bits(self, expected):
        """From other formats, with more threads, and from the cache of parsed rows."""
        names = ["click", "buy", "w", "n", "user"]
        self.write("log.jsonl", "".join(json.dumps(dict(zip(names, row))) + "\n" for row in self.rows))
        for train, settings in [("log.jsonl", []), ("log.csv", ["train.threads=3", "data.reader_threads=3"]),
                                ("log.csv", ["data.cache=parsed"]), ("log.csv", ["data.cache=parsed"])]:
            with self.subTest(train, settings=settings):
                self.assertEqual(self.train(*settings, train=train), expected)


class Weights(WeightsTest):
    def setUp(self):
        super().setUp()
        self.rows = list(rows(600))
        self.write("log.csv", csv(self.rows))
        self.write("eval.csv", csv(self.rows[:200]))

    def test_rows_of_weight_zero_leave_no_trace(self):
        found = self.train()
        self.assertEqual(self.summary()["examples"], 2 * 450)
        self.write("some.csv", csv(row for row in self.rows if row[2] > 0))
        self.assertEqual(self.train(train="some.csv"), found)

    def test_weights_of_one_are_no_weights(self):
        self.write("ones.csv", csv([*row[:2], 1, *row[3:]] for row in self.rows))
        self.write("eval.csv", csv([*row[:2], 1, *row[3:]] for row in self.rows[:200]))
        found = self.train(train="ones.csv")
        self.assertEqual(self.train(train="ones.csv", job=JOB.replace(" weight: w,", "")), found)
        self.assertNotEqual(self.train(), found)

    def test_every_way_of_reading_gives_the_same_bits(self):
        expected = self.train()
        self.expect_the_same_bits(expected)

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        for settings in [[], ["data.shuffle_rows=100"]]:
            with self.subTest(settings):
                expected = self.train(*settings)
                self.train(*settings, "train.max_steps=12")
                self.assertEqual(self.train(*settings, "--resume"), expected)

    def test_a_run_does_not_go_on_with_other_weights_unnoticed(self):
        self.train("train.max_steps=12")
        done = satrap("train", "job.yaml", "--resume", "data.schema.weight=''", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("data.schema.weight", done.stderr)

    def test_predictions_need_no_weights(self):
        self.train()
        expected = self.succeed("predict", "--checkpoint", "run", cwd=self.dir).stdout
        self.assertEqual(len(expected.splitlines()), 201)
        self.write("bare.csv", "n,user\n" + "".join(f"{row[3]},{row[4]}\n" for row in self.rows[:200]))
        found = self.succeed("predict", "--checkpoint", "run", "--data", "bare.csv", cwd=self.dir).stdout
        self.assertEqual(found, expected)

    def test_a_weight_that_is_none_is_a_bad_row_with_its_line(self):
        self.rows[4][2] = -1
        self.write("log.csv", csv(self.rows))
        self.write("job.yaml", JOB % "log.csv")
        done = satrap("train", "job.yaml", cwd=self.dir)
        self.assertRegex(done.stderr, r"log.csv:6: column 'w': expected a weight of at least 0, and at most 1e20, got \"-1\"")

    def test_positives_that_weigh_more_are_predicted_more_often(self):
        means = []
        for weight in [1, 4]:
            self.train(f"data.schema.label.positive_weight={weight}", "train.epochs=10")
            lines = self.succeed("predict", "--checkpoint", "run", cwd=self.dir).stdout.splitlines()[1:]
            means.append(sum(map(float, lines)) / len(lines))
            evaluation = self.summary()["eval"]
            self.assertAlmostEqual(evaluation["calibration"], 1, delta=0.2)
            self.assertEqual("weight" in evaluation, True)
        self.assertGreater(means[1], means[0] + 0.15)


class MissingLabels(WeightsTest):
    job_text = JOB.replace("label: click, weight: w", "labels: [click, buy]").replace(
        "{type: deepfm, hidden: [8]}", "{type: ffnn, bottom: [], top: [8], head: [4]}")

    def train_on(self, lines):
        self.write("log.csv", csv(lines))
        self.write("eval.csv", csv(rows(200)))
        return self.train()

    def test_a_label_that_is_missing_makes_no_bad_row(self):
        lines = list(rows(600))
        for line in lines:
            line[1] = ""
        self.train_on(lines)
        self.assertEqual(self.summary()["bad_rows"], 0)
        self.assertEqual(self.summary()["examples"], 2 * 600)

    def test_rows_without_any_label_leave_no_trace(self):
        lines = list(rows(600))
        for r, line in enumerate(lines):
            line[r % 2] = "" if r % 3 == 0 else line[r % 2]
        self.assertEqual(self.train_on(lines + [["", "", 1, 3, "nobody"]] * 7), self.train_on(lines))


class Negatives(WeightsTest):
    job_text = JOB.replace("weight: w, ", "").replace("train: %s", "train: {path: %s, negatives: 0.25}")

    def setUp(self):
        super().setUp()
        self.rows = [[int(row[0] and row[1]), *row[1:]] for row in rows(1500)]
        self.write("log.csv", csv(self.rows))
        self.write("eval.csv", csv(self.rows[:200]))

    def test_every_way_of_reading_gives_the_same_bits(self):
        expected = self.train()
        positives = sum(row[0] for row in self.rows)
        self.assertAlmostEqual(self.summary()["examples"] / 2, positives + (1500 - positives) / 4, delta=70)
        self.expect_the_same_bits(expected)
        self.train("train.max_steps=7")
        self.assertEqual(self.train("--resume"), expected)

    def test_the_share_of_bad_rows_is_that_of_all_rows(self):
        lines = [[*row] for row in self.rows]
        for r in range(0, len(lines), 50):
            lines[r][0] = "x"
        self.write("log.csv", csv(lines))
        self.train("data.train.negatives=0.05", "train.epochs=1")
        self.assertEqual(self.summary()["bad_rows"], 30)
        self.assertAlmostEqual(self.summary()["bad_row_share"], 0.02, delta=0.0001)

    def test_another_rate_is_another_run(self):
        self.train("train.max_steps=7")
        for key in ["negatives", "negatives_in_files"]:
            error = self.fail_with(2, "train", "job.yaml", "--resume", f"data.train.{key}=0.5", cwd=self.dir)
            self.assertIn(f"data.train.{key}", error)

    def test_predictions_are_those_of_all_rows(self):
        share = sum(row[0] for row in self.rows[:200]) / 200
        self.train("train.epochs=20")
        lines = self.succeed("predict", "--checkpoint", "run", cwd=self.dir).stdout.splitlines()[1:]
        self.assertAlmostEqual(sum(map(float, lines)) / 200, share, delta=share / 3)


if __name__ == "__main__":
    unittest.main()
