"""Scores rows with the files of `satrap export`."""
import json
import pathlib

import numpy as np

from .fields import BadValue, FieldReader, InputError, cross
from .network import load_network, predictions_of
from .rows import columns_of
from .tables import Table
from .times import zone_of

# Of export.json: 1 has no text.value_rule; 1 and 2 have no model.format, no inputs made from times, no crosses; before
# 4 every prediction is a sigmoid.
FORMATS = (1, 2, 3, 4)


class Scorer:
    """A model in a folder that `satrap export` has written. Scoring does not change it: threads may share one.

    `columns` are the columns that it reads, `labels` the names of what it predicts: labels, or the classes of the only
    label. A network in TorchScript or pt2 is code: load such exports only from whom you trust.
    """

    def __init__(self, export_dir):
        folder = pathlib.Path(export_dir)
        self._about = read_description(folder)
        self._network = load_network(folder, self._about["model"])
        self._tables = {table["name"]: Table(folder, table) for table in self._about["tables"]}
        inputs = self._about["numeric"] + self._about["features"]
        self.columns = list(dict.fromkeys(column for config in inputs for column in columns_read(config)))
        self.labels = [name for label in self._about["labels"] for name in label.get("classes", [label["name"]])]
        for config in self._about["features"]:
            if "zone" in config:
                zone_of(config["zone"])  # throws here if this machine does not know it

    def score(self, rows):
        """The predictions of rows, float32: [rows], or for a model of several labels or classes [rows, len(labels)].

        They are probabilities, or the values of labels that are numbers.

        `rows` is a mapping from column to values (a dict of lists or NumPy arrays, a pandas DataFrame), or an iterable
        of dicts. Values are texts as they stand in the data, numbers, lists of ids for a feature with several, or None.
        Throws InputError if a column is missing or a value cannot be read.
        """
        return predictions_of(self._network.logits(*self.inputs(rows)), self._about["labels"])

    def inputs(self, rows):
        """The dense network's inputs: numbers [rows, numeric_width] and pooled rows [rows, pooled_width]."""
        columns, count = columns_of(rows, self.columns)
        reader = FieldReader(self._about["text"])
        numeric = np.zeros((count, self._about["model"]["numeric_width"]), np.float32)
        pooled = np.zeros((count, self._about["model"]["pooled_width"]), np.float32)
        for config in self._about["numeric"]:
            add_number(config, read_numbers(reader, config, columns), numeric, reader.real)
        bags = {}  # of the features so far: a cross comes after those that it is made of
        for config in self._about["features"]:
            bags[config["name"]] = read_bags(reader, config, columns, bags)
            self._add_feature(config, bags[config["name"]], numeric, pooled)
        return numeric, pooled

    def _add_feature(self, config, bags, numeric, pooled):
        lengths = np.array([len(ids) for ids, _ in bags], np.int64)
        row_of = np.repeat(np.arange(len(bags)), lengths)
        weights = np.array([weight for _, row in bags for weight in row], np.float32)
        ids = np.array([id for row, _ in bags for id in row], np.uint64)
        vectors = self._tables[config["table"]].weights_of(ids) * weights[:, None]
        out = pooled[:, config["position"]:config["position"] + config["width"]]
        if config["pooling"] != "sequence":
            out[:] = pool(config["pooling"], vectors, weights, row_of, len(bags))
            return
        place = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        padded = np.zeros((len(bags), config["max_length"], vectors.shape[1]), np.float32)
        padded[row_of, place] = vectors
        out[:] = padded.reshape(len(bags), -1)
        numeric[row_of, config["mask_position"] + place] = 1


