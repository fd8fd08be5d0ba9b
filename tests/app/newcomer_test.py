"""The first half-hour with a log file of one's own: what a run says of itself, and what is shown before it."""
import json
import os
import pathlib
import random
import re
import subprocess
import unittest

from cli import SATRAP, CliTest

JOB = """\
device: cpu
data:
  train: train.csv
  eval: eval.csv
  schema: {label: click, numeric: [{name: hour, transform: zscore}], features: [site]}
  batch_size: 64
tables: {default: {dim: 4}}
model: {type: deepfm, hidden: [8]}
train: {threads: 1}
"""


class Newcomer(CliTest):
    """A folder with job.yaml, train.csv and eval.csv: the sites from a to h are clicked more and more often."""

    def setUp(self):
        super().setUp()
        self.rows("train.csv", 2000)
        self.rows("eval.csv", 400)
        self.write("job.yaml", JOB)

    def rows(self, name, count, text_of=lambda click: str(click), extra=""):
        draw = random.Random(name)
        lines = ["id,click,hour,site\n"]
        for i in range(count):
            site, hour = draw.choice("abcdefgh"), draw.randrange(24)
            click = int(draw.random() < 0.05 + 0.1 * "abcdefgh".index(site))
            lines.append(f"{i},{text_of(click)},{hour},{site}\n")
        return self.write(name, "".join(lines) + extra)

    def run_here(self, *args, **kwargs):
        return self.succeed(*args, cwd=self.dir, **kwargs)


class AfterTraining(Newcomer):
    def test_a_good_run_ends_with_the_next_command(self):
        done = self.run_here("train", "job.yaml", "train.epochs=4")
        self.assertEqual(done.stdout.splitlines()[-1],
                         "next        satrap predict --checkpoint runs/job --data FILE --out FILE")
        self.assertNotIn("look at", done.stdout)
        command = done.stdout.splitlines()[-1].split()[2:]
        self.run_here(*(word if word != "FILE" else name
                        for word, name in zip(command, [None] * (len(command) - 3) + ["eval.csv", "", "out.tsv"])))
        self.assertEqual(len((self.dir / "out.tsv").read_text().splitlines()), 401)

    def test_the_beginning_says_what_is_trained(self):
        log = self.run_here("train", "job.yaml").stderr
        self.assertRegex(log, r"info deepfm with \S+ dense parameters and 1 table; \S+ of data; batch 64, "
                              r"1 thread on cpu; runs/job\n")

    def test_what_is_wrong_is_said_in_words(self):
        self.rows("train.csv", 300, extra="".join(f"x,maybe,{i},a\n" for i in range(6)))
        self.write("job.yaml", JOB.replace("numeric: [", "numeric: [{name: always, column: n}, ")
                   .replace("batch_size: 64", "batch_size: 2048"))
        for name in ("train.csv", "eval.csv"):
            path = self.dir / name
            head, *rows = path.read_text().splitlines()
            path.write_text("\n".join([head + ",n", *(row + ",7" for row in rows)]) + "\n")
        text = self.run_here("train", "job.yaml").stdout
        self.assertIn("skipped     6 rows that could not be read, 2 % of all\n", text)
        self.assertIn("6  column 'click': expected a number\n", text)
        self.assertIn("look at     more than 1 % of the rows were skipped", text)
        self.assertIn("look at     always has the same value in all examples", text)
        self.assertIn("look at     only 1 step of 2,048 examples: a model needs hundreds; try data.batch_size=32\n", text)

    def test_evaluation_on_training_rows_is_said(self):
        words = "evaluation reads the same rows as training: 'train.csv'; auc and logloss say nothing of new rows"
        done = self.run_here("train", "job.yaml", "data.eval=train.csv")
        self.assertIn("look at     " + words, done.stdout)
        self.assertIn("warning " + words, done.stderr)
        self.assertIn("  look at: " + words, self.run_here("config", "check", "job.yaml", "data.eval=train.csv",
                                                           "--data").stdout)
        for other in ["data.eval=eval.csv", "data.eval={fraction: 0.1, by: hash}"]:
            self.assertNotIn(words[:20], self.run_here("config", "check", "job.yaml", other, "--data").stdout)

    def test_one_class_is_said(self):
        self.rows("train.csv", 2000, text_of=lambda click: "1")
        text = self.run_here("train", "job.yaml").stdout
        self.assertIn("look at     label 'click' is 1 in all examples, so nothing can be learned from it", text)
        self.assertIn("is above 1: worse than predicting the base rate", text)

    def test_a_short_run_has_points_for_its_curves(self):
        done = self.run_here("train", "job.yaml", "train.epochs=4", "train.report_every=10s")
        lines = [json.loads(line) for line in (self.dir / "runs/job/metrics.jsonl").read_text().splitlines()]
        self.assertGreaterEqual(sum("train" in line for line in lines), 50)
        self.assertEqual(done.stderr.count("examples/s"), 1, "the log has the last one")


    def test_other_rows_are_evaluated_by_their_name(self):
        self.run_here("train", "job.yaml")
        own = self.run_here("eval", "--checkpoint", "runs/job").stdout
        self.assertIn("examples     400\n", own)
        self.assertEqual(self.run_here("eval", "--checkpoint", "runs/job", "--data", "eval.csv").stdout, own)
        self.rows("more.csv", 500)
        both = self.run_here("eval", "--checkpoint", "runs/job", "--data", "eval.csv", "--data", "more.csv").stdout
        self.assertIn("examples     900\n", both)

    def test_what_is_doubtful_stands_in_the_report(self):
        self.rows("eval.csv", 400, text_of=lambda click: "1")
        done = self.run_here("train", "job.yaml")
        self.assertRegex(done.stdout, r"report +runs/job/report.html\n")
        words = "the labels of all 400 evaluation examples are the same"
        self.assertIn(f"look at     {words}", done.stdout)
        self.assertIn(words, (self.dir / "runs/job/report.html").read_text())


