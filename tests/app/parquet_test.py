"""Jobs whose data are Parquet or Arrow files: the same model as from CSV, whatever command reads them."""
import sys
import unittest

from cli import CliTest, satrap

try:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow (launch/setup.sh test)")
    sys.exit(77)
if "\nparquet    Arrow" not in satrap("doctor").stdout:
    print("skipped: this satrap was built without Parquet")
    sys.exit(77)

ROWS = 3000
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
      - user
      - {{name: user_number, column: user, type: int}}
      - city
      - {{name: items, type: int, separator: "|", max_length: 3, keep: last}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1, epochs: 2}}
checkpoint: {{every: 10 steps, keep: 3}}
"""


def make_rows(num_rows):
    """Columns with nulls; values follow from the row alone."""
    rows = range(num_rows)
    def column(values, every):
        return [None if r % every == 3 else value for r, value in zip(rows, values)]
    return {
        "click": [int((r * 7 + r // 3) % 5 < 2) for r in rows],
        "unread": [float(r) for r in rows],
        "age": column((r * 31 % 70 for r in rows), 11),
        "price": column((r * 13 % 97 / 4 for r in rows), 13),
        "user": column((r * r % 501 - 100 for r in rows), 17),
        "city": column((f"city {r % 23}" for r in rows), 19),
        "items": column(([r % 41, r % 7, r % 3, r % 29][: r % 5] for r in rows), 23),
    }


class Parquet(CliTest):
    def setUp(self):
        super().setUp()
        rows = make_rows(ROWS)
        half = {name: values[: ROWS // 2] for name, values in rows.items()}
        rest = {name: values[ROWS // 2 :] for name, values in rows.items()}
        city = pa.array(rest["city"]).dictionary_encode()
        pq.write_table(pa.table(half), self.dir / "day_1.parquet", row_group_size=400)
        pq.write_table(pa.table({**rest, "city": city}), self.dir / "day_2.parquet", row_group_size=997,
                       compression="zstd")
        feather.write_feather(pa.table(half), self.dir / "day_1.arrow", compression="uncompressed", chunksize=400)
        feather.write_feather(pa.table({**rest, "city": city}), self.dir / "day_2.arrow", compression="zstd",
                              chunksize=997)
        text = [",".join(rows)]
        for values in zip(*rows.values()):
            text.append(",".join("" if v is None else "|".join(map(str, v)) if isinstance(v, list) else str(v)
                                 for v in values))
        self.write("all.csv", "\n".join(text) + "\n")

    def train(self, train, *more, by="hash", shuffle=0, name="job"):
        self.write(f"{name}.yaml", JOB.format(train=train, by=by, shuffle=shuffle))
        return self.succeed("train", f"{name}.yaml", f"run_dir={name}", *more, cwd=self.dir)

    def result(self):
        newest = self.checkpoints("job")[-1]
        return newest, self.digest(self.dir / "job" / "checkpoints" / newest)

    def test_the_model_is_that_of_the_same_csv(self):
        for settings in [{}, {"by": "user", "shuffle": 500}, {"by": "city"}, {"by": "tail"}]:
            with self.subTest(settings):
                self.train("all.csv", "--overwrite", **settings)
                expected = self.result()
                for files, threads in [("parquet", 1), ("parquet", 3), ("arrow", 1), ("arrow", 3)]:
                    self.train(f'"day_*.{files}"', f"data.reader_threads={threads}", "--overwrite", **settings)
                    self.assertEqual(self.result(), expected)

    def test_a_column_whose_type_is_null_has_no_values(self):
        """As pandas writes a column that is empty in one file: text, hex, integers, numbers, a list."""
        rows = 200
        whole = {"click": [r % 2 for r in range(rows)], "t": [f"t{r % 5}" for r in range(rows)],
                 "h": [f"{r % 7:08x}" for r in range(rows)], "i": [r % 3 for r in range(rows)],
                 "x": [r / 4 for r in range(rows)]}
        names = list(whole)
        text = "".join(f"{','.join(str(whole[n][r]) for n in names)}\n" for r in range(rows))
        (self.dir / "a.csv").write_text(f"{','.join(names)}\n{text}")
        (self.dir / "b.csv").write_text(f"{','.join(names)}\n" + "".join(f"{r % 2},,,,\n" for r in range(rows)))
        empty = pa.table({"click": whole["click"]} | {name: pa.nulls(rows) for name in names[1:]})
        for table, name in [(pa.table(whole), "a"), (empty, "b")]:
            pq.write_table(table, self.dir / f"{name}.parquet")
            feather.write_feather(table, self.dir / f"{name}.arrow")
        digests = set()
        for ending in ["csv", "parquet", "arrow"]:
            for order in ["a b", "b a"]:
                files = [f"{name}.{ending}" for name in order.split()]
                self.write("null.yaml", f"""
data:
  train: {files}
  batch_size: 50
  schema: {{label: click, numeric: [x], features: [t, {{name: h, type: hex}}, {{name: i, type: int}}]}}
