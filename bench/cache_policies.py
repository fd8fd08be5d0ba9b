#!/usr/bin/env python3
"""Misses of the cache's policies on generated streams, and on samples of real data, as a table.

Usage: cache_policies.py BUILD_DIR [--data FOLDER] [--only NAME] [--plot FILE.svg]
                         [OPTION of BUILD_DIR/bench/cache_policies ...]

FOLDER holds talkingdata/first50k.csv, criteo_kaggle/first10k.tsv, avazu/first10k.csv, movielens_small/ratings.csv and
frappe/train.csv; those that are missing are left out. A key is a column with its value.
"""

import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

COLUMNS = ["stream", "cache", "rows", "batches it holds", "window", "optimum, of keys", "lru", "lfu", "lookahead",
           "informed", "lookahead / lfu", "touch, ns per key", "plan, ns per key", "window, bytes per key"]
GENERATED = {
    "Zipf 0.9": ["--zipf", "0.9"],
    "Zipf 1.05": ["--zipf", "1.05"],
    "Zipf 0.9, 0.2 % of the rows change their rank per batch": ["--zipf", "0.9", "--drift", "0.002"],
}
# Name: (file, separator, header, columns, column of the time, rows per batch)
SAMPLES = {
    "talkingdata": ("talkingdata/first50k.csv", ",", True, slice(0, 5), None, 256),
    "criteo": ("criteo_kaggle/first10k.tsv", "\t", False, slice(14, None), None, 64),
    "avazu": ("avazu/first10k.csv", ",", True, slice(3, None), None, 64),
    "movielens": ("movielens_small/ratings.csv", ",", True, slice(0, 2), 3, 256),
    "frappe": ("frappe/train.csv", ",", True, [0, 1, 8, 9], None, 256),
}


def write_keys(sample, data, out):
    path, separator, header, columns, time, examples = sample
    with open(data / path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=separator))[header:]
    if time is not None:
        rows.sort(key=lambda row: int(row[time]))
    numbers = {}
    for row in rows[:len(rows) // examples * examples]:
        values = row[columns] if isinstance(columns, slice) else [row[c] for c in columns]
        keys = [numbers.setdefault(key, len(numbers)) for key in enumerate(values)]
        out.write(" ".join(map(str, keys)) + "\n")
    out.flush()


def run(program, name, *options):
    """Prints the lines of the table for a stream, and returns their cells."""
    lines = subprocess.run([program, "--name", name, *options], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    print("\n".join(lines), flush=True)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def plot(rows):
    """A line per stream and cache: what each policy misses, over the optimum's misses."""
    left, width, step, most = 330, 520, 20, 4.0
    rows = [row for row in rows if row[8] != "-"]

    def x(ratio):
        return left + (min(ratio, most) - 1) / (most - 1) * width

    height = step * (len(rows) + 3)
    shapes = []
    for ratio in (1, 1.15, 1.5, 2, 3, 4):
        label = f"{ratio:g} or more" if ratio == most else f"{ratio:g}"
        shapes.append(f'<line x1="{x(ratio):.1f}" y1="{step}" x2="{x(ratio):.1f}" y2="{height - 2 * step}" '
                      f'stroke="#ddd"/><text x="{x(ratio):.1f}" y="{height - step}" '
                      f'text-anchor="middle">{label}</text>')
    for i, (color, policy) in enumerate((("#999", "lru"), ("#d62", "lfu"), ("#06c", "lookahead"))):
        shapes.append(f'<circle cx="{left + 90 * i}" cy="{step / 2}" r="5" fill="{color}"/>'
                      f'<text x="{left + 90 * i + 9}" y="{step / 2 + 4}">{policy}</text>')
        for line, row in enumerate(rows):
            shapes.append(f'<circle cx="{x(float(row[6 + i])):.1f}" cy="{step * (line + 1.5):.0f}" r="5" '
                          f'fill="{color}"/>')
    for line, row in enumerate(rows):
        name = row[0].replace("0.2 % of the rows change their rank per batch", "drifting")
        shapes.append(f'<text x="{left - 12}" y="{step * (line + 1.5) + 4:.0f}" '
                      f'text-anchor="end">{name}, {row[1]}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" '
            'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(shapes) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--plot", type=pathlib.Path)
    arguments, options = parser.parse_known_args()
    program = arguments.build / "bench/cache_policies"
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    rows = []
    for name, stream in GENERATED.items():
        if arguments.only in name:
            rows += run(program, name, *stream, *options)
    for name, sample in SAMPLES.items():
        if arguments.data is None or arguments.only not in name:
            continue
        if not (arguments.data / sample[0]).exists():
            print(f"{name}: {arguments.data / sample[0]} is not there", file=sys.stderr)
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            write_keys(sample, arguments.data, keys)
            rows += run(program, name, "--file", keys.name, "--examples", str(sample[5]), *options)
    if arguments.plot:
        arguments.plot.write_text(plot(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