class BeforeTraining(Newcomer):
    def test_data_in_place_of_a_configuration_are_named_by_every_command(self):
        for words in [("train", "train.csv"), ("config", "check", "train.csv"), ("data", "stats", "train.csv"),
                      ("predict", "train.csv", "--checkpoint", "x")]:
            self.assert_words(self.fail_with(2, *words, cwd=self.dir), "'train.csv' is data by its name", "satrap init")

    def test_a_word_finds_the_keys_that_it_is_a_part_of(self):
        text = self.run_here("config", "explain", "dropout").stdout
        self.assertIn("satrap config explain model.dropout\n", text)
        self.assertIn("satrap config explain tables.default.optimizer.lr\n",
                      self.run_here("config", "explain", "lr").stdout)

    def test_a_check_with_data_shows_columns_and_the_first_batch(self):
        text = self.run_here("config", "check", "job.yaml", "--data").stdout
        self.assertRegex(text, r"(?s)training data\n  1 file, \S+: train.csv\n.*evaluation data\n  1 file, \S+: eval.csv\n")
        for line in ["  id     not read", "  click  label", "  hour   number, zscore", "  site   feature 'site', string"]:
            self.assertEqual(text.count(line + "\n"), 2, text)
        self.assertRegex(text, r"first batch: 64 examples, \d+\.\d+% positive, 64 ids, 0 bad rows")
        self.assertTrue(text.endswith("job.yaml: ok\n"))

    def test_a_check_with_data_finds_what_training_would(self):
        self.assert_words(self.fail_with(1, "config", "check", "job.yaml", "data.eval=none.csv", "--data", cwd=self.dir),
                          "none.csv", "No such file")
        self.assert_words(self.fail_with(2, "config", "check", "job.yaml", "data.schema.features=[sitee]", "--data",
                                         cwd=self.dir), "train.csv:1", "no column 'sitee'", "did you mean 'site'")
        self.write("log.zip", "PK\x03\x04....")
        self.assert_words(self.fail_with(1, "config", "check", "job.yaml", "data.train=log.zip", "--data",
                                         cwd=self.dir), "a zip file", "data.train.path=-")
        self.run_here("config", "check", "job.yaml", "data.train=log.zip")  # opens nothing
        self.write("log", "PAR1....")
        self.assert_words(self.fail_with(1, "config", "check", "job.yaml", "data.train=log", "--data", cwd=self.dir),
                          "log' is a Parquet file", "data.format: parquet")

    def test_a_dry_run_shows_the_model_and_writes_nothing(self):
        text = self.run_here("train", "job.yaml", "--dry-run").stdout
        self.assertIn("evaluation data\n", text)
        self.assertRegex(text, r"model\n  deepfm: \d+ dense parameters, \S+; logloss of the first batch 0\.\d+\n")
        self.assertRegex(text, r"  site +5 +80B +8 +640B\n  rows of all \d+ examples\n")
        self.assertRegex(text, r"memory\n  total: \S+MiB; tables 640B, the process with one batch \S+MiB\n")
        self.assertIn("run_dir\n  runs/job: free\n", text)
        self.assertFalse((self.dir / "runs").exists())
        self.run_here("train", "job.yaml")
        self.assertIn("runs/job-2: free", self.run_here("train", "job.yaml", "--dry-run").stdout)
        self.assertIn("runs/job: holds a run", self.run_here("train", "job.yaml", "--dry-run", "--resume").stdout)

    def test_a_dry_run_estimates_rows_and_applies_the_split(self):
        """Of 250,000 rows it looks at 100,000: table `user` grows with each row, `site` has all its rows soon."""
        rows = "".join(f"{r % 2},s{r * 7919 % 50},u{r}\n" for r in range(250_000))
        self.write("big.csv", "click,site,user\n" + rows)
        self.write("big.yaml", "device: cpu\ndata: {train: big.csv, eval: {fraction: 0.2, by: hash}, batch_size: 1000,"
                   " schema: {label: click, features: [site, user]}}\ntables: {default: {dim: 4}}\nmodel: deepfm\n")
        text = self.run_here("train", "big.yaml", "--dry-run").stdout
        found = re.search(r"  site +5 +80B +50 .*\n  user +5 +80B +(\d+) .*\n  rows of about (\d+)k examples, by how the "
                          r"first 100000 make tables grow", text)
        self.assertIsNotNone(found, text)
        self.assertAlmostEqual(int(found[1]), 200_000, delta=4000)
        first = re.findall(r"first batch: (.*)", text)
        self.assertEqual(len(set(first)), 2, "other rows in evaluation")

    def test_head_and_stats_show_text_and_the_transformed_number(self):
        head = self.run_here("data", "head", "job.yaml", "--rows", 1).stdout
        _, _, hour, site = (self.dir / "train.csv").read_text().splitlines()[1].split(",")
        self.assertRegex(head, rf"  site +{site} \([0-9a-f]{{16}}\)\n")
        self.assertRegex(head, rf"  hour +{hour} -> -?\d+\.\d+\n")
        stats = self.run_here("data", "stats", "job.yaml").stdout
        self.assertRegex(stats, r"\n-> zscore +0\.00% +\S+ +-?\S*e-\d+ +1 +\S+\n")
        self.assertRegex(stats, r"\nsite .* [a-h] \([0-9a-f]{16}\) \d+\.\d%, ")


