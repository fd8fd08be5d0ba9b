"""The protocol of the launchers of several nodes: JSON lines over TCP between node 0 and each other one.

Node 0 sends commands (start, stop_ranks, stop_shards, end, exit), the others report events
(failed, ranks_ended, ended, signal). Both sides first prove that they know the job's token, without
sending it. A broken connection means that the node is gone.
"""
import asyncio
import dataclasses
import hmac
import json
import secrets
import socket
import time

from .variables import Attempt

HANDSHAKE_S = 10.0
RETRY_S = 0.2


class JoinError(Exception):
    """The launchers of the job did not all connect."""


def proof(token, role, nonce):
    return hmac.new(token.encode(), f"{role} {nonce}".encode(), "sha256").hexdigest()


def resolve(host, port):
    """The numeric address, found without threads, unlike asyncio's own lookup."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise JoinError(f"--master-addr {host}: {error.strerror}") from error


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
        except (OSError, ValueError):
            return None
        return message if isinstance(message, dict) else None

    async def close(self):
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), 2.0)
        except (OSError, TimeoutError):
            pass


class Members:
    """The other nodes, as node 0 sees them."""

    def __init__(self, options, report):
        """report(node, message) gets the messages of the others."""
        self._options = options
        self._report = report
        self._channels = {}
        self._server = None
        self._all_here = asyncio.Event()

    async def gather(self, say):
        """Waits for the launchers of all other nodes."""
        options = self._options
        family, _, _, _, address = resolve(options.master_addr, options.master_port)
        try:
            sock = socket.create_server(address[:2], family=family, backlog=128)
        except OSError as error:
            raise JoinError(f"cannot listen at {options.master_addr}:{options.master_port}: "
                            f"{error.strerror}") from error
        self._server = await asyncio.start_server(
            lambda reader, writer: self._serve(reader, writer, say), sock=sock)
        say(f"waiting for {options.nnodes - 1} more launcher(s) at {address[0]}:{address[1]}")
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

    async def _serve(self, reader, writer, say):
        channel = Channel(reader, writer)
        try:
            node = await asyncio.wait_for(self._admit(channel), HANDSHAKE_S)
        except (JoinError, TimeoutError) as error:
            say(f"refused {writer.get_extra_info('peername')[0]}: {error or 'it said nothing'}")
            await channel.close()
            return
        self._channels[node] = channel
        if len(self._channels) == self._options.nnodes - 1:
            self._all_here.set()
        while (message := await channel.receive()) is not None:
            self._report(node, message)
        del self._channels[node]
        self._report(node, {"event": "lost"})
        await channel.close()

    async def _admit(self, channel):
        token, nonce = self._options.token, secrets.token_hex(16)
        channel.send({"nonce": nonce})
        hello = await channel.receive() or {}
        node = hello.get("node")
        if not hmac.compare_digest(str(hello.get("proof")).encode(), proof(token, f"member {node}", nonce).encode()):
            raise JoinError("it does not know the job's SATRAP_TOKEN")
        problem = self._problem(node, hello.get("shape"))
        channel.send({"proof": proof(token, "leader", hello.get("nonce")), "refused": problem})
        if problem:
            raise JoinError(problem)
        return node

    def _problem(self, node, shape):
        if not isinstance(node, int) or not 1 <= node < self._options.nnodes:
            return f"--node-rank {node} is not one of 1 to {self._options.nnodes - 1}"
        if node in self._channels:
            return f"there is a launcher with --node-rank {node} already"
        for name, ours in self._options.shape().items():
            if (theirs := (shape or {}).get(name)) != ours:
                return f"node {node} has {name} {theirs}, node 0 has {name} {ours}"
        return None


async def join(options):
    """The channel to node 0, which may not have started yet."""
    family, _, _, _, address = resolve(options.master_addr, options.master_port)
    deadline = time.monotonic() + options.join_timeout
    while True:
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
    except BaseException:
        sock.close()
        raise
    channel = Channel(*await asyncio.open_connection(sock=sock))
    greeting = await channel.receive()
    if greeting is None:
        raise ConnectionResetError
    nonce = secrets.token_hex(16)
    channel.send({"node": options.node_rank, "shape": options.shape(), "nonce": nonce,
                  "proof": proof(options.token, f"member {options.node_rank}", greeting.get("nonce"))})
    answer = await channel.receive() or {}
    if answer.get("refused"):
        raise JoinError(answer["refused"])
    if not hmac.compare_digest(str(answer.get("proof")).encode(), proof(options.token, "leader", nonce).encode()):
        raise JoinError("node 0 has another SATRAP_TOKEN")
    return channel


def received_command(message):
    """A command of node 0, in the form that Node.handle takes."""
    if message.get("do") == "start":
        message["attempt"] = Attempt(**message["attempt"])
    return message
