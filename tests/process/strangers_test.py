"""Strangers come to every port at which a job's processes listen, from its first moment to its last: the job ends as
if nobody had come.

A job of two shards, two ranks and a store, started by satrap-run; its second rank starts late, so that the first one
listens for a while. The strangers connect and hang up, send garbage, zeros, floods of greetings, half a
message, one byte at a time, and what a member of the job has said before. One round by default. For more:

    SATRAP_BIN=build/release/bin/satrap SATRAP_STRANGER_ROUNDS=50 tests/process/strangers_test.py

Each round prints how much more memory every process has used at most than undisturbed, and the throughput and the CPU
time beside those of the undisturbed job, which runs before each of several rounds. The strangers are on this machine,
and go with the job; in several rounds they have a CPU of their own, and the job has the others."""
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import statistics
import sys
import tempfile
import threading
import time
import unittest

import faults
from cluster_job import CONFIG, JOB_S, SANITIZED, SATRAP, ClusterJob

ROUNDS = int(os.environ.get("SATRAP_STRANGER_ROUNDS", 1))
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAX_MORE_KIB = 32 << 10
CPUS = sorted(os.sched_getaffinity(0))
NAMES = {"store", "shard 0", "shard 1", "rank 0", "rank 1"}
MIN_VISITS = 5  # to each process that listens
# A round that is measured is longer than its start and its end.
SETTINGS = (f"data.synthetic.rows={26880 if ROUNDS == 1 else 215040}",)
OPTIONS = ("--master-addr", "127.0.0.1")  # for a store with a port
# What the launcher starts instead of satrap: rank 1 waits in it for a file.
LATE = """#!/bin/sh
while [ "$1 $RANK" = "train 1" ] && [ ! -e "{file}" ]; do sleep 0.02; done
exec "{program}" "$@"
"""


def move_to(cpus):
    """The calling thread, and what it starts."""
    if ROUNDS > 1 and len(CPUS) > 1:
        os.sched_setaffinity(0, cpus)


class Process:
    """A process of the job, as seen from outside."""

    def __init__(self, pid, name, token):
        self.pid, self.name, self.token = pid, name, token
        self.num_visits = 0
        self.peak_kib = 0
        self.cpu_s = 0.0
        self.addresses = []  # at which it listens

    def look(self):
        self.addresses = faults.listening_sockets(self.pid)
        with contextlib.suppress(OSError, ValueError):
            for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peak_kib = int(line.split()[1])
            times = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            self.cpu_s = sum(map(int, times)) / TICKS_PER_S

    def magic(self):
        kind = self.name.split()[0]
        return {"store": faults.STORE_MAGIC, "shard": faults.MAGIC, "rank": faults.MEETING_MAGIC}[kind]


def process_of(pid):
    """The shard, rank or store with this process id, or None."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes().decode().split("\0")
        items = (folder / "environ").read_bytes().decode().split("\0")
    except OSError:
        return None
    environment = dict(item.split("=", 1) for item in items if "=" in item)
    token = environment.get("SATRAP_TOKEN", "").encode()
    program = os.path.basename(words[0])
    if program == "satrap-ps":
        return Process(pid, f"shard {words[words.index('--shard') + 1]}", token)
    if program == "satrap" and words[1] == "train":
        return Process(pid, f"rank {environment['RANK']}", token)
    if program == "satrap" and words[1] == "store":
        return Process(pid, "store", token)
    return None


class Watch:
    """Knows the job's processes, from its own thread, which measures them."""

    def __init__(self, job):
        self._job = job
        self._known = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        move_to(CPUS[:1])
        while not self._over.is_set():
            for pid in self._job.survivors() if len(self.processes()) < len(NAMES) else []:
                # A process that has only just been forked is not yet what it will be.
                if self._known.get(pid) is None:
                    self._known[pid] = process_of(pid)
            for process in self.processes():
                process.look()
            self._over.wait(0.05)

    def processes(self):
        return [process for process in list(self._known.values()) if process is not None]

    def num_visits(self, name):
        return next((process.num_visits for process in self.processes() if process.name == name), 0)

    def end(self):
        self._over.set()
        self._thread.join()
        return {process.name: process for process in self.processes()}