class Paths(Newcomer):
    def test_those_of_the_configuration_begin_in_its_folder(self):
        self.succeed("train", self.dir / "job.yaml")  # from another folder
        self.assertTrue((self.dir / "runs/job/summary.json").exists())
        self.succeed("eval", "--checkpoint", self.dir / "runs/job")

    def test_those_of_the_command_line_begin_in_the_working_directory(self):
        inner = self.dir / "inner"
        inner.mkdir()
        self.succeed("train", "../job.yaml", "run_dir=mine", "data.train=../train.csv", cwd=inner)
        self.assertTrue((inner / "mine/summary.json").exists())

    def test_a_folder_may_be_named(self):
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        job = elsewhere / "job.yaml"
        (self.dir / "job.yaml").rename(job)
        self.run_here("config", "check", job, "folder=.", "--data")  # as what older runs have written needs it
        job.write_text("folder: ..\n" + job.read_text())
        self.succeed("train", job)
        self.assertTrue((self.dir / "runs/job/summary.json").exists())

    def test_the_quickstart_is_found_from_anywhere(self):
        quickstart = pathlib.Path(__file__).parents[2] / "datasets/adult/quickstart.yaml"
        self.assertIn("income", self.run_here("config", "check", quickstart, "--data").stdout)


class Models(Newcomer):
    def test_a_logistic_model_needs_no_dim(self):
        self.write("job.yaml", JOB.replace("tables: {default: {dim: 4}}\n", ""))
        self.run_here("train", "job.yaml", "model=logistic")
        self.assertIn("dim: 1\n", (self.dir / "runs/job/config.yaml").read_text())
        self.run_here("train", "job.yaml", "model=fm", "--overwrite")

    def test_a_dim_that_does_not_fit_names_its_line_and_the_way_out(self):
        error = self.fail_with(2, "config", "check", "job.yaml", "model=logistic", cwd=self.dir)
        line = 1 + JOB.splitlines().index("tables: {default: {dim: 4}}")
        self.assert_words(error, f"job.yaml:{line}: tables.default.dim", "one weight per id", "got 4",
                          "~tables.default.dim")
        self.run_here("config", "check", "job.yaml", "model=logistic", "~tables.default.dim")

    def test_widths_are_those_that_the_user_wrote(self):
        self.write("job.yaml", JOB.replace("features: [site]", "features: [site, id]"))
        error = self.fail_with(2, "config", "check", "job.yaml", "tables.id.dim=16", cwd=self.dir)
        self.assert_words(error, "that of 'site' is 4, that of 'id' is 16")


