"""`satrap init`, and `satrap train DATA --label COLUMN`: from a file of one's own to a model, with no edit."""
import gzip
import json
import os
import pathlib
import random
import subprocess
import unittest

from cli import SANITIZED, SATRAP, TIMEOUT_S, CliTest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shop_log(rows):
    """Users click on what they like: an AUC of about 0.8 can be reached. The rows are in no order."""
    draws = random.Random(1)
    lines = ["event_id,user,item,price,tags,click\n"]
    for event in range(rows):
        user, item = draws.randrange(40), draws.randrange(30)
        likes = (user * 7 + item * 11) % 5 < 2
        click = int(draws.random() < (0.7 if likes else 0.1))
        price = "" if draws.random() < 0.1 else f"{item * 1.5:.2f}"
        lines.append(f"e{event:06x},{user},{item},{price},t{item % 3}|t{user % 4},{click}\n")
    return "".join(lines)


class Init(CliTest):
    def run_in_folder(self, *arguments, **kwargs):
        return self.succeed(*arguments, cwd=self.dir, **kwargs)

    def summary(self, run):
        return json.loads((self.dir / "runs" / run / "summary.json").read_text())

    def test_from_a_csv_to_a_model(self):
        self.write("shop.csv", shop_log(6000))
        done = self.run_in_folder("init", "shop.csv")
        self.assertRegex(done.stdout, r"(?m)^job +shop\.yaml$")
        self.assertRegex(done.stdout, r"(?m)^data +6,000 rows$")
        self.assertRegex(done.stdout, r"(?m)^label +click: ")
        self.assertRegex(done.stdout, r"(?m)^left out +event_id$")
        self.assertRegex(done.stdout, r"(?m)^evaluation +20 % of the rows by hash$")
        self.assertEqual(done.stdout.splitlines()[-1], "next        satrap train shop.yaml")
        self.assertEqual(done.stderr, "")
        self.run_in_folder("config", "check", "shop.yaml")
        self.run_in_folder("train", "shop.yaml")
        self.assertIn("batch_size: 32\n", (self.dir / "runs/shop/config.yaml").read_text())  # auto
        summary = self.summary("shop")
        self.assertGreater(summary["early_stopping"]["eval"]["auc"], 0.75)
        self.assertEqual(summary["bad_rows"], 0)
        self.assertAlmostEqual(summary["eval"]["examples"], 1200, delta=150)
        scores = self.run_in_folder("predict", "--checkpoint", "runs/shop").stdout.splitlines()
        self.assertEqual(len(scores) - 1, summary["eval"]["examples"])

    def test_decimal_commas_and_dates_of_a_spreadsheet(self):
        head, *rows = shop_log(2000).splitlines()
        rows = [f"{1 + number // 80:02}.03.2026;" + row.replace(",", ";").replace(".", ",")
                for number, row in enumerate(rows)]
        self.write("shop.csv", "\n".join(["day;" + head.replace(",", ";"), *rows]) + "\n")
        done = self.run_in_folder("train", "shop.csv", "--label", "click", "train.epochs=1")
        self.assertRegex(done.stdout, r"(?m)^left out +day, event_id$")
        self.assertRegex(done.stdout, r"(?m)^evaluation +20 % of the rows by tail$")
        self.assertIn('    decimal: ","  ', (self.dir / "shop.yaml").read_text())
        self.assertIn("- {name: price, transform: zscore", (self.dir / "shop.yaml").read_text())
        self.assertEqual(self.summary("shop")["bad_rows"], 0)
        points = "\n".join([row.replace(",", ".") for row in rows]) + "\n"
        self.write("points.csv", "day;" + head.replace(",", ";") + "\n" + points)
        scores = self.run_in_folder("predict", "--checkpoint", "runs/shop", "--data", "points.csv").stdout.splitlines()
        has_price = [row.split(";")[4] != "" for row in rows]
        self.assertEqual([score != "nan" for score in scores[1:]], [not has for has in has_price])

    def test_files_with_other_columns_are_named(self):
        head, *rows = shop_log(200).splitlines()
        self.write("a.csv", "\n".join([head, *rows]) + "\n")
        self.write("b.csv", "\n".join([head.replace("price", "cost"), *rows]) + "\n")
        self.assert_words(self.fail_with(1, "init", "a.csv", "b.csv", cwd=self.dir),
                          "'b.csv' has other columns than 'a.csv'; it lacks 'price'; only it has 'cost'")

    def test_init_and_train_at_once(self):
        (self.dir / "shop.csv.gz").write_bytes(gzip.compress(shop_log(2000).encode()))
        self.run_in_folder("train", "shop.csv.gz", "--label", "click", "train.epochs=2")
        self.assertEqual(self.summary("shop")["seed"], 1)
        self.assertIn("epochs: 2\n", (self.dir / "runs/shop/config.yaml").read_text())
        error = self.fail_with(2, "train", "shop.csv.gz", "--label", "click", cwd=self.dir)
        self.assertIn("'shop.yaml' exists", error)
        self.assertIn("satrap train shop.yaml", error)
        self.run_in_folder("train", "shop.csv.gz", "--label", "click", "--overwrite", "train.epochs=1")

    def test_several_files_and_globs(self):
        lines = shop_log(900).splitlines(keepends=True)
        for day in range(3):
            self.write(f"day_{day}.csv", lines[0] + "".join(lines[1 + 300 * day:301 + 300 * day]))
        self.assertRegex(self.run_in_folder("init", "day_[12].csv").stdout, r"(?m)^job +day\.yaml$")
        self.assertRegex(self.run_in_folder("init", "*_1.csv").stdout, r"(?m)^job +job\.yaml$")
        self.run_in_folder("init", "day_0.csv", "day_[12].csv", "--out", "days.yaml")
        self.assertIn('train: {path: [day_0.csv, "day_[12].csv"]}', (self.dir / "days.yaml").read_text())
        self.run_in_folder("train", "days.yaml", "train.epochs=1")
        summary = self.summary("days")
        self.assertEqual(summary["examples"] + summary["eval"]["examples"], 900)

    def test_standard_input(self):
        text = shop_log(3000)
        done = self.run_in_folder("init", "-", stdin=None, input=text)
        self.assertRegex(done.stdout, r"(?m)^evaluation +none: standard input can be read only once$")
        self.assertEqual(done.stdout.splitlines()[-1], "next        ... | satrap train job.yaml")
        self.run_in_folder("train", "job.yaml", stdin=None, input=text)
        self.assertEqual(self.summary("job")["examples"], 3000)
        self.assertIn("standard input", self.fail_with(2, "train", "-", "--label", "click", cwd=self.dir))

    def test_a_configuration_is_not_replaced(self):
        self.write("shop.csv", shop_log(100))
        self.write("job.yaml", "mine")
        error = self.fail_with(2, "init", "shop.csv", "--out", "job.yaml", cwd=self.dir)
        self.assertIn("'job.yaml' exists; name another file with --out", error)
        self.assertEqual((self.dir / "job.yaml").read_text(), "mine")
        self.run_in_folder("init", "shop.csv", "--out", "job.yaml", "--overwrite")
        self.assertIn("label: click", (self.dir / "job.yaml").read_text())

    def test_what_it_cannot_read(self):
        self.assertIn("No such file", self.fail_with(1, "init", self.dir / "none.csv"))
        self.assertIn("JSON", self.fail_with(1, "init", self.write("a.jsonl", '[1]\n'), cwd=self.dir))
        self.assertIn("libsvm", self.fail_with(1, "init", self.write("a.svm", "1 3:1\n"), cwd=self.dir))
        self.assertIn("--label COLUMN", self.fail_with(2, "init", self.write("b.csv", "a,b\nx,1\ny,2\nz,3\n"),
                                                       cwd=self.dir))
        self.assertIn("DATA", self.fail_with(2, "init"))
        self.assertEqual(list(self.dir.glob("*.yaml")), [])

    def test_data_in_place_of_a_configuration(self):
        error = self.fail_with(2, "train", self.write("shop.csv", shop_log(10)))
        self.assertIn("is data by its name", error)
        self.assertIn("--label COLUMN", error)

    @unittest.skipIf(SANITIZED, "takes too long")
    def test_adult_with_no_edit(self):
        """LightGBM's defaults reach 0.9217 on the same rows (bench/own_data.py)."""
        self.run_in_folder("init", ROOT / "datasets/adult/adult.data")
        self.run_in_folder("train", "adult.yaml")
        self.assertGreater(self.summary("adult")["early_stopping"]["eval"]["auc"], 0.9217 - 0.005)


