"""A job of shards and ranks under satrap-run, for tests that disturb its processes.

Every process that a job starts, directly or not, carries the job's mark in its environment, so all are found and none
is left behind unnoticed. Nothing here waits without a deadline; a missed deadline raises Hang, which reports what all
processes were doing."""
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
SATRAP = pathlib.Path(os.environ["SATRAP_BIN"]).absolute()
LOG_LINES = 40  # of each process, in the report of a failure
GDB_S = 60
SANITIZED = bool(os.environ.get("SATRAP_SANITIZE"))
SLOWER = 5 if SANITIZED else 1
TIMEOUT_S = 10 * SLOWER  # cluster.timeout
HEARTBEAT_S = 2 * SLOWER
JOB_S = 300 * SLOWER  # the limit for every job, however busy the machine
GRACE_S = 10  # of ranks that hang after all is done; longer than any process is stopped for a while

# A tiny job, for ranks and shards.
CONFIG = f"""
seed: 7
device: cpu
data:
  format: synthetic
  batch_size: 64
  shuffle_rows: 2000
  synthetic: {{rows: 8960, eval_rows: 1000, cardinalities: [100, 1000, 20000, 50], min_ids: [1, 0, 1, 1],
              max_ids: [1, 4, 2, 1], num_numeric: 4}}
tables: {{default: {{dim: 8, optimizer: {{type: adam, lr: 0.01}}}}}}
model: {{type: dlrm, bottom: [16], top: [16]}}
embedding: {{store: ps}}
train: {{mode: hybrid, staleness: 4, staleness_factor: 0.5, deterministic: true, threads: 1, report_every: 10 steps,
        eval_every: 50 steps}}
checkpoint: {{every: 20 steps, keep: 2}}
cluster: {{timeout: {TIMEOUT_S}s, heartbeat: {HEARTBEAT_S}s}}
"""


class Hang(AssertionError):
    """Something did not happen before its deadline."""