class Predictions(Newcomer):
    def test_columns_are_kept_beside_the_probabilities(self):
        self.run_here("train", "job.yaml")
        rows = [line.split(",") for line in (self.dir / "eval.csv").read_text().splitlines()[1:]]
        plain = self.run_here("predict", "--checkpoint", "runs/job").stdout.splitlines()
        head, *lines = self.run_here("predict", "--checkpoint", "runs/job", "--keep", "id,hour").stdout.splitlines()
        self.assertEqual(head, "id\thour\tprobability")
        self.assertEqual(lines, [f"{row[0]}\t{row[2]}\t{p}" for row, p in zip(rows, plain[1:])])

    def test_a_line_that_cannot_be_read_keeps_its_columns(self):
        self.run_here("train", "job.yaml")
        rows = "id,hour,site\n7,3,a\n8,x,b\n\n9,1\n"
        lines = self.run_here("predict", "--checkpoint", "runs/job", "--data", "-", "--keep", "id",
                              stdin=None, input=rows).stdout.splitlines()
        self.assertRegex(lines[1], r"^7\t0\.\d+$")
        self.assertEqual(lines[2:], ["8\tnan", "\tnan", "\tnan"])

    def test_a_column_that_is_not_there_is_an_error_before_any_output(self):
        self.run_here("train", "job.yaml")
        done = subprocess.run([SATRAP, "predict", "--checkpoint", "runs/job", "--keep", "idd"], cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assert_words(done.stderr, "no column 'idd'", "--keep", "did you mean 'id'")


class OtherFormats(Newcomer):
    def test_text_that_is_not_utf8_is_named_before_anything_is_trained(self):
        (self.dir / "old.csv").write_bytes("label,Höhe,site\n".encode("latin-1") + b"1,2,a\n0,3,b\n" * 50)
        self.assert_words(self.fail_with(1, "init", "old.csv", cwd=self.dir), "old.csv", "name of column 2", "iconv")
        (self.dir / "old.yaml").write_bytes(JOB.replace("name: hour", "name: Höhe").encode("latin-1"))
        self.assert_words(self.fail_with(2, "train", "old.yaml", cwd=self.dir), "old.yaml:", "is not UTF-8", "iconv")
        (self.dir / "wide.csv").write_bytes("label,site\n1,a\n".encode("utf-16"))
        self.assert_words(self.fail_with(1, "init", "wide.csv", cwd=self.dir), "wide.csv", "UTF-16")
        (self.dir / "city.csv").write_bytes(b"label,city\n" + "1,Zürich\n0,Bern\n0,Zürich\n1,Bern\n".encode("latin-1") * 100)
        self.assertIn("look at     city: texts that are not UTF-8", self.run_here("init", "city.csv").stdout)

    def test_a_url_is_refused_with_a_way_out(self):
        error = self.fail_with(2, "train", "job.yaml", "data.train=gs://bucket/day_*.gz", cwd=self.dir)
        self.assert_words(error, "'gs://bucket/day_*.gz' is a URL", "data.train.path=-")

    def test_json_and_libsvm_are_named(self):
        for text, word in [('{"click": 1}\n', "JSON"), ("1 3:1 7:0.5\n", "libsvm")]:
            self.write("log", text)
            error = self.fail_with(1, "train", "job.yaml", "data.train=log", "--overwrite", cwd=self.dir)
            self.assert_words(error, "log:1: ", word)


class Columns(Newcomer):
    def test_several_columns_make_a_sequence(self):
        rows = ["1,5,6,,9\n", "0,,,,8\n", "0,5,,,7\n", "1,6,6,6,9\n"] * 20
        self.write("wide.csv", "".join(rows))
        self.write("job.yaml", """\
device: cpu
data:
  train: wide.csv
  schema:
    header: false
    label: "0"
    features:
      - {name: item, column: "4", type: int}
      - {name: history, columns: 1..3, type: int}
  batch_size: 8
tables: {default: {dim: 4}}
features: {item: {table: items}, history: {table: items, pooling: sequence}}
model: {type: din, attend: [{sequence: history, query: item}], attention: [4], top: [4]}
""")
        head = self.run_here("data", "head", "job.yaml", "--rows", 2).stdout
        self.assertRegex(head, r"history +5 6\n")
        self.assertRegex(head, r"history +-\n")
        self.run_here("train", "job.yaml")
        self.run_here("predict", "--checkpoint", "runs/job", "--data", "wide.csv")
        self.run_here("export", "--checkpoint", "runs/job", "--out", "model")
        features = json.loads((self.dir / "model/export.json").read_text())["features"]
        self.assertEqual(next(f for f in features if f["name"] == "history")["columns"], ["1", "2", "3"])

    def test_a_range_for_one_name_shows_the_way(self):
        self.write("job.yaml", JOB.replace("features: [site]", 'features: [{name: history, column: "50..99"}]'))
        error = self.fail_with(2, "config", "check", "job.yaml", cwd=self.dir)
        self.assert_words(error, "'history' stands for 1 inputs", "`columns: 50..99`")


if __name__ == "__main__":
    unittest.main(verbosity=2)
