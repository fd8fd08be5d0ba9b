#!/usr/bin/env python3
"""Training from a TSV: satrap and another program on the same cores in one run.

    bench/end_to_end.py --tsv FILE [--peer 'COMMAND'] [--runs 5] [--steps SECONDS] [key.path=value ...]

Runs the two in turn (A B A B ...), each alone on the machine, and prints the median and the spread of
their examples per second, the ratio pair by pair, and satrap's stage times. COMMAND must print one
JSON line with `ex_s`. satrap trains bench/dlrm_kaggle.yaml over the file once per run; its figure is
`examples_per_second` of summary.json: reading, parsing and training, without start-up and the last
checkpoint. With --steps training alone is measured, on batches in memory (trainer_step_bench).
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--tsv", required=True, help="Criteo TSV, for example from `satrap data generate`")
    p.add_argument("--peer", help="command to compare with")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--satrap", default=os.path.join(ROOT, "build/release/bin/satrap"))
    p.add_argument("--config", default=os.path.join(ROOT, "bench/dlrm_kaggle.yaml"))
    p.add_argument("--steps", type=float, metavar="SECONDS", help="train from memory for this long")
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    return p.parse_args()


def run_satrap(args):
    with tempfile.TemporaryDirectory() as run_dir:
        subprocess.run([args.satrap, "train", args.config, f"data.train.path={args.tsv}",
                        f"run_dir={run_dir}/run", *args.settings],
                       check=True, capture_output=True, text=True)
        with open(f"{run_dir}/run/summary.json") as f:
            return json.load(f)


def run_steps(args):
    bench = os.path.join(os.path.dirname(args.satrap), "../bench/trainer_step_bench")
    out = subprocess.run([bench, args.config, str(args.steps), f"data.train.path={args.tsv}", *args.settings],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def run_peer(command):
    out = subprocess.run(shlex.split(command), check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def spread(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} - {max(values):,.0f})"


def show_stages(summaries):
    print("satrap's stages, microseconds per example (of each stage's thread), medians:")
    for stage in summaries[0]["stage_seconds"]:
        times = [s["stage_seconds"][stage] / s["examples"] * 1e6 for s in summaries]
        print(f"  {stage:9} {statistics.median(times):6.2f}")
    cpu = [s["cpu_seconds"] / s["examples"] * 1e6 for s in summaries]
    print(f"  CPU time  {statistics.median(cpu):6.2f} per example, all threads, start-up included")
    print(f"  loss {statistics.median(s['train']['loss'] for s in summaries):.4f}, "
          f"auc {statistics.median(s['train']['auc'] for s in summaries):.4f} (last window)")


def main():
    args = parse()
    ours, theirs = [], []
    for _ in range(args.runs):
        ours.append(run_steps(args) if args.steps else run_satrap(args))
        if args.peer:
            theirs.append(run_peer(args.peer))
    rates = [run["ex_s" if args.steps else "examples_per_second"] for run in ours]
    print(f"examples/s, median (min - max) of {args.runs} runs, {os.cpu_count()} cores")
    print(f"  satrap  {spread(rates)}")
    if theirs:
        print(f"  peer    {spread([run['ex_s'] for run in theirs])}")
        ratios = [a / b["ex_s"] for a, b in zip(rates, theirs)]
        print(f"  ratio   {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} - {max(ratios):.2f}), pair by pair")
        if "cpu_us_ex" in theirs[0]:
            print(f"  peer's CPU time {statistics.median(r['cpu_us_ex'] for r in theirs):.2f} us per example")
    if args.steps:
        print(f"  CPU time {statistics.median(r['cpu_us_ex'] for r in ours):.2f} us per example, all threads")
    else:
        show_stages(ours)


if __name__ == "__main__":
    sys.exit(main())
