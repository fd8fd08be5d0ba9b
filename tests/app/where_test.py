"""Jobs that read the rows for which data.train.where and data.eval.where hold."""
import json
import unittest

from cli import CliTest, satrap

JOB = """run_dir: run
data:
  schema: {label: {column: y}, features: [user]}
  train: {path: log.csv, where: day < 2026-11-18}
  eval: {path: log.csv, where: "day >= 2026-11-18 and country in (US, DE)"}
  batch_size: 50
model: logistic
"""


def country_of(row):
    return ("US", "DE", "FR")[row % 3]


def day_of(row):
    return f"2026-11-{10 + row // 100}"


class Where(CliTest):
    ROWS = 1000

    def setUp(self):
        super().setUp()
        lines = [f"{row % 2},u{row % 10},{day_of(row)},{country_of(row)}\n" for row in range(self.ROWS)]
        (self.dir / "log.csv").write_text("y,user,day,country\n" + "".join(lines))
        (self.dir / "job.yaml").write_text(JOB)

    def satrap(self, *arguments):
        return satrap(*arguments, cwd=self.dir)

    def summary(self):
        return json.loads((self.dir / "run" / "summary.json").read_text())

    def test_one_file_is_trained_on_up_to_a_day_and_evaluated_from_it_on(self):
        done = self.satrap("train", "job.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("same rows as training", done.stderr)
        self.assertEqual(self.summary()["examples"], 800)
        self.assertEqual(self.summary()["eval"]["examples"],
                         len([row for row in range(800, self.ROWS) if country_of(row) != "FR"]))

    def test_a_resumed_job_continues_in_its_rows(self):
        for steps in [7, 16]:
            done = self.satrap("train", "job.yaml", f"train.max_steps={steps}", *["--resume"] * (steps > 7))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.summary()["examples"], 800)

    def test_predictions_are_of_the_evaluated_rows_or_of_all_of_another_file(self):
        self.assertEqual(self.satrap("train", "job.yaml").returncode, 0)
        for arguments, rows in [([], self.summary()["eval"]["examples"]), (["--data", "log.csv"], self.ROWS)]:
            done = self.satrap("predict", "--checkpoint", "run", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(done.stdout.splitlines()) - 1, rows)

    def test_a_condition_beside_data_that_takes_its_place_is_refused(self):
        self.assertEqual(self.satrap("train", "job.yaml").returncode, 0)
        for command in ["predict", "eval"]:
            done = self.satrap(command, "--checkpoint", "run", "--data", "log.csv", "data.eval.where=country = DE")
            self.assertEqual(done.returncode, 2)
            self.assertIn("--data: takes the place of data.eval, so 'data.eval.where=country = DE' has no effect; leave "
                          "--data out, and write 'data.eval={path: log.csv, where: ...}'", done.stderr)

    def test_data_takes_the_place_of_the_files_that_a_job_evaluates(self):
        self.assertEqual(self.satrap("train", "job.yaml").returncode, 0)
        done = self.satrap("predict", "--checkpoint", "run", "--data", "log.csv", "data.eval.path=none.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()) - 1, self.ROWS)

    def test_a_dry_run_names_the_columns(self):
        done = self.satrap("train", "job.yaml", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"day +selects rows \(data.train.where\)")
        self.assertRegex(done.stdout + done.stderr, r"country +selects rows \(data.eval.where\)")

    def test_a_condition_that_leaves_nothing_to_evaluate_ends_the_job_at_once(self):
        for settings, error in [
                (["data.eval.where=day > 2027-01-01"], "data.eval.where: day > 2027-01-01 are read"),
                (["data.eval={fraction: 0.1, by: tail}"], "data.train.where: day < 2026-11-18 are read")]:
            done = self.satrap("train", "job.yaml", *settings)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no row of the evaluation data can be used", done.stderr)
            self.assertIn(error, done.stderr)
            self.assertFalse((self.dir / "run" / "summary.json").exists())
        self.assertEqual(self.satrap("train", "job.yaml", "--overwrite").returncode, 0)

    def test_what_is_wrong_is_named(self):
        for setting, error in [
                ("day => 5", "data.train.where: expected =, !=, <, <=, >, >=, in or not in after 'day', got '=>'"),
                ("dya = 5", "there is no column 'dya', which data.train.where reads; did you mean 'day'?"),
                ("day > 2027-01-01", "log.csv'); only rows that meet data.train.where: day > 2027-01-01 are read\n")]:
            done = self.satrap("train", "job.yaml", "--overwrite", f"data.train.where={setting}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(error, done.stderr)


if __name__ == "__main__":
    unittest.main()
