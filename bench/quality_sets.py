"""The data sets of bench/quality.py: where their rows come from, as files for satrap and as arrays for PyTorch."""
import csv
import dataclasses
import functools
import itertools
import pathlib
import random
import subprocess
from typing import Callable

import numpy as np
import torch

NUMBERS = [f"I{i}" for i in range(1, 14)]  # of Criteo's format
IDS = [f"C{i}" for i in range(1, 27)]
CHUNK = 100_000  # rows that are held as text at a time


def read_csv(path):
    with open(path, newline="") as file:
        _, *rows = csv.reader(file)
    return rows


def split(rows):
    """The first four fifths, and the rest, which is held out."""
    cut = (4 * len(rows) + 4) // 5
    return rows[:cut], rows[cut:]


# Loaders: a folder -> (training rows, held-out rows). A row is [label, numbers ..., ids ...], all text.

def adult(data):
    def rows(name):
        fields = [[field.strip() for field in line.split(",")] for line in open(data / "adult" / name) if line.strip()]
        kept = [0, 4, 10, 11, 12, 1, 3, 5, 6, 7, 8, 9, 13]
        return [[str(int(f[14].startswith(">"))), *("" if f[c] == "?" else f[c] for c in kept)] for f in fields]
    return rows("adult.data"), rows("adult.test")


def criteo(data):
    with open(data / "criteo_kaggle/first10k.tsv") as file:
        return split([line.rstrip("\n").split("\t") for line in file])


def avazu(data):
    return split([[r[1], *r[3:]] for r in read_csv(data / "avazu/first10k.csv")])


def talkingdata(data):
    return split([[r[7], *r[:5]] for r in read_csv(data / "talkingdata/first50k.csv")])


def ijcai(data):
    """The first id of columns with several."""
    return split([[field.split(";")[0] for field in r] for r in read_csv(data / "ijcai18/train.tiny.csv")])


def frappe(data):
    """The label: the user has used the app more than most users use an app."""
    return split([[str(int(float(r[2]) > -0.99)), *r[:2], *r[3:]] for r in read_csv(data / "frappe/train.csv")])


def movielens(data):
    """Shuffled: the file is sorted by user, and its last fifth has none of the users before."""
    rows = [[str(int(float(r[2]) >= 4)), *r[:2]] for r in read_csv(data / "movielens_small/ratings.csv")]
    random.Random(1).shuffle(rows)
    return split(rows)


@dataclasses.dataclass(frozen=True)
class DataSet:
    batch: int
    load: Callable | None  # None: generated
    numeric: list[str]
    features: list[str]
    transform: str = "log1p"  # of the numbers, as data.schema.numeric.transform


SETS = {
    "adult": DataSet(256, adult, ["age", "education_num", "capital_gain", "capital_loss", "hours"],
                     ["workclass", "education", "marital", "occupation", "relationship", "race", "sex", "country"],
                     "log1p_zscore"),
    "criteo": DataSet(128, criteo, NUMBERS, IDS),
    "avazu": DataSet(128, avazu, [], "C1 banner_pos site_id site_domain site_category app_id app_domain app_category "
                     "device_id device_ip device_model device_type device_conn_type "
                     "C14 C15 C16 C17 C18 C19 C20 C21".split()),
    "talkingdata": DataSet(512, talkingdata, [], ["ip", "app", "device", "os", "channel"]),
    "ijcai": DataSet(256, ijcai, NUMBERS, IDS[:8]),
    "frappe": DataSet(256, frappe, [], "user item daytime weekday isweekend homework weather country city".split()),
    "movielens": DataSet(256, movielens, [], ["user", "movie"]),
    "generated": DataSet(1024, None, NUMBERS, IDS),
}


@dataclasses.dataclass
class Arrays:
    """Rows for PyTorch. All features share one table: an id is its row there, 0 if it is missing."""
    labels: torch.Tensor   # [rows]
    numeric: torch.Tensor  # [rows, numbers], transformed, 0 if missing
    ids: torch.Tensor      # [rows, features]


@dataclasses.dataclass
class Prepared:
    """A data set as tab-separated files without a header."""
    data_set: DataSet
    train: pathlib.Path
    held_out: pathlib.Path
    train_rows: int
    held_out_rows: int

    def schema(self):
        of = self.data_set
        return {"delimiter": "\t", "quote": "", "header": False, "columns": ["label", *of.numeric, *of.features],
                "label": {"column": "label"},
                "numeric": [{"name": name, "transform": of.transform} for name in of.numeric],
                "features": [{"name": name} for name in of.features]}

    @functools.cached_property
    def arrays(self):
        """Training rows and held-out rows as Arrays, and the number of rows of the table."""
        number_of = [{"": 0} for _ in self.data_set.features]
        parts = [read_arrays(path, len(self.data_set.numeric), number_of) for path in (self.train, self.held_out)]
        first = np.cumsum([0] + [len(known) - 1 for known in number_of], dtype=np.int32)
        scale = fitted_scale(parts[0][1]) if self.data_set.transform == "log1p_zscore" else (0.0, 1.0)
        train, held_out = (
            Arrays(torch.from_numpy(labels), torch.from_numpy(np.nan_to_num((numeric - scale[0]) / scale[1], nan=0.0)),
                   torch.from_numpy(ids + (ids > 0) * first[:-1])) for labels, numeric, ids in parts)
        return train, held_out, int(first[-1]) + 1


def read_arrays(path, num_numeric, number_of):
    """Labels, numbers as log(1 + |x|) with the sign of x, and per feature the number of its id in number_of."""
    chunks = []
    with open(path) as file:
        while lines := list(itertools.islice(file, CHUNK)):
            label, *columns = zip(*(line.rstrip("\n").split("\t") for line in lines))
            raw = np.array([[float(text or "nan") for text in column] for column in columns[:num_numeric]], np.float32)
            raw = raw.reshape(num_numeric, len(lines)).T
            ids = [[known.setdefault(text, len(known)) for text in column]
                   for column, known in zip(columns[num_numeric:], number_of)]
            chunks.append((np.array(label, np.float32), np.copysign(np.log1p(np.abs(raw)), raw),
                           np.array(ids, np.int32).T))
    return [np.concatenate(part) for part in zip(*chunks)]


def fitted_scale(numeric):
    """Mean and standard deviation of the columns, as satrap fits them on the training rows."""
    deviation = np.nanstd(numeric, axis=0, dtype=np.float64)
    return (np.nanmean(numeric, axis=0, dtype=np.float64).astype(np.float32),
            np.where(deviation > 0, deviation, 1.0).astype(np.float32))


def prepare(name, folder, data, satrap, generated_rows):
    """Writes the set's files to the folder. FileNotFoundError: the data folder does not have it."""
    data_set, train, held_out = SETS[name], folder / "train.tsv", folder / "held_out.tsv"
    if data_set.load is None:
        counts = [generated_rows, generated_rows // 5]
        subprocess.run([satrap, "data", "generate", "--rows", str(counts[0]), "--out", train, "--eval-rows",
                        str(counts[1]), "--eval-out", held_out], check=True, stdout=subprocess.DEVNULL)
    else:
        parts = data_set.load(data)
        counts = [len(rows) for rows in parts]
        for path, rows in zip((train, held_out), parts):
            path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return Prepared(data_set, train, held_out, *counts)
