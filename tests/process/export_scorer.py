"""Scores rows of text with an export of `satrap export`, using NumPy and PyTorch alone.

It is the reference of the format: it does what a server has to do, step by step, and export_test.py compares it with
`satrap predict`. It is slow; only the network is vectorised.
"""
import ctypes
import ctypes.util
import json
import math
import pathlib

import numpy as np
import torch

BITS64, ID_BITS = 2**64 - 1, 54
ID_MASK = 2**ID_BITS - 1
MISSING_ID = 0x6D697373696E67
STORED = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


# ---------------------------------------------------------------------------------- ids and rows
def splitmix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & BITS64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & BITS64
    return x ^ x >> 31


def fold(id):
    """An id as it appears in the arrays of keys."""
    return id if id <= ID_MASK else splitmix64(id) & ID_MASK


def mix(id):
    """The bijection on 54 bits by which the initial weights are drawn."""
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        id = id * factor & ID_MASK
        id ^= id >> ID_BITS // 2
    return id


def normal_quantile(n):
    """The normal quantile of (n + 0.5) / 2^24; satrap's own approximation is within 2e-6 of it."""
    u = torch.tensor((n + 0.5) / 2**24, dtype=torch.float64)
    return math.sqrt(2) * float(torch.erfinv(2 * u - 1))


def initial_weights(init, dim, id):
    """The initial weights of an id without a row: draw number d of a stream made of table and id."""
    if init["type"] == "constant":
        return np.full(dim, init["scale"], np.float32)
    stream = (splitmix64(int(init["seed"], 16) + 0x9E3779B97F4A7C15 & BITS64)
              ^ mix(id) + 0xD1B54A32D192ED03 & BITS64)
    stream = splitmix64(stream)
    draws = [splitmix64(stream + (d + 1) * 0x9E3779B97F4A7C15 & BITS64) >> 40 for d in range(dim)]
    if init["type"] == "normal":
        return np.array([init["scale"] * normal_quantile(n) for n in draws], np.float32)
    return np.array([init["scale"] * (2 * n / 2**24 - 1) for n in draws], np.float32)


class Table:
    def __init__(self, folder, description):
        self.dim, self.missing_row = description["dim"], description["missing_row"]
        self.stored_as = description["stored_as"]
        self.weights = np.load(folder / description["weights"], mmap_mode="r")
        keys = np.load(folder / description["keys"])
        self.rows = {int(key): i for i, key in enumerate(keys)}
        assert self.weights.shape == (len(keys), self.dim) and len(self.rows) == len(keys)
        self.unseen = 0

    def __getitem__(self, id):
        id = fold(id)
        if id in self.rows:
            return np.array(self.weights[self.rows[id]])
        self.unseen += 1
        weights = torch.from_numpy(initial_weights(self.missing_row, self.dim, id))
        return weights.to(STORED[self.stored_as]).float().numpy()  # to nearest, ties to even


# ------------------------------------------------------------------------------ text to inputs
def split(text, line):
    """The fields of a line."""
    delimiter, quote = text["delimiter"], text["quote"]
    fields, at = [], 0
    while True:
        while text["trim"] and line[at:at + 1] == " ":
            at += 1
        if quote and line[at:at + 1] == quote:
            field, at = "", at + 1
            while line[at] != quote or line[at + 1:at + 2] == quote:
                field, at = field + line[at], at + (2 if line[at] == quote else 1)
            end = line.find(delimiter, at)
        else:
            end = line.find(delimiter, at)
            field = line[at:end if end >= 0 else None]
            field = field.strip(" ") if text["trim"] else field
        fields.append(field)
        if end < 0:
            return fields
        at = end + 1


def number(field):
    return np.float32(float(field))


def transform(config, field):
    """One number, and 1 for its indicator if it is missing."""
    if field is None:
        return config["fill"], 1.0
    x = number(field)
    if config["clip"]:
        x = np.clip(x, *np.float32(config["clip"]))
    if config["transform"].startswith("log1p"):
        x = np.copysign(np.log1p(np.abs(x)), x)
    if config["transform"].endswith("zscore"):
        x = (float(x) - config["mean"]) / config["stddev"]
    return x, 0.0