tables: {{default: {{dim: 2}}}}
model: {{type: ffnn, top: [4]}}
train: {{deterministic: true, threads: 1}}
""")
                run = f"null-{ending}-{order[0]}"
                self.succeed("train", "null.yaml", f"run_dir={run}", "device=cpu", cwd=self.dir)
                digests.add((order, self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1])))
        self.assertEqual(len(digests), 2, digests)

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        for shuffle, files in [(0, '"day_*.parquet"'), (500, '"day_*.parquet"'), (500, '"day_*.arrow"')]:
            with self.subTest(shuffle=shuffle, files=files):
                self.train(files, "--overwrite", shuffle=shuffle)
                expected = self.result()
                self.train(files, "--overwrite", "train.max_steps=13", shuffle=shuffle)
                self.train(files, "--resume", "data.reader_threads=2", shuffle=shuffle)
                self.assertEqual(self.result(), expected)

    def test_a_file_that_has_changed_is_refused(self):
        self.train('"day_*.parquet"', "train.max_steps=13")
        rows = make_rows(ROWS // 2)
        rows["age"][5] = 99
        pq.write_table(pa.table(rows), self.dir / "day_1.parquet", row_group_size=400)
        done = satrap("train", "job.yaml", "run_dir=job", "--resume", cwd=self.dir)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assert_words(done.stderr, "data file day_1.parquet: ", "--accept-changed-data")

    def test_predictions_are_those_of_csv(self):
        self.train("all.csv")
        predict = ["predict", "job.yaml", "--checkpoint", "job", "--keep", "user,city"]
        expected = self.succeed(*predict, "--data", "all.csv", cwd=self.dir).stdout
        self.assertEqual(expected.count("\n"), ROWS + 1)
        for files in ["parquet", "arrow"]:
            self.assertEqual(self.succeed(*predict, "--data", f"day_1.{files}", "--data", f"day_2.{files}",
                                          cwd=self.dir).stdout, expected)

    def test_commands_that_show_data(self):
        self.write("job.yaml", JOB.format(train="day_1.parquet", by="hash", shuffle=0))
        text = self.succeed("config", "check", "job.yaml", "--data", cwd=self.dir).stdout
        for line in ["  unread  not read", "  click   label", "  age     number, zscore"]:
            self.assertIn(line, text)
        head = self.succeed("data", "head", "job.yaml", "--rows", "4", cwd=self.dir).stdout
        self.assertIn("city 1 (", head)
        stats = self.succeed("data", "stats", "job.yaml", 'data.train="day_*.parquet"', cwd=self.dir).stdout
        self.assertEqual(stats, self.succeed("data", "stats", "job.yaml", "data.train=all.csv", cwd=self.dir).stdout)
        self.assertIn(", 0 bad rows\n", stats)

    def test_init_writes_a_job_that_trains(self):
        for files in ["parquet", "arrow"]:
            text = self.succeed("init", f"day_1.{files}", f"day_2.{files}", "--label", "click", "--out",
                                f"{files}.yaml", cwd=self.dir).stdout
            self.assertIn("3,000 rows", text)
            job = (self.dir / f"{files}.yaml").read_text()
            self.assertNotIn("delimiter", job)
            self.assertRegex(job, r'items.*separator: "?\|')
            self.succeed("train", f"{files}.yaml", "train.max_steps=3", f"run_dir={files}", cwd=self.dir)

    def test_errors_name_file_column_and_remedy(self):
        self.write("job.yaml", JOB.format(train="day_1.parquet", by="hash", shuffle=0))
        self.assert_words(self.fail_with(2, "train", "job.yaml", "data.schema.label=clicks", cwd=self.dir),
                          "day_1.parquet", "no column 'clicks'", "did you mean 'click'")
        self.assert_words(self.fail_with(2, "train", "job.yaml", "data.schema.features=[price]",
                                         "data.schema.value_rule=1", cwd=self.dir),
                          "column 'price' (DOUBLE)", "ids are integers or texts")
        (self.dir / "day_1.parquet").write_bytes((self.dir / "day_2.parquet").read_bytes()[:-9])
        self.assert_words(self.fail_with(1, "train", "job.yaml", cwd=self.dir), "day_1.parquet",
                          "incomplete Parquet file")
        self.assert_words(self.fail_with(1, "config", "check", "job.yaml", "data.train=day_1.arrow", "data.format=csv",
                                         "--data", cwd=self.dir), "is an Arrow file, and is read as text")
        (self.dir / "day_1.arrow").write_bytes((self.dir / "day_2.arrow").read_bytes()[:-9])
        self.assert_words(self.fail_with(1, "train", "job.yaml", "data.train=day_1.arrow", cwd=self.dir),
                          "incomplete Arrow file")
        self.assert_words(self.fail_with(2, "train", "job.yaml", "data.train=[day_2.parquet, all.csv]", cwd=self.dir),
                          "all.csv", "one format")


if __name__ == "__main__":
    unittest.main(verbosity=2)
