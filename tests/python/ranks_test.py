"""satrap.Trainer on several ranks and with parameter-server shards."""
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

import rank_program
from engine_case import SATRAP, SOURCE, EngineCase, satrap, torch
from satrap.ranks import Sums

PROGRAM = SOURCE / "tests/python/rank_program.py"
SATRAP_RUN = SOURCE / "launch/satrap-run"


def plain(value):
    return {key: plain(part) for key, part in value.items()} if isinstance(value, dict) else (
        str(value) if isinstance(value, pathlib.Path) else value)


class Ranks(EngineCase):
    def config(self, run="run", **more):
        config = super().config(run, **more)
        config["cluster"] = {"timeout": "60s"}
        return config

    def launch(self, run, *options, status=0, config=None, **program):
        done = subprocess.run(
            [sys.executable, SATRAP_RUN, "--bin-dir", pathlib.Path(SATRAP).parent, "--log-dir", self.dir / f"{run}-logs", "--restart-delay",
             "0", *map(str, options), PROGRAM, json.dumps(plain(config or self.config(run))), json.dumps(program)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def log(self, run, name, attempt=0):
        return (self.dir / f"{run}-logs/attempt-{attempt}/{name}.log").read_text()

    def nets(self, run):
        """What the two ranks have said of their nets at the end."""
        return [self.log(run, f"rank-{rank}").rpartition(" net ")[2].strip() for rank in range(2)]

    def test_shards_change_no_bit(self):
        rank_program.train(self.config("alone"), {})
        self.launch("shards", "--ps", 2, "--nproc-per-node", 1)
        self.assertEqual(self.digest("shards"), self.digest("alone"))

    def test_two_ranks_have_one_net_and_the_same_bits_again_after_a_kill_a_break_and_by_torchrun(self):
        """Each part has 1 or 2 shards: that changes nothing either."""
        self.launch("whole", "--ps", 2, "--nproc-per-node", 2)
        nets = self.nets("whole")
        self.assertEqual(nets[0], nets[1])
        whole = self.digest("whole")
        for part in (self.kill_and_restart, self.break_and_resume, self.start_by_torchrun):
            with self.subTest(part.__name__):
                self.assertEqual(self.digest(part()), whole)

    def kill_and_restart(self):
        config = self.config("killed")
        config["checkpoint"] = {"every": "10 steps"}
        self.launch("killed", "--ps", 1, "--nproc-per-node", 2, "--max-restarts", 1, config=config, do="kill", step=18)
        self.assertIn("resumed from", self.log("killed", "rank-0", attempt=1))
        return "killed"

    def break_and_resume(self):
        done = self.launch("broken", "--ps", 1, "--nproc-per-node", 2, do="break", step=12)
        self.assertIn("rank 0 of 2: finished False", done.stdout)
        self.assert_ended_before(12, "broken")
        self.launch("broken", "--ps", 2, "--nproc-per-node", 2, resume=True)
        return "broken"

    def start_by_torchrun(self):
        torchrun = pathlib.Path(sys.executable).with_name("torchrun")
        script = f"""set -e
eval "$({sys.executable} {SATRAP_RUN} --bin-dir {pathlib.Path(SATRAP).parent} --log-dir {self.dir}/logs --ps-only --ps 2 &)"
trap 'kill $SATRAP_RUN_PID' EXIT
{torchrun} --nproc-per-node 2 --master-port 0 {PROGRAM} '{json.dumps(plain(self.config("torchrun")))}' '{{}}'
"""
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 of 2: finished True", done.stdout)
        return "torchrun"

    def assert_ended_before(self, step, run):
        checkpoint, = (self.dir / run / "checkpoints").iterdir()
        self.assertEqual(json.loads((checkpoint / "manifest.json").read_text())["step"], step - 1)

    def test_the_loss_is_the_mean_over_all_ranks(self):
        """Without dropout and BatchNorm two ranks do what one does, but for the order of sums; 3001 rows leave one of
        them without examples at the end."""
        path = self.dir / "train.csv"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines, lines[1]]) + "\n")
        rank_program.train(self.config("one"), {"plain": True})
        self.launch("two", "--ps", 1, "--nproc-per-node", 2, plain=True)
        one, two = (satrap.read_metrics(self.dir / run) for run in ("one", "two"))
        self.assertEqual(one["step"][-1], 31)
        for metric, delta in (("train.loss", 2e-6), ("eval.auc", 1e-4)):
            numbers = [[value for value in run[metric] if value == value] for run in (one, two)]  # others have none
            self.assertGreater(len(numbers[0]), 0)
            for a, b in zip(*numbers, strict=True):
                self.assertAlmostEqual(a, b, delta=delta)

    def test_an_exception_on_one_rank_ends_all_in_order(self):
        self.launch("raised", "--ps", 1, "--nproc-per-node", 2, status=1, do="raise", step=12)
        self.assertIn("a mistake of the program", self.log("raised", "rank-1"))
        self.assert_ended_before(12, "raised")

    def test_a_rank_with_another_net_is_refused_by_name(self):
        self.launch("wider", "--ps", 1, "--nproc-per-node", 2, status=1, wider=True)
        said = self.log("wider", "rank-1")
        self.assertIn("rank 1 takes over what rank 0 has: net does not fit", said)
        self.assertIn("layers.0.bias", said)


