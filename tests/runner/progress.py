"""Says how far the run is, on stderr: one line that is rewritten on a terminal, elsewhere a line a minute."""

import re
import shutil
import sys
import time

EVERY_S = 60
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\x1b\[[0-9;]*[A-Za-z]")


class Progress:
    def __init__(self, stream=None, clock=time.monotonic, every_s=EVERY_S):
        self.stream = stream or sys.stderr
        self.clock = clock
        self.every_s = every_s
        self.last = clock()
        self.on_terminal = self.stream.isatty()
        self.is_shown = False

    def show(self, text):
        """What is being done and how much is left. Replaces what was shown before."""
        if self.on_terminal:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\x1b[K" + text[:width])
            self.is_shown = True
        elif self.clock() - self.last >= self.every_s:
            self.stream.write(text + "\n")
            self.last = self.clock()
        else:
            return
        self.stream.flush()

    def say(self, text):
        """A line that stays."""
        if self.is_shown:
            self.stream.write("\r\x1b[K")
            self.is_shown = False
        self.stream.write(CONTROL.sub("", text) + "\n")
        self.stream.flush()
