"""Jobs that read messages of Arrow IPC or Parquet from a topic of Kafka: the model of a file with the same rows."""
import io
import json
import pathlib
import sys
import unittest

from cli import CliTest, satrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import kafka_client

try:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow (launch/setup.sh test)")
    sys.exit(77)
doctor = satrap("doctor").stdout
if "\nkafka      librdkafka" not in doctor or kafka_client.LIB is None or "\nparquet    Arrow" not in doctor:
    print("skipped: this satrap was built without Kafka or without Parquet")
    sys.exit(77)

ROWS = 2100
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: {train}
  format: {format}
  batch_size: 100
  {kafka}
  schema:
    label: click
    numeric: [price]
    features: [user, city, {{name: items, type: int, separator: "|"}}]
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{mode: hybrid, staleness: 2, deterministic: true, threads: 1}}
checkpoint: {{every: 10 steps, keep: 3}}
"""


def table(begin, end):
    rows = range(begin, end)
    return pa.table({
        "click": [int(i * 7 % 5 < 2) for i in rows],
        "unread": [float(i) for i in rows],
        "price": [None if i % 11 == 3 else i * 13 % 97 / 4 for i in rows],
        "user": [f"u{i % 701}" for i in rows],
        "city": pa.array([None if i % 19 == 3 else f"city {i % 23}" for i in rows], pa.string()).dictionary_encode(),
        "items": [[i % 41, i % 7, i % 3][: i % 4] for i in rows]})


def csv_lines(rows):
    """The same rows as text."""
    for row in rows.to_pylist():
        items = "|".join(map(str, row["items"]))
        yield ",".join("" if value is None else str(value) for value in {**row, "items": items}.values())


def stream(rows, rows_per_batch=None):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=rows_per_batch)
    return sink.getvalue()


def arrow_file(rows):
    sink = io.BytesIO()
    feather.write_feather(rows, sink, compression="zstd")
    return sink.getvalue()


def parquet(rows, rows_per_group):
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=rows_per_group)
    return sink.getvalue()


class KafkaColumns(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.broker = kafka_client.MockBroker()
        cls.addClassCleanup(cls.broker.close)

    def topic(self, name, messages):
        self.broker.create(name, 1)
        kafka_client.produce(self.broker.brokers, name, 0, messages)
        return f"kafka://{self.broker.brokers}/{name}"

    def job(self, train, form, name):
        kafka = "kafka: {timeout: 5min}" if form != "csv" else ""
        self.write(f"{name}.yaml", JOB.format(train=train, format=form, kafka=kafka))

    def train(self, name, *more):
        return self.succeed("train", f"{name}.yaml", f"run_dir={name}", *more, cwd=self.dir)

    def result(self, name):
        return self.digest(self.dir / name / "checkpoints" / self.checkpoints(name)[-1])

    def test_they_teach_what_a_file_with_their_rows_does_also_resumed_within_a_message(self):
        header = ",".join(table(0, 1).column_names)
        self.write("all.csv", "\n".join([header, *csv_lines(table(0, ROWS))]) + "\n")
        self.job(self.dir / "all.csv", "csv", "file")
        self.train("file")
        ones = [stream(table(i, i + 1)) for i in range(50)]
        for form, messages in {
                "arrow": [*ones, stream(table(50, 178)), stream(table(178, 1900), 400), None,
                          arrow_file(table(1900, ROWS))],
                "parquet": [parquet(table(0, 128), 50), parquet(table(128, ROWS), 700)]}.items():
            with self.subTest(form):
                self.job(self.topic(form, messages), form, form)
                self.train(form, "train.max_steps=13")
                checkpoint = self.dir / form / "checkpoints" / self.checkpoints(form)[-1]
                place = json.loads((checkpoint / "topic.json").read_text())
                self.assertLess(place["row"], 1300, "the message that row 1300 is in begins before it")
                self.train(form, "--resume")
                self.assertEqual(self.result(form), self.result("file"))

    def test_messages_that_cannot_be_read_are_counted_and_limited(self):
        good = [stream(table(i, i + 20)) for i in range(0, 400, 20)]
        other = stream(table(0, 3).drop_columns(["price"]))
        url = self.topic("bad", [*good[:10], good[0][:300], other, b"1,2,3", *good[10:]])
        self.job(url, "arrow", "job")
        log = self.train("job", "data.max_bad_rows=3").stderr
        self.assert_words(log, f"{url}, partition 0, offset 10", "offset 11", "'price'", "offset 12")
        summary = json.loads((self.dir / "job" / "summary.json").read_text())
        self.assertEqual((summary["examples"], summary["bad_rows"]), (400, 3))
        self.assertEqual(summary["bad_row_reasons"], {"a message that cannot be read": 3})
        error = self.fail_with(1, "train", "job.yaml", "data.max_bad_rows=2", "--overwrite", cwd=self.dir)
        self.assert_words(error, "more than data.max_bad_rows = 2 bad rows", "partition 0, offset 10")
        self.assert_words(self.fail_with(1, "train", "job.yaml", "data.on_bad_row=stop", "--overwrite", cwd=self.dir),
                          "partition 0, offset 10")


if __name__ == "__main__":
    unittest.main()
