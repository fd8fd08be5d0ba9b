"""Lists what a build and its tests took: longest.py PRESET [NUMBER]    (default: the 40 longest)

Build steps: the seconds of their last run, from ninja's log; a compiler has one thread. Tests: processor time, measured
by running each of the longest of the last run of ctest once more, alone, with all processes that it starts.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import outcomes


def build_steps(folder):
    steps = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        steps[output] = (int(end) - int(begin)) / 1000
    return sorted(((seconds, name) for name, seconds in steps.items()), reverse=True)


def commands_of(folder):
    """By name: command, folder and environment of every test."""
    done = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], capture_output=True, text=True,
                          check=True)
    found = {}
    for test in json.loads(done.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        environment = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
        found[test["name"]] = (test.get("command"), properties.get("WORKING_DIRECTORY", str(folder)), environment)
    return found


def processor_seconds(command, folder, environment):
    """(processor time, time) of a command and of all that it waits for."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, started = used(), time.monotonic()
    subprocess.run(command, cwd=folder, env=os.environ | environment, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return used() - before, time.monotonic() - started


def main(preset, number=40):
    folder = pathlib.Path("build") / preset
    steps = build_steps(folder)
    print(f"{sum(seconds for seconds, _ in steps):8.1f} s  {len(steps)} build steps")
    for seconds, name in steps[:number]:
        print(f"{seconds:8.1f} s  {name}")
    commands = commands_of(folder)
    tests = sorted(outcomes.read(folder / "junit.xml", folder / "gtest"), key=lambda test: -test.seconds)
    print(f"{sum(test.seconds for test in tests):8.1f} s  {len(tests)} tests, some of which wait\nprocessor     time")
    for test in tests[:number]:
        processor, seconds = processor_seconds(*commands[test.name])
        print(f"{processor:8.1f} s {seconds:6.1f} s  {test.name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
