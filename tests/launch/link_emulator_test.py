"""bench/link/link_emulator: the delay is a lower bound, the rate an upper one, and nothing is left behind.

Needs root, /dev/net/tun and iproute2; without them the test is skipped (exit status 77).
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

BUILD = pathlib.Path(os.environ.get("SATRAP_BUILD_DIR") or "build/release")
EMULATOR = os.environ.get("LINK_EMULATOR") or str(BUILD / "bench" / "link_emulator")
NAME = f"satrap-test-{os.getpid()}"
TIMEOUT_S = 60

# Serves one connection in namespace a: echoes "ping"; then counts a number of bytes.
SERVER = """
import socket, time
with socket.create_server(("10.77.0.1", 5001)) as server:
    print("listening", flush=True)
    peer, _ = server.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range({pings}):
        peer.sendall(peer.recv(4))
    left = {size}
    while left:
        left -= len(peer.recv(min(left, 1 << 20)))
    peer.sendall(b"done")
"""
# Prints the round trips in microseconds, and the time of the bulk transfer in seconds.
CLIENT = """
import socket, time
with socket.create_connection(("10.77.0.1", 5001)) as peer:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range({pings}):
        start = time.perf_counter()
        peer.sendall(b"ping"); peer.recv(4)
        print((time.perf_counter() - start) * 1e6)
    start = time.perf_counter()
    peer.sendall(bytes({size})); peer.recv(4)
    print(time.perf_counter() - start)
"""


def namespaces():
    return [path.name for path in pathlib.Path("/run/netns").glob(NAME + "-*")]


class LinkEmulator(unittest.TestCase):
    def start(self, *options):
        emulator = subprocess.Popen([EMULATOR, "--name", NAME, *map(str, options)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(emulator.stdout.close)
        self.addCleanup(emulator.stderr.close)
        self.addCleanup(lambda: [subprocess.run(["ip", "netns", "del", name]) for name in namespaces()])
        self.addCleanup(emulator.wait)
        self.addCleanup(emulator.kill)
        self.assertEqual(emulator.stdout.readline(), f"ready {NAME}-a 10.77.0.1 {NAME}-b 10.77.0.2\n")
        return emulator

    def stop(self, emulator):
        emulator.terminate()
        self.assertEqual(emulator.wait(TIMEOUT_S), 0)
        self.assertEqual(namespaces(), [])

    def inside(self, end, program, **numbers):
        command = ["ip", "netns", "exec", f"{NAME}-{end}", sys.executable, "-c", program.format(**numbers)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def measure(self, pings, size):
        """Shortest round trip in microseconds; rate in Mbit/s."""
        server = self.inside("a", SERVER, pings=pings, size=size)
        self.assertEqual(server.stdout.readline(), "listening\n")
        out, _ = self.inside("b", CLIENT, pings=pings, size=size).communicate(timeout=TIMEOUT_S)
        *round_trips, seconds = map(float, out.split())
        print(f"round trip us: min {min(round_trips):.0f} median {sorted(round_trips)[pings // 2]:.0f}; "
              f"{size * 8e-6 / seconds:.0f} Mbit/s", file=sys.stderr)
        return min(round_trips), size * 8e-6 / seconds

    def check(self, delay_us, rate_mbit, size):
        emulator = self.start("--delay-us", delay_us, "--rate-mbit", rate_mbit)
        round_trip_us, mbit = self.measure(20, size)
        self.stop(emulator)
        self.assertGreaterEqual(round_trip_us, 2 * delay_us)
        self.assertLess(round_trip_us, 2 * delay_us + 50_000)
        self.assertLess(mbit, rate_mbit)
        self.assertGreater(mbit, 0.05 * rate_mbit)

    def test_a_slow_link(self):
        self.check(delay_us=5000, rate_mbit=100, size=5_000_000)

    def test_the_link_of_the_benchmark(self):
        self.check(delay_us=1000, rate_mbit=1000, size=50_000_000)

    def test_the_namespaces_go_when_the_relay_dies(self):
        emulator = self.start()
        child = pathlib.Path(f"/proc/{emulator.pid}/task/{emulator.pid}/children").read_text().split()
        self.assertEqual(len(child), 1)
        os.kill(int(child[0]), signal.SIGKILL)
        self.assertEqual(emulator.wait(TIMEOUT_S), 1)
        self.assertIn("error: the relay has died", emulator.stderr.read())
        self.assertEqual(namespaces(), [])

    def test_what_a_killed_emulator_leaves_the_next_one_removes(self):
        emulator = self.start()
        child = pathlib.Path(f"/proc/{emulator.pid}/task/{emulator.pid}/children").read_text().split()
        emulator.kill()
        emulator.wait(TIMEOUT_S)
        self.assertEqual(len(namespaces()), 2)
        deadline = time.monotonic() + TIMEOUT_S
        while pathlib.Path(f"/proc/{child[0]}/fd").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(pathlib.Path(f"/proc/{child[0]}/fd/0").exists(), "the relay dies with it")
        self.stop(self.start())

    def test_a_name_is_used_once(self):
        emulator = self.start()
        second = subprocess.run([EMULATOR, "--name", NAME], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another link_emulator uses the name", second.stderr)
        self.assertEqual(len(namespaces()), 2)
        self.stop(emulator)

    def test_usage(self):
        for words in [["--rate-mbit", "0"], ["--delay-us", "-1"], ["--mtu", "70000"]]:
            done = subprocess.run([EMULATOR, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertNotIn(done.returncode, [0, 77])
            self.assertRegex(done.stderr + done.stdout, re.escape(words[0]))


def missing():
    """Why the test cannot run here, or None."""
    if not os.access(EMULATOR, os.X_OK):
        return f"{EMULATOR} is not built"
    probe = subprocess.Popen([EMULATOR, "--name", NAME], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with probe.stdout, probe.stderr:
        if probe.stdout.readline():
            probe.terminate()
            probe.wait(TIMEOUT_S)
            return None
        return probe.stderr.read().strip() if probe.wait(TIMEOUT_S) == 77 else None


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: LinkEmulator: {reason}")
        sys.exit(77)
    unittest.main(verbosity=2)
