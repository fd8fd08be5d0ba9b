"""Assembles the launcher and runs it on this node."""
import asyncio
import contextlib
import os
import pathlib
import secrets
import shlex
import signal
import sys

from .arguments import complete, parse
from .job import Job
from .job_facts import count_ranks, job_facts
from .members import JoinError, Members, join, received_command, resolve
from .node import Node
from .output import Output
from .process import CAUGHT
from .store_folder import StoreFolder


class Stopped(Exception):
    """Stopped by a second signal, or by one that came before there was anything to stop."""


class Launcher:
    def __init__(self, options, log_dir):
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._output = Output(self._loop)
        self._token = options.token or secrets.token_hex(16)
        self._messages = asyncio.Queue()  # for job.py
        self._report = self._report_here
        self._stop = self._loop.create_future()  # fails with Stopped
        self._stop.add_done_callback(lambda stop: stop.exception())
        self._signals = 0
        self._first_signal = None
        self._running = False  # there is something that a first signal can stop
        self._node = Node(options, self._token, log_dir, self._output,
                          lambda message: self._report(message))

    async def run(self):
        self._catch_signals()
        work = self._loop.create_task(self._lead() if self._options.node_rank == 0 else self._follow())
        try:
            await asyncio.wait({work, self._stop}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return 128 + self._first_signal
            return work.result()
        except JoinError as error:
            self._output.say(f"error: {error}")
            return 1
        finally:
            await self._end(work)

    async def _end(self, work):
        """Leaves no process behind, whatever happened."""
        self._node.kill()
        work.cancel()
        await asyncio.wait({work})
        self._node.kill()
        await self._node.wait_until_nothing_runs()
        self._output.close()

    # Node 0

    async def _lead(self):
        options, say = self._options, self._output.say
        members = Members(options, lambda node, message: self._messages.put_nowait((node, message)),
                          say)
        with contextlib.ExitStack() as stack:
            try:
                if options.nnodes > 1:
                    await members.gather()
                if options.master_addr is not None:
                    options.interface = options.interface or resolve(options.master_addr, 0)[4][0]
                run_id = secrets.token_hex(4)
                job = Job(options, run_id, self._file_store(stack), self._node, self._messages,
                          lambda node, command: self._tell(members, node, command), say)
                self._running = True
                status = await job.run()
                for node in members.nodes():
                    members.tell(node, {"do": "exit", "status": status})
                return status
            finally:
                await members.close()

    def _file_store(self, stack):
        """Makes folders that only this user can read; None if other machines must look things up."""
        if self._options.master_addr is not None:
            return None
        folder = stack.enter_context(StoreFolder())

        def make(attempt):
            store = folder / f"attempt-{attempt}"
            store.mkdir(mode=0o700)
            return f"file://{store}"
        return make

    def _tell(self, members, node, command):
        if node != 0:
            members.tell(node, command)
            return
        self._node.handle(command)
        if command["do"] == "start" and self._options.ps_only:
            self._export(command["attempt"])

    def _export(self, attempt):
        """The variables that a rank needs to find the shards. They do not count attempts of ranks."""
        values = {"SATRAP_STORE": attempt.store, "SATRAP_TOKEN": self._token,
                  "SATRAP_SHARDS": self._options.ps, "SATRAP_RUN_PID": os.getpid()}
        self._output.end_stdout("".join(f"export {name}={shlex.quote(str(value))}\n"
                                        for name, value in values.items()))

    # Other nodes

    async def _follow(self):
        channel = await join(self._options, self._output.say)
        self._options.interface = self._options.interface or channel.local_address
        self._report = channel.send
        self._running = True
        try:
            while (message := await channel.receive()) is not None:
                if message["do"] == "exit":
                    return message["status"]
                self._node.handle(received_command(message))
            raise JoinError("the launcher of node 0 is gone; the job ends")
        finally:
            self._report = lambda message: None
            await channel.close()

    # Both

    def _report_here(self, message):
        self._messages.put_nowait((0, message))

    def _catch_signals(self):
        for number in CAUGHT:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup, or `&` in a script
                self._loop.add_signal_handler(number, self._on_signal, number)
        if self._output.is_terminal:
            self._loop.add_signal_handler(signal.SIGWINCH, self._node.fit_terminal)

    def _on_signal(self, number):
        self._signals += 1
        self._first_signal = self._first_signal or number
        self._output.drop_what_finds_no_room()
        if self._signals > 1 or not self._running:
            if self._node.has_processes:
                self._output.say("killing all processes")
            if not self._stop.done():
                self._stop.set_exception(Stopped())
            return
        what = "shards end" if self._options.ps_only else "ranks write a checkpoint and end"
        if not self._node.has_processes:  # between two attempts
            what = "the job ends"
        self._output.say(f"{signal.Signals(number).name}: {what}; once more kills them at once")
        pass_on = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
        self._report({"event": "signal", "number": int(number), "pass_on": int(pass_on)})


def main(argv):
    options = parse(argv, os.environ)
    try:
        facts = job_facts(options)
        options = complete(options, count_ranks(options, facts))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    log_dir = pathlib.Path(options.log_dir) if options.log_dir else facts.log_dir

    async def run():
        return await Launcher(options, log_dir).run()

    return asyncio.run(run())