@dataclasses.dataclass(frozen=True)
class Member:
    """A process of a job."""
    pid: int
    kind: str  # shard, loader or rank
    number: int
    attempt: int
    environment: dict = dataclasses.field(repr=False, hash=False, compare=False)

    @property
    def name(self):
        return f"{self.kind} {self.number}"

    def send(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def is_running(self):
        return os.path.exists(f"/proc/{self.pid}")


def member_of(path, mark):
    """The member of a job that a folder of /proc describes, or None."""
    try:
        if mark not in (text := (path / "environ").read_bytes()):
            return None
        words = (path / "cmdline").read_bytes().decode().split("\0")
    except (OSError, UnicodeDecodeError):  # it has ended, or is another user's
        return None
    environment = dict(item.split("=", 1) for item in text.decode(errors="replace").split("\0") if "=" in item)
    program = os.path.basename(words[0])
    if program == "satrap-ps":
        kind, number = "shard", words[words.index("--shard") + 1]
    elif program == "satrap" and words[1] == "train":
        kind, number = "rank", environment["RANK"]
    elif program == "satrap" and words[1] == "loader":
        kind, number = "loader", 0  # they are all alike
    else:
        return None
    return Member(int(path.name), kind, int(number), int(environment["SATRAP_ATTEMPT"]), environment)


class ClusterJob:
    """Successive starts of satrap-run in one run directory; a context that leaves no process behind."""

    def __init__(self, folder, config, *, shards=2, ranks=2, max_restarts=5, settings=(), wrap=(), options=(),
                 bin_dir=SATRAP.parent):
        """`wrap` precedes the launcher's command line, which finds the programs in `bin_dir`; `options` are more
        options for it."""
        self.folder = pathlib.Path(folder)
        self.run_dir = self.folder / "run"
        self._mark = f"SATRAP_TEST_MARK={uuid.uuid4()}"
        self._command = [
            *wrap, sys.executable, str(ROOT / "launch" / "satrap-run"), "--bin-dir", str(bin_dir),
            "--log-dir", str(self.folder / "logs"), "--ps", str(shards), "--nproc-per-node", str(ranks),
            "--ps-workers", "1", "--grace", str(GRACE_S), "--restart-delay", "0",
            "--max-restarts", str(max_restarts), *options, str(config), f"run_dir={self.run_dir}", *settings]
        self._process = None
        self._starts = 0
        (self.folder / "tmp").mkdir(parents=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    # The launcher

    def start(self, *flags):
        name, value = self._mark.split("=")
        environment = {key: text for key, text in os.environ.items() if not key.startswith("SATRAP_")}
        environment |= {name: value, "TMPDIR": str(self.folder / "tmp")}
        self._starts += 1
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        with open(self._output_path(), "w") as output:
            self._process = subprocess.Popen(
                self._command + (["--", *flags] if flags else []), env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        return self

    def _output_path(self):
        return self.folder / f"output-{self._starts}.txt"

    def output(self):
        """The output of the launcher started last: its own lines and those of all processes."""
        return self._output_path().read_text(errors="replace")

    def num_lines(self):
        return self.output().count("\n")

    def wait_lines(self, count, deadline_s):
        """Waits until so many lines have been written, or it has ended."""
        self.wait_until(lambda: self.num_lines() >= count or not self.is_running(), deadline_s, f"{count} lines")

    def kill_launcher(self):
        self._process.kill()
        self._process.wait(GDB_S)

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def restarts(self):
        """The number of failed attempts."""
        return len(re.findall(r"attempt \d+ of \d+ starts from the last checkpoint", self.output()))

    def wait_end(self, at_most_s):
        """Lets it run for that long, or until it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(at_most_s)

    def end(self, deadline_s):
        """The launcher's exit status; asserts that no process of the job is left."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise Hang(f"the job has not ended within {deadline_s:.0f} s{self.describe()}") from None
        self.expect_nothing_runs()
        return status

    def expect_nothing_runs(self, deadline_s=20):
        """The kernel kills the children of a dead launcher, but not at once."""
        try:
            self.wait_until(lambda: not self.survivors(), deadline_s, "end of all processes")
        except Hang as error:
            raise Hang(f"orphans: {self.survivors()}; {error}") from None

    # Its processes

    def survivors(self):
        """Process ids of all processes that carry the mark."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def members(self, kind=None):
        found = (member_of(path, self._mark.encode()) for path in pathlib.Path("/proc").glob("[0-9]*"))
        return [member for member in found if member is not None and kind in (None, member.kind)]

    def any_members(self, kind, deadline_s):
        """Those of a kind, once there are any; none if the job ends first."""
        return self._members_once_there(lambda: self.members(kind), deadline_s, f"a {kind}")

    def member(self, kind, number, deadline_s):
        """That shard or rank, once it runs; None if the job ends first."""
        found = self._members_once_there(
            lambda: [member for member in self.members(kind) if member.number == number], deadline_s,
            f"{kind} {number}")
        return found[0] if found else None

    def _members_once_there(self, find, deadline_s, what):
        found = []

        def look():
            found[:] = find()
            return found or not self.is_running()

        self.wait_until(look, deadline_s, what)
        return found

    def address_of(self, shard, deadline_s):
        """The address of a shard, once it serves; None if the job ends first."""
        store = pathlib.Path(shard.environment["SATRAP_STORE"].removeprefix("file://"))
        file = store / f"net%2Fshard%2F{shard.number}"
        self.wait_until(lambda: file.exists() or not self.is_running(), deadline_s, f"address of {shard.name}")
        with contextlib.suppress(OSError):
            host, port = file.read_text().split()
            return host, int(port)
        return None

    def wait_until(self, condition, deadline_s, what):
        deadline = time.monotonic() + deadline_s
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise Hang(f"{what}: not within {deadline_s:g} s{self.describe()}")
            time.sleep(0.01)
        return value

    def kill_all(self):
        for pid in self.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait(GDB_S)

    # What it leaves

    def digest(self, deadline_s):
        """Step and content of the newest checkpoint, as `checkpoint verify` prints it."""
        newest = sorted((self.run_dir / "checkpoints").glob("step-*"))[-1]
        done = subprocess.run([SATRAP, "checkpoint", "verify", newest], stdout=subprocess.PIPE, text=True,
                              timeout=deadline_s, check=True)
        return f"{newest.name} {re.search(r'digest ([0-9a-f]{16})', done.stdout).group(1)}"

    # What went wrong

    def describe(self):
        """Ends of all logs, and stacks of what still runs."""
        parts = [f"launcher:\n{tail(self.output())}"]
        for path in sorted(self.folder.glob("logs/attempt-*/*.log")):
            parts.append(f"{path.relative_to(self.folder / 'logs')}:\n{tail(path.read_text(errors='replace'))}")
        parts += [f"stacks of {member.name} of attempt {member.attempt} (pid {member.pid}):\n{stacks(member.pid)}"
                  for member in self.members()]
        return "".join(f"\n--- {part}" for part in parts)


def tail(text):
    return "\n".join(text.splitlines()[-LOG_LINES:])


def stacks(pid):
    if shutil.which("gdb") is None:
        return f"(no gdb; state {pathlib.Path(f'/proc/{pid}/wchan').read_text()})"
    try:
        return subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 25"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=GDB_S).stdout
    except subprocess.TimeoutExpired:
        return "(gdb hangs)"
