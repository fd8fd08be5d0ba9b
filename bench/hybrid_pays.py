#!/usr/bin/env python3
"""Does hybrid pay? Throughput and AUC over the staleness bound, across an emulated network link.

    bench/hybrid_pays.py --out DIR [--rounds 5] [--link 1000,1000 --link 200,10000] [key.path=value ...]
    bench/hybrid_pays.py --out DIR --plot-only

Two shards run in one network namespace, the ranks in another one, joined by link_emulator (one-way
delay in microseconds, rate in Mbit/s). Every round trains once in each mode, in turn, on the same
generated click log and from the same start, which differs between rounds; a summary.json gives examples
per second, the AUC on held-out rows and the staleness seen. DIR gets results.jsonl (a line per run; later calls add to it), table.md and plot.svg.

A mode that ends in +cache has a cache of rows, which is how its gain is measured:

    bench/hybrid_pays.py --out DIR --ranks 1 --modes sync,hybrid:4,sync+cache,hybrid:4+cache --cache 13MiB

Ratios and AUC differences are taken within a round and their medians reported. --check makes the exit
status 1 unless, on every link, hybrid(4) has 2.6 times the throughput of sync and 0.9 times that of
async, within 0.001 of sync's AUC, and async's AUC is further away. Needs root (see link_emulator).
"""
import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import secrets
import socket
import statistics
import subprocess
import sys
import types
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "launch"))
from satrap_run.variables import Attempt, rank_variables  # noqa: E402

NAME = "satrap"  # namespaces satrap-a (shards) and satrap-b (ranks)
SHARDS = 2
MODES = ["sync", "hybrid:0", "hybrid:1", "hybrid:4", "hybrid:16", "async"]
MIN_TO_SYNC, MIN_TO_ASYNC, MAX_AUC_LOSS = 2.6, 0.9, 0.001


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--out", required=True, type=pathlib.Path, help="folder of results.jsonl, table.md, plot.svg")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--link", action="append", type=link, help="DELAY_US,RATE_MBIT (default 1000,1000 and 200,10000)")
    p.add_argument("--modes", default=",".join(MODES), help=f"default {','.join(MODES)}")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--split", action="store_true", help="every second rank is beside the shards, not across the link")
    p.add_argument("--cache", default="64MiB", help="embedding.cache.memory of modes with +cache")
    p.add_argument("--rows", type=int, default=400_000, help="training rows; a quarter as many are held out")
    p.add_argument("--scale", default="0.1", help="factor on the number of ids, see `satrap data generate`")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--config", default=str(ROOT / "bench/hybrid_pays.yaml"))
    p.add_argument("--timeout-s", type=int, default=3600, help="time limit of one run")
    p.add_argument("--plot-only", action="store_true", help="only the table and plot of existing results")
    p.add_argument("--check", action="store_true", help="exit status 1 if hybrid does not pay")
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    return p.parse_intermixed_args()


def link(text):
    delay_us, rate_mbit = text.split(",")
    return int(delay_us), float(rate_mbit)


def link_name(delay_us, rate_mbit):
    return f"{delay_us / 1000:g} ms, {rate_mbit / 1000:g} Gbit/s"


# Running

def generate(args):
    """The click log that all runs read, made once."""
    train, held_out = args.out / "train.tsv", args.out / "eval.tsv"
    if not held_out.exists():
        subprocess.run([args.build / "bin/satrap", "data", "generate", "--rows", str(args.rows),
                        "--scale", args.scale, "--out", train, "--eval-rows", str(args.rows // 4),
                        "--eval-out", held_out], check=True, stdout=subprocess.DEVNULL)
    return [f"data.train.path={train}", f"data.eval.path={held_out}"]


@contextlib.contextmanager
def running(command, **kwargs):
    """Runs a program during the block; SIGTERM at its end."""
    process = subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.DEVNULL, **kwargs)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def emulated_link(args, delay_us, rate_mbit):
    return running([args.build / "bench/link_emulator", "--name", NAME, "--delay-us", delay_us,
                    "--rate-mbit", rate_mbit], stdout=subprocess.PIPE)


def inside(end, command):
    return ["ip", "netns", "exec", f"{NAME}-{end}", *map(str, command)]


def exported(text):
    return dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines())


def train(args, mode, settings, run_dir):
    """Runs a mode once; returns its summary."""
    mode, _, cache = mode.partition("+")
    name, _, staleness = mode.partition(":")
    settings = [*settings, *args.settings, f"train.mode={name}", f"run_dir={run_dir}"]
    if cache:
        settings.append(f"embedding.cache.memory={args.cache}")
    if staleness:
        settings.append(f"train.staleness={staleness}")
    network = {**os.environ, "SATRAP_INTERFACE": "link0", "OMP_NUM_THREADS": "1"}
    launcher = [ROOT / "launch/satrap-run", "--ps-only", "--ps", SHARDS, "--bin-dir", args.build / "bin",
                "--log-dir", f"{run_dir}-logs", args.config, *settings]
    with running(inside("a", launcher), env=network, stdout=subprocess.PIPE) as shards:
        with shards.stdout:
            found = exported(shards.stdout.read())
        if "SATRAP_STORE" not in found:
            sys.exit(f"error: no shards for {mode}: {run_dir}-logs")
        run_ranks(args, [args.build / "bin/satrap", "train", args.config, *settings], found, network)
    return json.loads((run_dir / "summary.json").read_text())


