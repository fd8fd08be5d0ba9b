"""Every row of a topic is trained on exactly once, though the trainer and the broker, a real one, are killed."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "support"))
import kafka_client
import java_server
import kafka_server
from cluster_job import ClusterJob

SATRAP = os.environ["SATRAP_BIN"]
DEADLINE_S = 600
PARTITIONS = 3
BATCH = 50
KILLS = int(os.environ.get("SATRAP_TEST_KILLS", "3"))  # in each attempt: of a rank, the broker, a loader, in turn
ROWS = 6000  # each with an id of its own: the table then has as many rows as were trained on
JOB = """\
seed: 7
device: cpu
data:
  train: {train}
{kafka}  batch_size: {batch}
  schema: {{header: false, columns: [click, user], label: click, features: [user]}}
tables: {{default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.05}}}}}}
model: {{type: deepfm, hidden: [4]}}
train: {{mode: hybrid, staleness: 2, threads: 1, max_steps: {steps}}}
checkpoint: {{every: 5 steps, keep: 2}}
"""


BOUNDED = "  kafka: {timeout: 10min}\n"
ENDLESS = "  kafka: {end: never, timeout: 10min, group: trainer}\n"


def satrap(*arguments):
    return subprocess.run([SATRAP, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE_S)


if "\nkafka      librdkafka" not in satrap("doctor").stdout or kafka_client.LIB is None:
    print("skipped: this satrap was built without Kafka")
    sys.exit(77)


class Kafka(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(os.environ.get("SATRAP_TEST_SEED", "19"))

    def produce(self, topic, begin, end):
        """Rows in messages of 1 to 4 lines, in partitions at random."""
        values = [[] for _ in range(PARTITIONS)]
        while begin < end:
            number = min(self.random.randint(1, 4), end - begin)
            message = "\n".join(f"{i % 3 // 2},u{i}" for i in range(begin, begin + number))
            values[self.random.randrange(PARTITIONS)].append(message.encode())
            begin += number
        for partition, messages in enumerate(values):
            kafka_client.produce(self.server.brokers, topic, partition, messages)

    def start(self):
        self.log = open(self.dir / "log", "a")
        self.addCleanup(self.log.close)
        process = subprocess.Popen([SATRAP, "train", self.dir / "job.yaml", f"run_dir={self.dir / 'run'}", "--resume"],
                                   stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def newest_step(self):
        folder = self.dir / "run" / "checkpoints"
        names = [path.name for path in folder.glob("step-*")] if folder.exists() else []
        return max([int(name.removeprefix("step-")) for name in names], default=0)

    def wait_for_step(self, step, process):
        deadline = time.monotonic() + DEADLINE_S
        while self.newest_step() < step:
            self.assertIsNone(process.poll(), self.log_text())
            self.assertLess(time.monotonic(), deadline, self.log_text())
            time.sleep(0.01)

    def log_text(self):
        return (self.dir / "log").read_text()[-4000:]

    def test_every_row_once_through_kills_of_both(self):
        steps = ROWS // BATCH
        (self.dir / "job.yaml").write_text(
            JOB.format(train=f"kafka://{self.server.brokers}/clicks", kafka=ENDLESS, batch=BATCH, steps=steps))
        self.produce("clicks", 0, ROWS // 2)
        process = self.start()
        for kill in range(3):
            self.wait_for_step(self.random.randint(10, 15) + 15 * kill, process)
            process.kill()
            process.wait(DEADLINE_S)
            process = self.start()
        self.wait_for_step(steps // 2 - 5, process)
        self.server.kill()
        self.server.start()
        self.produce("clicks", ROWS // 2, ROWS)
        self.wait_for_step(steps // 2 + 10, process)
        process.kill()
        process.wait(DEADLINE_S)
        self.assertEqual(self.start().wait(DEADLINE_S), 0, self.log_text())
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(summary["examples"], ROWS)
        self.assertEqual(summary["rows"], ROWS)

    def test_two_ranks_learn_from_a_topic_what_they_learn_from_a_file(self):
        parts = [[f"{i % 3 // 2},u{i % 97}" for i in range(1000 * p, 1000 * p + number)]
                 for p, number in enumerate((700, 0, 420))]
        for partition, part in enumerate(parts):
            kafka_client.produce(self.server.brokers, "views", partition, [line.encode() for line in part])
        (self.dir / "views.csv").write_text("".join(line + "\n" for part in parts for line in part))
        digests = []
        url = f"kafka://{self.server.brokers}/views"
        for name, train, kafka, options in (("file", self.dir / "views.csv", "", []), ("topic", url, BOUNDED, []),
                                            ("loaders", url, BOUNDED, ["--loaders", "2"])):
            text = JOB.format(train=train, kafka=kafka, batch=BATCH, steps=0) + "embedding: {store: ps}\n"
            (self.dir / f"{name}.yaml").write_text(text.replace("hybrid,", "hybrid, deterministic: true,"))
            job = ClusterJob(self.dir / f"job-{name}", self.dir / f"{name}.yaml", shards=1, ranks=2, max_restarts=0,
                             options=options)
            self.addCleanup(job.kill_all)
            self.assertEqual(job.start().end(DEADLINE_S), 0, job.output())
            digests.append(job.digest(DEADLINE_S))
            logs = [path.read_text() for path in self.dir.glob(f"job-{name}/logs/*/loader-*.log")]
            self.assertEqual(any("reads rows from" in log for log in logs), bool(options))
        self.assertEqual(digests[1:], digests[:1] * 2)

    def test_ranks_and_loaders_share_an_endless_topic_through_kills_and_changes_of_their_number(self):
        run = self.dir / "shared-run"
        numbers = [(2, 0), (3, 2), (1, 2), (2, 0)]  # of ranks, of loaders
        part = ROWS // len(numbers)
        for attempt, (ranks, loaders) in enumerate(numbers):
            is_last = attempt == len(numbers) - 1
            self.produce("shared", attempt * part, (attempt + 1) * part)
            kafka = "  kafka: {timeout: 10min}\n" if is_last else ENDLESS
            text = JOB.format(train=f"kafka://{self.server.brokers}/shared", kafka=kafka, batch=BATCH, steps=0)
            config = self.dir / f"shared-{attempt}.yaml"
            config.write_text(text + "embedding: {store: ps}\ncluster: {timeout: 60s}\n")
            job = ClusterJob(self.dir / f"shared-{attempt}", config, shards=1, ranks=ranks,
                             max_restarts=KILLS + 1, settings=(f"run_dir={run}",),
                             options=["--loaders", str(loaders)] if loaders else [])
            self.addCleanup(job.kill_all)
            job.start("--resume")
            if is_last:
                self.assertEqual(job.end(DEADLINE_S), 0, job.output())
                break
            for kill in range(KILLS):
                self.wait_for_examples(run, attempt * part + (kill + 1) * part // (2 * KILLS), job)
                if kill % 3 == 0:
                    job.member("rank", self.random.randrange(ranks), DEADLINE_S).send(signal.SIGKILL)
                elif kill % 3 == 1:
                    self.server.kill()
                    self.server.start()
                elif loaders:
                    self.random.choice(job.any_members("loader", DEADLINE_S)).send(signal.SIGKILL)
            # Of what is left a rank may not have a whole batch, and the last checkpoint is some steps old.
            self.wait_for_examples(run, (attempt + 1) * part - 6 * ranks * BATCH, job)
            logs = [path.read_text() for path in self.dir.glob(f"shared-{attempt}/logs/*/loader-*.log")]
            self.assertEqual(any("reads rows from" in log for log in logs), loaders > 0)
            os.kill(job.pid, signal.SIGTERM)
            job.end(DEADLINE_S)
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["rows"], ROWS)
        self.assertEqual(summary["examples"], ROWS)

    def test_several_ranks_are_not_deterministic_without_an_end(self):
        config = self.dir / "arrival.yaml"
        text = JOB.format(train=f"kafka://{self.server.brokers}/clicks", kafka=ENDLESS, batch=BATCH, steps=0)
        config.write_text(text.replace("hybrid,", "hybrid, deterministic: true,") + "embedding: {store: ps}\n")
        job = ClusterJob(self.dir / "arrival", config, shards=1, ranks=2, max_restarts=0)
        self.addCleanup(job.kill_all)
        self.assertEqual(job.start().end(DEADLINE_S), 2, job.output())
        self.assertIn("data.kafka.end: never with several ranks rules out train.deterministic", job.output())

    def wait_for_examples(self, run, number, job):
        """Until a checkpoint has trained on so many."""
        def newest():
            folders = sorted((run / "checkpoints").glob("step-*"))
            try:
                return json.loads((folders[-1] / "manifest.json").read_text())["examples"] if folders else 0
            except (OSError, ValueError):
                return 0  # removed since
        job.wait_until(lambda: newest() >= number, DEADLINE_S, f"{number} examples")

    def test_a_topic_that_is_not_there_is_named_with_the_nearest(self):
        kafka_client.produce(self.server.brokers, "impressions", 0, [b"1,u1"])
        (self.dir / "other.yaml").write_text(
            JOB.format(train=f"kafka://{self.server.brokers}/impresions", kafka=BOUNDED, batch=BATCH, steps=1))
        done = satrap("train", self.dir / "other.yaml", f"run_dir={self.dir / 'other'}")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no topic 'impresions'", done.stderr)
        self.assertIn("did you mean 'impressions'?", done.stderr)


def main():
    with tempfile.TemporaryDirectory(prefix="satrap-kafka-") as folder:
        Kafka.dir = pathlib.Path(folder)
        (Kafka.dir / "broker").mkdir()
        try:
            Kafka.server = kafka_server.Server(Kafka.dir / "broker", PARTITIONS)
        except java_server.Unavailable as why:
            print(f"skipped: {why}")
            sys.exit(77)
        try:
            unittest.main()
        finally:
            Kafka.server.close()


if __name__ == "__main__":
    main()
