"""The stage `wide`: checks that need more than 100 MB of downloads beyond the set-up, or more than two minutes.

Each is a part: a program tests/wide/<name>.sh that runs in the root of the checkout. Its second line says
`# about N s: what it checks`; N is what it takes on two cores where nothing is cached. Its last line counts its
tests, as that of tests/run.sh does; without one its exit status is one test, and 77 is one that is skipped.
"""

import pathlib
import re
import subprocess

FOLDER = pathlib.Path("tests/wide")
HEAD = re.compile(r"^# about (\d+) s: (.+)$", re.M)
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
FAILURES = ("FAILED", "SURVIVES")


def parts():
    """Names of all parts, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.sh"))


def program_of(name):
    return FOLDER / f"{name}.sh"


def recorded(name):
    """(0, seconds) that a part takes, or all of them: as clock.RECORDED has them for other stages."""
    names = [name] if name else parts()
    return 0, sum(int(HEAD.search(program_of(part).read_text()).group(1)) for part in names)


def counts_of(output, status):
    lines = output.rstrip().splitlines()
    match = COUNTS.match(lines[-1]) if lines else None
    if match:
        counts = tuple(map(int, match.groups()))
        return counts if status == 0 or counts[1] else (counts[0], 1, counts[2])
    return (int(status == 0), int(status not in (0, 77)), int(status == 77))


def run(name, clock, progress, note_failure):
    """Runs one part or all; yields (name, its counts, its output) of each. note_failure: called with each failure that a
    part names, in case that it is ended."""
    for part in [name] if name else parts():
        progress.say(f"wide:{part}: {HEAD.search(program_of(part).read_text()).group(2)}")
        lines = []
        with clock.start(["bash", str(program_of(part))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace") as process:
            for line in process.stdout:
                lines.append(line)
                progress.show(f"wide:{part}: {line.strip()}")
                if line.startswith(FAILURES):
                    note_failure(line.strip())
        output = "".join(lines)
        for line in lines:
            if line.startswith("SKIPPED"):
                progress.say(line.rstrip())
        if process.returncode == 77:
            progress.say(f"SKIPPED wide:{part}: {lines[-1].strip() if lines else 'it does not say why'}")
        yield f"wide:{part}", counts_of(output, process.returncode), output
