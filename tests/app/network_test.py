"""What the programs of a job do where there is a network: they serve nobody who does not know the job's secret, and
stop at once while they look for each other."""
import contextlib
import os
import signal
import socket
import subprocess
import time
import unittest

from cli import SANITIZED, SATRAP, TIMEOUT_S, CliTest

SATRAP_PS = os.path.join(os.path.dirname(SATRAP), "satrap-ps")
AT_ONCE_S = 20 if SANITIZED else 3  # a second, and something for a busy machine


def environment(**variables):
    """Without the variables of a job, apart from these."""
    job = ("SATRAP_", "RANK", "WORLD_SIZE", "TORCHELASTIC_")
    return {name: text for name, text in os.environ.items() if not name.startswith(job)} | variables


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


class NetworkTest(CliTest):
    def rank(self, rank, **variables):
        return environment(RANK=str(rank), WORLD_SIZE="2", SATRAP_SHARDS="1", SATRAP_TOKEN="secret",
                           SATRAP_STORE=f"file://{self.dir}/store") | variables

    def start(self, *command, env):
        program = subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def wait_until_idle(self, program):
        """Until it has used no CPU to speak of for a while."""
        deadline = time.monotonic() + TIMEOUT_S
        before, since = -10, time.monotonic()
        while time.monotonic() - since < 0.5:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(program.poll(), "it has ended")
            if (now := cpu_ticks(program.pid)) > before + 5:
                before, since = now, time.monotonic()
            time.sleep(0.02)

    # The secret

    def refuse_without_token(self, *command, env):
        for token in ({}, {"SATRAP_TOKEN": ""}):
            env.pop("SATRAP_TOKEN", None)
            done = subprocess.run([str(word) for word in command], env=env | token, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assert_words(done.stderr, "error: ", "SATRAP_TOKEN", "0.0.0.0", "127.0.0.1", "satrap-run --help")

    def test_without_a_secret_nothing_serves_other_machines(self):
        job = self.job(rows=500)
        self.refuse_without_token(SATRAP, "store", "--host", "0.0.0.0", env=environment())
        everywhere = {"SATRAP_INTERFACE": "0.0.0.0"}
        self.refuse_without_token(SATRAP_PS, job, "--shard", "0", "--shards", "1", env=self.rank(0, **everywhere))
        self.refuse_without_token(SATRAP, "train", job, "embedding.store=ps", env=self.rank(0, **everywhere))
        self.refuse_without_token(SATRAP, "loader", "--store", f"file://{self.dir}/store", env=environment(**everywhere))

    def test_without_a_secret_a_store_serves_this_machine(self):
        store = self.start(SATRAP, "store", env=environment())
        self.assertRegex(store.stdout.readline(), r"^tcp://127\.0\.0\.1:\d+\n$")
        store.send_signal(signal.SIGTERM)
        self.assertEqual(store.wait(TIMEOUT_S), 0)

    def test_ports_that_do_not_exist_are_refused(self):
        for port in ("65536", "99999", "-1", "http"):
            error = self.fail_with(2, "store", f"--port={port}", env=environment())
            self.assert_words(error, "port", port)

    # Signals

    def stop(self, program, status):
        program.send_signal(signal.SIGTERM)
        began = time.monotonic()
        try:
            self.assertEqual(program.wait(TIMEOUT_S), status)
        finally:
            program.kill()
        self.assertLess(time.monotonic() - began, AT_ONCE_S)
        return program.communicate()[1]

    def check_stops_while_it_looks_for_others(self, *command, env, status=143):
        program = self.start(*command, env=env)
        self.wait_until_idle(program)
        log = self.stop(program, status)
        self.assertIn("stopped before", log)
        self.assertNotIn("error: ", log)

    def test_ranks_that_meet_stop_at_once(self):
        train = (SATRAP, "train", self.job(rows=500), "embedding.store=ps", "cluster.timeout=600s")
        self.check_stops_while_it_looks_for_others(*train, env=self.rank(0))  # waits for rank 1
        self.check_stops_while_it_looks_for_others(*train, env=self.rank(1))  # waits for rank 0
        alone = self.rank(0, WORLD_SIZE="1")
        self.check_stops_while_it_looks_for_others(*train, env=alone)  # waits for its shard

    def test_processes_without_a_store_stop_at_once(self):
        job = self.job(rows=500)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            nobody = socket.create_server(("127.0.0.1", 0))
            ports = [silent.getsockname()[1], nobody.getsockname()[1]]
            nobody.close()
            for port in ports:
                env = self.rank(0, SATRAP_STORE=f"tcp://127.0.0.1:{port}")
                shard = (SATRAP_PS, job, "--shard", "0", "--shards", "1", "cluster.timeout=600s")
                self.check_stops_while_it_looks_for_others(*shard, env=env, status=0)
                train = (SATRAP, "train", job, "embedding.store=ps", "cluster.timeout=600s")
                self.check_stops_while_it_looks_for_others(*train, env=env)

    def test_a_rank_whose_store_has_died_stops_at_once(self):
        store = self.start(SATRAP, "store", env=environment(SATRAP_TOKEN="secret"))
        url = store.stdout.readline().strip()
        rank = self.start(SATRAP, "train", self.job(rows=500), "embedding.store=ps", "cluster.timeout=600s",
                          env=self.rank(0, SATRAP_STORE=url))
        self.wait_until_idle(rank)
        store.kill()
        store.wait(TIMEOUT_S)
        self.wait_until_idle(rank)
        self.stop(rank, 143)

    # Descriptors

    @unittest.skipIf(SANITIZED, "UBSan needs descriptors itself")
    def test_a_store_without_descriptors_rests(self):
        store = self.start("sh", "-c", f'ulimit -n 64 && exec "{os.path.abspath(SATRAP)}" store',
                           env=environment(SATRAP_TOKEN="secret"))
        url = store.stdout.readline().strip()
        address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        with contextlib.ExitStack() as strangers:
            for _ in range(200):
                strangers.enter_context(socket.create_connection(address, timeout=TIMEOUT_S))
            before = cpu_ticks(store.pid)
            time.sleep(1.0)  # the time in which CPU is counted
            self.assertLess(cpu_ticks(store.pid) - before, 30, "hundredths of a second, in a second")
        store.send_signal(signal.SIGTERM)
        log = store.communicate(timeout=TIMEOUT_S)[1]
        self.assertLessEqual(log.count("\n"), 5, log)
        self.assert_words(log, "refused", "connections", "Too many open files")


if __name__ == "__main__":
    unittest.main(verbosity=2)
