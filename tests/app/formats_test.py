"""Jobs whose data are JSON lines, libsvm or libffm: the same model as from CSV, whatever command reads them."""
import gzip
import json
import unittest

from cli import CliTest, satrap

ROWS = 2000
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: {train}
  eval: {{fraction: 0.2, by: {by}}}
  shuffle_rows: {shuffle}
  batch_size: 100
  schema:
    label: click
    numeric: [{{name: age, transform: zscore}}, price]
    features:
      - user.id
      - {{name: items, separator: "|", max_length: 3, keep: last}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1, epochs: 2}}
checkpoint: {{every: 10 steps, keep: 3}}
"""
SPARSE_JOB = """\
run_dir: run
device: cpu
data:
  train: {train}
  batch_size: 100
  schema:
    label: {{column: label, positive: ["1", "+1"], negative: ["-1"]}}
    features: [{features}]
tables: {{default: {{dim: 4}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{deterministic: true, threads: 1}}
"""


def make_rows():
    """Values follow from the row alone; None is missing."""
    for r in range(ROWS):
        yield {
            "click": int((r * 7 + r // 3) % 5 < 2),
            "age": None if r % 11 == 3 else r * 31 % 70,
            "price": None if r % 13 == 3 else r * 13 % 97 / 4,
            "user.id": None if r % 17 == 3 else f"user {r * r % 501}",
            "items": [f"item {i}" for i in [r % 41, r % 7, r % 3, r % 29][: r % 5]],
        }


def json_line(r, row):
    """Keys in another order in every row; what is missing is null or not there."""
    values = {"click": bool(row["click"]) if r % 2 else row["click"], "age": row["age"], "items": row["items"],
              "price": row["price"], "user": {"id": row["user.id"], "unread": [{"x": 1}]}}
    if row["age"] is None and r % 2:
        del values["age"]
    keys = sorted(values, key=lambda key: (len(key) * 7 + r) % 5)
    return json.dumps({key: values[key] for key in keys}) + "\n"


class Formats(CliTest):
    def setUp(self):
        super().setUp()
        rows = list(make_rows())
        text = ["click,age,price,user.id,items\n"]
        for row in rows:
            text.append(",".join("" if v is None else "|".join(v) if isinstance(v, list) else str(v)
                                 for v in row.values()) + "\n")
        self.write("all.csv", "".join(text))
        lines = [json_line(r, row) for r, row in enumerate(rows)]
        self.write("day_1.jsonl", "".join(lines[:700]))
        (self.dir / "day_2.jsonl.gz").write_bytes(gzip.compress("".join(lines[700:]).encode()))
        self.files = "[day_1.jsonl, day_2.jsonl.gz]"

    def train(self, train, *more, by="hash", shuffle=0, job=JOB, **keys):
        self.write("job.yaml", job.format(train=train, by=by, shuffle=shuffle, **keys))
        self.succeed("train", "job.yaml", *more, cwd=self.dir)
        newest = self.checkpoints("run")[-1]
        return newest, self.digest(self.dir / "run" / "checkpoints" / newest)

    def test_the_model_of_json_is_that_of_the_same_csv(self):
        for settings in [{}, {"by": "user.id", "shuffle": 500}, {"by": "tail"}]:
            with self.subTest(settings):
                expected = self.train("all.csv", "--overwrite", **settings)
                for threads in [1, 3]:
                    found = self.train(self.files, f"data.reader_threads={threads}", "--overwrite", **settings)
                    self.assertEqual(found, expected)

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        for shuffle in [0, 500]:
            with self.subTest(shuffle=shuffle):
                expected = self.train(self.files, "--overwrite", shuffle=shuffle)
                self.train(self.files, "--overwrite", "train.max_steps=13", shuffle=shuffle)
                self.assertEqual(self.train(self.files, "--resume", "data.reader_threads=2", shuffle=shuffle),
                                 expected)

    def test_commands_that_read_json(self):
        self.train("all.csv")
        predict = ["predict", "job.yaml", "--checkpoint", "run", "--keep", "user.id,price"]
        expected = self.succeed(*predict, "--data", "all.csv", cwd=self.dir).stdout
        self.assertEqual(expected.count("\n"), ROWS + 1)
        files = ["--data", "day_1.jsonl", "--data", "day_2.jsonl.gz"]
        self.assertEqual(self.succeed(*predict, *files, cwd=self.dir).stdout, expected)
        stats = ["data", "stats", "job.yaml"]
        self.assertEqual(self.succeed(*stats, f"data.train={self.files}", cwd=self.dir).stdout,
                         self.succeed(*stats, cwd=self.dir).stdout)
        check = self.succeed("config", "check", "job.yaml", "data.train=day_1.jsonl", "--data", cwd=self.dir).stdout
        self.assertIn("  user.id  feature 'user.id', string", check)

    def test_json_comes_by_standard_input(self):
        self.write("job.yaml", JOB.format(train="day_1.jsonl", by="hash", shuffle=0))
        head = ["data", "head", "job.yaml", "--rows", "3", "data.schema.numeric=[price]",
                "data.eval.fraction=0", "data.eval.by=tail"]
        with open(self.dir / "day_1.jsonl", encoding="utf-8") as stream:
            done = satrap(*head, "data.train=-", "data.format=json", cwd=self.dir, stdin=stream)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.succeed(*head, cwd=self.dir).stdout)

    def test_errors_name_the_line_and_the_key(self):
        self.write("job.yaml", JOB.format(train="bad.jsonl", by="hash", shuffle=0))
        self.write("bad.jsonl", '{"click": 1}\n{"click": 1, "age": "old"}\n')
        error = self.fail_with(1, "train", "job.yaml", "data.on_bad_row=stop", "data.schema.numeric=[age]",
                               cwd=self.dir)
        self.assert_words(error, "bad.jsonl:2: column 'age'", 'got "old"')
        self.assert_words(self.fail_with(2, "train", "job.yaml", "data.train=[bad.jsonl, all.csv]", "--overwrite",
                                         cwd=self.dir), "all.csv", "one format")
        self.assert_words(self.fail_with(2, "config", "check", "job.yaml", "data.schema.header=false", cwd=self.dir),
                          "data.schema.header", "has no effect on JSON lines")

    def test_init_writes_a_job_that_trains(self):
        lines = [json.dumps({"click": row["click"] == 1, "user": {"id": row["user.id"]}, "items": row["items"],
                             "price": row["price"]}) + "\n" for row in list(make_rows())[:700]]
        self.write("shop.jsonl", "".join(lines))
        text = self.succeed("init", "shop.jsonl", "--label", "click", cwd=self.dir).stdout
        self.assertIn("700 rows", text)
        job = (self.dir / "shop.yaml").read_text()
        self.assertNotIn("delimiter", job)
        self.assertRegex(job, r'items.*separator: "?\|')
        self.assertIn("user.id", job)
        self.succeed("train", "shop.yaml", "train.max_steps=3", cwd=self.dir)
        self.write("log", "".join(lines))
        self.succeed("train", "log", "--label", "click", "train.max_steps=3", "run_dir=other", cwd=self.dir)
        self.assertIn("format: json", (self.dir / "log.yaml").read_text())

    def test_init_reads_what_training_reads(self):
        lines = [json.dumps({"click": row["click"], "items": row["items"], "price": [r % 90 / 4],
                             "age": float("nan") if row["age"] is None else row["age"]}) + "\n"
                 for r, row in enumerate(list(make_rows())[:700])]
        self.write("shop.jsonl", "".join(lines) + "[1]\n")
        self.succeed("init", "shop.jsonl", "--label", "click", cwd=self.dir)
        job = (self.dir / "shop.yaml").read_text()
        self.assertIn("1 more lines are no JSON objects", job)
        self.assertRegex(job, r"(?s)numeric:.*name: age.*features:.*name: price")
        self.assertNotRegex(job, r"name: price, (transform|column)")
        error = self.succeed("train", "shop.yaml", "train.max_steps=3", "data.on_bad_row=stop",
                             "data.train.max_rows=700", cwd=self.dir).stderr
        self.assertNotIn("could not be read", error)
        self.assert_words(self.fail_with(2, "init", "shop.jsonl", "--label", "price", "--out", "x.yaml",
                                         cwd=self.dir), "'price' holds lists")

    def test_the_model_of_libsvm_and_libffm_is_that_of_the_same_csv(self):
        csv, svm, ffm = ["label,features,0,1\n"], [], []
        for r in range(ROWS):
            label = ["-1", "+1", "1"][r * 7 % 3]
            pairs = [(f, f"{i}:{w}") for f, i, w in [(0, r % 41, 1), (1, r % 7 + 50, 0.5), (0, r % 3, r % 4)][: r % 4]]
            fields = [" ".join(pair for f, pair in pairs if f == field) for field in [0, 1]]
            csv.append(f"{label},{' '.join(pair for _, pair in pairs)},{fields[0]},{fields[1]}\n")
            svm.append(" ".join([label] + [pair for _, pair in pairs]) + "\n")
            ffm.append(" ".join([label] + [f"{f}:{pair}" for f, pair in pairs]) + "\n")
        self.write("rows.csv", "".join(csv))
        self.write("rows.svm", "".join(svm))
        self.write("rows.txt", "".join(ffm))
        bag = '{{name: {0}, weight_separator: ":"{1}}}'
        for columns, file, *more in [(["features"], "rows.svm"), (["0", "1"], "rows.txt", "data.format=libffm")]:
            with self.subTest(file):
                separated = ", ".join(bag.format(column, ', separator: " "') for column in columns)
                plain = ", ".join(bag.format(column, "") for column in columns)
                expected = self.train("rows.csv", "--overwrite", job=SPARSE_JOB, features=separated)
                for threads in [1, 3]:
                    found = self.train(file, *more, f"data.reader_threads={threads}", "--overwrite", job=SPARSE_JOB,
                                       features=plain)
                    self.assertEqual(found, expected)
                predict = ["predict", "job.yaml", "--checkpoint", "run", *more]
                self.assertEqual(self.succeed(*predict, "--data", file, cwd=self.dir).stdout.count("\n"), ROWS + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
