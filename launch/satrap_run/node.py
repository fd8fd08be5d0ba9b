"""The processes of one attempt on this node."""
import asyncio
import collections
import functools
import pathlib
import shlex
import signal
import subprocess

from .output import LogFile, Stream, TerminalStream
from .process import Process, signal_name
from .variables import (launcher_variables, loader_command, rank_command, rank_variables, shard_command,
                        shard_variables)

USAGE_STATUS = 2
FAILED_GRACE_S = 3.0  # of what still runs in an attempt that has failed
SHARD_GRACE_S = 10.0  # of shards and loaders whose ranks have ended
LOADER_RESTART_S = 1.0  # after the end of a loader
STOPPED_LOOK_S = 1.0  # how often it is looked for processes that are stopped
SETTLE_S = 0.05  # so that the death of a shard is not mistaken for the error it causes in a rank


class StoreKilled(ChildProcessError):
    """The store was killed before it told its address, which the next attempt may survive."""


class Node:
    """Starts, stops and watches processes, and passes events to `report` as messages of members.py:

    failed          a process ended that should not have: what, status, restart (whether to retry)
    chief_finished  rank 0 has ended with 0: the last checkpoint and the summary are written
    ranks_ended     no rank runs any more; finished: all have ended with 0
    ended           no shard and no loader runs either

    A loader that ends while ranks run is started again, and nothing is reported.
    """

    def __init__(self, options, token, log_dir, output, report):
        self._options = options
        self._token = token
        self._log_dir = pathlib.Path(log_dir)
        self._output = output
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._begin(0)

    def handle(self, command):
        """A command of job.py."""
        match command["do"]:
            case "start":
                self._start(command["attempt"])
            case "stop_ranks":
                self._stop_ranks(command["signal"])
            case "end_late_ranks":
                self._end_late_ranks()
            case "stop_shards":
                self._stop_shards()
            case "end":
                self._end()

    async def start_store(self, attempt, host, timeout_s):
        """Starts `satrap store` for an attempt and returns its URL. Raises OSError or TimeoutError."""
        self._begin(attempt)
        url = self._loop.create_future()

        def on_line(line):
            if not url.done() and "://" in line:
                url.set_result(line.strip())

        self._launch("store", None, [self._options.train_program, "store", "--host", host,
                                     "--port", "0"],
                     {"SATRAP_TOKEN": self._token}, on_line)
        self._store_url = url
        return await asyncio.wait_for(url, timeout_s)

    async def end_store(self):
        """Stops the store last: shards of any node may look things up while they end."""
        self._ending = True
        self._signal(self._running("store"), signal.SIGTERM, FAILED_GRACE_S)
        await self.wait_until_nothing_runs()

    def kill(self):
        self._to_start.clear()
        for process in self._running():
            process.kill()

    async def wait_until_nothing_runs(self):
        while self._running():
            await asyncio.sleep(0.005)

    @property
    def has_processes(self):
        return bool(self._running())

    def fit_terminal(self):
        for streams, _ in self._files.values():
            for stream in streams:
                if isinstance(stream, TerminalStream):
                    stream.fit()

    # Starting

    def _begin(self, number):
        """Forgets the previous attempt, whose processes have all ended."""
        self._number = number
        self._processes = []
        self._to_start = collections.deque()  # calls, one for each process
        self._was_cut = False  # not all have started
        self._files = {}
        self._store_url = None
        self._attempt = None  # once it has started
        self._rank_signal = None  # what the ranks have been told to stop with
        self._chief_finished = False
        self._stopping_shards = False
        self._failures = []
        self._ranks_reported = self._end_reported = False
        self._ending = False

    def _start(self, attempt):
        if attempt.number != self._number:
            self._begin(attempt.number)
        self._attempt = attempt

        def later(call, *arguments):
            self._to_start.append(functools.partial(call, *arguments))

        for shard in self._options.local_shards():
            later(self._launch, "shard", shard, shard_command(self._options, shard),
                  shard_variables(self._options, attempt, self._token))
        for loader in self._options.local_loaders():
            later(self._launch_loader, loader, attempt)
        for local_rank in range(self._options.nproc):
            later(self._launch, "rank", self._options.node_rank * self._options.nproc + local_rank,
                  rank_command(self._options, attempt.number),
                  rank_variables(self._options, attempt, self._token, local_rank))
        self._start_next(attempt.number)

    def _start_next(self, number):
        """One at a time: signals, and ends of those that have started, come between."""
        if number != self._number:
            return
        if self._ending or self._stopping_shards or self._rank_signal is not None:
            self._was_cut = bool(self._to_start)
            self._to_start.clear()
        if self._to_start:
            try:
                self._to_start.popleft()()
            except (OSError, subprocess.SubprocessError) as error:
                self._to_start.clear()
                self._report({"event": "failed", "what": f"a process cannot be started: {error}",
                              "status": 126, "restart": False})
            self._loop.call_soon(self._start_next, number)
            return
        self._look_for_stopped(number)
        self._report_progress()  # there may be nothing to run

    def _launch_loader(self, loader, attempt):
        self._launch("loader", loader, loader_command(self._options),
                     shard_variables(self._options, attempt, self._token))

    def _restart_loader(self, loader, attempt):
        if attempt.number != self._number or self._stopping_shards or self._ending:
            return
        try:
            self._launch_loader(loader, attempt)
        except (OSError, subprocess.SubprocessError) as error:
            self._output.say(f"loader {loader} cannot be started again: {error}")

    def _launch(self, kind, number, command, variables, on_line=None):
        name = kind if number is None else f"{kind} {number}"
        file_name = name.replace(" ", "-") + ".log"
        log = LogFile(self._log_dir / f"attempt-{self._number}" / file_name, shlex.join(command),
                      self._output.say)
        make = TerminalStream if name == "rank 0" and self._output.is_terminal else Stream
        out = Stream(self._loop, self._output, kind, name, log, name == "rank 0", on_line)
        err = make(self._loop, self._output, kind, name, log)
        self._files[name] = ([out, err], log)
        try:
            self._processes.append(Process(self._loop, kind, number, command,
                                           launcher_variables(self._options) | variables,
                                           out.write_fd, err.write_fd, self._on_exit))
        except (OSError, subprocess.SubprocessError):
            self._close_files(name)
            raise
        finally:
            out.close_write_end()
            err.close_write_end()

    # Stopping

    def _stop_ranks(self, number):
        self._rank_signal = number
        self._signal(self._running("rank"), number, self._options.grace)
        self._report_progress()

    def _end_late_ranks(self):
        """The other ranks have nothing left to do: one that hangs must not keep the job from ending."""
        self._chief_finished = True
        self._loop.call_later(self._options.grace, self._kill_late, self._running("rank"),
                              "rank 0 had finished", self._options.grace)

    def _stop_shards(self):
        self._stopping_shards = True
        self._signal(self._running("shard", "loader"), signal.SIGTERM, SHARD_GRACE_S)
        self._report_progress()

    def _end(self):
        self._ending = True
        self._signal(self._running("rank", "shard", "loader"), signal.SIGTERM, FAILED_GRACE_S)
        self._report_progress()

    def _signal(self, processes, number, grace_s):
        for process in processes:
            process.send(number)
        self._loop.call_later(grace_s, self._kill_late, processes, signal_name(number), grace_s)

    def _kill_late(self, processes, event, grace_s):
        for process in processes:
            if process.running:
                self._output.say(f"{process.name} (pid {process.pid}) has not ended {grace_s:g} s after "
                                 f"{event} and is killed")
                process.kill()

    def _look_for_stopped(self, number):
        """Other processes notice a stopped one only while they wait for it, and none waits for rank 0
        while it writes the last checkpoint."""
        if number != self._number or not self._running():
            return
        may_go = (self._chief_finished or self._rank_signal is not None or self._stopping_shards
                  or self._ending)
        for process in self._running():
            if process.stopped_for() >= self._options.grace:
                self._output.say(f"{process.name} (pid {process.pid}) has been stopped for "
                                 f"{self._options.grace:g} s and is killed")
                if may_go:
                    process.kill()
                else:
                    process.send(signal.SIGKILL)  # whose end is then a failure
        self._loop.call_later(STOPPED_LOOK_S, self._look_for_stopped, number)

    # Ends

    def _on_exit(self, process):
        self._close_files(process.name)
        if process.kind == "store" and not self._store_url.done():
            error = StoreKilled if process.status < 0 else ChildProcessError
            self._store_url.set_exception(error(process.describe_end()))
            return  # nothing else has started
        if not self._was_expected(process) and process.kind == "loader":
            self._output.say(f"{process.describe_end()}; it is started again")
            self._loop.call_later(LOADER_RESTART_S, self._restart_loader, process.number, self._attempt)
        elif not self._was_expected(process):
            if not self._failures:
                self._loop.call_later(SETTLE_S, self._report_failure, self._number)
            self._failures.append(process)
        if process.name == "rank 0" and process.status == 0:
            self._report({"event": "chief_finished"})
        self._report_progress()

    def _was_expected(self, process):
        if self._ending or process.killed_by_us:
            return True
        if process.kind == "rank":
            stopped = (0, 128 + self._rank_signal) if self._rank_signal else (0,)
            return process.exit_status() in stopped
        if self._stopping_shards and process.exit_status() not in (0, 128 + signal.SIGTERM):
            self._output.say(f"{process.describe_end()} after all ranks had ended")
        return self._stopping_shards

    def _report_failure(self, number):
        """Among processes that ended together, returns the one that explains the others."""
        if number != self._number:
            return
        # A rank may have heard of the stop before the launcher did.
        self._failures = [p for p in self._failures if not self._was_expected(p)]
        if not self._failures:
            self._report_progress()
            return
        refused = [p for p in self._failures if p.status == USAGE_STATUS]
        killed = [p for p in self._failures if p.status < 0]
        cause = (refused or killed or self._failures)[0]
        log = self._files[cause.name][1].path
        self._report({"event": "failed", "what": cause.describe_end(), "log": str(log),
                      "status": cause.exit_status() or 1, "restart": not refused})
        self._failures = []
        self._report_progress()

    def _report_progress(self):
        if self._failures or self._to_start:
            return  # first the failure, then its consequences
        may_end = not self._options.ps_only or self._rank_signal is not None or self._ending
        if not self._running("rank") and may_end and not self._ranks_reported:
            self._ranks_reported = True
            ranks = [process for process in self._processes if process.kind == "rank"]
            self._report({"event": "ranks_ended",
                          "finished": not self._was_cut and all(process.status == 0 for process in ranks)})
        if self._ranks_reported and not self._running("shard", "loader") and not self._end_reported:
            self._end_reported = True
            self._report({"event": "ended"})

    def _close_files(self, name):
        streams, log = self._files[name]
        for stream in streams:
            stream.finish()
        log.close()

    def _running(self, *kinds):
        """Of these kinds; of all, if none is given."""
        return [process for process in self._processes
                if process.running and (not kinds or process.kind in kinds)]
