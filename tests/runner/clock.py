"""The time that a run has: which stages fit, by the time that those before them took, and its end."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time

# Seconds that each stage takes on two cores where nothing is cached: to build, and to test. Only their ratios count.
RECORDED = {
    "format": (0, 3),
    "release": (470, 620),
    "asan": (450, 420),
    "tsan": (150, 240),
    "fuzz": (113, 64),
    "tidy": (0, 165),
    "cuda": (155, 8),
}
MOST_FOR_REST = 0.12  # of the limit: how far a stage that takes longer than thought may go beyond it


class OutOfTime(Exception):
    """The run's time is over, and the command that was running has been ended."""


class Clock:
    """limit_s: seconds from `started` (of time.time()) in which the run must end; None: no limit."""

    def __init__(self, limit_s=None, started=None, now=time.time):
        self.now = now
        self.started = now() if started is None else started
        self.limit_s = limit_s
        self.took = {}  # (build, test) seconds by stage, of those that were built and tested
        self.running = set()

    def elapsed(self):
        return self.now() - self.started

    def note(self, stage, build_s, test_s):
        self.took[stage] = (build_s, test_s)

    def slowness(self):
        """How many times as long as recorded this machine takes. Builds are fast where compilers find their results of
        another day, which the next stage may not; so the slower of builds and tests counts."""
        ratios = []
        for part in (0, 1):
            known = [stage for stage in self.took if stage in RECORDED and RECORDED[stage][part] >= 30]
            recorded = sum(RECORDED[stage][part] for stage in known)
            if recorded:
                ratios.append(sum(self.took[stage][part] for stage in known) / recorded)
        return max(ratios, default=1.0)

    def expected_s(self, stage, recorded=None):
        return sum(recorded or RECORDED.get(stage, (0, 0))) * self.slowness()

    def left_s(self):
        return float("inf") if self.limit_s is None else self.limit_s - self.elapsed()

    def reason_not_to_start(self, stage, recorded=None):
        """None if the stage fits."""
        expected, left = self.expected_s(stage, recorded), self.left_s()
        if expected <= left:
            return None
        return (f"would take about {expected:.0f} s, of the limit of {self.limit_s:.0f} s "
                f"{max(left, 0):.0f} are left")

    @contextlib.contextmanager
    def start(self, command, must_end=True, **options):
        """Runs a command in a session of its own. It is ended, with all that it has started, where the time is over
        (then OutOfTime is raised) and where this program is interrupted. must_end: whether the limit counts for it."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        self.running.add(process)
        ended = threading.Event()
        timer = None
        if must_end and self.limit_s is not None:
            def end():
                ended.set()
                end_all_of(process)
            timer = threading.Timer(max(1.0, self.left_s() + MOST_FOR_REST * self.limit_s), end)
            timer.daemon = True
            timer.start()
        try:
            yield process
            process.wait()
        except BaseException:
            end_all_of(process)
            raise
        finally:
            self.running.discard(process)
            if timer:
                timer.cancel()
        if ended.is_set():
            timer.join()  # until nothing is left
            raise OutOfTime

    def end_all(self):
        """What other threads have started and not yet waited for."""
        for process in list(self.running):
            end_all_of(process)


def descendants(pid):
    """Of a process, itself among them: children start sessions of their own."""
    children = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry.name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for process in found:
        found += children.get(process, [])
    return found


def is_there(pid):
    """Whether a process has not ended (a zombie has)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end_all_of(process, at_most_s=10):
    """Ends a process and all that it has started: SIGTERM, then SIGKILL for those that are left."""
    everyone = descendants(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        everyone += [pid for pid in descendants(process.pid) if pid not in everyone]
        for pid in everyone:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        end = time.monotonic() + at_most_s
        while time.monotonic() < end and any(map(is_there, everyone)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
            select.select([], [], [], 0.05)
