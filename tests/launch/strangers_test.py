"""Strangers at the port where the launchers meet: each costs its own connection and no more."""
import asyncio
import contextlib
import json
import random
import re
import resource
import socket
import sys
import unittest
from unittest import mock

from launcher import ROOT, NodesTest

sys.path.insert(0, str(ROOT / "launch"))
from satrap_run import members  # noqa: E402
from satrap_run.members import MAX_STRANGERS, Refusals, proof  # noqa: E402

ODD = [
    b'{"proof": "\\ud800"}', b'{"node": "\\ud800"}', b"[" * 60_000, b'{"a":' * 10_000, b"", b"\0" * 100, b"null",
    b"[1]", b'{"node": 1e999}', b'{"node": ' + b"9" * 4000 + b"}", b'{"node": ' + b"9" * 5000 + b"}", b'{"node": true}',
    b'{"node": 1, "proof": null}', b'{"node": 1, "proof": [], "shape": [], "nonce": {}}', b"\xff\xfe", b"x" * 200_000,
]


class Strangers(NodesTest):
    def leader(self, *args, **kwargs):
        leader = self.node(0, *args, **kwargs)
        self.assertIn("waiting for 1 more", leader.stderr.readline())
        return leader

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(peer.close)
        return peer

    def say(self, line):
        """Sends a line to node 0 and waits until it has hung up."""
        with self.connect() as peer, contextlib.suppress(ConnectionError):
            peer.sendall(line + b"\n")
            while peer.recv(65536):
                pass

    def test_odd_json_is_refused(self):
        leader = self.leader()
        for line in ODD:
            self.say(line)
        self.end_all([leader, self.node(1)], 0)

    def test_random_json_is_refused(self):
        leader = self.leader()
        dice = random.Random(17)
        for _ in range(300):
            self.say(random_line(dice))
        self.end_all([leader, self.node(1)], 0)

    def test_one_that_knows_the_token_may_not_say_anything_either(self):
        leader = self.leader()
        dice = random.Random(18)
        for _ in range(300):
            with self.connect() as peer, contextlib.suppress(ConnectionError), peer.makefile("rb") as lines:
                nonce = json.loads(lines.readline())["nonce"]
                node = dice.choice([0, 1, 2, -1, 10**30])
                shape = random_value(dice, 3) if node == 1 else {}
                hello = {"node": node, "proof": proof(self.env["SATRAP_TOKEN"], f"member {node}", nonce),
                         "nonce": random_value(dice, 2), "shape": shape}
                peer.sendall(json.dumps(hello).encode() + b"\n")
                while lines.readline():
                    pass
        self.end_all([leader, self.node(1)], 0)

    def test_silent_ones_are_few_at_a_time_and_leave_no_trace_at_the_end(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        leader = self.leader(preexec_fn=few_descriptors)
        silent = [self.connect() for _ in range(160)]
        for peer in silent[:-MAX_STRANGERS]:  # the oldest are dropped for the newest
            with contextlib.suppress(ConnectionError):
                while peer.recv(65536):
                    pass
        said = self.end_all([leader, self.node(1)], 0)
        self.assertLess(said.count("\n"), 10)
        self.assertIn("refused 127.0.0.1: it had said nothing when too many others came\n", said)
        self.assertGreaterEqual(int(re.search(r"refused (\d+) more connections", said)[1]), 160 - MAX_STRANGERS)

    def test_silent_ones_do_not_keep_a_job_that_does_not_start(self):
        leader = self.leader("--join-timeout", 0.3)
        self.connect()
        _, err = self.end(leader, 1)
        self.assertIn("no launcher of node 1", err)

    def answer(self, server, answer):
        """Answers the launcher of node 1 in the place of node 0, and hangs up."""
        peer, _ = server.accept()
        with peer, contextlib.suppress(OSError):  # it has hung up
            peer.sendall(answer + b"\n")
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65536):
                pass

    def test_one_in_the_place_of_node_0_is_left_for_it(self):
        answers = [b'{"nonce": "\\ud800"}', b'{"nonce": []}', b'{"nonce": "x"}\n[]', b"[" * 60_000, b"\xff", b""]
        with socket.create_server(("127.0.0.1", self.port)) as server:
            server.settimeout(60)
            member = self.node(1)
            for answer in answers:
                self.answer(server, answer)
        self.end_all([self.node(0), member], 0)

    def test_a_refusal_without_proof_is_not_repeated(self):
        with socket.create_server(("127.0.0.1", self.port)) as server:
            server.settimeout(60)
            member = self.node(1)
            self.answer(server, b'{"nonce": "x"}\n{"refused": "go \\u001b[31m away", "proof": "\\ud800"}')
            _, err = self.end(member, 1)
        self.assertEqual(err, "[satrap-run] error: node 0 has another SATRAP_TOKEN\n")


class Joining(unittest.TestCase):
    def test_an_end_that_is_connected_to_itself_is_no_node(self):
        """The system may give the port of node 0, at which nobody listens yet, to the end that connects to it."""
        with socket.socket() as end:
            end.bind(("127.0.0.1", 0))
            with mock.patch.object(members, "socket", mock.Mock(socket=lambda *_: end)), \
                    self.assertRaises(ConnectionRefusedError):
                asyncio.run(members.connect(None, socket.AF_INET, end.getsockname()))
            self.assertEqual(end.fileno(), -1, "closed, so that node 0 can have its port")


class Refused(unittest.TestCase):
    def test_lines_are_limited_and_the_rest_is_counted(self):
        said, now = [], [0.0]
        refusals = Refusals(said.append, lambda: now[0])
        for _ in range(1000):
            refusals.add("1.2.3.4", "it said nothing")
        self.assertEqual(said, ["refused 1.2.3.4: it said nothing"])
        now[0] = 11.0
        refusals.add("1.2.3.5", "no token")
        self.assertEqual(said[1:], ["refused 1.2.3.5: no token; and 999 more connections before"])
        refusals.add("1.2.3.6", "no token")
        refusals.close()
        self.assertEqual(said[2:], ["refused 1 more connection"])


def random_value(dice, depth):
    kinds = ["text", "number", "word"] + ["list", "object"] * (depth > 0)
    match dice.choice(kinds):
        case "text":
            return "".join(chr(dice.choice([0, 10, 34, 65, 255, 0x2028, 0xd800, 0xdfff, 0x1f600]))
                           for _ in range(dice.randrange(5)))
        case "number":
            return dice.choice([0, 1, -1, 2**63, 10**400, 0.5, 1e308, float("inf"), float("nan")])
        case "word":
            return dice.choice([None, True, False])
        case "list":
            return [random_value(dice, depth - 1) for _ in range(dice.randrange(4))]
        case "object":
            names = ["node", "proof", "nonce", "shape", "event", "--ps", "\udc00"]
            return {dice.choice(names): random_value(dice, depth - 1) for _ in range(dice.randrange(6))}


def random_line(dice):
    """JSON of a launcher's words, damaged in one of three."""
    line = json.dumps({name: random_value(dice, 3) for name in dice.sample(["node", "proof", "nonce", "shape"], 3)})
    line = bytearray(line.encode())
    if dice.randrange(3) == 0:
        for _ in range(dice.randrange(1, 5)):
            line[dice.randrange(len(line))] = dice.randrange(256)
    return bytes(line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
