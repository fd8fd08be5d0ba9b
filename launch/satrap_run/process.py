"""One named child process, which cannot outlive the launcher and whose end is noticed at once."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
CAUGHT = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]  # by the launcher, see main.py


def before_exec(launcher):
    """What a child does before it becomes another program.

    The kernel kills it when the launcher dies, even by SIGKILL: the setting survives exec. Python code
    is safe here because the launcher has a single thread. The signals that the launcher catches are
    blocked here, so that none is mistaken for one of the launcher's own.
    """
    def prepare():
        if LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != launcher:
            os._exit(127)  # the launcher died before it could matter
        for number in CAUGHT:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, CAUGHT)
    return prepare


class Process:
    """A running child, the leader of its own process group: Ctrl-C does not reach it by itself."""

    def __init__(self, loop, kind, number, command, variables, stdout, stderr, on_exit):
        """on_exit(process) is called once, by the event loop. OSError if it cannot be started."""
        self.kind = kind  # rank, shard, loader or store
        self.number = number
        self.status = None  # as of subprocess: -signal if killed
        self.killed_by_us = False
        self._stopped_since = None
        self._loop = loop
        self._on_exit = on_exit
        signal.pthread_sigmask(signal.SIG_BLOCK, CAUGHT)
        try:
            self._popen = subprocess.Popen(
                command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=stderr, process_group=0, preexec_fn=before_exec(os.getpid()))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, CAUGHT)
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        loop.add_reader(self._pidfd, self._ended)

    @property
    def name(self):
        return self.kind if self.number is None else f"{self.kind} {self.number}"

    @property
    def running(self):
        return self.status is None

    def send(self, number):
        """Sends a signal to the child and to the processes that it started."""
        if self.running:
            self._send_to_group(number)  # not yet reaped: the number is still its own

    def kill(self):
        self.killed_by_us = self.killed_by_us or self.running
        self.send(signal.SIGKILL)

    def stopped_for(self):
        """Seconds for which it has been stopped, by SIGSTOP or the like; not by a debugger."""
        try:
            state = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "Z"
        if state != "T":
            self._stopped_since = None
            return 0.0
        self._stopped_since = self._stopped_since or time.monotonic()
        return time.monotonic() - self._stopped_since

    def exit_status(self):
        """The status that a shell would report."""
        return 128 - self.status if self.status < 0 else self.status

    def describe_end(self):
        who = f"{self.name} (pid {self.pid})"
        if self.status < 0:
            return f"{who} was killed by {signal_name(-self.status)}"
        return f"{who} ended with status {self.status}"

    def _ended(self):
        self._loop.remove_reader(self._pidfd)
        # Kill its own children first, while the dead process still holds the group's number.
        self._send_to_group(signal.SIGKILL)
        os.close(self._pidfd)
        self.status = self._popen.wait()
        self._on_exit(self)

    def _send_to_group(self, number):
        with contextlib.suppress(ProcessLookupError):  # it has left its group
            os.killpg(self.pid, number)


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