class Crowd:
    """Strangers, from a few threads, at every port of the processes that `watch` knows."""

    def __init__(self, watch, seed):
        self._watch = watch
        self._over = threading.Event()
        self._held = collections.deque()
        self._rng = faults.seeded(seed)
        self.refusals = collections.Counter()
        self._threads = [threading.Thread(target=act, daemon=True) for act in (self._scan, self._flood)]
        for thread in self._threads:
            thread.start()

    def end(self):
        self._over.set()
        for thread in self._threads:
            thread.join()
        for sock in self._held:
            sock.close()

    def _scan(self):
        """Visits every port, each time in another manner."""
        move_to(CPUS[:1])
        manners = [self._hang_up, self._say_garbage, self._say_zeros, self._stay, self._drip, self._repeat]
        number = 0
        while not self._over.wait(0.02):
            for process in self._watch.processes():
                for address in process.addresses:
                    number += 1
                    with contextlib.suppress(OSError):
                        manners[number % len(manners)](address, process)
                        process.num_visits += 1

    def _flood(self):
        """Sends as much as the other end takes, for a moment, every now and then."""
        move_to(CPUS[:1])
        words = [bytes(1 << 16), faults.greeting()[0] * 1000]
        while not self._over.wait(0.1):
            for process in self._watch.processes():
                for address in process.addresses:
                    until = time.monotonic() + 0.01
                    with contextlib.suppress(OSError), socket.create_connection(address, timeout=0.1) as sock:
                        while time.monotonic() < until and not self._over.is_set():
                            sock.sendall(words[process.num_visits % 2])

    def _hang_up(self, address, process):
        socket.create_connection(address, timeout=1.0).close()

    def _say_garbage(self, address, process):
        faults.say(address, self._rng.randbytes(self._rng.randrange(1, 10_000)))

    def _say_zeros(self, address, process):
        faults.say(address, bytes(10_000))

    def _hold(self, sock):
        self._held.append(sock)
        if len(self._held) > 100:
            self._held.popleft().close()

    def _stay(self, address, process):
        sock = socket.create_connection(address, timeout=1.0)
        self._hold(sock)
        sock.sendall(faults.greeting(process.magic())[0][:self._rng.randrange(0, 40)])  # half-open, so to speak

    def _drip(self, address, process):
        sock = socket.create_connection(address, timeout=1.0)
        self._hold(sock)
        for byte in faults.greeting(process.magic())[0][:10]:
            sock.sendall(bytes([byte]))

    def _repeat(self, address, process):
        """Says what somebody with the token has said before."""
        heard = []
        faults.introduce(address, process.token, b"\7", magic=process.magic(), heard=heard)
        if not heard:
            return
        with socket.create_connection(address, timeout=1.0) as sock:
            sock.sendall(heard[0])
            if faults.receive(sock)[:1] == b"\0":
                sock.sendall(heard[1])
                answer = faults.receive(sock)
                # A process that ends, or that has too many strangers, only hangs up.
                refusal = "wrong token" if b"wrong token" in answer else answer or "hung up"
                self.refusals[refusal] += 1


@dataclasses.dataclass
class Outcome:
    digest: str
    num_lines: int  # of its log
    processes: dict  # Process, by name
    examples_per_s: float
    cpu_s: float  # of the job
    my_cpu_s: float  # of the strangers and of who watches
    refusals: collections.Counter  # of old words; None without strangers


