"""The configuration of a job."""
import importlib
import json
import os
from collections.abc import Mapping

from .errors import ConfigError

try:
    _engine = importlib.import_module("._engine", __package__)
except ModuleNotFoundError as error:
    if error.name != "satrap._engine":
        raise
    raise ImportError(
        "satrap.Job, satrap.Trainer, satrap.fit and satrap.load need the compiled part of the package, satrap._engine, and this "
        "one is without: "
        "build satrap where nanobind and Python's headers are (./launch/setup.sh python installs them), and set "
        "PYTHONPATH to build/release/python") from None


class Job:
    """A job, read and checked as the command `satrap train` does: the same keys, defaults and errors.

    `config` is the path of a YAML file, or a dict of what would stand in one. `overrides` is a dict from dotted keys to
    values, each of which replaces what the file says: {"train.epochs": 2}. Relative paths begin in the file's folder,
    those of a dict and of overrides in the current one. The network and its optimizer are the program's, so `model` and
    `dense_optimizer` of the file are not used. (`python -m satrap` gives a Job to what `model.path` names, and uses them.)

    Raises ConfigError with a line for each problem.

    features        the names of the categorical features, in their order
    widths          from feature to the columns of one of its vectors
    lengths         from feature with pooling `sequence` to the vectors that it is padded to
    pooled_width    the columns of Batch.pooled
    numeric_names   the numbers, in the order of Batch.numeric
    numeric_width   how many
    labels          the names of the labels
    losses          what makes predictions of each label's logit: "bce" a sigmoid, "mse" nothing, "softmax" that
    num_outputs     the logits of a row: one for each label, or for each class of the only one
    loss_shift      to be added to the logits for the loss alone, where negatives are sampled; else 0
    rank, num_ranks this process among those that train, by the environment that satrap-run or torchrun sets; else 0 of 1
    seed            the job's
    model_path      what `model.path` names, for `python -m satrap`; else ""
    run_dir         where the run will write, unless it takes a new folder beside
    yaml            the whole configuration, with its defaults
    """

    def __init__(self, config, overrides=None):
        path, words = "", []
        if isinstance(config, Mapping):
            words = [f"{key}={text_of(value)}" for key, value in leaves(config)]
            if "run_dir" not in {**config, **(overrides or {})}:
                raise ConfigError("run_dir: is not set; a job from a dict needs it, such as 'runs/clicks'")
        else:
            path = os.fspath(config)
        words += [f"{key}={text_of(value)}" for key, value in (overrides or {}).items()]
        self._take(_engine.Job(path, words))

    def _take(self, job):
        self._engine = job
        self.run_dir, self.yaml, self.labels = job.run_dir, job.yaml, job.labels()
        self.losses, self.num_outputs = job.losses(), job.num_outputs
        self.numeric_names, self.numeric_width = job.numeric_names, len(job.numeric_names)
        self.pooled_width, self.loss_shift = job.pooled_width, job.loss_shift
        self.rank, self.num_ranks = job.rank, job.num_ranks
        self.seed, self.model_path = job.seed, job.model_path
        self._places = {place[0]: Place(*place[1:]) for place in job.features()}
        self.features = list(self._places)
        self.widths = {name: place.width for name, place in self._places.items()}
        self.lengths = {name: place.length for name, place in self._places.items() if place.length}

    @classmethod
    def _of(cls, engine):
        """That of a command, which has read it."""
        job = cls.__new__(cls)
        job._take(engine)
        return job

    def __repr__(self):
        return (f"<satrap.Job: {self.numeric_width} numbers, {len(self.features)} features, labels "
                f"{', '.join(self.labels)}, run_dir {self.run_dir}>")


class Place:
    """The columns of a feature. length: the vectors of a sequence; 0: it is a bag, of one vector."""

    def __init__(self, column, width, length, mask_column):
        self.width, self.length = width, length
        self.columns = slice(column, column + width * (length or 1))
        self.mask_columns = slice(mask_column, mask_column + length)


def leaves(config, prefix=""):
    """The dotted keys of nested dicts and their values: messages name them."""
    for key, value in config.items():
        is_section = isinstance(value, Mapping) and value and not any("." in str(name) for name in value)
        if is_section:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + str(key), value


def text_of(value):
    """A value as it stands behind `key=` on the command line."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        is_plain = value and value[0] not in "[{\"'" and value not in ("~", "null", "Null", "NULL")
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, default=plain)


def plain(value):
    """For json: paths, numbers of NumPy, and other mappings and sequences."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ConfigError(f"{value!r}: a value of a job is a text, a number, True, False, None, a list or a dict, "
                      f"not {type(value).__name__}")
