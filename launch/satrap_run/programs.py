"""Commands of the wheel, which has the programs in site-packages/satrap/bin: each becomes its program."""
import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "satrap/bin"


def satrap():
    become("satrap")


def satrap_ps():
    become("satrap-ps")


def satrap_run():
    from .main import main  # the others need none of it
    return main(sys.argv[1:])


def become(name):
    os.execv(FOLDER / name, [name, *sys.argv[1:]])
