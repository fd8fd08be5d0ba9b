"""The stages of tests/run.sh, which has set the machine up: see its usage. Run in the root of the checkout."""

import os
import random
import signal
import sys
import textwrap
import time
import traceback

import build
import checks
import clock as clocks
import ctest
import stages
import wide
from progress import Progress

LINES_OF_FAILURE = 30
MOST_FLAKY = 2
SLOW_S, NUM_SLOW = 20, 5
COLUMNS = 120


class Run:
    """All stages, one after the other, and what is said at the end."""

    def __init__(self, clock, progress, jobs):
        self.clock = clock
        self.progress = progress
        self.jobs = jobs
        self.passed = self.failed = self.skipped = 0
        self.times = []
        self.failures = []  # lines
        self.flaky = []     # (stage, name, output)
        self.not_run = []   # lines
        self.failing = []   # names of tests of this stage that have failed, as they come

    def show(self, stage, verb):
        failed = 0

        def show(done, total, name, has_failed):
            nonlocal failed
            failed += has_failed
            if has_failed:
                self.failing.append(name)
                self.progress.say(f"{stage}: {name} has failed")
            self.progress.show(f"{stage}: {verb} {done} of {total}, {total - done} left"
                               f"{f', {failed} failed' if failed else ''}: {name}")

        return show

    def fail(self, title, output=""):
        self.failures.append(f"FAILED {title}")
        self.failures += [f"    {line[:300]}" for line in output.rstrip().splitlines()[-LINES_OF_FAILURE:]]
        self.failed += 1

    def take(self, stage, results):
        """Counts what the tests of a stage did."""
        self.passed += results.passed
        self.skipped += len(results.skipped)
        for names, why, output in results.failures:
            for name in names[:-1]:
                self.fail(f"{name} ({stage}): {why}")
            self.fail(f"{names[-1]} ({stage}): {why}", output)
        self.flaky += [(stage, name, output) for name, output in results.flaky]
        for line in textwrap.wrap(" ".join(results.skipped), COLUMNS, break_long_words=False, break_on_hyphens=False):
            self.progress.say(f"SKIPPED {line}")
        for seconds, name in sorted(results.slow, reverse=True)[:NUM_SLOW]:
            if seconds >= SLOW_S:
                self.progress.say(f"slow: {seconds:6.1f} s  {name}")

    def preset(self, stage, selection):
        if selection.says:
            self.progress.say(f"{stage}: {selection.says}")
        started = time.monotonic()
        built, said = build.Build(stage, self.jobs, self.clock, self.show(stage, "built"), self.progress.say).run(
            selection.build)
        build_s = time.monotonic() - started
        self.times.append(f"{stage} build: {build_s:.0f} s")
        if not built:
            self.fail(f"{stage}: does not build", "\n".join(said))
            return None
        started = time.monotonic()
        # A fuzzer never waits; other tests do.
        jobs = self.jobs if stage == "fuzz" else self.jobs + 2
        runner = ctest.Ctest(stage, stages.wrap_of(stage), self.clock, self.show(stage, "tested"))
        self.take(stage, runner.run(selection.select, jobs))
        test_s = time.monotonic() - started
        self.times.append(f"{stage} tests: {test_s:.0f} s")
        return build_s, test_s

    def check(self, stage):
        """A stage without a preset."""
        started = time.monotonic()
        okay, output = checks.CHECKS[stage](self.jobs, self.clock, self.show(stage, "checked"))
        if okay:
            self.passed += 1
        else:
            self.fail(f"{stage}", output)
        took = time.monotonic() - started
        self.times.append(f"{stage}: {took:.0f} s")
        return 0, took

    def one(self, stage):
        """Seconds to build and to test, if it did both."""
        if stage == "quick":
            return self.preset("release", stages.quick())
        if stage in checks.CHECKS:
            return self.check(stage)
        if stage.startswith("wide"):
            return self.wide(stage.partition(":")[2])
        if stage == "fuzz" and not stages.can_fuzz():
            for name in stages.fuzzers():
                self.progress.say(f"SKIPPED {name}: no clang++-19 with libFuzzer (libclang-rt-19-dev)")
            self.skipped += len(stages.fuzzers())
            return None
        return self.preset(stage, stages.selection_of(stage))

    def wide(self, name):
        started = time.monotonic()
        for title, counts, output in wide.run(name, self.clock, self.progress, self.failing.append):
            self.passed += counts[0]
            self.skipped += counts[2]
            if counts[1]:
                self.fail(title, output)
                self.failed += counts[1] - 1
        took = time.monotonic() - started
        self.times.append(f"wide: {took:.0f} s")
        return 0, took

    def all(self, names):
        for stage in names:
            recorded = wide.recorded(stage.partition(":")[2]) if stage.startswith("wide") else None
            reason = None if stage == "release" else self.clock.reason_not_to_start(stage, recorded)
            if reason:
                self.not_run.append(f"NOT RUN {stage}: {reason}")
                self.progress.say(self.not_run[-1])
                continue
            self.progress.say(f"=== {stage}")
            self.failing = []
            try:
                took = self.one(stage)
                if took:
                    self.clock.note(stage, *took)
            except clocks.OutOfTime:
                self.not_run.append(f"NOT RUN {stage}: was ended after the limit of {self.clock.limit_s:.0f} s")
                for name in self.failing:
                    self.fail(f"{name} ({stage}): before the stage was ended")
            except Exception:  # the other stages run all the same
                self.fail(f"{stage}: cannot be run", traceback.format_exc())
        return self.close()

    def close(self):
        say = self.progress.say
        if len(self.flaky) > MOST_FLAKY:
            self.fail(f"{len(self.flaky)} tests are FLAKY, more than {MOST_FLAKY}")
        say("=== time")
        for line in [*self.times, f"all: {self.clock.elapsed():.0f} s"]:
            say(line)
        if self.flaky:
            say("=== FLAKY: failed once, then passed twice")
        for stage, name, output in self.flaky:
            say(f"FLAKY {name} ({stage})")
            for line in output.rstrip().splitlines()[-LINES_OF_FAILURE:]:
                say(f"    {line[:300]}")
        for line in self.not_run:
            say(line)
        if self.failures:
            say("=== failed")
        for line in self.failures:
            say(line)
        sys.stderr.flush()
        print(f"\n{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 0 if self.failed == 0 and self.passed > 0 else 1


def stages_of(arguments):
    """The stages that words of the command line mean, in the order in which they run."""
    names = []
    for word in arguments:
        if word == "all":
            names += ["release", *stages.turned(stages.LATER, stages.num_commits())]
        elif word == "wide-part":
            names += [f"wide:{part}" for part in stages.turned(wide.parts(), stages.num_commits())[:1]]
        else:
            names.append(word)
    return names


def main(arguments):
    limit = os.environ.get("SATRAP_CI_LIMIT")
    started = os.environ.get("SATRAP_RUN_STARTED")
    clock = clocks.Clock(float(limit) * 60 if limit else None, float(started) if started else None)
    jobs = int(os.environ.get("SATRAP_JOBS") or os.cpu_count())
    # What a test draws by chance it draws again when it is run once more.
    seed = os.environ.setdefault("SATRAP_TEST_SEED", str(random.SystemRandom().randrange(1, 1 << 32)))
    print(f"SATRAP_TEST_SEED={seed}", file=sys.stderr)
    return Run(clock, Progress(), jobs).all(stages_of(arguments or ["release"]))


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # ends what it has started, as Ctrl-C does
    sys.exit(main(sys.argv[1:]))
