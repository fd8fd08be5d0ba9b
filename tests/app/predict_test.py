"""`satrap predict`: a probability per line, in order, whatever the lines contain."""
import math
import unittest

from cli import CliTest, click_log, satrap

CSV_JOB = """\
run_dir: {run}
device: cpu
data:
  schema:
    label: {{column: y}}
    numeric: [{{name: n}}]
    features: [{{name: f}}]
  train: {{path: {train}}}
  batch_size: 16
tables:
  default: {{dim: 4}}
model: {{type: ffnn, bottom: [], top: [8]}}
train: {{threads: 1, mode: sync}}
"""


def values(page):
    """The column of probabilities."""
    header, *lines = page.splitlines()
    assert header == "probability", header
    return [float(line) for line in lines]


class Predict(CliTest):
    def trained(self, rows=1500):
        job = self.job(rows=rows)
        self.succeed("train", job)
        self.run_dir = self.dir / "run"
        return job

    def predict(self, job, *args):
        return values(self.succeed("predict", job, "--checkpoint", self.run_dir, *args).stdout)

    def trained_csv(self):
        rows = [f"{i % 2},{i},id{i % 7}" for i in range(200)]
        train = self.write("train.csv", "\n".join(["y,n,f", *rows]) + "\n")
        job = self.write("job.yaml", CSV_JOB.format(run=self.dir / "run", train=train))
        self.succeed("train", job)
        self.run_dir = self.dir / "run"
        return job

    def test_the_evaluation_data_by_default_and_the_metrics_of_eval(self):
        job = self.trained()
        predicted = self.predict(job)
        labels = [int(line[0]) for line in click_log()[:1500]]
        self.assertEqual(len(predicted), len(labels))
        logloss = -sum(math.log(p if y else 1 - p) for p, y in zip(predicted, labels)) / len(labels)
        page = self.succeed("eval", job, "--checkpoint", self.run_dir).stdout
        self.assertIn(f"logloss      {logloss:.5f}", page)

    def test_files_are_read_in_the_order_given(self):
        job = self.trained()
        a = self.write("a.tsv", "".join(click_log()[2000:2010]))
        b = self.write("b.tsv", "".join(click_log()[2010:2015]))
        both = self.predict(job, "--data", b, "--data", a)
        self.assertEqual(both, self.predict(job, "--data", b) + self.predict(job, "--data", a))
        self.assertEqual(len(set(both)), 15)

    def test_shuffling_and_threads_change_nothing_and_batches_the_last_digit(self):
        job = self.trained()
        expected = self.predict(job)
        self.assertEqual(expected, self.predict(job, "data.shuffle_rows=1000", "train.threads=3",
                                                "data.reader_threads=3"))
        for one, other in zip(expected, self.predict(job, "data.batch_size=7"), strict=True):
            self.assertAlmostEqual(one, other, delta=1e-6)

    def test_rows_without_labels(self):
        job = self.trained()
        lines = click_log()[2000:2020]
        with_labels = self.write("a.tsv", "".join(lines))
        without = self.write("b.tsv", "".join(line.split("\t", 1)[1] for line in lines))
        self.assertEqual(self.predict(job, "--data", with_labels),
                         self.predict(job, "--data", without))

    def test_a_file_without_header_is_told_by_its_first_line_that_is_not_blank(self):
        job = self.trained()
        rows = "".join(line.split("\t", 1)[1] for line in click_log()[2000:2010])
        expected = self.predict(job, "--data", self.write("a.tsv", rows))
        predicted = self.predict(job, "--data", self.write("b.tsv", "\n" + rows))
        self.assertTrue(math.isnan(predicted[0]))
        for one, other in zip(expected, predicted[1:], strict=True):
            self.assertAlmostEqual(one, other, delta=1e-6)
        short = self.write("c.tsv", "1\t2\n" + rows)
        self.assert_words(self.fail_with(2, "predict", job, "--checkpoint", self.run_dir, "--data", short),
                          "c.tsv:1: 2 columns", "40", "39 without those of all labels")

    def test_labels_are_not_looked_at(self):
        job = self.trained_csv()
        labelled = self.write("a.csv", "y,n,f\n1,3,id3\n0,4,id4\n")
        strange = self.write("b.csv", "y,n,f\nwhat,3,id3\n,4,id4\n")
        without = self.write("c.csv", "f,n\nid3,3\nid4,4\n")
        expected = self.predict(job, "--data", labelled)
        self.assertEqual(len(expected), 2)
        self.assertEqual(expected, self.predict(job, "--data", strange))
        self.assertEqual(expected, self.predict(job, "--data", without))

    def test_a_line_without_a_row_has_nan_and_moves_nothing(self):
        job = self.trained_csv()
        good = self.write("good.csv", "y,n,f\n1,3,id3\n0,4,id4\n1,5,id5\n")
        bad = self.write("bad.csv", "y,n,f\n1,x,id1\n1,3,id3\n\n0,4,id4\n0,4\n1,5,id5\n0,5,6,7\n\n")
        first, second, third = self.predict(job, "--data", good)
        done = self.succeed("predict", job, "--checkpoint", self.run_dir, "--data", bad)
        expected = [math.nan, first, math.nan, second, math.nan, third, math.nan, math.nan]
        for got, wanted in zip(values(done.stdout), expected, strict=True):
            self.assertTrue(got == wanted or math.isnan(got) and math.isnan(wanted), done.stdout)
        self.assertIn("bad.csv:2: column 'n'", done.stderr)
        self.assertIn("3 of 8 rows", done.stderr)
        self.assert_words(
            self.fail_with(1, "predict", job, "--checkpoint", self.run_dir, "--data", bad,
                           "data.on_bad_row=stop"), "bad.csv:2", "expected a number")

    def test_a_file_appears_complete_or_not_at_all(self):
        job = self.trained_csv()
        data = self.write("a.csv", "y,n,f\n1,3,id3\n")
        out = self.dir / "out.csv"
        command = ["predict", job, "--checkpoint", self.run_dir, "--data", data, "--out", out]
        self.assertEqual(self.succeed(*command).stdout, "")
        self.assertEqual(out.read_text(), self.succeed(*command[:-2]).stdout)
        before = out.read_text()
        self.write("a.csv", "y,n,f\n1,3,id3\n0,x,id3\n")
        self.fail_with(1, *command, "data.on_bad_row=stop")
        self.assertEqual(out.read_text(), before)
        self.assertEqual([p.name for p in self.dir.glob("out*")], ["out.csv"])

    def test_what_is_read_is_not_overwritten(self):
        job = self.trained()
        data = self.write("rows.tsv", "".join(click_log()[:10]))
        (self.dir / "hard.tsv").hardlink_to(data)
        (self.dir / "soft.tsv").symlink_to(data)
        checkpoint = next((self.dir / "run" / "checkpoints").iterdir())
        before = {path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file()}
        for out, word in [(data, "rows.tsv"), (self.dir / "hard.tsv", "rows.tsv"), (self.dir / "soft.tsv", "rows.tsv"),
                          (self.dir / "run" / ".." / "rows.tsv", "rows.tsv"), (self.dir / "eval.tsv", "eval.tsv"),
                          (self.dir / "train.tsv", "train.tsv"), (job, "job.yaml"),
                          (checkpoint / "predicted.tsv", "lies in the checkpoint"),
                          (checkpoint / "manifest.json", "lies in the checkpoint")]:
            with self.subTest(out=out):
                error = self.fail_with(2, "predict", job, "--checkpoint", checkpoint, "--data", data, "--out", out)
                self.assert_words(error, "--out", word)
        with open(data, "a") as appended:  # as by >> of a shell: it would never end
            error = self.fail_with(2, "predict", job, "--checkpoint", checkpoint, "--data", data, stdout=appended)
            self.assert_words(error, "standard output", "rows.tsv")
        self.assertEqual(before, {path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file()})

    def test_numbers_read_back_as_they_were(self):
        job = self.trained_csv()
        data = self.write("a.csv", "n,f\n" + "".join(f"{i},id{i}\n" for i in range(50)))
        page = self.succeed("predict", job, "--checkpoint", self.run_dir, "--data", data).stdout
        self.assertTrue(all(len(line) > 8 for line in page.splitlines()), page)
        self.assertEqual(len(set(values(page))), 50)

    def test_zero_rows_and_one(self):
        job = self.trained_csv()
        self.assertEqual(self.predict(job, "--data", self.write("a.csv", "n,f\n")), [])
        self.assertEqual(len(self.predict(job, "--data", self.write("b.csv", "n,f\n1,id1"))), 1)

    def test_standard_input(self):
        job = self.trained_csv()
        data = self.write("a.csv", "n,f\n1,id1\n2,id2\n")
        with data.open() as stdin:
            done = satrap("predict", job, "--checkpoint", self.run_dir, "--data", "-", stdin=stdin)
        self.assertEqual(values(done.stdout), self.predict(job, "--data", data))

    def test_a_full_disk_and_what_is_missing(self):
        job = self.trained_csv()
        data = self.write("a.csv", "n,f\n1,id1\n")
        command = ["predict", job, "--checkpoint", self.run_dir]
        self.assert_words(self.fail_with(1, *command, "--data", data, "--out", "/dev/full"),
                          "/dev/full", "no space left")
        self.assert_words(self.fail_with(2, *command), "data.eval.path", "not set")
        self.assert_words(self.fail_with(1, *command, "--data", self.dir / "none.csv"), "none.csv")
        other = self.write("other.csv", "n,g\n1,id1\n")
        self.assert_words(self.fail_with(2, *command, "--data", other), "feature 'f'")
        self.assert_words(self.fail_with(1, "predict", job, "--checkpoint", self.dir / "none"),
                          "none", "neither a checkpoint")


if __name__ == "__main__":
    unittest.main(verbosity=2)