class SumsOfTwoRanks(unittest.TestCase):
    """Without processes: what two ranks write is added, as the engine does."""

    class Memory:
        def __init__(self, size):
            self.values = torch.full((size,), 7.0)

        def summed(self, owner):
            return self.values

    def ranks(self, make):
        nets = [make() for _ in range(2)]
        sums = [Sums(net, 2) for net in nets]
        memories = [self.Memory(part.size) for part in sums]
        for part, memory in zip(sums, memories):
            part.open(memory)
        return nets, sums, memories

    def exchange(self, memories):
        total = memories[0].values + memories[1].values
        for memory in memories:
            memory.values.copy_(total)

    def test_gradients_are_added_and_buffers_change_by_the_mean(self):
        def make():
            net = torch.nn.Linear(3, 1)
            net.register_buffer("mean", torch.tensor([1.0, 5.0]))
            net.register_buffer("mask", torch.tensor([0.0, -math.inf, math.inf]))
            net.register_buffer("count", torch.tensor(4))
            return net
        nets, sums, memories = self.ranks(make)
        befores = [[buffer.clone() for buffer in net.buffers()] for net in nets]
        for number, net in enumerate(nets):
            net.weight.grad = torch.full((1, 3), number + 1.0)  # no rank has one of the bias
            net.mean += torch.tensor([number, 2.0])
            sums[number].write(befores[number])
        self.exchange(memories)
        for net, part, before in zip(nets, sums, befores):
            norm = part.read(before)
            self.assertEqual(net.weight.grad.tolist(), [[3.0, 3.0, 3.0]])
            self.assertIsNone(net.bias.grad)
            self.assertAlmostEqual(norm, math.sqrt(27), places=5)
            self.assertEqual(net.mean.tolist(), [1.5, 7.0])
            self.assertEqual(net.mask.tolist(), [0.0, -math.inf, math.inf])
            self.assertEqual(net.count.item(), 4)

    def test_a_rank_without_rows_adds_nothing(self):
        nets, sums, memories = self.ranks(lambda: torch.nn.Linear(2, 1))
        nets[0].weight.grad, nets[0].bias.grad = torch.ones(1, 2), torch.ones(1)
        sums[0].write([])
        sums[1].write_nothing()
        self.exchange(memories)
        sums[1].read([])
        self.assertEqual(nets[1].weight.grad.tolist(), [[1.0, 1.0]])

    def test_what_ranks_cannot_sum_is_refused(self):
        net = torch.nn.Linear(2, 1)
        sums = Sums(net, 2)
        sums.check(torch.optim.SGD(net.parameters(), lr=1))
        with self.assertRaisesRegex(satrap.ConfigError, "make them part of net"):
            sums.check(torch.optim.SGD([*net.parameters(), torch.nn.Parameter(torch.ones(1))], lr=1))
        table = torch.nn.Embedding(3, 2, sparse=True)
        sums = Sums(table, 2)
        sums.open(self.Memory(sums.size))
        table(torch.tensor([1])).sum().backward()
        with self.assertRaisesRegex(satrap.Error, "'weight' has a sparse gradient"):
            sums.write([])


if __name__ == "__main__":
    unittest.main(verbosity=2)
