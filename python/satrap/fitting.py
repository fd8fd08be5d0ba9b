"""satrap.fit: from data to a model, by the decisions of `satrap init`."""
import os
import pathlib
import shutil
import sys

from .errors import ConfigError, Error
from .job import _engine, text_of
from .model import Model
from .progress import Progress, is_notebook
from .rows_of_programs import files_of, write_rows
from .signals import StopSignals

BETWEEN_LOOKS_MS = 200


def fit(data, label=None, run_dir=None, overrides=None):
    """Trains a model on `data` as `satrap init` and `satrap train` do, and returns it, a satrap.Model.

    data       a path or glob of what `satrap init` reads (CSV, JSON lines, Parquet, Arrow), or a list of them; a DataFrame
               of pandas or polars; a table or reader of pyarrow; what else has `__arrow_c_stream__`; a dict from column to
               an array of one dimension; or an iterable of such tables, with equal columns. Rows that are no file are
               written once, to data.parquet in `run_dir`, batch by batch. The index of a DataFrame is not read
    label      the column to predict; None: the one that looks like a label
    run_dir    a new folder for the run; None: runs/NAME, or the next one with a number
    overrides  a dict from dotted keys to values, each in place of what was decided: {"train.epochs": 2}

    It trains satrap's own networks, on the CPU and in this process, and needs no PyTorch. The decisions are in
    run_dir/job.yaml, with their reasons. Ctrl-C ends the run with a checkpoint and raises KeyboardInterrupt; `satrap.load`
    has the model as far as it was trained.

    Raises ConfigError, DataError and Error, with the text of the command.
    """
    files = files_of(data)
    words = [f"{key}={text_of(value)}" for key, value in (overrides or {}).items()]
    if "run_dir" in (overrides or {}):
        raise ConfigError("overrides: run_dir is an argument of its own: satrap.fit(data, run_dir=...)")
    if not any(word.startswith("device=") for word in words):
        words.append("device=cpu")
    folder = make_folder(run_dir, files)
    try:
        if files is None:
            files = [os.fspath(folder / "data.parquet")]
            write_rows(data, files[0])
        config = os.fspath(folder / "job.yaml")
        print(decide(files, label, config), end="", flush=True)
        train(config, [*words, f"run_dir={folder}"], folder)
    except BaseException:
        if not any(folder.glob("checkpoints/*")):
            shutil.rmtree(folder, ignore_errors=True)  # nothing was learned, and the name is free again
        raise
    return Model(folder)


def decide(files, label, config):
    """Writes the configuration as `satrap init` and returns what that says, in the words of Python."""
    def of_python(text):
        return text.replace("--label COLUMN", "label=COLUMN").replace("--label", "label")

    try:
        return of_python(_engine.init_job(files, label or "", config))
    except Error as error:
        raise type(error)(of_python(str(error))) from None


def make_folder(run_dir, files):
    if run_dir is None:
        return make_numbered_folder(pathlib.Path("runs"), name_of(files))
    if "://" in os.fspath(run_dir):
        raise ConfigError(f"run_dir: must be a folder of this machine, got '{run_dir}'; `satrap train` writes runs to stores")
    folder = pathlib.Path(run_dir)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"run_dir: '{folder}' exists and is not empty; name a new folder, remove this one, or use its model: "
                          f"satrap.load('{folder}')")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_numbered_folder(parent, name):
    number = 1
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def name_of(files):
    """As the run of the configuration that `satrap init` would write."""
    return "model" if files is None else pathlib.Path(_engine.default_config(files)).stem


def train(config, words, folder):
    has_own_progress = is_notebook()
    with Progress(has_own_progress) as progress:
        run = _engine.start_run(config, words, not has_own_progress)
        try:
            with StopSignals(run.stop) as signals:
                while not run.wait(BETWEEN_LOOKS_MS):
                    progress.show(*run.progress())
        finally:
            run.close()
    finished, checkpoint = run.result()
    if finished:
        print(run.words, end="", flush=True)
    elif checkpoint:
        print(f"satrap: stopped before its end; `satrap train {folder}/config.yaml --resume` continues from {checkpoint}, and "
              f"satrap.load('{folder}') has what was learned", file=sys.stderr)
    signals.pass_on()
