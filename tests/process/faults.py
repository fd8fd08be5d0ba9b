"""Faults that act on a job's processes and connections from outside."""
import contextlib
import ctypes
import os
import pathlib
import random
import resource
import socket
import struct
import threading

SYS_PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)
MAGIC = 0x31304E5041525453  # src/net/wire.h


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


# ---------------------------------------------------------------------------------------- memory

def leave_no_memory(pid, spare_bytes):
    """Limits the process to spare_bytes more of address space."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + spare_bytes
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))


# ---------------------------------------------------------------------------------------- rogues

def frame(body):
    return struct.pack("<I", len(body)) + body


def text(value):
    return struct.pack("<I", len(value)) + value


def hello(token, server, address=b""):
    return frame(struct.pack("<Q", MAGIC) + text(token) + text(server) + text(b"a rogue") + text(address))


class Rogue:
    """A client that connects to a process and sends what no rank would."""

    def __init__(self, rng, token, server):
        """Takes a server's job token and the name under which it serves."""
        self._rng = rng
        other = bytes(rng.choices(b"0123456789abcdef", k=len(token)))
        self._manners = {
            "says nothing": b"",
            "sends garbage": rng.randbytes(rng.randrange(1, 100_000)),
            "announces a message of 4 GiB": struct.pack("<I", 0xFFFFFFFF) + rng.randbytes(10_000),
            "sends half a message": frame(bytes(1000))[:500],
            "shows a wrong token": hello(other, server),
            "shows the beginning of the token": hello(token[:-1], server),
            "shows no token": hello(b"", server),
            "wants another server": hello(token, b"shard/99"),
            "knows the token and has no address": hello(token, server),
            "knows the token and has a false address": hello(token, server, rng.randbytes(rng.randrange(1, 200))),
            "knows the token and goes on with an oversized message":
                hello(token, server, rng.randbytes(64)) + struct.pack("<I", 0x7FFFFFFF) + rng.randbytes(5000),
        }

    def visit(self, address):
        """Connects once in every manner, in random order."""
        for words in self._rng.sample(list(self._manners.values()), len(self._manners)):
            say(address, words, 0.0 if self._rng.random() < 0.5 else 0.2)


def say(address, words, patience_s):
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
