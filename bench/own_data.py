#!/usr/bin/env python3
"""What a newcomer gets from `satrap init DATA && satrap train`, with no edit, beside LightGBM's defaults (100 trees).

Per data set two comparisons on the same columns:
  own split    AUC on the part that `init` keeps for evaluation, of the checkpoint that early stopping chose by that
               part; LightGBM learns from the other rows, and is scored on the same part. Integers are numbers to it,
               as by its defaults, or else categories where satrap takes them as ids.
  held out     a fifth of the rows is taken away first and seen by neither; `init` keeps a part of the rest for itself,
               LightGBM learns from all of the rest.

    bench/own_data.py --data ../shared/data [--sets adult,avazu] [--check]

LightGBM is installed by pip into an environment of the script's own. Data sets that are not there, and all where pip
cannot install, are skipped by name.
"""
import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["lightgbm", "pandas", "pyarrow", "pyyaml", "xxhash"]
MARGIN = 0.005  # AUC below LightGBM's that is allowed
ENOUGH_ROWS = 5_000  # for --check: an AUC of fewer says little


@dataclasses.dataclass(frozen=True)
class DataSet:
    path: str
    label: str | None = None  # for `init --label`; None: it finds the label


SETS = {
    "adult": DataSet("adult/adult.data"),
    "avazu": DataSet("avazu/first10k.csv"),
    "criteo": DataSet("criteo_kaggle/first10k.tsv"),
    "criteo_csv": DataSet("criteo_kaggle/tiny2k.csv"),
    "criteo_attribution": DataSet("criteo_attribution/small_train.parquet"),
    "frappe": DataSet("frappe/train.csv", "cnt"),
    "ijcai": DataSet("ijcai18/train.tiny.csv"),
    "movielens": DataSet("movielens_small/ratings.csv"),
    "talkingdata": DataSet("talkingdata/first50k.csv"),
    "taobao_dmr": DataSet("taobao_dmr/alimama_sampled_train.txt"),
    "ali_ccp": DataSet("multitask/ali_ccp_train_sample.csv"),
    "aliexpress": DataSet("multitask/aliexpress_train_sample.csv"),
    "census_income": DataSet("multitask/census_income_train_sample.csv"),
}


def enter_environment(folder):
    """Runs this script again with the Python of an environment that has the packages."""
    python = folder / "bin/python"
    marker = folder / "installed"
    if not marker.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"SKIP all: pip cannot install {' '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1]}")
            sys.exit(0)
        marker.touch()
    os.execve(python, [python, __file__, *sys.argv[1:]], {**os.environ, "SATRAP_OWN_DATA": "1"})


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


def lightgbm_auc(job, train, held_out, ids_are_categories=False):
    import lightgbm
    import pandas as pd
    both = pd.concat([train, held_out])[list(job.columns)]
    for name, is_category in job.columns.items():  # the same codes in both
        if is_category or (ids_are_categories and name in job.ids):
            both[name] = both[name].astype("string").astype("category")
    model = lightgbm.train({"objective": "binary", "verbosity": -1},
                           lightgbm.Dataset(both.iloc[:len(train)], job.labels(train)), num_boost_round=100)
    return auc(job.labels(held_out).to_numpy(), model.predict(both.iloc[len(train):]))


class Satrap:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"satrap {' '.join(map(str, arguments))}: {done.stderr.strip().splitlines()[-1]}")
        return done.stdout

    def init_and_train(self, data, name, label):
        began = time.monotonic()
        self("init", data, *(["--label", label] if label else []), "--out", f"{name}.yaml", "--overwrite")
        self("train", f"{name}.yaml", "--overwrite")
        return self.folder / f"{name}.yaml", time.monotonic() - began

    def auc(self, name, *overrides):
        lines = self("eval", f"{name}.yaml", "--checkpoint", f"runs/{name}", *overrides).splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("auc")))


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


def measure(name, data_set, data, satrap):
    path = data / data_set.path
    if path.suffix == ".parquet":  # the other programs read CSV
        import pandas as pd
        pd.read_parquet(path).to_csv(satrap.folder / f"{name}.csv", index=False)
        path = satrap.folder / f"{name}.csv"
    config, seconds = satrap.init_and_train(path.resolve(), name, data_set.label)
    job = Job(config)
    table = job.read(path)
    is_evaluated = job.is_evaluated(len(table))
    parts = table[~is_evaluated], table[is_evaluated]
    own = satrap.auc(name), lightgbm_auc(job, *parts), lightgbm_auc(job, *parts, ids_are_categories=True)

    rest, fifth = held_out_files(path, job, satrap.folder, name)
    config, _ = satrap.init_and_train(rest, f"{name}_rest", data_set.label)
    job = Job(config)
    parts = job.read(rest), job.read(fifth)
    held_out = (satrap.auc(f"{name}_rest", f"data.eval={fifth}"), lightgbm_auc(job, *parts),
                lightgbm_auc(job, *parts, ids_are_categories=True))
    positives = int(job.labels(job.read(fifth)).sum())
    return len(table), seconds, own, held_out, positives


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data",
                        help="folder of the data sets")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), help=",".join(SETS))
    parser.add_argument("--satrap", type=pathlib.Path, default=ROOT / "build/release/bin/satrap")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "satrap-own-data")
    parser.add_argument("--check", action="store_true",
                        help=f"status 1 if satrap is more than {MARGIN} below LightGBM on its own split, where there "
                             f"are at least {ENOUGH_ROWS} rows")
    arguments = parser.parse_args()
    if "SATRAP_OWN_DATA" not in os.environ:
        enter_environment(arguments.venv)

    print("| data | rows | seconds | own split: satrap | LightGBM, with ids as categories | held out: satrap "
          "| LightGBM, with ids as categories | positives held out |\n|---|---|---|---|---|---|---|---|")
    misses = []
    for name in arguments.sets:
        if not (arguments.data / SETS[name].path).exists():
            print(f"SKIP {name}: there is no {arguments.data / SETS[name].path}")
            continue
        with tempfile.TemporaryDirectory(prefix="satrap-own-data-") as folder:
            satrap = Satrap(arguments.satrap.resolve(), pathlib.Path(folder))
            rows, seconds, own, held_out, positives = measure(name, SETS[name], arguments.data, satrap)
        columns = [f"{a:.4f} | {b:.4f}, {c:.4f}" for a, b, c in (own, held_out)]
        print(f"| {name} | {rows:,} | {seconds:.1f} | {columns[0]} | {columns[1]} | {positives:,} |", flush=True)
        if rows >= ENOUGH_ROWS and own[0] < max(own[1:]) - MARGIN:
            misses.append(name)
    if misses and arguments.check:
        sys.exit(f"more than {MARGIN} below LightGBM: {', '.join(misses)}")


if __name__ == "__main__":
    main()
