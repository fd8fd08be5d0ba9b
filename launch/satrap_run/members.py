"""The protocol of the launchers of several nodes: JSON lines over TCP between node 0 and each other one.

Node 0 sends commands (start, stop_ranks, stop_shards, end, exit), the others report events
(failed, ranks_ended, ended, signal). Both sides first prove that they know the job's token, without
sending it. A broken connection means that the node is gone. Whoever does not prove it costs no more
than its own connection: nothing that it says is taken for what a launcher would say.
"""
import asyncio
import dataclasses
import errno
import hmac
import json
import secrets
import socket
import time

from .variables import Attempt

HANDSHAKE_S = 10.0
RETRY_S = 0.2
MAX_STRANGERS = 64  # connections without a proof at a time; the oldest makes room for a newer one
REFUSALS_S = 10.0  # between two lines about refused connections
NO_LAUNCHER = "it is no launcher of satrap"


class JoinError(Exception):
    """The launchers of the job did not all connect."""


class UnknownName(JoinError):
    """The name of node 0 has no address, or not yet."""


def proof(token, role, nonce):
    # Whatever a peer or the environment holds can be encoded, with half a surrogate pair too.
    text = f"{role} {nonce}".encode(errors="surrogatepass")
    return hmac.new(token.encode(errors="surrogatepass"), text, "sha256").hexdigest()


def is_proof(given, token, role, nonce):
    """Whether a peer gave the proof; it may have given anything."""
    return (isinstance(given, str) and given.isascii()
            and hmac.compare_digest(given, proof(token, role, nonce)))


def resolve(host, port):
    """The numeric address, found without threads, unlike asyncio's own lookup."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UnknownName(f"--master-addr {host}: {error.strerror}") from error


async def wait_for_name(options, deadline, say):
    """The numeric address of node 0. A pod or a new machine has its name later than others may ask for it."""
    told = False
    while True:
        try:
            return resolve(options.master_addr, options.master_port)
        except UnknownName as error:
            if time.monotonic() > deadline:
                raise UnknownName(f"{error}, for {options.join_timeout:g} s (--join-timeout)") from error
            if not told:
                say(f"{error}; waiting for it up to {options.join_timeout:g} s (--join-timeout)")
                told = True
        await asyncio.sleep(RETRY_S)


def notice_dead_hosts(sock):
    """Notices within 30 seconds that a host is down: a host without power sends nothing."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