def run_ranks(args, command, found, network):
    options = types.SimpleNamespace(node_rank=0, nnodes=1, nproc=args.ranks, world_size=args.ranks,
                                    max_restarts=0, ps=SHARDS, loaders=0, interface="link0")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    attempt = Attempt(0, secrets.token_hex(4), found["SATRAP_STORE"], "127.0.0.1", port)
    with contextlib.ExitStack() as stack:
        ends = "ba" if args.split else "bb"
        ranks = [stack.enter_context(running(inside(ends[rank % 2], command), env=network | rank_variables(
            options, attempt, found["SATRAP_TOKEN"], rank), stdout=subprocess.DEVNULL)) for rank in range(args.ranks)]
        for number, rank in enumerate(ranks):
            if rank.wait(args.timeout_s) != 0:
                sys.exit(f"error: rank {number} ended with status {rank.returncode}")


def measure(args):
    args.out.mkdir(parents=True, exist_ok=True)
    data = generate(args)
    modes = args.modes.split(",")
    for delay_us, rate_mbit in args.link or [(1000, 1000.0), (200, 10000.0)]:
        with emulated_link(args, delay_us, rate_mbit) as emulator, emulator.stdout:
            if not emulator.stdout.readline().startswith("ready"):
                sys.exit("error: no emulated link")
            for number in range(args.rounds):
                session = secrets.token_hex(4)
                for mode in modes[number % len(modes):] + modes[:number % len(modes)]:
                    run_dir = args.out / "runs" / f"{session}-{mode.replace(':', '-')}"
                    summary = train(args, mode, [*data, f"seed={number + 1}"], run_dir)
                    record(args, {"link": link_name(delay_us, rate_mbit), "round": session, "mode": mode,
                                  "examples_per_second": summary["examples_per_second"],
                                  "auc": summary["eval"]["auc"],
                                  "staleness": summary["staleness"]["mean"]})


def record(args, result):
    with open(args.out / "results.jsonl", "a") as file:
        file.write(json.dumps(result) + "\n")
    print(f"{result['link']}  {result['mode']:10} {result['examples_per_second']:10,.0f} examples/s  "
          f"auc {result['auc']:.5f}", file=sys.stderr)


# Reporting

class Link:
    """All results of one link: mode -> round -> result."""

    def __init__(self, name, results):
        self.name = name
        self.modes = collections.defaultdict(dict)
        for result in results:
            self.modes[result["mode"]][result["round"]] = result

    def median(self, mode, key):
        return statistics.median(result[key] for result in self.modes[mode].values())

    def spread(self, mode, key):
        values = [result[key] for result in self.modes[mode].values()]
        return min(values), max(values)

    def paired(self, mode, base, of):
        """Median over the rounds that have both of of(result, result of base); None without any."""
        rounds = self.modes[mode].keys() & self.modes[base].keys()
        return statistics.median(of(self.modes[mode][r], self.modes[base][r]) for r in rounds) if rounds else None

    def speedup(self, mode, base):
        return self.paired(mode, base, lambda a, b: a["examples_per_second"] / b["examples_per_second"])

    def auc_change(self, mode):
        return self.paired(mode, "sync", lambda a, b: a["auc"] - b["auc"])


def mode_order(mode):
    mode, _, cache = mode.partition("+")
    name, _, staleness = mode.partition(":")
    return ["sync", "hybrid", "async"].index(name), int(staleness or 0), cache


def label(mode):
    mode, _, cache = mode.partition("+")
    name, _, staleness = mode.partition(":")
    return (f"{name}({staleness})" if staleness else name) + (f" with {cache}" if cache else "")


