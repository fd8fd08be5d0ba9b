"""A hand-made export whose scores a reader can compute: the network adds up its inputs.

Table `users` has rows for the ids 1, 2 and 3, [10, 20, 30], and for a missing id, 7; table `words` for "red", 100, and
"round", 1000. Other ids count 0.
"""
import json
import os
import pathlib
import sys
import warnings

import numpy as np

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
sys.path[:0] = [str(SOURCE / "python"), str(pathlib.Path(__file__).parents[1] / "support")]
import python_torch  # noqa: E402

python_torch.require()
import torch  # noqa: E402

from satrap import tables  # noqa: E402
from satrap.fields import MISSING_ID  # noqa: E402
from satrap.xxh3 import xxh3  # noqa: E402

warnings.filterwarnings("ignore", category=DeprecationWarning)  # of TorchScript


class Sum(torch.nn.Module):
    def forward(self, numeric, pooled):
        return numeric.sum(1) + pooled.sum(1)


def number(name, position, **given):
    return {"name": name, "column": name, "position": position, "missing_indicator": False, "clip": [],
            "transform": "none", "mean": 0, "stddev": 1, "fill": 0, **given}


def feature(name, table, position, **given):
    return {"name": name, "column": name, "table": table, "type": "int", "separator": "", "weight_separator": "",
            "keep": "first", "missing": "empty", "max_length": 0, "pooling": "sum", "position": position, "width": 1,
            **given}


def write_table(folder, name, keys, weights):
    np.save(folder / f"{name}.keys.npy", np.array(keys, np.uint64))
    np.save(folder / f"{name}.weights.npy", np.array(weights, np.float32).reshape(len(keys), -1))
    return {"name": name, "dim": 1, "stored_as": "fp32", "missing_row": {"type": "constant", "scale": 0},
            "keys": f"{name}.keys.npy", "weights": f"{name}.weights.npy"}


def fold(id):
    return int(tables.fold(np.array([id], np.uint64))[0])


def write_export(folder, numeric, features, mask_width=0, pooled_width=None, **text):
    """Writes an export with these inputs to a new folder."""
    folder.mkdir()
    described = [write_table(folder, "users", [1, 2, 3, fold(MISSING_ID)], [10, 20, 30, 7]),
                 write_table(folder, "words", [fold(xxh3(b"red")), fold(xxh3(b"round"))], [100, 1000])]
    torch.jit.save(torch.jit.script(Sum()), str(folder / "dense.pt"))
    width = sum(1 + config["missing_indicator"] for config in numeric) + mask_width
    about = {
        "format": 1, "version": "0.1.0", "labels": [{"name": "clicked", "column": "clicked"}],
        "text": {"delimiter": ",", "quote": '"', "header": True, "columns": [], "trim": True, "missing": ["?"], **text},
        "model": {"file": "dense.pt", "numeric_width": width, "pooled_width": pooled_width or len(features)},
        "numeric": numeric, "features": features, "tables": described,
        "files": {path.name: {"bytes": path.stat().st_size} for path in folder.iterdir()}}
    (folder / "export.json").write_text(json.dumps(about))
    return folder