class Channel:
    """One connection; messages are dictionaries."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self.local_address = writer.get_extra_info("sockname")[0]
        notice_dead_hosts(writer.get_extra_info("socket"))

    def send(self, message):
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message, default=dataclasses.asdict).encode() + b"\n")

    async def receive(self):
        """None if the other side is gone or sends what no launcher would."""
        try:
            message = json.loads(await self._reader.readline())
        except (OSError, ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def abort(self):
        self._writer.transport.abort()

    async def close(self):
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), 2.0)
        except (OSError, TimeoutError):
            pass


class Refusals:
    """Tells of refused connections, in one line every REFUSALS_S at most, and counts the others."""

    def __init__(self, say, clock=time.monotonic):
        self._say, self._clock = say, clock
        self._next = clock()
        self._untold = 0

    def add(self, who, why):
        if self._clock() < self._next:
            self._untold += 1
            return
        more = f"; and {connections(self._untold)} before" if self._untold else ""
        self._say(f"refused {who}: {why}{more}")
        self._untold = 0
        self._next = self._clock() + REFUSALS_S

    def close(self):
        if self._untold:
            self._say(f"refused {connections(self._untold)}")
            self._untold = 0


def connections(count):
    return f"{count} more connection{'s' if count > 1 else ''}"


class Members:
    """The other nodes, as node 0 sees them."""

    def __init__(self, options, report, say):
        """report(node, message) gets the messages of the others."""
        self._options = options
        self._report = report
        self._say = say
        self._refusals = Refusals(say)
        self._channels = {}
        self._server = None
        self._tasks = set()  # one for each connection
        self._strangers = {}  # those of them without a proof, the oldest first
        self._all_here = asyncio.Event()

    async def gather(self):
        """Waits for the launchers of all other nodes."""
        options = self._options
        deadline = time.monotonic() + options.join_timeout
        family, _, _, _, address = await wait_for_name(options, deadline, self._say)
        try:
            sock = socket.create_server(address[:2], family=family)
        except OSError as error:
            raise JoinError(f"cannot listen at {options.master_addr}:{options.master_port}: "
                            f"{error.strerror}") from error
        self._server = await asyncio.start_server(self._accept, sock=sock, backlog=MAX_STRANGERS)
        self._say(f"waiting for {options.nnodes - 1} more launcher(s) at {address[0]}:{address[1]}")
        try:
            await asyncio.wait_for(self._all_here.wait(), options.join_timeout)
        except TimeoutError:
            missing = set(range(1, options.nnodes)) - set(self._channels)
            raise JoinError(f"no launcher of node {', '.join(map(str, sorted(missing)))} within "
                            f"{options.join_timeout:g} s (--join-timeout)") from None

    def nodes(self):
        return list(self._channels)

    def tell(self, node, message):
        if node in self._channels:
            self._channels[node].send(message)

    async def close(self):
        if self._server is not None:
            self._server.close()
        for channel in list(self._channels.values()):
            await channel.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._refusals.close()

    def _accept(self, reader, writer):
        if len(self._strangers) >= MAX_STRANGERS:
            oldest = next(iter(self._strangers))
            self._refusals.add(self._strangers.pop(oldest), "it had said nothing when too many others came")
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        self._strangers[task] = (writer.get_extra_info("peername") or ["a stranger"])[0]
        task.add_done_callback(self._forget)

    def _forget(self, task):
        self._tasks.discard(task)
        self._strangers.pop(task, None)

    async def _serve(self, reader, writer):
        channel = Channel(reader, writer)
        try:
            node = await self._let_in(channel)
            if node is not None:
                while (message := await channel.receive()) is not None:
                    self._report(node, message)
                del self._channels[node]
                self._report(node, {"event": "lost"})
            await channel.close()
        finally:
            channel.abort()

    async def _let_in(self, channel):
        """The number of the node that the launcher at the other end is; None if there is none."""
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                node = await self._admit(channel)
        except (JoinError, TimeoutError) as error:
            self._refusals.add(self._strangers.pop(task), str(error) or "it said nothing")
            return None
        del self._strangers[task]
        self._channels[node] = channel
        if len(self._channels) == self._options.nnodes - 1:
            self._all_here.set()
        return node

    async def _admit(self, channel):
        token, nonce = self._options.token, secrets.token_hex(16)
        channel.send({"nonce": nonce})
        hello = await channel.receive() or {}
        node, shape, theirs = hello.get("node"), hello.get("shape"), hello.get("nonce")
        if not (type(node) is int and isinstance(shape, dict) and isinstance(theirs, str)):
            raise JoinError(NO_LAUNCHER)
        if not is_proof(hello.get("proof"), token, f"member {node}", nonce):
            channel.send({"refused": "another SATRAP_TOKEN"})
            raise JoinError("it does not know the job's SATRAP_TOKEN")
        problem = self._problem(node, shape)
        channel.send({"proof": proof(token, "leader", theirs), "refused": problem})
        if problem:
            raise JoinError(problem)
        return node

    def _problem(self, node, shape):
        if not 1 <= node < self._options.nnodes:
            return f"--node-rank {node} is not one of 1 to {self._options.nnodes - 1}"
        if node in self._channels:
            return f"there is a launcher with --node-rank {node} already"
        for name, ours in self._options.shape().items():
            if (theirs := shape.get(name)) != ours:
                shown = theirs if isinstance(theirs, int) else "of another kind"
                return f"node {node} has {name} {shown}, node 0 has {name} {ours}"
        return None


async def join(options, say):
    """The channel to node 0, which may not have started yet, and may start again at another address."""
    deadline = time.monotonic() + options.join_timeout
    while True:
        family, _, _, _, address = await wait_for_name(options, deadline, say)
        try:
            return await asyncio.wait_for(connect(options, family, address), HANDSHAKE_S)
        except (OSError, TimeoutError) as error:
            if time.monotonic() > deadline:
                raise JoinError(f"no launcher of node 0 at {address[0]}:{address[1]} within "
                                f"{options.join_timeout:g} s (--join-timeout)") from error
        await asyncio.sleep(RETRY_S)


async def connect(options, family, address):
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address)
        # While nobody listens, this end may be given that port, and TCP then connects it to itself.
        if sock.getsockname() == sock.getpeername():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens there but this socket itself")
    except BaseException:
        sock.close()
        raise
    channel = Channel(*await asyncio.open_connection(sock=sock))
    try:
        await introduce(options, channel)
    except BaseException:
        channel.abort()
        raise
    return channel


async def introduce(options, channel):
    """Exchanges the proofs. ConnectionResetError if the other side does not speak as node 0 does."""
    greeting = await channel.receive() or {}
    if not isinstance(greeting.get("nonce"), str):
        raise ConnectionResetError
    nonce = secrets.token_hex(16)
    channel.send({"node": options.node_rank, "shape": options.shape(), "nonce": nonce,
                  "proof": proof(options.token, f"member {options.node_rank}", greeting["nonce"])})
    answer = await channel.receive()
    if answer is None:
        raise ConnectionResetError
    if not is_proof(answer.get("proof"), options.token, "leader", nonce):
        raise JoinError("node 0 has another SATRAP_TOKEN")
    if answer.get("refused"):
        raise JoinError(answer["refused"])


def received_command(message):
    """A command of node 0, in the form that Node.handle takes."""
    if message.get("do") == "start":
        message["attempt"] = Attempt(**message["attempt"])
    return message