def load(out):
    links = collections.defaultdict(list)
    for line in (out / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        links[result["link"]].append(result)
    return [Link(name, results) for name, results in links.items()]


def number_or_dash(value, form):
    return "-" if value is None else format(value, form)


def table(links):
    lines = ["| link | mode | rounds | examples/s, median (min - max) | relative to sync | relative to async | AUC | minus sync | mean staleness |",
             "|---|---|---|---|---|---|---|---|---|"]
    for one in links:
        for mode in sorted(one.modes, key=mode_order):
            low, high = one.spread(mode, "examples_per_second")
            lines.append(
                f"| {one.name} | {label(mode)} | {len(one.modes[mode])} "
                f"| {one.median(mode, 'examples_per_second'):,.0f} ({low:,.0f} - {high:,.0f}) "
                f"| {number_or_dash(one.speedup(mode, 'sync'), '.2f')} "
                f"| {number_or_dash(one.speedup(mode, 'async'), '.2f')} | {one.median(mode, 'auc'):.5f} "
                f"| {number_or_dash(one.auc_change(mode), '+.5f')} | {one.median(mode, 'staleness'):.1f} |")
    return "\n".join(lines) + "\n"


def complaints(links):
    """The promises that hybrid(4) does not keep."""
    found = []
    for one in links:
        to_sync, to_async = one.speedup("hybrid:4", "sync"), one.speedup("hybrid:4", "async")
        loss, async_loss = one.auc_change("hybrid:4"), one.auc_change("async")
        if None in (to_sync, to_async, loss, async_loss):
            found.append(f"{one.name}: sync, hybrid(4) and async in one round are needed")
            continue
        if to_sync < MIN_TO_SYNC:
            found.append(f"{one.name}: hybrid(4) has {to_sync:.2f} times the throughput of sync, not {MIN_TO_SYNC}")
        if to_async < MIN_TO_ASYNC:
            found.append(f"{one.name}: hybrid(4) has {to_async:.2f} times the throughput of async, not {MIN_TO_ASYNC}")
        if abs(loss) >= MAX_AUC_LOSS:
            found.append(f"{one.name}: the AUC of hybrid(4) differs from sync's by {loss:+.5f}")
        if async_loss >= loss:
            found.append(f"{one.name}: async loses no more AUC ({async_loss:+.5f}) than hybrid(4) ({loss:+.5f})")
    return found


# Drawing

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 760, 300, 80, 40, 40, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd"]


def ticks(low, high, count=5):
    """Round numbers that cover low .. high."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-12) / count))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= count)
    return [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def panel(links, modes, key, title, form, top, from_zero):
    """Axes, and per link a line through the medians with whiskers from the smallest to the largest."""
    spreads = [one.spread(mode, key) for one in links for mode in modes if one.modes.get(mode)]
    low, high = min(s[0] for s in spreads), max(s[1] for s in spreads)
    marks = ticks(0 if from_zero else low, high if high > low else low + 1e-3)
    low, high = marks[0], marks[-1]
    step = (WIDTH - LEFT - 20) / len(modes)

    def x(mode, one):
        return LEFT + step * (modes.index(mode) + 0.5) + 6 * (links.index(one) - (len(links) - 1) / 2)

    def y(value):
        return top + HEIGHT * (high - value) / (high - low)

    shapes = [f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{escape(title)}</text>']
    for mark in marks:
        shapes.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" stroke="#ddd"/>')
        shapes.append(f'<text x="{LEFT - 8}" y="{y(mark) + 4:.1f}" text-anchor="end">{format(mark, form)}</text>')
    for mode in modes:
        shapes.append(f'<text x="{LEFT + step * (modes.index(mode) + 0.5):.1f}" y="{top + HEIGHT + 20}" '
                      f'text-anchor="middle">{escape(label(mode))}</text>')
    for one, colour in zip(links, COLOURS * len(links)):
        points = []
        for mode in modes:
            if not one.modes.get(mode):
                continue
            at, middle, (least, most) = x(mode, one), one.median(mode, key), one.spread(mode, key)
            points.append(f"{at:.1f},{y(middle):.1f}")
            shapes.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(least):.1f}" y2="{y(most):.1f}" stroke="{colour}"/>')
            shapes.append(f'<circle cx="{at:.1f}" cy="{y(middle):.1f}" r="4" fill="{colour}">'
                          f"<title>{escape(f'{one.name}, {label(mode)}: {middle:,.5g}')}</title></circle>")
        shapes.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return shapes


def plot(links):
    modes = sorted({mode for one in links for mode in one.modes}, key=mode_order)
    second = TOP + HEIGHT + BOTTOM + GAP
    height = second + HEIGHT + BOTTOM + 30
    shapes = panel(links, modes, "examples_per_second", "examples per second", ",.0f", TOP, True)
    shapes += panel(links, modes, "auc", "AUC on held-out rows", ".4f", second, False)
    for number, one in enumerate(links):
        at = LEFT + number * 200
        shapes.append(f'<rect x="{at}" y="{height - 22}" width="12" height="12" fill="{COLOURS[number % len(COLOURS)]}"/>')
        shapes.append(f'<text x="{at + 18}" y="{height - 12}">{escape(one.name)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(shapes) + "\n</svg>\n")


def main():
    args = parse()
    args.out = args.out.resolve()
    if not args.plot_only:
        measure(args)
    links = load(args.out)
    text = table(links)
    (args.out / "table.md").write_text(text)
    (args.out / "plot.svg").write_text(plot(links))
    print(text, end="")
    found = complaints(links) if args.check else []
    for complaint in found:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
