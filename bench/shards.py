#!/usr/bin/env python3
"""The cost of rows on shards: one process with embedded tables compared with ranks and shards on
the same cores, in one run.

    bench/shards.py --tsv FILE [--ps 1] [--ranks 1] [--runs 5] [--other BIN] [key.path=value ...]

Runs the variants in turn, each alone on the machine, and prints the median and spread of their
examples per second (of summary.json: without start-up and the last checkpoint) and the ratios, round by
round, to the first. --other: a `satrap` of another commit, run with embedded tables too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--tsv", required=True, help="Criteo TSV, for example from `satrap data generate`")
    p.add_argument("--ps", type=int, default=1)
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--other", help="another satrap program to compare embedded tables with")
    p.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"))
    p.add_argument("--config", default=os.path.join(ROOT, "bench/dlrm_kaggle.yaml"))
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    return p.parse_args()


def run(command, args, settings):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, args.config, f"data.train.path={args.tsv}", f"run_dir={folder}/run",
                        *args.settings, *settings], check=True, capture_output=True, text=True)
        with open(f"{folder}/run/summary.json") as file:
            return json.load(file)


def main():
    args = parse()
    satrap = os.path.join(args.bin, "satrap")
    launcher = [os.path.join(ROOT, "launch/satrap-run"), "--bin-dir", args.bin, "--ps", str(args.ps),
                "--nproc-per-node", str(args.ranks)]
    variants = {"embedded": ([satrap, "train"], [])}
    if args.other:
        variants["embedded, other"] = ([args.other, "train"], [])
    variants[f"{args.ranks} ranks, {args.ps} shards"] = (launcher, ["embedding.store=ps"])
    results = {name: [] for name in variants}
    stages = {}
    for _ in range(args.runs):
        for name, (command, settings) in variants.items():
            summary = run(command, args, settings)
            results[name].append(summary["examples_per_second"])
            stages[name] = {k: round(v, 2) for k, v in summary["stage_seconds"].items()}
            print(f"{name:22} {summary['examples_per_second']:9.0f} examples/s", file=sys.stderr)
    first = next(iter(variants))
    print("| variant | examples/s, median (min-max) | relative to the first, median (min-max) |")
    print("|---|---|---|")
    for name, values in results.items():
        shares = [v / f for v, f in zip(values, results[first])]
        print(f"| {name} | {statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f}) | "
              f"{statistics.median(shares):.3f} ({min(shares):.3f}-{max(shares):.3f}) |")
    for name, seconds in stages.items():
        print(f"{name}: {json.dumps(seconds)}")


if __name__ == "__main__":
    main()
