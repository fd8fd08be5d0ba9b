"""The metrics that a run has written."""
import json
import pathlib

import numpy as np


def read_metrics(run_dir):
    """The columns of `metrics.jsonl`: a dict from the path of a number to a NumPy array of float64.

    A row is a report ("step", "examples", "train.loss", "train.auc", "staleness.mean", ...) or an evaluation ("step",
    "eval.auc", ...), in the order in which they were written; what a row does not have is NaN. Columns whose values are
    no numbers, and the lines that say when a process has started, are left out. A run in progress may be read: its last
    line counts once it is complete.
    """
    path = pathlib.Path(run_dir) / "metrics.jsonl"
    if not path.is_file():
        raise FileNotFoundError(f"'{run_dir}' has no metrics.jsonl: name the run_dir of a run")
    rows = [row for row in map(numbers_of, complete_lines(path)) if row]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def complete_lines(path):
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: not a line of metrics: {error}") from None


def numbers_of(line):
    """The numbers of a line by their paths, such as "train.auc"; nothing of the start of a process."""
    return {} if "start" in line else dict(leaves(line, ""))


def leaves(values, prefix):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            yield prefix + name, np.nan if value is None else float(value)
