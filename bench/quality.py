#!/usr/bin/env python3
"""Quality of what is learned: sync, hybrid and async beside PyTorch, over data sets, models and row optimizers.

    bench/quality.py --data DIR --out FILE [--plot FILE.svg] [--check]       # trains what FILE lacks
    bench/quality.py --out FILE --table [--plot FILE.svg] [--check]          # only reports what FILE has
    options: --sets a,b --models ... --optimizers ... --variants ... --staleness 1,4,16 --seeds 5

DIR holds adult/, criteo_kaggle/, avazu/, ... (quality_sets.py); the set `generated` needs none. Every case appends
one JSON line to FILE: AUC, logloss and calibration on held-out rows after one pass in the order of the file. Cases
that FILE has are not trained again, whichever commit they are from; the report names the commits. hybrid runs with
its bound from the first step and with train.staleness_schedule=sqrt, free-running; async as one rank and one shard.
PyTorch is the program a user would write: the same model, rows, order, batches and optimizers, its own random start
(satrap starts from the average label, train.start_from_average, and dlrm and dcn_v2 with larger output weights; that
is part of the difference).

The report, Markdown on stdout, has the mean of sync and the differences of the other variants to it, paired by seed,
with 95 % intervals. Bold: the whole interval is further from 0 than 0.001 of AUC or 0.5 % of logloss; --check makes
the exit status 1 if there is any. It is also 1 if a run failed. Needs the Python of .venv (torch, numpy).
"""
import argparse
import dataclasses
import hashlib
import json
import math
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from quality_models import MODELS, RATES, settings, train_pytorch
from quality_report import METRICS, SCHEDULES, VARIANTS, Job, Variant, grouped, load, plot, report
from quality_sets import SETS, prepare

ROOT = pathlib.Path(__file__).resolve().parent.parent


def names(known):
    def chosen(text):
        wrong = [name for name in text.split(",") if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(known)}")
        return text.split(",")
    return chosen


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--data", type=pathlib.Path, help="folder of the data sets")
    p.add_argument("--out", type=pathlib.Path, required=True, help="results, a JSON line per case; added to")
    p.add_argument("--sets", type=names(SETS), default=list(SETS), help=f"default {','.join(SETS)}")
    p.add_argument("--models", type=names(MODELS), default=list(MODELS), help=f"default {','.join(MODELS)}")
    p.add_argument("--optimizers", type=names(RATES), default=list(RATES),
                   help=f"of the rows; default {','.join(RATES)}")
    p.add_argument("--variants", type=names(VARIANTS), default=VARIANTS, help=f"default {','.join(VARIANTS)}")
    p.add_argument("--staleness", type=lambda text: [int(bound) for bound in text.split(",")], default=[1, 4, 16],
                   help="bounds of hybrid; default 1,4,16")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--generated-rows", type=int, default=2_000_000, help="training rows; a fifth as many are held out")
    p.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    p.add_argument("--timeout-s", type=int, default=3600, help="time limit of one run")
    p.add_argument("--table", action="store_true", help="train nothing, report all cases of the selected\n"
                   "sets, models, optimizers and variants")
    p.add_argument("--plot", type=pathlib.Path, help="SVG: difference of the AUC over the staleness bound")
    p.add_argument("--check", action="store_true", help="exit status 1 if a difference is beyond its limit")
    args = p.parse_args()
    if not args.table and args.data is None and args.sets != ["generated"]:
        p.error("--data is needed for all sets but `generated`")
    if args.table and not args.out.is_file():
        p.error(f"{args.out} is not there: there are no results to report")
    if not args.table and not (args.bin / "satrap").is_file():
        p.error(f"{args.bin / 'satrap'} is not there: build it, or name its folder by --bin")
    args.bin = args.bin.resolve()
    return args


# satrap

def config(job, variant, seed, prepared, run_dir):
    train = {"mode": variant.name, "epochs": job.epochs, "report_every": "never"}
    if variant.name == "hybrid":
        train |= {"staleness": variant.bound, "staleness_schedule": variant.schedule}
    return {"run_dir": str(run_dir), "seed": seed,
            "data": {"schema": prepared.schema(), "train": {"path": str(prepared.train)},
                     "eval": {"path": str(prepared.held_out)}, "batch_size": job.batch},
            **settings(job.model, job.optimizer, job.rate),
            "embedding": {"store": "ps" if variant.name == "async" else "embedded"},
            "train": train, "checkpoint": {"every": "never"}}


