"""The stages of tests/run.sh, run on a small project with tests that fail in chosen ways."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).parent / "main.py"
PRESETS = ["release", "asan", "tsan", "fuzz", "cuda"]
# A test that counts its runs in a file, and whose outcome the number of its run decides.
TEST = """import pathlib, sys
counter = pathlib.Path({counter!r})
run = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(run))
{code}
"""
DIGEST = """
import unittest
class Bits(unittest.TestCase):
    def test_same(self):
        self.assertEqual("9f3a77c012ab34cd" if run != 1 else "0f3a77c012ab34cd", "9f3a77c012ab34cd")
unittest.main()
"""


class MainTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-runner-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.lines = ["cmake_minimum_required(VERSION 3.24)", "project(small LANGUAGES NONE)", "enable_testing()",
                      "add_custom_target(sanitizer_canary)"]
        configure = [{"name": name, "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}",
                      "cacheVariables": {"PRESET": name}} for name in PRESETS]
        (self.dir / "CMakePresets.json").write_text(json.dumps({
            "version": 6, "configurePresets": configure,
            "buildPresets": [{"name": name, "configurePreset": name} for name in PRESETS],
            "testPresets": [{"name": name, "configurePreset": name,
                             "output": {"outputOnFailure": True}} for name in PRESETS]}))
        self.add("good", "print('fine')")

    def add(self, name, code, preset="release", properties=""):
        script = self.dir / f"{name}.py"
        script.write_text(TEST.format(counter=str(self.dir / f"{name}.runs"), code=code))
        self.lines.append(f'if(PRESET STREQUAL "{preset}")\n add_test(NAME small.{name} COMMAND "{sys.executable}" '
                          f'"{script}")\n set_tests_properties(small.{name} PROPERTIES LABELS sanitizers {properties})\n'
                          f'endif()')

    def runs_of(self, name):
        counter = self.dir / f"{name}.runs"
        return int(counter.read_text()) if counter.exists() else 0

    def run_stages(self, *arguments, **environment):
        (self.dir / "CMakeLists.txt").write_text("\n".join(self.lines))
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("SATRAP_CI_LIMIT", "SATRAP_RUN_STARTED")} | environment
        return subprocess.run([sys.executable, RUNNER, *arguments], cwd=self.dir, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300, env=environment)

    def check_end(self, done, status, line):
        self.assertEqual(done.stdout.splitlines()[-1], line, done.stdout + done.stderr)
        self.assertEqual(done.returncode, status)

    def test_all_pass(self):
        done = self.run_stages("release")
        self.check_end(done, 0, "1 passed, 0 failed, 0 skipped")
        self.assertNotIn("FLAKY", done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 10)

    def test_a_test_that_fails_once_is_flaky_and_passes(self):
        self.add("once", "print('ninety', 'one'); sys.exit(run == 1)")
        done = self.run_stages("release")
        self.check_end(done, 0, "2 passed, 0 failed, 0 skipped")
        self.assertRegex(done.stderr, r"=== FLAKY: failed once, then passed twice\nFLAKY small.once \(release\)\n"
                                      r"    ninety one\n")
        self.assertEqual((self.runs_of("once"), self.runs_of("good")), (3, 1))

    def test_more_than_two_of_them_fail_the_run(self):
        for name in ("a", "b", "c"):
            self.add(name, "sys.exit(run == 1)")
        done = self.run_stages("release")
        self.check_end(done, 1, "4 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED 3 tests are FLAKY, more than 2", done.stderr)
        self.assertEqual(len(re.findall("^FLAKY small", done.stderr, re.M)), 3)

    def test_a_test_must_pass_both_times(self):
        self.add("twice", "print('the third'); sys.exit(run != 2)")
        done = self.run_stages("release")
        self.check_end(done, 1, "1 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED small.twice (release): failed again\n    the third", done.stderr)
        self.assertEqual(self.runs_of("twice"), 3)

    def test_bits_that_differ_once_fail_at_once(self):
        self.add("bits", DIGEST)
        done = self.run_stages("release")
        self.check_end(done, 1, "1 passed, 1 failed, 0 skipped")
        self.assertIn("FAILED small.bits (release): unequal bits", done.stderr)
        self.assertEqual(self.runs_of("bits"), 1)

    def test_signals_and_time_limits_fail_at_once(self):
        self.add("killed", "import os; os.kill(os.getpid(), 11) if run == 1 else None")
        self.add("slow", "import signal; signal.pause() if run == 1 else None", properties="TIMEOUT 2")
        done = self.run_stages("release")
        self.check_end(done, 1, "1 passed, 2 failed, 0 skipped")
        self.assertIn("FAILED small.killed (release): a signal", done.stderr)
        self.assertIn("FAILED small.slow (release): exceeded its time limit", done.stderr)
        self.assertEqual((self.runs_of("killed"), self.runs_of("slow")), (1, 1))

    def test_skipped_tests_are_named(self):
        self.add("skipped", "sys.exit(77)", properties="SKIP_RETURN_CODE 77")
        done = self.run_stages("release")
        self.check_end(done, 0, "1 passed, 0 failed, 1 skipped")
        self.assertIn("SKIPPED small.skipped", done.stderr)

    def test_a_build_that_fails_is_one_failure(self):
        self.lines.append('add_custom_target(broken ALL COMMAND "${CMAKE_COMMAND}" -E echo "no such thing" '
                          'COMMAND "${CMAKE_COMMAND}" -E false)')
        done = self.run_stages("release")
        self.check_end(done, 1, "0 passed, 1 failed, 0 skipped")
        self.assertRegex(done.stderr, r"FAILED release: does not build\n(    .*\n)*    no such thing")

    def test_a_stage_that_does_not_fit_is_not_started_and_named(self):
        self.add("asan", "pass", preset="asan")
        done = self.run_stages("release", "asan", SATRAP_CI_LIMIT="1", SATRAP_RUN_STARTED="0")
        self.check_end(done, 0, "1 passed, 0 failed, 0 skipped")
        self.assertRegex(done.stderr, r"=== time\n(.*\n)*NOT RUN asan: would take about \d+ s, of the limit of 60 s 0 are")
        self.assertEqual(self.runs_of("asan"), 0)

    def test_a_stage_that_takes_longer_than_thought_is_ended_and_named_and_what_failed_before_fails_the_run(self):
        self.add("waits", "import signal; print('waits', flush=True); signal.pause()", preset="tsan")
        self.add("waits_too", "import signal; print('waits', flush=True); signal.pause()", preset="asan")
        self.add("broken", "sys.exit(1)", preset="asan")
        done = self.run_stages("release", "asan", "tsan", SATRAP_CI_LIMIT="0.4", SATRAP_JOBS="2")
        self.check_end(done, 1, "1 passed, 1 failed, 0 skipped")
        self.assertIn("NOT RUN asan: was ended after the limit of 24 s", done.stderr)
        self.assertIn("FAILED small.broken (asan): before the stage was ended", done.stderr)
        self.assertRegex(done.stderr, "NOT RUN tsan: would take about")
        self.assertEqual((self.runs_of("waits_too"), self.runs_of("waits")), (1, 0))

    def test_stages_after_release_turn_with_the_commits(self):
        sys.path.insert(0, str(RUNNER.parent))
        import stages
        orders = [stages.turned(stages.LATER, number) for number in range(len(stages.LATER))]
        for place in range(len(stages.LATER)):
            self.assertEqual({order[place] for order in orders}, set(stages.LATER))


if __name__ == "__main__":
    unittest.main(verbosity=2)
