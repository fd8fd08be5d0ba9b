#!/usr/bin/env python3
"""Misses of the cache's policies on generated streams, and on samples of real data, as a table.

Usage: cache_policies.py BUILD_DIR [--data FOLDER] [--only NAME] [OPTION of BUILD_DIR/bench/cache_policies ...]

FOLDER holds talkingdata/first50k.csv, criteo_kaggle/first10k.tsv, avazu/first10k.csv, movielens_small/ratings.csv and
frappe/train.csv; those that are missing are left out. A key is a column with its value.
"""

import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

HEADER = """\
| stream | cache | rows | batches it holds | window | optimum, of keys | lru | lfu | lookahead | lookahead / lfu | touch, ns per key | plan, ns per key | window, bytes per key |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments, options = parser.parse_known_args()
    program = arguments.build / "bench/cache_policies"
    print(HEADER, flush=True)
    for name, stream in GENERATED.items():
        if arguments.only in name:
            subprocess.run([program, "--name", name, *stream, *options], check=True)
    for name, sample in SAMPLES.items():
        if arguments.data is None or arguments.only not in name:
            continue
        if not (arguments.data / sample[0]).exists():
            print(f"{name}: {arguments.data / sample[0]} is not there", file=sys.stderr)
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            write_keys(sample, arguments.data, keys)
            subprocess.run([program, "--name", name, "--file", keys.name, "--examples", str(sample[5]), *options],
                           check=True)


if __name__ == "__main__":
    main()
