"""Which stages fit into the limit, by the time that those before them took; and what a terminal shows."""
import io
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from clock import RECORDED, Clock, OutOfTime  # noqa: E402
from progress import Progress  # noqa: E402


class Limits(unittest.TestCase):
    def setUp(self):
        self.time = 0.0

    def clock(self, limit_s):
        return Clock(limit_s, started=0.0, now=lambda: self.time)

    def test_without_a_limit_everything_fits(self):
        clock = self.clock(None)
        self.time = 1e9
        self.assertIsNone(clock.reason_not_to_start("asan"))

    def test_what_is_recorded_counts_as_many_times_as_the_machine_is_slower(self):
        clock = self.clock(4000)
        build, test = RECORDED["release"]
        clock.note("release", 2 * build, 2 * test)
        self.assertEqual(clock.expected_s("asan"), 2 * sum(RECORDED["asan"]))
        self.time = 4000 - 2 * sum(RECORDED["asan"])
        self.assertIsNone(clock.reason_not_to_start("asan"))
        self.time += 1
        self.assertRegex(clock.reason_not_to_start("asan"), r"would take about \d+ s, of the limit of 4000 s \d+ are left")

    def test_a_build_from_the_cache_of_a_compiler_says_nothing_of_the_next(self):
        clock = self.clock(4000)
        clock.note("release", 1, 3 * RECORDED["release"][1])
        self.assertEqual(clock.slowness(), 3)

    def test_a_stage_that_records_hardly_anything_does_not_tell_how_slow_a_machine_is(self):
        clock = self.clock(4000)
        clock.note("format", 0, 100)
        self.assertEqual(clock.slowness(), 1)

    def test_every_stage_has_a_record(self):
        import stages
        self.assertLessEqual({"release", "format", *stages.LATER}, set(RECORDED))


class Commands(unittest.TestCase):
    def test_one_that_runs_beyond_the_limit_is_ended_with_all_that_it_started(self):
        clock = Clock(0.5)
        with self.assertRaises(OutOfTime):
            # The child has a session of its own, as tests give to what they start.
            with clock.start(["setsid", "--fork", "--wait", "sleep", "1000"], stdout=subprocess.PIPE) as process:
                found = self.children_of(process.pid)
                process.stdout.read()
        self.wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in found))

    def children_of(self, pid):
        found = []
        self.wait_until(lambda: found.extend(
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) or found)
        return found

    def wait_until(self, condition, deadline_s=60):
        end = time.monotonic() + deadline_s
        while not condition():
            self.assertLess(time.monotonic(), end, "not within the deadline")
            os.sched_yield()

    def test_release_has_no_limit(self):
        with Clock(0.0).start(["true"], must_end=False) as process:
            process.wait()
        self.assertEqual(process.returncode, 0)


class Shown(unittest.TestCase):
    def test_elsewhere_than_on_a_terminal_progress_is_a_line_a_minute(self):
        now = [0.0]
        stream = io.StringIO()
        progress = Progress(stream, clock=lambda: now[0])
        for second in range(121):
            now[0] = second
            progress.show(f"{second} of 121")
        progress.say("done")
        self.assertEqual(stream.getvalue(), "60 of 121\n120 of 121\ndone\n")

    def test_on_a_terminal_it_is_one_line(self):
        stream = io.StringIO()
        stream.isatty = lambda: True
        progress = Progress(stream)
        progress.show("1 of 2")
        progress.show("2 of 2")
        progress.say("done")
        self.assertEqual(stream.getvalue(), "\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[Kdone\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
