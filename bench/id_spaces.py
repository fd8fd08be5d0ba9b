#!/usr/bin/env python3
"""Does the size of the id space matter? Throughput and memory of tables of fixed capacity.

    bench/id_spaces.py --out DIR [--rounds 3] [--spaces 1e9,1e11,1e13,6.25e12] [key.path=value ...]
    bench/id_spaces.py --out DIR --plot-only

Every round trains once on each space, in turn; the ids of a space are shared evenly by the features of
bench/id_spaces.yaml. 6.25e12 ids of dim 16 are 1e14 parameters. DIR gets results.jsonl (a line per run;
later calls add to it), table.md and plot.svg.

--check makes the exit status 1 unless the median throughput of every space is within 10 % of the first
one's and, once its tables are full, no run's resident memory grows by more than 5 %.
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEATURES = 4  # of id_spaces.yaml
MAX_CHANGE, MAX_GROWTH = 0.10, 0.05


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--out", required=True, type=pathlib.Path, help="folder of results.jsonl, table.md, plot.svg")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--spaces", default="1e9,1e11,1e13,6.25e12", help="numbers of ids")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--plot-only", action="store_true", help="only the table and plot of existing results")
    p.add_argument("--check", action="store_true", help="exit status 1 if the space matters")
    p.add_argument("settings", nargs="*", help="overrides of the configuration")
    return p.parse_intermixed_args()


# Running

def train(args, space, number):
    run_dir = args.out / "runs" / f"{number}-{space}"
    cardinality = int(float(space) / FEATURES)
    subprocess.run([args.build / "bin/satrap", "train", ROOT / "bench/id_spaces.yaml", "--overwrite",
                    f"run_dir={run_dir}", f"data.synthetic.cardinalities={[cardinality] * FEATURES}",
                    *args.settings], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    memory = [[line["examples"], line["rows"], line["resident_bytes"]] for line in lines if "resident_bytes" in line]
    return json.loads((run_dir / "summary.json").read_text()), memory


def measure(args):
    args.out.mkdir(parents=True, exist_ok=True)
    spaces = args.spaces.split(",")
    for number in range(args.rounds):
        shift = number % len(spaces)
        for space in spaces[shift:] + spaces[:shift]:
            summary, memory = train(args, space, number)
            result = {"space": space, "examples_per_second": summary["examples_per_second"],
                      "rows": summary["rows"], "table_bytes": summary["table_bytes"],
                      "resident_bytes": summary["resident_bytes"], "memory": memory}
            with open(args.out / "results.jsonl", "a") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{space:>8} ids {result['examples_per_second']:10,.0f} examples/s  "
                  f"{result['resident_bytes'] / 2**20:8,.0f} MiB", file=sys.stderr)


# Reporting

def load(out):
    runs = collections.defaultdict(list)
    for line in (out / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        runs[result["space"]].append(result)
    return dict(sorted(runs.items(), key=lambda item: float(item[0])))


def median(results, key):
    return statistics.median(result[key] for result in results)


def growth(result):
    """Growth of resident memory since the number of rows reached 99 % of its largest."""
    most = max(rows for _, rows, _ in result["memory"])
    full = [bytes for _, rows, bytes in result["memory"] if rows >= 0.99 * most]
    return max(full) / full[0] - 1


def table(runs):
    lines = ["| ids | parameters | runs | examples/s, median (min - max) | relative to the first | rows | resident MiB | growth when full |",
             "|---|---|---|---|---|---|---|---|"]
    first = median(next(iter(runs.values())), "examples_per_second")
    for space, results in runs.items():
        rates = [result["examples_per_second"] for result in results]
        lines.append(f"| {space} | {16 * float(space):.3g} | {len(results)} "
                     f"| {statistics.median(rates):,.0f} ({min(rates):,.0f} - {max(rates):,.0f}) "
                     f"| {statistics.median(rates) / first:.3f} | {median(results, 'rows'):,.0f} "
                     f"| {median(results, 'resident_bytes') / 2**20:,.0f} "
                     f"| {max(growth(result) for result in results):+.1%} |")
    return "\n".join(lines) + "\n"


def complaints(runs):
    first = median(next(iter(runs.values())), "examples_per_second")
    for space, results in runs.items():
        change = median(results, "examples_per_second") / first - 1
        if abs(change) > MAX_CHANGE:
            yield f"{space} ids: {change:+.1%} examples/s"
        if max(growth(result) for result in results) > MAX_GROWTH:
            yield f"{space} ids: resident memory grows when the tables are full"


# Drawing

WIDTH, HEIGHT, LEFT, TOP, GAP = 760, 260, 90, 40, 90
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b"]


def axes(title, top, most, form):
    shapes = [f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{escape(title)}</text>']
    for i in range(6):
        y = top + HEIGHT * (1 - i / 5)
        shapes.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        shapes.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format(most * i / 5, form)}</text>')
    return shapes


def plot(runs):
    """A bar per space with its runs as dots; resident memory of every run over the examples."""
    width = WIDTH - LEFT - 20
    most = 1.1 * max(result["examples_per_second"] for results in runs.values() for result in results)
    shapes = axes("examples per second, median and runs", TOP, most, ",.0f")
    step = width / len(runs)
    second = TOP + HEIGHT + GAP
    points = [point for results in runs.values() for result in results for point in result["memory"]]
    examples, bytes = max(p[0] for p in points), 1.1 * max(p[2] for p in points)
    memory = axes("resident memory of the trainer, MiB, over examples", second, bytes / 2**20, ",.0f")
    memory.append(f'<text x="{WIDTH - 20}" y="{second + HEIGHT + 20}" text-anchor="end">{examples:,} examples</text>')
    for number, (space, results) in enumerate(runs.items()):
        colour = COLOURS[number % len(COLOURS)]
        x, high = LEFT + step * (number + 0.3), HEIGHT * median(results, "examples_per_second") / most
        shapes.append(f'<rect x="{x:.1f}" y="{TOP + HEIGHT - high:.1f}" width="{step * 0.4:.1f}" height="{high:.1f}" '
                      f'fill="{colour}" fill-opacity="0.5"/>')
        shapes.append(f'<text x="{x + step * 0.2:.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{space} ids</text>')
        for result in results:
            y = TOP + HEIGHT * (1 - result["examples_per_second"] / most)
            shapes.append(f'<circle cx="{x + step * 0.2:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            line = " ".join(f"{LEFT + width * p[0] / examples:.1f},{second + HEIGHT * (1 - p[2] / bytes):.1f}"
                            for p in result["memory"])
            memory.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    height = second + HEIGHT + 40
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(shapes + memory) + "\n</svg>\n")


def main():
    args = parse()
    args.out = args.out.resolve()
    if not args.plot_only:
        measure(args)
    runs = load(args.out)
    text = table(runs)
    (args.out / "table.md").write_text(text)
    (args.out / "plot.svg").write_text(plot(runs))
    print(text, end="")
    found = list(complaints(runs)) if args.check else []
    for complaint in found:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
