"""Whatever happens to a process or a connection of a job, it ends with the bits of an undisturbed run, or with a clear
error; it never hangs, and leaves no process behind.

A tiny job of two shards and two ranks, started by satrap-run, suffers one fault per round, at a random moment between
its first process and its last. By default each fault has one or two rounds. For more:

    SATRAP_BIN=build/release/bin/satrap tests/process/cluster_faults_test.py --rounds 50 \\
        --settings embedding.cache.memory=100KiB

The settings are those of the jobs that suffer, and must not change the bits.
SATRAP_TEST_SEED repeats the moments of a run, as far as the machine repeats itself."""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import faults
from cluster_job import CONFIG, HEARTBEAT_S, JOB_S, SANITIZED, SLOWER, TIMEOUT_S, ClusterJob

ERROR_S = TIMEOUT_S + 50 * SLOWER  # the limit for a job that cannot continue
ROUNDS, SETTINGS = 1, []

# For the job that runs out of memory: rows that need some.
LARGE = ("tables.default.dim=64", "data.synthetic.cardinalities=[100,1000,500000,500000]",
         "data.synthetic.min_ids=[1,0,40,40]", "data.synthetic.max_ids=[1,4,40,40]",
         "checkpoint.every=50 steps")


class Missed(Exception):
    """The fault had no target: the job had ended, or there was no such connection (yet)."""


class ClusterFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="satrap-faults-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.config = os.path.join(cls.scratch.name, "job.yaml")
        pathlib.Path(cls.config).write_text(CONFIG)
        cls.seed = int(os.environ.get("SATRAP_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
        say(f"SATRAP_TEST_SEED={cls.seed}")
        cls.undisturbed = {}
        cls.table = {}
        cls.addClassCleanup(cls.print_table)

    # Rounds

    def job(self, name, **kwargs):
        return ClusterJob(os.path.join(self.scratch.name, name), self.config, **kwargs)

    def reference(self, settings=()):
        """Digest of the undisturbed job, the number of lines that it writes, the time until the first of them."""
        if settings not in self.undisturbed:
            with self.job("undisturbed", settings=settings) as job:
                began = time.monotonic()
                job.start().wait_lines(1, JOB_S)
                first_line_s = time.monotonic() - began
                status = job.end(JOB_S)
                self.assertEqual((status, job.restarts()), (0, 0), job.describe())
                self.undisturbed[settings] = job.digest(JOB_S), job.num_lines(), first_line_s
        return self.undisturbed[settings]

    def check(self, fault, strike, *, check_end=None, settings=(), **kwargs):
        """Runs rounds of one fault. strike(job, rng) causes it and returns a pattern for the launcher's message about
        it, if any; then check_end(job, status, digest, pattern) checks the outcome."""
        digest, num_lines, first_line_s = self.reference(settings)
        ends = self.table[fault] = collections.Counter()
        number = 0
        while ends.total() - ends["missed"] < ROUNDS:
            self.assertLess(ends["missed"], 20 + ROUNDS, f"{fault} hardly ever finds something to hit")
            rng = faults.seeded(self.seed, fault, number)
            # A moment of the job's life, independent of the machine's load: by the number of lines written.
            line, delay_s = rng.randrange(num_lines), rng.uniform(0.0, 1.0)
            about = f"{fault}, round {number}, seed {self.seed}"
            with (self.subTest(about),
                  self.job(f"{fault}-{number}".replace(" ", "-"), settings=[*settings, *SETTINGS], **kwargs) as job):
                number += 1
                ends["failed"] += 1  # corrected if the round succeeds
                began = time.monotonic()
                try:
                    job.start().wait_lines(line, JOB_S)
                    job.wait_end(delay_s * (first_line_s if line == 0 else 0.1))
                    pattern = strike(job, rng)
                    phase = phase_of(job)
                    status = job.end(ERROR_S if kwargs.get("max_restarts") == 0 else JOB_S)
                    how = (check_end or self.check_recovered)(job, status, digest, pattern)
                except Missed as reason:
                    how, phase = "missed", str(reason)
                except BaseException:
                    kept = tempfile.mkdtemp(prefix="satrap-fault-")
                    with contextlib.suppress(shutil.Error):  # files that disappear meanwhile
                        shutil.copytree(job.folder, kept, dirs_exist_ok=True)
                    say(f"{about}: FAILED; its folder is kept in {kept}")
                    raise
                ends["failed"] -= 1
                ends[how] += 1
                say(f"{about}: {phase}; {how} ({time.monotonic() - began:.1f} s)")

    def check_recovered(self, job, status, digest, pattern=None):
        self.assertEqual(status, 0, job.describe())
        self.assertEqual(job.digest(JOB_S), digest, job.describe())
        if pattern and job.restarts() > 0:
            self.assertRegex(job.output(), pattern)
        return "recovered" if job.restarts() > 0 else "same bits, no restart"

    def check_unnoticed(self, job, status, digest, pattern=None):
        """The job continues without a restart."""
        how = self.check_recovered(job, status, digest)
        self.assertEqual(job.restarts(), 0, job.describe())
        return how

    def check_error(self, job, status, digest, pattern):
        """The job ends with an error that names its cause, unless it succeeds."""
        if status == 0:
            return self.check_recovered(job, status, digest)
        self.assertRegex(job.output(), pattern, job.describe())
        say(re.search(pattern, job.output()).group())
        return "clear error"

    @classmethod
    def print_table(cls):
        for fault, ends in cls.table.items():
            say(f"{fault:32} {ends.total() - ends['missed']:3} rounds: "
                + ", ".join(f"{count} {how}" for how, count in sorted(ends.items()) if count))

    def victim(self, job, kind, number):
        if (member := job.member(kind, number, JOB_S)) is None:
            raise Missed("the job has ended")
        return member

    # Processes that die

    def check_killed(self, kind, numbers):
        def strike(job, rng):
            member = self.victim(job, kind, rng.choice(numbers))
            member.send(signal.SIGKILL)
            return rf"{member.name} \(pid {member.pid}\) was killed by SIGKILL; attempt \d"
        self.check(f"kill -9 {kind} {' or '.join(map(str, numbers))}", strike)

    def test_a_shard_is_killed(self):
        self.check_killed("shard", [0, 1])

    def test_the_chief_is_killed(self):
        self.check_killed("rank", [0])

    def test_another_rank_is_killed(self):
        self.check_killed("rank", [1])

    def test_the_launcher_is_killed(self):
        def strike(job, rng):
            if not job.is_running():
                raise Missed("the job has ended")
            job.kill_launcher()
            job.expect_nothing_runs()
            job.start("--resume")
        self.check("kill -9 launcher", strike, check_end=self.check_unnoticed)

    def test_sigterm_to_all_processes_at_once(self):
        """As scancel and systemd do: shards serve until the ranks have written their checkpoint."""
        def strike(job, rng):
            self.victim(job, "shard", 0)
            members = job.members()
            rng.shuffle(members)
            for member in members:
                member.send(signal.SIGTERM)
            os.kill(job.pid, signal.SIGTERM)
            trained = phase_of(job).startswith("step")
            if job.end(JOB_S) == 0:
                raise Missed("the job has ended")
            if trained:
                self.assertRegex(job.output(), "stopped by SIGTERM; .* continues from", job.describe())
            job.start("--resume")
        self.check("SIGTERM to all", strike, check_end=self.check_unnoticed, settings=("data.synthetic.rows=48000",))

    # Processes that hang

    def freeze(self, job, kind, rng):
        member = self.victim(job, kind, rng.choice([0, 1]))
        member.send(signal.SIGSTOP)
        return member

    def test_a_shard_hangs_for_a_while(self):
        def strike(job, rng):
            member = self.freeze(job, "shard", rng)
            job.wait_end(HEARTBEAT_S * rng.uniform(1.5, 2.5))
            member.send(signal.SIGCONT)
        self.check("SIGSTOP shard, then SIGCONT", strike)

    def test_a_rank_hangs_for_a_while(self):
        def strike(job, rng):
            member = self.freeze(job, "rank", rng)
            job.wait_end(HEARTBEAT_S * rng.uniform(1.5, 2.5))
            member.send(signal.SIGCONT)
        self.check("SIGSTOP rank, then SIGCONT", strike)

    def test_a_shard_hangs_for_good(self):
        self.check("SIGSTOP shard", lambda job, rng: self.freeze(job, "shard", rng) and None)

    def test_a_rank_hangs_for_good(self):
        self.check("SIGSTOP rank", lambda job, rng: self.freeze(job, "rank", rng) and None)

    # Links that break

    def check_cut(self, fault, kinds, check_end=None):
        if not faults.can_borrow_sockets():
            self.skipTest("needs pidfd_getfd: Linux 5.6, and the right to trace one's own processes")

        def cut(job):
            members = job.members()
            some, others = ([m.pid for m in members if m.kind == kind and wanted(m.number)]
                            for kind, wanted in kinds)
            return faults.cut(some, others)

        def strike(job, rng):
            if not job.wait_until(lambda: cut(job) or not job.is_running() and -1, JOB_S, "a connection") > 0:
                raise Missed("the job has ended")
        self.check(fault, strike, check_end=check_end)

    def test_connections_between_ranks_and_shards_are_cut(self):
        def anybody(number):
            return True
        self.check_cut("cut ranks from shards", [("rank", anybody), ("shard", anybody)], self.check_unnoticed)

    def test_connections_between_ranks_are_cut(self):
        self.check_cut("cut ranks from each other", [("rank", lambda n: n == 0), ("rank", lambda n: n == 1)])

    def network(self):
        """The beginning of a command line for a separate network namespace."""
        wrap = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
        try:
            subprocess.run([*wrap, "ip", "link", "set", "lo", "up"], check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            self.skipTest(f"no network namespace: {error}")
        return [*wrap, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]

    def set_link(self, job, state):
        user = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        done = subprocess.run(["nsenter", "-t", str(job.pid), *user, "-n", "ip", "link", "set", "lo", state],
                              capture_output=True, timeout=60)
        if done.returncode != 0 and not job.is_running():
            raise Missed("the job has ended")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_network_is_down_for_a_while(self):
        def strike(job, rng):
            self.victim(job, "shard", 0)
            self.set_link(job, "down")
            job.wait_end(HEARTBEAT_S * rng.uniform(1.2, 2.0))
            with contextlib.suppress(Missed):
                self.set_link(job, "up")
        self.check("network down for a while", strike, wrap=self.network())

    def test_the_network_is_down_for_good(self):
        def strike(job, rng):
            self.victim(job, "rank", 1)
            self.set_link(job, "down")
            return r"error: .*(not reached|nothing heard|nothing received from rank|took nothing|a deadline passed)"
        self.check("network down for good", strike, wrap=self.network(), max_restarts=0, check_end=self.check_error)

    # Strangers

    def test_strangers_come_and_talk_nonsense(self):
        if not faults.can_borrow_sockets():
            self.skipTest("needs pidfd_getfd to find the ports: Linux 5.6, and the right to trace")

        def strike(job, rng):
            shard = self.victim(job, "shard", rng.choice([0, 1]))
            token = shard.environment["SATRAP_TOKEN"].encode()
            served = job.address_of(shard, JOB_S)
            if served is None:
                raise Missed("the job has ended")
            ports = {served}.union(*(faults.listening_ports(member.pid) for member in job.members()))
            faults.flood(served, 300, HEARTBEAT_S)
            for port in rng.sample(sorted(ports), len(ports)):
                faults.Rogue(rng, token, f"shard/{shard.number}").visit(port)
            answer = faults.introduce(served, b"f" * 32, faults.control("shard/0"), patience_s=JOB_S)
            if phase_of(job) != "end":  # then nothing accepts connections any more
                self.assertIn(b"wrong token", answer)
        self.check("strangers", strike, check_end=self.check_unnoticed)

    # Memory

    def starve(self, job, rng):
        shard = self.victim(job, "shard", rng.choice([0, 1]))
        with contextlib.suppress(OSError):  # it may end
            faults.leave_no_memory(shard.pid, rng.randrange(0, 2 << 20))
        return (rf"\[shard {shard.number}\] error: (out of memory|thread '.+' cannot be started: )"
                rf"|\[shard {shard.number}\] .*: error while loading shared libraries: "
                rf"|shard[ /]{shard.number}\b.*(: out of memory|no resources)")

    def test_a_shard_is_out_of_memory(self):
        if SANITIZED:
            self.skipTest("sanitizers need all the address space there is")
        self.check("shard out of memory", self.starve, settings=LARGE, max_restarts=0,
                   check_end=self.check_error)

    def test_a_shard_is_out_of_memory_once(self):
        if SANITIZED:
            self.skipTest("sanitizers need all the address space there is")
        self.check("shard out of memory, restart", self.starve, settings=LARGE)


def phase_of(job):
    """The phase that the job has reached."""
    output = job.output()
    if "trained " in output:
        return "end"
    steps = re.findall(r"%  step (\d+)", output)
    attempt = f" of attempt {job.restarts()}" if job.restarts() else ""
    return f"step {steps[-1]} or later{attempt}" if steps else f"start{attempt}"


def say(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("SATRAP_FAULT_ROUNDS", ROUNDS)))
    parser.add_argument("--settings", nargs="+", default=[])
    given, rest = parser.parse_known_args()
    ROUNDS, SETTINGS = given.rounds, given.settings
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
