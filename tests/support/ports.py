"""Ports for servers that tests start."""

import fcntl
import os
import pathlib
import random
import socket
import tempfile

PORTS = range(20_000, 30_000)  # the system gives none of these to who asks for any, nor to the ends of connections
# Byte n is locked by who has port n.
_LOCKS = os.open(pathlib.Path(tempfile.gettempdir()) / f"satrap-test-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)
_mine = set()


def _can_be_mine(port):
    """Keeps other processes that ask here from a port, until this one ends. Whether nobody has it."""
    if port in _mine:
        return False
    try:
        fcntl.lockf(_LOCKS, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    _mine.add(port)
    return True


def free_ports(number):
    """Different ports at which nobody listens, and that no other test is given while this process runs."""
    ports = []
    while len(ports) < number:
        port = random.SystemRandom().choice(PORTS)
        if _can_be_mine(port):
            ports.append(port)
    return ports
