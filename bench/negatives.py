#!/usr/bin/env python3
"""Training on a share of the negatives beside training on all rows: AUC, calibration and speed.

    bench/negatives.py [--rows 1500000] [--rate 0.1] [--base-rate 0.05] [--seeds 5] [--labels 1|2]

Each seed is a click log of its own (`satrap data generate`), which both jobs train on once, in turns, in as many steps,
with rates that fall to 1 %. Both are evaluated on the same further rows, all of them. With --labels 2 a second label is 1 for the clicks of some ids. Prints a line for
each seed, then means with 95 % intervals over the seeds; the difference of the AUCs is paired by seed.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Quantiles of Student's t for 95 %, by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145, 19: 2.093}
JOB = """run_dir: run
device: cpu
data:
  schema:
    delimiter: "\\t"
    quote: ""
    header: false
    columns: [%s]
    labels: [%s]
    numeric: [{name: I1..I13, transform: log1p}]
    features: [{name: C1..C26, type: hex}]
  train: train.tsv
  eval: eval.tsv
  batch_size: %d
tables: {default: {dim: 8, optimizer: {lr: 0.05, schedule: &decay {decay: linear, decay_steps: %d, min_factor: 0.01}}}}
dense_optimizer: {lr: 0.002, schedule: *decay}
model: {type: dlrm, bottom: [32], top: [64, 32]}
"""
STEPS = 1000  # of both jobs, whose batches differ in size


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rows", type=int, default=1_500_000)
    p.add_argument("--rate", type=float, default=0.1, help="data.train.negatives")
    p.add_argument("--base-rate", type=float, default=0.05, help="share of positives of the log")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--labels", type=int, choices=[1, 2], default=1)
    p.add_argument("--satrap", default=ROOT / "build/release/bin/satrap")
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    return p.parse_args()


def add_label(path):
    """A second label behind the first: the clicks of a third of the ids of the first feature."""
    lines = path.read_text().splitlines(keepends=True)
    with open(path, "w") as file:
        for line in lines:
            click, rest = line.split("\t", 1)
            id_ = line.split("\t")[14].strip()
            bought = click == "1" and bool(id_) and int(id_, 16) % 3 == 0
            file.write(f"{click}\t{int(bought)}\t{rest}")


def make_log(args, seed, folder):
    subprocess.run([args.satrap, "data", "generate", "--rows", str(args.rows), "--out", folder / "train.tsv",
                    "--eval-rows", str(min(args.rows, 400_000)), "--eval-out", folder / "eval.tsv", "--seed", str(seed),
                    "--scale", "0.02", "--base-rate", str(args.base_rate)], check=True, capture_output=True)
    labels = ["click", "buy"][:args.labels]
    if args.labels == 2:
        add_label(folder / "train.tsv")
        add_label(folder / "eval.tsv")
    columns = labels + [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)]
    return ", ".join(columns), ", ".join(labels)


def train(args, seed, folder, columns, rate):
    share = args.base_rate + (1 - args.base_rate) * rate
    (folder / "job.yaml").write_text(JOB % (*columns, round(args.rows * share / STEPS), STEPS))
    command = [args.satrap, "train", "job.yaml", "--overwrite", f"seed={seed}", f"data.train.negatives={rate}",
               *args.settings]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    summary = json.loads((folder / "run/summary.json").read_text())
    evaluation = summary["eval"]
    labels = evaluation.get("labels", {"click": evaluation})
    return {"rows_per_second": args.rows / summary["seconds"], "examples": summary["examples"],
            **{f"{name} {metric}": label[metric] for name, label in labels.items() for metric in ("auc", "calibration")}}


def mean(values):
    half = T95[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):.4f} ± {half:.4f}"


def main():
    args = parse()
    pairs = []
    for seed in range(1, args.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            columns = make_log(args, seed, folder)
            rates = [1.0, args.rate] if seed % 2 else [args.rate, 1.0]
            found = {rate: train(args, seed, folder, columns, rate) for rate in rates}
        pairs.append((found[1.0], found[args.rate]))
        print(json.dumps({"seed": seed, "all": found[1.0], "some": found[args.rate]}), flush=True)
    for name in pairs[0][0]:
        if name.endswith("auc"):
            print(f"{name}: all {mean([a[name] for a, _ in pairs])}, "
                  f"some - all {mean([b[name] - a[name] for a, b in pairs])}")
        elif name.endswith("calibration"):
            print(f"{name}: all {mean([a[name] for a, _ in pairs])}, some {mean([b[name] for _, b in pairs])}")
    ratio = statistics.median(b["rows_per_second"] / a["rows_per_second"] for a, b in pairs)
    print(f"rows of the log per second: {ratio:.2f} times as many, with "
          f"{statistics.mean(b['examples'] / a['examples'] for a, b in pairs):.3f} of the examples")


if __name__ == "__main__":
    main()