class Programs:
    """A folder with satrap and satrap-ps, for a launcher; rank 1 starts only when it is told to."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "bin"
        self.path.mkdir()
        self._told = self.path / "start-rank-1"
        (self.path / "satrap-ps").symlink_to(SATRAP.parent / "satrap-ps")
        (self.path / "satrap").write_text(LATE.format(file=self._told, program=SATRAP))
        (self.path / "satrap").chmod(0o755)

    def start_rank_1(self):
        self._told.touch()


class Strangers(unittest.TestCase):
    def run_job(self, folder, crowd_seed=None):
        config = pathlib.Path(folder) / "job.yaml"
        config.write_text(CONFIG)
        programs = Programs(folder)
        with ClusterJob(os.path.join(folder, "job"), config, max_restarts=0, settings=SETTINGS,
                        options=OPTIONS, bin_dir=programs.path) as job:
            mine = time.process_time()
            move_to(CPUS[1:])
            job.start()
            move_to(CPUS[:1])
            watch = Watch(job)
            crowd = None if crowd_seed is None else Crowd(watch, crowd_seed)
            try:
                if crowd is not None:
                    job.wait_until(lambda: not job.is_running() or watch.num_visits("rank 0") >= MIN_VISITS, JOB_S,
                                   "visits to rank 0")
                programs.start_rank_1()
                status = job.end(JOB_S)
            finally:
                if crowd is not None:
                    crowd.end()
                processes = watch.end()
            mine = time.process_time() - mine
            self.assertEqual(status, 0, job.describe())
            summary = json.loads((job.run_dir / "summary.json").read_text())
            return Outcome(job.digest(JOB_S), job.num_lines(), processes, summary["examples_per_second"],
                           sum(process.cpu_s for process in processes.values()), mine,
                           crowd and crowd.refusals)

    def test_the_job_ends_as_if_nobody_had_come(self):
        seed = os.environ.get("SATRAP_TEST_SEED", "1")
        with tempfile.TemporaryDirectory(prefix="satrap-strangers-") as scratch:
            def folder(name):
                path = os.path.join(scratch, name)
                os.mkdir(path)
                return path
            calm = first = self.run_job(folder("undisturbed"))
            speeds, cpus, most_more = [], [], collections.Counter()
            for number in range(ROUNDS):
                with self.subTest(round=number):
                    if number > 0:
                        calm = self.run_job(folder(f"undisturbed-{number}"))
                    found = self.run_job(folder(f"round-{number}"), f"{seed}/{number}")
                    more = {name: process.peak_kib - first.processes[name].peak_kib
                            for name, process in found.processes.items()}
                    visits = {name: process.num_visits for name, process in found.processes.items()}
                    speeds.append(found.examples_per_s / calm.examples_per_s)
                    cpus.append(found.cpu_s / calm.cpu_s)
                    for name, kib in more.items():
                        most_more[name] = max(most_more[name], kib)
                    print(f"round {number}: {speeds[-1]:.2f} of the throughput, {cpus[-1]:.2f} times the CPU time of "
                          f"{calm.cpu_s:.1f} s; {found.my_cpu_s:.1f} s for strangers and watch ({calm.my_cpu_s:.1f} s "
                          f"for the watch alone); KiB more: {more}; visits: {visits}; old words: "
                          f"{dict(found.refusals)}", file=sys.stderr, flush=True)
                    self.assertEqual(found.digest, first.digest)
                    self.assertLess(found.num_lines, first.num_lines + 300, "strangers do not fill the log")
                    self.assertEqual(set(found.processes), NAMES)
                    for name in ("store", "shard 0", "shard 1", "rank 0"):
                        self.assertGreaterEqual(visits[name], MIN_VISITS, name)
                    self.assertIn("wrong token", found.refusals)
                    self.assertLessEqual(set(found.refusals), {"wrong token", "hung up"})
                    if not SANITIZED:
                        self.assertLess(max(more.values()), MAX_MORE_KIB, more)
            if speeds:
                print(f"throughput: median {statistics.median(speeds):.3f}, least {min(speeds):.3f}; CPU time: median "
                      f"{statistics.median(cpus):.3f}, most {max(cpus):.3f}; KiB more at most: {dict(most_more)}",
                      file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