class EvaluationPart(CliTest):
    """data.eval.fraction of a run that stops and goes on."""

    def job_of(self, by):
        self.write("shop.csv", shop_log(1000))
        return self.write("job.yaml", f"""\
data:
  schema: {{label: click, features: [user, item]}}
  train: shop.csv
  eval: {{fraction: 0.2, by: {by}}}
  batch_size: 20
tables: {{default: {{dim: 4}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{deterministic: true}}
""")

    def train(self, *arguments):
        return self.succeed("train", "job.yaml", *arguments, cwd=self.dir)

    def summary(self):
        return json.loads((self.dir / "runs/job/summary.json").read_text())

    def test_a_resumed_run_ends_with_the_same_bits(self):
        for by in ("tail", "hash", "user"):
            with self.subTest(by=by):
                self.job_of(by)
                digests = []
                for stops in ([], ["train.max_steps=13"]):
                    self.train("--overwrite", "train.epochs=2", "data.shuffle_rows=50", *stops)
                    self.train("--resume", "train.epochs=2", "data.shuffle_rows=50")
                    newest = self.dir / "runs/job/checkpoints" / self.checkpoints("runs/job")[-1]
                    digests.append(self.digest(newest))
                self.assertEqual(digests[0], digests[1])
                summary = self.summary()
                self.assertEqual(summary["examples"] + 2 * summary["eval"]["examples"], 2000)

    def test_rows_that_were_trained_on_are_not_evaluated(self):
        self.job_of("tail")
        self.train()
        refused = self.fail_with(2, "train", "job.yaml", "--resume", "data.eval.fraction=0.3", cwd=self.dir)
        self.assert_words(refused, "kept fraction 0.2 by tail", "fraction 0.3 by tail")
        refused = self.fail_with(2, "eval", "--checkpoint", "runs/job", "data.eval.by=hash", cwd=self.dir)
        self.assert_words(refused, "rows that were trained on would be evaluated")
        self.succeed("eval", "--checkpoint", "runs/job", "data.eval=shop.csv", cwd=self.dir)
        self.succeed("eval", "--checkpoint", "runs/job", "data.eval.fraction=0.1", cwd=self.dir)

    def test_a_tail_that_begins_earlier_is_refused(self):
        """Files that are ahead in this epoch may change, but an earlier one has trained on their rows."""
        self.job_of("tail")
        lines = (self.dir / "shop.csv").read_text().splitlines(keepends=True)
        self.write("more.csv", lines[0] + "".join(lines[1:501]))
        files = "data.train.path=[shop.csv, more.csv]"
        self.train(files, "train.max_steps=61", "train.epochs=2")  # 60 steps per epoch
        (self.dir / "more.csv").write_text("".join(lines[:101]))
        done = subprocess.run([SATRAP, "train", "job.yaml", files, "--resume", "train.epochs=2"], cwd=self.dir,
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("more.csv", done.stderr)

    def test_the_next_day_moves_the_tail(self):
        self.job_of("tail")
        self.train()
        lines = (self.dir / "shop.csv").read_text().splitlines(keepends=True)
        self.write("more.csv", lines[0] + "".join(lines[1:501]))
        done = self.train("--resume", "data.train.path=[shop.csv, more.csv]")
        self.assertIn("from row 1200 on", done.stderr)
        self.assertEqual(self.summary()["eval"]["examples"], 300)
        self.assertEqual(self.summary()["examples"], 1200)

    def test_standard_input_cannot_be_divided(self):
        self.job_of("hash")
        error = self.fail_with(2, "train", "job.yaml", "data.train.path=-", cwd=self.dir)
        self.assert_words(error, "data.eval.fraction", "read again")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
