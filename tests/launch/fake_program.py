"""Stands in for `satrap` and `satrap-ps`: records how it was started, then runs a few lines of Python that the test has
written for it, which may call the functions below.

A test writes <folder>/rank-0.py, shard-1.py, store.py, config.py or doctor.py. Without a file the program waits for SIGTERM
(shards, loaders) or, once all shards wait, exits with 0 (ranks).
"""
import json
import os
import pathlib
import signal
import sys
import time

FOLDER = pathlib.Path(os.environ["FAKE_FOLDER"])


def who():
    words = sys.argv[1:]
    if os.path.basename(sys.argv[0]) == "satrap-ps":
        return "shard-" + words[words.index("--shard") + 1]
    return "rank-" + os.environ["RANK"] if words[0] == "train" else words[0]


NAME = who()
ATTEMPT = int(os.environ.get("SATRAP_ATTEMPT", 0))


def note(event, **more):
    """Appends one line to the common diary."""
    line = json.dumps({"who": NAME, "attempt": ATTEMPT, "event": event, "pid": os.getpid(), **more})
    fd = os.open(FOLDER / "diary", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, (line + "\n").encode())
    os.close(fd)


def say(text, stream=sys.stderr):
    stream.write(text)
    stream.flush()


def wait_for_file(name):
    deadline = time.monotonic() + 60
    while not (FOLDER / name).exists():
        if time.monotonic() > deadline:
            sys.exit("never came: " + name)
        time.sleep(0.005)


def meet_shards():
    """Waits for the shards, as a rank does."""
    deadline = time.monotonic() + 60
    wanted = int(os.environ["SATRAP_SHARDS"])
    while True:
        text = (FOLDER / "diary").read_text()
        diary = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
        ready = {e["who"] for e in diary if e["who"].startswith("shard") and e["attempt"] == ATTEMPT
                 and e["event"] == "waits"}
        if len(ready) >= wanted:
            return
        if time.monotonic() > deadline:
            sys.exit("shards never came")
        time.sleep(0.005)


def touch(name):
    (FOLDER / name).touch()


def ignore(*numbers):
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def wait_for_signal(status_of_signal=lambda number: 128 + number, before_end=lambda: None):
    """Exits as satrap does after its checkpoint."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    note("waits")
    number = signal.sigwait([signal.SIGTERM, signal.SIGINT])
    note("got", signal=int(number))
    before_end()
    note("ends")
    sys.exit(status_of_signal(number))


QUESTION = NAME in ("config", "doctor")  # of the launcher's, before it starts anything
note("asked" if QUESTION else "started", argv=sys.argv[1:], env=dict(os.environ), parent=os.getppid(),
     group=os.getpgrp(), stdin=sys.stdin.read() if "SATRAP_STORE" in os.environ else "")
script = FOLDER / f"{NAME}.py"
if script.exists():
    exec(compile(script.read_text(), str(script), "exec"))  # noqa: S102
elif NAME.startswith("shard") or NAME in ("loader", "store"):
    if NAME == "store":
        say("tcp://127.0.0.1:1\n", sys.stdout)
    wait_for_signal(lambda number: 0)
elif NAME.startswith("rank"):
    meet_shards()
