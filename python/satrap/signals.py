"""Ctrl-C and SIGTERM while a run goes on."""
import os
import signal
import threading


class StopSignals:
    """While it is entered, the first SIGINT or SIGTERM calls `stop`; a second one acts as without it, unless satrap-run has
    started the process: it may pass on what others have sent already, and itself kills at a second one.

    Only in the main thread, and only where the program has no handler of its own.
    """

    DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}

    def __init__(self, stop):
        self.number = None  # of the signal
        self._stop = stop
        self._taken = []

    def __enter__(self):
        if threading.current_thread() is not threading.main_thread():
            return self
        for number, default in self.DEFAULTS.items():
            if signal.getsignal(number) is default:
                signal.signal(number, self._take)
                self._taken.append(number)
        return self

    def __exit__(self, *error):
        while self._taken:
            number = self._taken.pop()
            signal.signal(number, self.DEFAULTS[number])

    def _take(self, number, frame):
        self.number = self.number or number
        if os.environ.get("SATRAP_RUN_PID") != str(os.getppid()):
            self.__exit__()
        self._stop()

    def pass_on(self):
        """What the signal would have done, if there was one."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number is not None:
            signal.raise_signal(self.number)