def columns_of(config):
    """Of a number or feature; most have one."""
    return config.get("columns") or [config["column"]]


def bag(config, fields):
    """Ids and weights of a feature, from the fields of its columns."""
    items = [item for field in fields for item in items_of(config, field)]
    if config["max_length"] and len(items) > config["max_length"]:
        keeps_first = config["keep"] == "first"
        items = items[:config["max_length"]] if keeps_first else items[-config["max_length"]:]
    return items


def items_of(config, field):
    if field is None:
        return [(MISSING_ID, 1.0)] if config["missing"] == "own_id" else []
    if "boundaries" in config:
        boundaries = np.array(config["boundaries"], np.float32)
        return [(int(np.searchsorted(boundaries, number(field), side="right")), 1.0)]
    items = []
    for item in field.split(config["separator"]) if config["separator"] else [field]:
        item = item.strip(" ") if config["separator"] else item
        weight = 1.0
        if config["weight_separator"] and config["weight_separator"] in item:
            item, weight = item.rsplit(config["weight_separator"], 1)
        if not item:
            continue
        if config["type"] == "int":
            id = int(item) & BITS64
        elif config["type"] == "hex":
            id = int(item, 16)
        else:
            id = _xxhash.XXH3_64bits(item.encode(), len(item.encode()))
        items.append((id, float(weight)))
    return items


def pool(config, table, items):
    """The vector of a feature, and the mask of a sequence."""
    vectors = [np.float32(weight) * table[id] for id, weight in items]
    weights = np.array([weight for _, weight in items], np.float32)
    if config["pooling"] == "sequence":
        padding = config["max_length"] - len(items)
        padded = vectors + [np.zeros(table.dim, np.float32)] * padding
        return np.concatenate(padded), [1.0] * len(items) + [0.0] * padding
    divisor = {"sum": 1.0, "mean": weights.sum(), "sqrtn": np.sqrt((weights**2).sum())}
    divisor = divisor[config["pooling"]]
    total = np.sum(vectors, axis=0) if vectors else np.zeros(table.dim, np.float32)
    return (total / divisor if divisor else 0 * total), None


class Scorer:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.about = json.loads((folder / "export.json").read_text())
        self.network = torch.jit.load(folder / self.about["model"]["file"])
        self.tables = {t["name"]: Table(folder, t) for t in self.about["tables"]}

    def inputs(self, fields):
        """The network's input for a row, a dict of texts by column."""
        missing = {"", *self.about["text"]["missing"]}
        value = {name: None if field in missing else field for name, field in fields.items()}
        numeric = np.zeros(self.about["model"]["numeric_width"], np.float32)
        pooled = np.zeros(self.about["model"]["pooled_width"], np.float32)
        for config in self.about["numeric"]:
            x, is_missing = transform(config, value[config["column"]])
            numeric[config["position"]] = x
            if config["missing_indicator"]:
                numeric[config["position"] + 1] = is_missing
        for config in self.about["features"]:
            items = bag(config, [value[column] for column in columns_of(config)])
            vector, mask = pool(config, self.tables[config["table"]], items)
            pooled[config["position"]:config["position"] + config["width"]] = vector
            if mask is not None:
                numeric[config["mask_position"]:config["mask_position"] + len(mask)] = mask
        return numeric, pooled

    def score(self, path):
        """Probabilities of the rows of a text file: [rows], or [rows, labels] with several labels."""
        text = self.about["text"]
        lines = pathlib.Path(path).read_text().removesuffix("\n").split("\n")
        columns = split(text, lines.pop(0)) if text["header"] else text["columns"]
        rows = [split(text, line) for line in lines]
        columns = columns or [str(i) for i in range(len(rows[0]))]
        if rows and len(rows[0]) < len(columns):
            inputs = {column for config in self.about["numeric"] + self.about["features"]
                      for column in columns_of(config)}
            labels = {label["column"] for label in self.about["labels"]} - inputs
            columns = [c for c in columns if c not in labels]
        inputs = [self.inputs(dict(zip(columns, row, strict=True))) for row in rows]
        numeric, pooled = (torch.from_numpy(np.stack(part)) for part in zip(*inputs))
        with torch.no_grad():
            return torch.sigmoid(self.network(numeric, pooled)).numpy()