def read_description(folder):
    path = folder / "export.json"
    if not path.is_file():
        raise FileNotFoundError(f"'{folder}' has no export.json: name a folder that `satrap export` has written")
    about = json.loads(path.read_text(encoding="utf-8"))
    if about["format"] not in FORMATS:
        raise ValueError(f"{path}: format {about['format']}, this version reads formats {FORMATS[0]} to {FORMATS[-1]}: "
                         f"install the satrap that has written it, {about['version']}")
    for name, file in about["files"].items():
        there = folder / name
        size = there.stat().st_size if there.is_file() else None
        if size != file["bytes"]:
            has = "is not there" if size is None else f"has {size} bytes, not {file['bytes']}"
            raise ValueError(f"{there} {has}: the export is not complete; copy or write it again")
    return about


def columns_read(config):
    """Those of a number or feature; most have one, and a cross has none of its own."""
    if "since" in config:
        return [config["column"], config["since"]]
    return [] if "cross" in config else config.get("columns") or [config["column"]]


def read_column(read, columns, names):
    """read(values...) of every row, once for the same texts. An error names column, row and value."""
    read = once_for_texts(read)
    result = []
    for row, values in enumerate(zip(*(columns[name] for name in names))):
        try:
            result.append(read(values))
        except BadValue as error:
            shown = ", ".join(shorten(repr(value)) for value in values)
            many = "columns" if len(names) > 1 else "column"
            listed = ", ".join(f"'{name}'" for name in names)
            raise InputError(f"{many} {listed}, row {row}: {error}, got {shown}") from None
    return result


def once_for_texts(read):
    """read(*values), which remembers what became of texts: most come back."""
    known = {}

    def remembering(values):
        if not all(type(value) is str for value in values):
            return read(*values)
        if values not in known:
            known[values] = read(*values)
        return known[values]
    return remembering


def shorten(text):
    return text if len(text) <= 60 else text[:57] + "..."


def read_numbers(reader, config, columns):
    if "since" in config:
        return read_column(lambda *values: reader.age(config, *values), columns, columns_read(config))
    return read_column(reader.number, columns, columns_read(config))


def read_bags(reader, config, columns, others):
    """The ids of every row, and their weights. `others`: those of other features, by name."""
    if "cross" in config:
        return cross_rows(config, *(others[name] for name in config["cross"]))
    if "part" in config:
        return read_column(lambda value: reader.part(config, value), columns, columns_read(config))
    if "boundaries" in config:
        return read_column(lambda value: reader.bucket(config, value), columns, columns_read(config))
    return read_column(lambda *values: reader.bag(config, values), columns, columns_read(config))


def cross_rows(config, first, second):
    result = []
    for row, pair in enumerate(zip(first, second)):
        try:
            result.append(cross(config, *pair))
        except BadValue as error:
            raise InputError(f"cross '{config['name']}', row {row}: {error}") from None
    return result


def add_number(config, values, numeric, real):
    """real: the type in which a number is kept until it is an input, float64 or (rule 1) float32."""
    x = np.array(values, real)
    missing = np.isnan(x)
    if config["clip"]:
        x = np.clip(x, *np.array(config["clip"], real))
    if config["transform"].startswith("log1p"):
        x = np.copysign(np.log1p(np.abs(x, dtype=np.float64)).astype(real), x)
    if config["transform"].endswith("zscore"):
        x = (x.astype(np.float64) - config["mean"]) / config["stddev"]
    numeric[:, config["position"]] = np.where(missing, np.float32(config["fill"]), x.astype(np.float32))
    if config["missing_indicator"]:
        numeric[:, config["position"] + 1] = missing


def pool(pooling, vectors, weights, row_of, count):
    """One vector for each row, summed in the order of its ids."""
    total = np.zeros((count, vectors.shape[1]), np.float32)
    np.add.at(total, row_of, vectors)
    if pooling == "sum":
        return total
    divisor = np.zeros(count, np.float32)
    np.add.at(divisor, row_of, weights if pooling == "mean" else weights**2)
    divisor = np.sqrt(divisor) if pooling == "sqrtn" else divisor
    empty = (divisor == 0)[:, None]
    return np.where(empty, np.float32(0), total / np.where(empty, np.float32(1), divisor[:, None]))
