"""Attempts, failures, restarts, the exit status. Runs on node 0 and commands all nodes."""
import asyncio
import dataclasses
import socket

from .node import USAGE_STATUS, StoreKilled
from .variables import Attempt

STORE_START_S = 30.0
MAX_DELAY_S = 30.0
LONG_ATTEMPT_S = 60.0


class BackOff:
    """How long to wait before the next attempt, so that what is wrong has time to end: twice as long as the time
    before, up to MAX_DELAY_S; as at first after an attempt that ran for LONG_ATTEMPT_S."""

    def __init__(self, first_s):
        self._first_s = min(first_s, MAX_DELAY_S)
        self._next_s = self._first_s

    def after(self, ran_s):
        """Seconds to wait after an attempt that ran for so many."""
        if ran_s >= LONG_ATTEMPT_S:
            self._next_s = self._first_s
        delay_s = self._next_s
        self._next_s = min(2 * delay_s, MAX_DELAY_S)
        return delay_s


@dataclasses.dataclass
class Failure:
    what: str
    status: int
    restart: bool
    log: str | None = None


class Job:
    """messages: a queue of (node, message) from all nodes. tell(node, command) sends one to a node."""

    def __init__(self, options, run_id, make_store, node, messages, tell, say):
        self._options = options
        self._run_id = run_id
        self._make_store = make_store  # makes an empty file store; None: one is served instead
        self._node = node  # this one
        self._messages, self._tell, self._say = messages, tell, say
        self._nodes = list(range(options.nnodes))
        self._stop = None  # (signal that came, signal that the ranks get)
        self._number = 0
        self._with_ranks, self._busy = set(), set()  # nodes
        self._failure = None
        self._finished = True
        self._back_off = BackOff(options.restart_delay)
        self._delay_s = 0.0  # before the next attempt
        self._started_at = 0.0  # the attempt, by the clock of the loop

    async def run(self):
        """The exit status of the job."""
        while True:
            await self._attempt()
            if self._failure is None and self._stop is None:
                return 0
            if self._failure is None:
                return 0 if self._finished or self._options.ps_only else 128 + self._stop[0]
            if self._may_restart():
                await self._wait(self._delay_s)
            if not self._may_restart():
                return self._failure.status
            self._number += 1

    async def _wait(self, delay_s):
        """Waits before the next attempt, unless something happens that rules it out."""
        try:
            async with asyncio.timeout(delay_s):
                while self._may_restart():
                    self._take(*await self._messages.get())
        except TimeoutError:
            pass

    async def _attempt(self):
        self._failure = None
        self._finished = True
        self._started_at = asyncio.get_running_loop().time()
        if await self._start():
            await self._watch()
        await self._node.end_store()

    async def _start(self):
        """Returns False, after a failure, if the store does not start."""
        try:
            store = await self._open_store()
        except (OSError, TimeoutError) as error:
            self._fail(Failure(f"no store: {error or f'silent for {STORE_START_S:g} s'}", 1,
                               isinstance(error, StoreKilled)))
            return False
        address = self._options.master_addr or "127.0.0.1"
        self._tell_all({"do": "start", "attempt": Attempt(
            self._number, self._run_id, store, address, free_port(address))})
        return True

    async def _open_store(self):
        """Every attempt has a new store, so that it finds no entries of dead processes."""
        if self._make_store is not None:
            return self._make_store(self._number)
        return await self._node.start_store(self._number, self._options.master_addr, STORE_START_S)

    async def _watch(self):
        """Waits until no rank and no shard runs on any node."""
        self._with_ranks, self._busy = set(self._nodes), set(self._nodes)
        while self._busy:
            self._take(*await self._messages.get())

    def _take(self, node, message):
        match message.get("event"):
            case "failed":
                self._fail(Failure(message["what"], message["status"], message["restart"], message.get("log")))
            case "chief_finished":
                self._tell_all({"do": "end_late_ranks"})
            case "ranks_ended":
                self._with_ranks.discard(node)
                self._finished = self._finished and message["finished"]
                if not self._with_ranks:
                    self._tell_all({"do": "stop_shards"})
            case "ended":
                self._busy.discard(node)
            case "signal":
                self._stop_by(message["number"], message["pass_on"])
            case "lost":
                self._nodes.remove(node)
                self._with_ranks.discard(node)
                self._busy.discard(node)
                self._fail(Failure(f"the launcher of node {node} is gone", 1, False))

    def _stop_by(self, number, pass_on):
        if self._stop is None:
            self._stop = (number, pass_on)
            self._tell_all({"do": "stop_ranks", "signal": pass_on})

    def _fail(self, failure):
        """The first failure of an attempt decides, but for one that rules the next attempt out."""
        if self._failure is not None and (failure.restart or not self._may_restart()):
            return
        self._failure = failure
        text = failure.what
        if self._may_restart():
            self._delay_s = self._back_off.after(asyncio.get_running_loop().time() - self._started_at)
            when = f" in {self._delay_s:g} s," if self._delay_s else ""
            text += (f"; attempt {self._number + 1} of {self._options.max_restarts} starts{when} from the "
                     "last checkpoint")
        else:
            text += f"; the job ends{self._why_no_restart()}"
        self._say(text + (f"; its log: {failure.log}" if failure.log else ""))
        if self._busy or not self._may_restart():  # else no node has begun this attempt
            self._tell_all({"do": "end"})

    def _may_restart(self):
        return (self._failure.restart and self._stop is None
                and self._number < self._options.max_restarts)

    def _why_no_restart(self):
        if self._failure.status == USAGE_STATUS and not self._failure.restart:
            return ": its configuration is wrong"
        if self._options.max_restarts and self._number == self._options.max_restarts:
            return f": --max-restarts {self._number} reached"
        return ""

    def _tell_all(self, command):
        for node in self._nodes:
            self._tell(node, command)


def free_port(host):
    """A port that the ranks may open at MASTER_ADDR; satrap itself does not."""
    for address in (host, ""):
        try:
            with socket.create_server((address, 0)) as server:
                return server.getsockname()[1]
        except OSError:
            continue
    return 0
