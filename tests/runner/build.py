"""Configures and builds a preset, and shows how far that is."""

import os
import re
import subprocess

import stages

OF_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")
UNINTERESTING = re.compile(r"^(ninja: (no work|Entering)|-- |\s*$)|Re-checking globbed directories")


def described(step):
    """What a step of ninja makes: the end of its name of a file."""
    return re.sub(r"^(Building|Linking|Generating|Running) ((CXX|CUDA) )?(object|executable|static library|shared \w+)? ?", "",
                  step).replace("CMakeFiles/", "").replace(".dir/", "/")


def watch(process, show, say):
    """Passes on what a build prints, but for its steps, which are progress. What failed is said once more at the end;
    returns those lines."""
    said = []
    for line in process.stdout:
        line = line.rstrip("\n")
        match = OF_STEP.match(line)
        if match:
            show(int(match.group(1)), int(match.group(2)), described(match.group(3)), False)
        elif not UNINTERESTING.search(line):
            say(line)
            said.append(line)
    return said


class Build:
    def __init__(self, preset, jobs, clock, show, say):
        self.preset = preset
        self.jobs = jobs
        self.clock = clock
        self.show = show
        self.say = say
        self.wrap = stages.wrap_of(preset)

    def configure(self, *more):
        done = subprocess.run(["cmake", "--preset", self.preset, *stages.options_of(self.preset), *more],
                              capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            self.say(done.stdout[-5000:] + done.stderr[-5000:])
        return done.returncode == 0

    def run(self, targets=()):
        """Whether it could be built, and what it said."""
        if not self.configure():
            return False, ["cmake cannot configure it"]
        environment = os.environ | {"NINJA_STATUS": "[%f/%t] "}
        with self.clock.start([*self.wrap, "cmake", "--build", "--preset", self.preset, *targets, "-j", str(self.jobs)],
                              must_end=self.preset != "release", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", env=environment) as process:
            said = watch(process, self.show, self.say)
        return process.returncode == 0, said