def train_satrap(args, job, variant, seed, prepared):
    """Raises RuntimeError with the command and what it printed if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        file, run_dir = pathlib.Path(folder, "job.yaml"), pathlib.Path(folder, "run")
        file.write_text(json.dumps(config(job, variant, seed, prepared, run_dir)))  # YAML holds JSON
        command = [str(args.bin / "satrap"), "train", str(file)]
        if variant.name == "async":
            command = [str(ROOT / "launch/satrap-run"), "--ps", "1", "--bin-dir", str(args.bin), str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout_s, cwd=folder)
            failure = f"status {done.returncode}\n{done.stderr}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failure = f"no end after {args.timeout_s} s\n"
        summary = {} if failure else json.loads((run_dir / "summary.json").read_text())
        if not failure:
            failure = complaint(summary, job, prepared)
        if failure:
            raise RuntimeError(f"{shlex.join(command)}\n{file.name}: {file.read_text()}\n{failure}")
    evaluation, seen = summary["eval"], summary["staleness"]
    return {key: evaluation[key] for key in ("auc", "logloss", "calibration")} | {
        "steps": summary["step"], "staleness_mean": seen["mean"], "staleness_max": seen["max"],
        "version": summary["version"]}


def complaint(summary, job, prepared):
    """What makes a finished run no result."""
    read, wanted = (summary["examples"], summary["eval"]["examples"]), (job.epochs * job.rows, prepared.held_out_rows)
    return "" if read == wanted else (
        f"trained on {read[0]} and evaluated {read[1]} rows, not {wanted[0]} and {wanted[1]}")


# Cases

def chosen_variants(args):
    hybrid = [Variant("hybrid", bound, schedule) for bound in args.staleness for schedule in SCHEDULES]
    return [v for name in args.variants for v in (hybrid if name == "hybrid" else [Variant(name)])]


def commit_of(args):
    """The checkout's commit and a digest of the program, which need not have been built from it."""
    described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {"commit": described.stdout.strip() or None,
            "program": hashlib.sha256((args.bin / "satrap").read_bytes()).hexdigest()[:12]}


def train(args, job, variant, seed, prepared):
    result = (train_pytorch(job, seed, prepared) if variant.name == "pytorch"
              else train_satrap(args, job, variant, seed, prepared))
    for metric in METRICS:
        if result[metric.key] is None or not math.isfinite(result[metric.key]):
            raise RuntimeError(f"{metric.key} is {result[metric.key]}")
    return result


def record(args, job, variant, seed, result, program):
    identity = dataclasses.asdict(job) | {"variant": variant.name, "bound": variant.bound,
                                          "schedule": variant.schedule, "seed": seed}
    with open(args.out, "a") as file:
        file.write(json.dumps(identity | result | program) + "\n")


def train_set(args, name, prepared, done, program):
    """Trains what is not done; returns the number of failures."""
    jobs = [Job(name, prepared.train_rows, args.epochs, prepared.data_set.batch, model, optimizer, RATES[optimizer])
            for model in args.models for optimizer in args.optimizers]
    cases = [(job, variant, seed) for job in jobs for seed in range(1, args.seeds + 1)
             for variant in chosen_variants(args)]
    todo = [case for case in cases if case not in done]
    failed = 0
    for number, (job, variant, seed) in enumerate(todo, 1):
        label = f"{name} {number}/{len(todo)}: {job.model}, {job.optimizer}, {variant}, seed {seed}"
        start = time.monotonic()
        try:
            result = train(args, job, variant, seed, prepared)
        except RuntimeError as error:
            failed += 1
            print(f"error: {label}: {error}", file=sys.stderr)
            continue
        record(args, job, variant, seed, result, program)
        print(f"{label}: AUC {result['auc']:.5f}, logloss {result['logloss']:.5f}, "
              f"{time.monotonic() - start:.1f} s", file=sys.stderr)
    return failed


def train_all(args):
    """Returns the number of failures and the sets whose files are missing."""
    done, program = load(args.out), commit_of(args)
    failed, skipped = 0, []
    for name in args.sets:
        with tempfile.TemporaryDirectory() as folder:
            try:
                prepared = prepare(name, pathlib.Path(folder), args.data, args.bin / "satrap", args.generated_rows)
            except FileNotFoundError as error:
                skipped.append(f"{name} ({error.filename} is not there)")
                continue
            failed += train_set(args, name, prepared, done, program)
    return failed, skipped


def selected(args, results):
    """The results to report. Differences need sync, whatever is selected."""
    return {(job, variant, seed): result for (job, variant, seed), result in results.items()
            if job.set in args.sets and job.model in args.models and job.optimizer in args.optimizers
            and variant.name in ["sync", *args.variants]}


def main():
    args = parse()
    failed, skipped = (0, []) if args.table else train_all(args)
    groups = grouped(selected(args, load(args.out)))
    print(report(groups))
    if args.plot:
        args.plot.write_text(plot(groups))
    differences = [(group, variant) for group in groups for variant in group.variants()]
    marked = sum(group.is_marked(variant, metric) for group, variant in differences for metric in METRICS)
    problems = [f"{failed} runs failed"] if failed else []
    if args.check and marked:
        problems.append(f"{marked} differences are beyond their limit")
    if args.check and not differences:
        problems.append("no case has sync and another variant: there is nothing to check")
    for text in skipped:
        print(f"skipped: {text}", file=sys.stderr)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
