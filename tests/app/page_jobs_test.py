"""Complete jobs of the pages, which need a store, a broker or two machines, run as they stand: only addresses and paths
are others. pages_test.py runs those that need nothing, tests/process the one for a GPU and the one with a module."""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
sys.path += [str(SOURCE / "tests/architecture"), str(SOURCE / "tests/support")]
import kafka_client  # noqa: E402
import page_text  # noqa: E402
import store_server  # noqa: E402

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same on a machine with GPUs
DOCTOR = satrap("doctor").stdout


def rows(number):
    """(clicked, user, item, price) of rows that differ."""
    return [(int(i * 7 % 5 < 2), f"u{i % 97}", i % 31, i * 13 % 97 / 4) for i in range(number)]


class PageJobs(CliTest):
    def blocks(self, page):
        return page_text.blocks((SOURCE / "docs" / page).read_text())

    def write_job(self, page, name, **replaced):
        """Writes the job of this name as the page has it, but for what is replaced: an old text and a new one."""
        text, = (block.text for block in self.blocks(page) if block.text.startswith(f"# {name}\n"))
        return self.write(name, self.replace(text, replaced.values()))

    def replace(self, text, pairs):
        for old, new in pairs:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    def commands(self, page, beginning):
        """The commands of the page that begin so, as words."""
        lines = "".join(block.text for block in self.blocks(page) if block.language == "sh").splitlines()
        return [shlex.split(line, comments=True) for line in lines if line.startswith(beginning)]

    def start(self, words, within="", **environment):
        """`within`: a network namespace."""
        program = {"satrap": [SATRAP], "satrap-run": [sys.executable, SOURCE / "launch/satrap-run", "--bin-dir",
                                                      pathlib.Path(SATRAP).parent]}[words[0]]
        wrapper = ["ip", "netns", "exec", within] if within else []
        process = subprocess.Popen([*wrapper, *program, *words[1:]], cwd=self.dir, env={**os.environ, **environment}, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def end(self, process, status):
        said, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, status, said)

    def summary(self, run):
        return json.loads((self.dir / run / "summary.json").read_text())


class InS3(PageJobs):
    def test_parquet_in_a_bucket_and_the_run_there(self):
        if "\ns3         S3" not in DOCTOR or "\nparquet    Arrow" not in DOCTOR:
            self.skipTest("this satrap was built without S3 or Parquet")
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            self.skipTest("needs pyarrow (launch/setup.sh test)")
        server = store_server.Server()
        self.addCleanup(server.close)
        for day in (18, 19, 20):
            clicked, user, item, price = map(list, zip(*rows(3000)))
            table = pyarrow.table({"clicked": clicked, "user": user, "item": item, "price": price,
                                   "day": [f"2026-11-{day}"] * len(user)})
            pyarrow.parquet.write_table(table, self.dir / "day.parquet")
            server.files[f"logs/day_{day}.parquet"] = (self.dir / "day.parquet").read_bytes()
        self.write_job("stores.md", "s3.yaml")
        with mock.patch.dict(os.environ, {**server.environment(), "SATRAP_SCRATCH": str(self.dir / "scratch")}):
            self.succeed("train", "s3.yaml", cwd=self.dir)
        summary = json.loads(server.files["runs/s3/summary.json"])
        self.assertEqual(summary["eval"]["examples"], 3000, "those of the last day")
        self.assertGreaterEqual(summary["examples"], 6000)
        self.assertTrue(any("/manifest.json" in name for name in server.files))


class WithoutEnd(PageJobs):
    def test_a_topic_is_read_until_a_signal(self):
        if "\nkafka      librdkafka" not in DOCTOR or kafka_client.LIB is None:
            self.skipTest("this satrap was built without Kafka")
        broker = kafka_client.MockBroker()
        self.addCleanup(broker.close)
        broker.create("clicks", 2)
        lines = [f"{clicked},{user},{item},{price}\n".encode() for clicked, user, item, price in rows(6000)]
        kafka_client.produce(broker.brokers, "clicks", 0, lines)
        self.write("eval.csv", "".join(line.decode() for line in lines[:500]))
        self.write_job("kafka.md", "kafka.yaml", brokers=("broker1:9092,broker2:9092", broker.brokers))
        command, = (words for words in self.commands("kafka.md", "satrap train") if "data.kafka.end=never" in words)
        process = self.start(command)
        metrics = self.dir / "runs/kafka/metrics.jsonl"
        deadline = time.monotonic() + TIMEOUT_S
        while not (metrics.exists() and '"train"' in metrics.read_text()):  # a report comes with a step, after 10 s
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            kafka_client.produce(broker.brokers, "clicks", 1, lines[:2500])
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        self.end(process, 143)
        self.assertGreaterEqual(self.summary("runs/kafka")["examples"], 4096)
        self.assertEqual(len(self.checkpoints("runs/kafka")), 1)


def joined_namespaces(test):
    """Two network namespaces with a wire between them, 10.0.0.1 and 10.0.0.2. Skips the test without root or iproute2."""
    names = [f"satrap-page-{os.getpid()}-{end}" for end in "ab"]

    def ip(*words):
        try:
            subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.CalledProcessError) as error:
            test.skipTest(f"needs network namespaces: {getattr(error, 'stderr', '') or error}")

    wires = [f"satrap{os.getpid()}{end}" for end in "ab"]
    for name in names:
        ip("netns", "add", name)
        test.addCleanup(subprocess.run, ["ip", "netns", "del", name], timeout=TIMEOUT_S)
    ip("link", "add", wires[0], "netns", names[0], "type", "veth", "peer", "name", wires[1], "netns", names[1])
    for number, (name, wire) in enumerate(zip(names, wires), 1):
        ip("-n", name, "address", "add", f"10.0.0.{number}/24", "dev", wire)
        for link in ("lo", wire):
            ip("-n", name, "link", "set", link, "up")
    return names


class OnTwoMachines(PageJobs):
    def test_each_in_a_network_of_its_own(self):
        namespaces = joined_namespaces(self)
        (self.dir / "log").mkdir()
        text = "clicked,user,item\n" + "".join(f"{clicked},{user},{item}\n" for clicked, user, item, _ in rows(4000))
        for name in ("log/day_1.csv", "log/eval.csv"):
            self.write(name, text)
        self.write_job("cluster.md", "job.yaml", shared=("/shared", str(self.dir)))
        commands = self.commands("cluster.md", "satrap-run --nnodes 2")
        self.assertEqual(len(commands), 2)
        jobs = [self.start(words, within=namespace, SATRAP_TOKEN="0123456789abcdef")
                for namespace, words in zip(namespaces, commands)]
        for job in jobs:
            self.end(job, 0)
        summary = self.summary("runs/two")
        self.assertEqual([summary[name] for name in ("finished", "ranks", "shards", "examples")], [True, 4, 2, 4000])


if __name__ == "__main__":
    unittest.main(verbosity=2)
