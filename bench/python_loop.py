#!/usr/bin/env python3
"""Training by a loop in Python: its rate beside other programs, and its memory.

    bench/python_loop.py rate --tsv FILE [--rounds 5] [--threads N] [--peer NAME='COMMAND' ...] [key.path=value ...]
    bench/python_loop.py memory [--steps 10000] [key.path=value ...]

rate: DLRM of bench/dlrm_kaggle.yaml over a Criteo TSV, for example one of `satrap data generate`, once per run. In each
round the programs take turns: the loop in Python; the same module as TorchScript in `satrap train`; each COMMAND, which
prints a JSON line with `ex_s`. Both of satrap's figures are `examples_per_second` of summary.json. Prints medians,
ranges, the ratios of the loop to each other program, pair by pair, and the CPU time that the package's own lines take
of a step: by cProfile in a run of its own, which makes them slower.

memory: the same loop on generated rows in batches of 64, and the resident memory after each tenth of the steps.

Needs the Python of .venv (torch), and the build's engine (build/release/python).
"""
import argparse
import cProfile
import json
import os
import pathlib
import pstats
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOB = ROOT / "bench/dlrm_kaggle.yaml"
WIDTH, FEATURES, NUMBERS = 16, 26, 13
UNMEASURED = 10  # steps before a profile


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("what", choices=["rate", "memory", "loop"], help="loop: one run, as `rate` starts it")
    p.add_argument("--tsv", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="of satrap and of PyTorch")
    p.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    p.add_argument("--steps", type=int, default=10_000)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--run-dir", type=pathlib.Path)
    p.add_argument("--profile", action="store_true", help="of loop: prints the package's microseconds per step instead")
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    args = p.parse_args()
    if args.what != "memory" and args.tsv is None:
        p.error(f"{args.what} needs --tsv")
    if any("=" not in peer for peer in args.peer):
        p.error("--peer is NAME=COMMAND")
    return args


def make_net():
    import torch

    class Dlrm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bottom, self.top = torch.nn.ModuleList(), torch.nn.ModuleList()
            pairs = (FEATURES + 1) * FEATURES // 2
            for layers, widths in ((self.bottom, [NUMBERS, 512, 256, 64, WIDTH]), (self.top, [WIDTH + pairs, 512, 256])):
                layers.extend(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
            self.last = torch.nn.Linear(256, 1)
            self.register_buffer("below", torch.tril_indices(FEATURES + 1, FEATURES + 1, -1))

        def forward(self, numeric, pooled):
            x = numeric
            for layer in self.bottom:
                x = torch.relu(layer(x))
            vectors = torch.cat([x, pooled], 1).view(x.shape[0], -1, x.shape[1])
            products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.below[0], self.below[1]]
            x = torch.cat([x, products], 1)
            for layer in self.top:
                x = torch.relu(layer(x))
            return self.last(x)

    torch.manual_seed(1)
    return Dlrm()


def train(args, overrides, after_step=lambda step: None):
    """A run of the loop; its summary."""
    sys.path.insert(0, str(args.build / "python"))
    import satrap
    import torch
    torch.set_num_threads(args.threads)
    given = dict(word.split("=", 1) for word in args.settings)
    job = satrap.Job(JOB, {"run_dir": args.run_dir, "train.threads": args.threads, **overrides, **given})
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    trainer = satrap.Trainer(job, net, optimizer, predict=lambda batch: net(batch.numeric, batch.pooled))
    for batch in trainer:
        logits = net(batch.numeric, batch.pooled)
        trainer.step(torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels), scores=logits)
        after_step(batch.step)
    return trainer.summary


def loop(args):
    overrides = {"data.train.path": args.tsv}
    if not args.profile:
        print(json.dumps({"ex_s": train(args, overrides)["examples_per_second"]}))
        return
    profile = cProfile.Profile(time.thread_time)  # does not count waiting for the engine
    steps = train(args, overrides, lambda step: profile.enable() if step == UNMEASURED else None)["step"] - UNMEASURED
    profile.disable()
    package = str(args.build / "python/satrap")
    stats = pstats.Stats(profile).stats
    own = sum(times[2] for (file, _, _), times in stats.items() if file.startswith(package))
    print(json.dumps({"us_per_step": own / steps * 1e6}))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def run_loop(args, folder, *options):
    command = [sys.executable, __file__, "loop", "--tsv", args.tsv, "--threads", str(args.threads), "--build", args.build,
               "--run-dir", pathlib.Path(folder, "loop"), *options, *args.settings]
    return json.loads(run(command).strip().splitlines()[-1])


def run_torchscript(args, folder):
    run_dir = pathlib.Path(folder, "script")
    run([args.build / "bin/satrap", "train", JOB, f"run_dir={run_dir}", f"data.train.path={args.tsv}",
         f"model={{type: torchscript, path: {args.script}}}", f"train.threads={args.threads}", *args.settings])
    return json.loads((run_dir / "summary.json").read_text())["examples_per_second"]


def rate(args):
    import torch
    rates = {}
    with tempfile.TemporaryDirectory() as scratch:
        args.script = pathlib.Path(scratch, "net.pt")
        torch.jit.save(torch.jit.script(make_net()), args.script)
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as folder:
                rates.setdefault("python", []).append(run_loop(args, folder)["ex_s"])
                rates.setdefault("torchscript", []).append(run_torchscript(args, folder))
            for peer in args.peer:
                name, command = peer.split("=", 1)
                rates.setdefault(name, []).append(json.loads(run(shlex.split(command)).strip().splitlines()[-1])["ex_s"])
        own = run_loop(args, scratch, "--profile")["us_per_step"]
    print(f"{args.rounds} rounds, {args.threads} threads, torch {torch.__version__}\n")
    print("| program | examples/s | the loop beside it |\n|---|---|---|")
    for name, values in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["python"], values)]
        print(f"| {name} | {spread(values, ',.0f')} | {spread(ratios, '.3f')} |")
    print(f"\nThe package's own lines: {own:.0f} us per step, with the profiler's share.")


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} - {max(values):{form}})"


def resident_mib():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def write_rows(args, folder):
    path = pathlib.Path(folder, "rows.tsv")
    run([args.build / "bin/satrap", "data", "generate", "--rows", str(64 * 100), "--out", path])
    return path


def memory(args):
    part, seen = max(1, args.steps // 10), []

    def look(step):
        if step % part == 0:
            seen.append((step, resident_mib()))

    with tempfile.TemporaryDirectory() as folder:
        args.run_dir = pathlib.Path(folder, "run")
        train(args, {"data.train.path": write_rows(args, folder), "data.batch_size": 64,
                     "train.epochs": args.steps // 100 + 1, "train.max_steps": args.steps}, look)
    for step, mib in seen:
        print(f"step {step:6d}  {mib:8.1f} MiB")
    print(f"from a fifth of the steps to the end: {seen[-1][1] - seen[len(seen) // 5][1]:+.1f} MiB")


def main():
    args = parse()
    {"rate": rate, "memory": memory, "loop": loop}[args.what](args)


if __name__ == "__main__":
    main()
