#!/usr/bin/env python3
"""Rates of reading an object of S3 and a file of HDFS, by satrap and by curl, in turn, from the same server: S3Proxy,
HDFS, and a server in Python that does less for a byte than these (tests/support). The first two need java and mvn.

  bench/stores.py [--build build/release] [--mb 256] [--rounds 5] [SERVER...]
"""
import argparse
import getpass
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "support"))
import hdfs_server
import java_server
import s3_server
import store_server

SIGNED = ["--aws-sigv4", "aws:amz:us-east-1:s3", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
MB = 1_000_000


class S3Proxy(s3_server.Server):
    def put(self, content):
        (self.data / "bucket").mkdir()
        (self.data / "bucket" / "object").write_bytes(content)
        self.target = "s3://bucket/object"
        self.curl = [*SIGNED, "--user", f"{s3_server.KEY}:{s3_server.SECRET}", f"{self.endpoint}/bucket/object"]


class Hdfs(hdfs_server.Server):
    def put(self, content):
        self.write("/object", content)
        self.target = f"hdfs://{self.address}/object"
        self.curl = ["-L", f"http://{self.address}/webhdfs/v1/object?op=OPEN&user.name={getpass.getuser()}"]

    def environment(self):
        return {"HADOOP_USER_NAME": getpass.getuser()}


class Python(store_server.Server):
    """Its answers are not signed, and each is a copy of bytes in memory."""

    def __init__(self, scheme):
        super().__init__()
        self.scheme = scheme

    def put(self, content):
        self.files["object"] = content
        self.target = self.url(self.scheme, "object")
        path = "bucket/object" if self.scheme == "s3" else f"webhdfs/v1/object?op=OPEN&offset=0&length={len(content)}"
        self.curl = ["-L", "-r", f"0-{len(content) - 1}", f"http://{self.address}/{path}"]


SERVERS = {"s3proxy": S3Proxy, "hdfs": Hdfs, "python-s3": lambda _: Python("s3"), "python-hdfs": lambda _: Python("hdfs")}


def run(command, environment):
    """What it printed, and its CPU seconds."""
    process = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, out)
    return out, usage.ru_utime + usage.ru_stime


def curl(server, size):
    """Seconds, and CPU seconds."""
    out, cpu_s = run(["curl", "-sS", "-o", "/dev/null", "-w", "%{time_total} %{size_download}", *server.curl], {})
    seconds, received = out.split()
    assert int(received) == size, out
    return float(seconds), cpu_s


def satrap(server, bench):
    out, _ = run([bench, "--benchmark_format=json", "--benchmark_min_time=0.001"],
                 {**server.environment(), "SATRAP_BENCH_FILE": server.target})
    [result] = json.loads(out)["benchmarks"]
    return result["real_time"] / 1000, result["cpu_time"] / 1000


def compare(name, make, size, bench, rounds):
    with tempfile.TemporaryDirectory() as folder:
        server = make(folder)
        try:
            server.put(random.Random(7).randbytes(size))
            pairs = []
            for i in range(rounds + 1):
                pair = [curl(server, size), satrap(server, bench)]
                if i > 0:  # the server has compiled itself
                    pairs.append(pair)
        finally:
            server.close()
    texts = []
    for reader, times in zip(("curl", "satrap"), zip(*pairs)):
        rates = sorted(size / MB / seconds for seconds, _ in times)
        cpu_s = statistics.median(cpu for _, cpu in times) * 1e9 / size
        texts.append(f"{reader} {statistics.median(rates):.0f} MB/s ({rates[0]:.0f} - {rates[-1]:.0f}), "
                     f"{cpu_s:.2f} s of CPU per GB")
    ratios = sorted(theirs[0] / ours[0] for theirs, ours in pairs)
    print(f"{name}: {'; '.join(texts)}; satrap / curl {statistics.median(ratios):.2f} "
          f"({ratios[0]:.2f} - {ratios[-1]:.2f}); load {os.getloadavg()[0]:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"{', '.join(SERVERS)}; all of them by default")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--mb", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    hdfs_server.BLOCK_BYTES = 128 << 20  # as HDFS has it
    for name in arguments.servers or SERVERS:
        if name not in SERVERS:
            parser.error(f"'{name}' is no server: {', '.join(SERVERS)}")
        try:
            compare(name, SERVERS[name], arguments.mb * MB, arguments.build / "bench" / "data_store_bench",
                    arguments.rounds)
        except java_server.Unavailable as reason:
            print(f"{name}: skipped: {reason}")


if __name__ == "__main__":
    main()
