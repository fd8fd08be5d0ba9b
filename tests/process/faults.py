"""Faults that act on a job's processes and connections from outside."""
import contextlib
import ctypes
import hmac
import os
import pathlib
import random
import resource
import socket
import struct
import threading

SYS_PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)


# ----------------------------------------------------------------------------------- connections

def borrowed_sockets(pid):
    """The TCP sockets of another process, as duplicates: operations on them affect that process."""
    found = []
    with contextlib.suppress(OSError):  # the process may end meanwhile
        pidfd = os.pidfd_open(pid)
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                    continue
                copy = LIBC.syscall(SYS_PIDFD_GETFD, pidfd, int(fd), 0)
                if copy < 0:
                    continue
                found.append(socket.socket(fileno=copy))
                if found[-1].family not in (socket.AF_INET, socket.AF_INET6):
                    found.pop().close()
        finally:
            os.close(pidfd)
    return found


def can_borrow_sockets():
    """Needs Linux 5.6 and the right to trace one's own processes."""
    with socket.create_server(("127.0.0.1", 0)):
        mine = borrowed_sockets(os.getpid())
    for sock in mine:
        sock.close()
    return bool(mine)


def names_of(sock):
    try:
        return sock.getsockname()[:2], sock.getpeername()[:2]
    except OSError:  # listens, or is closed
        return None


def cut(some, others):
    """Cuts every connection between `some` processes and `others`, which all stay alive: both ends see the end of the
    stream. Returns the number of connections."""
    ends = [[(names_of(sock), sock) for pid in pids for sock in borrowed_sockets(pid)] for pids in (some, others)]
    far = {names for names, _ in ends[1] if names}
    count = 0
    for names, sock in ends[0]:
        if names and names[::-1] in far:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
                count += 1
    for _, sock in ends[0] + ends[1]:
        sock.close()
    return count


def listening_ports(pid):
    ports = set()
    for sock in borrowed_sockets(pid):
        with sock, contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ports.add(sock.getsockname()[:2])
    return sorted(ports)


def listening_sockets(pid):
    """The addresses at which a process listens in IPv4, without a right to trace it; nothing if it has ended."""
    inodes = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        return [("127.0.0.1", int(fields[1].split(":")[1], 16)) for fields in map(str.split, lines)
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes]
    return []


# ---------------------------------------------------------------------------------------- memory

def leave_no_memory(pid, spare_bytes):
    """Limits the process to spare_bytes more of address space."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + spare_bytes
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))


# ---------------------------------------------------------------------------------------- rogues

MAGIC = 0x32304E5041525453  # src/net/wire.h
STORE_MAGIC = 0x32524F5453535350  # src/net/rendezvous_protocol.h
MEETING_MAGIC = 0x3230435041525453  # src/net/meeting.cpp


def frame(body):
    return struct.pack("<I", len(body)) + body


def text(value):
    return struct.pack("<I", len(value)) + value


def control(server):
    """A request for a connection to a shard; see src/net/wire.h."""
    return b"\0" + text(server.encode()) + text(b"a rogue")


def greeting(magic=MAGIC):
    """The first message of a client, of src/net/handshake.h, and its nonce."""
    nonce = os.urandom(32)
    return frame(struct.pack("<Q", magic) + nonce), nonce


def proven(token, request, client_nonce, server_nonce, magic=MAGIC):
    """The second message of a client."""
    statement = b"\1" + struct.pack("<Q", magic) + text(client_nonce) + text(server_nonce) + text(request)
    return frame(hmac.new(token, statement, "sha256").digest() + request)


def receive(sock):
    """The next message; nothing if the other end hangs up."""
    def exactly(count):
        words = b""
        while len(words) < count and (more := sock.recv(count - len(words))):
            words += more
        return words
    length = exactly(4)
    return exactly(struct.unpack("<I", length)[0]) if len(length) == 4 else b""


def introduce(address, token, request=b"", *, magic=MAGIC, patience_s=1.0, afterwards=b"", heard=None):
    """Does a client's part of the handshake and returns the last answer; `heard` gets the client's messages."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=patience_s) as sock:
        first, nonce = greeting(magic)
        sock.sendall(first)
        answer = receive(sock)
        if answer[:1] != b"\0":
            return answer
        second = proven(token, request, nonce, answer[1:], magic)
        if heard is not None:
            heard[:] = [first, second]
        sock.sendall(second)
        answer = receive(sock)
        sock.sendall(afterwards)
    return answer


class Rogue:
    """A client that connects to a process and sends what no rank would."""

    def __init__(self, rng, token, server):
        """Takes a server's job token and the name under which it serves."""
        self._rng = rng
        other = bytes(rng.choices(b"0123456789abcdef", k=len(token)))
        request = control(server)
        oversized = struct.pack("<I", 0x7FFFFFFF) + rng.randbytes(5000)
        link = b"\1" + text(server.encode())
        self._manners = {
            "says nothing": lambda at: say(at, b""),
            "sends garbage": lambda at: say(at, rng.randbytes(rng.randrange(1, 100_000)), self._patience()),
            "announces a message of 4 GiB": lambda at: say(at, oversized, self._patience()),
            "sends half a message": lambda at: say(at, greeting()[0][:20], self._patience()),
            "does not wait for its turn": lambda at: say(at, greeting()[0] * 1000, self._patience()),
            "shows a wrong token": lambda at: introduce(at, other, request),
            "shows the beginning of the token": lambda at: introduce(at, token[:-1], request),
            "shows no token": lambda at: introduce(at, b"", request),
            "wants another server": lambda at: introduce(at, token, control("shard/99")),
            "knows the token and says nothing with it": lambda at: introduce(at, token),
            "knows the token and has no second connection": lambda at: introduce(at, token, request),
            "knows the token and has a false key":
                lambda at: introduce(at, token, link + text(rng.randbytes(rng.randrange(0, 200)))),
            "knows the token and goes on with an oversized message":
                lambda at: introduce(at, token, request, afterwards=oversized),
        }

    def _patience(self):
        return 0.0 if self._rng.random() < 0.5 else 0.2

    def visit(self, address):
        """Connects once in every manner, in random order."""
        for act in self._rng.sample(list(self._manners.values()), len(self._manners)):
            act(address)


def say(address, words, patience_s=0.0):
    """The answer of the process, until it hangs up or sends nothing for that long."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=1.0) as sock:
        sock.sendall(words)
        sock.settimeout(patience_s or 1.0)
        while patience_s and len(answer) < 10_000 and (more := sock.recv(1000)):
            answer += more
    return answer


def flood(address, count, seconds):
    """Opens many connections at once and keeps them idle for a while. Returns a thread."""
    def hold():
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection(address, timeout=1.0))
            threading.Event().wait(seconds)
    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    return thread


def seeded(*parts):
    return random.Random("/".join(map(str, parts)))
