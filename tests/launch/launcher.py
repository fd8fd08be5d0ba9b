"""Shared parts of the tests of satrap-run: fake programs, running it, looking for processes left behind."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_ports  # noqa: E402

ROOT = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
SATRAP_RUN = ROOT / "launch" / "satrap-run"
FAKE = pathlib.Path(__file__).with_name("fake_program.py")
TOKEN = "a-secret-of-the-job"  # of several nodes
TIMEOUT_S = 60  # for a hang; everything here takes well under a second


class LauncherTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-launch-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "tmp").mkdir()
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for name in ["satrap", "satrap-ps"]:
            program = self.bin / name
            program.write_text(f"#!{sys.executable} -IS\n" + FAKE.read_text())
            program.chmod(0o755)
        # Every process that a test starts, directly or not, inherits the mark.
        self.mark = f"SATRAP_TEST_MARK={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.env = {key: text for key, text in os.environ.items()
                    if not key.startswith(("SATRAP_", "TORCHELASTIC_"))}
        self.env |= {name: value, "FAKE_FOLDER": str(self.dir), "TMPDIR": str(self.dir / "tmp")}
        self.addCleanup(self.kill_survivors)

    # What processes do

    def script(self, name, text):
        (self.dir / f"{name}.py").write_text(text)

    def diary(self, who=None, event=None):
        path = self.dir / "diary"
        text = path.read_text() if path.exists() else ""
        whole = text[:text.rfind("\n") + 1]  # the last line may be incomplete
        entries = [json.loads(line) for line in whole.splitlines()]
        return [e for e in entries if who in (None, e["who"]) and event in (None, e["event"])]

    def order(self, *events):
        """Entries of the diary in order, such as "rank-0 ends"."""
        return [f"{e['who']} {e['event']}" for e in self.diary() if e["event"] in events]

    # The launcher

    def command(self, *args):
        log_dir = [] if "--log-dir" in args else ["--log-dir", self.dir / "logs"]
        bin_dir = [] if "--bin-dir" in args else ["--bin-dir", self.bin]
        no_delay = [] if "--restart-delay" in args else ["--restart-delay", 0]
        return [sys.executable, str(SATRAP_RUN), *map(str, [*bin_dir, *log_dir, *no_delay, *args])]

    def run_job(self, *args, status=0, **kwargs):
        kwargs.setdefault("env", self.env)
        done = subprocess.run(self.command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, **kwargs)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assert_no_orphans()
        return done

    def start_job(self, *args, **kwargs):
        kwargs.setdefault("env", self.env)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        job = subprocess.Popen(self.command(*args), stdin=subprocess.DEVNULL, text=True, **kwargs)
        for pipe in filter(None, [job.stdout, job.stderr]):
            self.addCleanup(pipe.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def end(self, job, status):
        """Its output, after it has ended with this status and left no process behind."""
        out, err = job.communicate(timeout=TIMEOUT_S)
        self.assertEqual(job.returncode, status, f"{out}{err}")
        self.assertNotIn("Traceback", err or "")
        self.assert_no_orphans()
        return out, err

    def log(self, name, attempt=0):
        return (self.dir / "logs" / f"attempt-{attempt}" / f"{name}.log").read_text()

    # Waiting and looking

    def wait_until(self, condition, what="condition"):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what}: {self.diary()}")
            time.sleep(0.01)

    def wait_for(self, event, *names, attempt=0):
        """Waits until all of these processes have noted the event; returns their process ids."""
        def pids():
            return {e["who"]: e["pid"] for e in self.diary(event=event) if e["attempt"] == attempt}
        self.wait_until(lambda: set(names) <= set(pids()), f"{event} of {names}")
        return pids()

    def survivors(self):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:  # it has ended, or is another user's
                pass
        return found

    def assert_no_orphans(self):
        """The kernel kills the children of a dead launcher, but not at once."""
        self.wait_until(lambda: not self.survivors(), "end of all processes")

    def kill_survivors(self):
        for pid in self.survivors():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class NodesTest(LauncherTest):
    """Launchers of several nodes, all on this machine."""

    def setUp(self):
        super().setUp()
        [self.port] = free_ports(1)
        self.env["SATRAP_TOKEN"] = TOKEN

    def node(self, rank, *args, nnodes=2, **kwargs):
        return self.start_job("--nnodes", nnodes, "--node-rank", rank, "--master-addr", "127.0.0.1",
                              "--master-port", self.port, *args, "job.yaml", **kwargs)

    def nodes(self, *args, nnodes=2):
        """Starts node 0 last: the others wait for it."""
        jobs = [self.node(rank, *args, nnodes=nnodes) for rank in reversed(range(nnodes))]
        return jobs[::-1]

    def end_all(self, jobs, status):
        """The messages of node 0."""
        said = [job.communicate(timeout=60)[1] for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [status] * len(jobs), said)
        self.assertNotIn("Traceback", "".join(said))
        self.assert_no_orphans()
        return said[0]
