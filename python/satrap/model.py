"""A model that was trained, from its run or checkpoint."""
import contextlib
import html
import json
import os
import pathlib
import tempfile

from .errors import Error
from .job import _engine
from .metrics import read_metrics
from .rows_of_programs import files_of, write_rows


def load(path):
    """The satrap.Model of a run directory, or of a checkpoint; a URL may name either. Of a run it is the best checkpoint that
    early stopping found, else the newest; RUN@last is the newest in any case. Raises Error."""
    return Model(path)


class Model:
    """A trained model: what `satrap eval`, `predict` and `export` do.

    `data` of its methods is what satrap.fit takes: paths or rows; rows are written to a temporary file first. Each call
    reads the checkpoint: for single rows at a time use satrap.Scorer.

    checkpoint  the path of the checkpoint
    run_dir     the folder of the run
    labels      the names of what is predicted: of labels, or of the classes of the only label
    """

    def __init__(self, path):
        self._engine = _engine.TrainedModel(os.fspath(path))
        self.checkpoint = self._engine.checkpoint
        self.labels = self._engine.labels
        folder, name = os.path.split(os.path.dirname(self.checkpoint))
        self.run_dir = folder if name == "checkpoints" else os.path.join(folder, name)

    @property
    def summary(self):
        """The content of summary.json as a dict: "finished", "step", "train", "eval", ... Raises Error if there is none: the run
        goes on, or was killed."""
        path = pathlib.Path(self.run_dir, "summary.json")
        if not path.is_file():
            raise Error(f"'{self.run_dir}' has no summary.json: its run goes on, or was killed")
        return json.loads(path.read_text(encoding="utf-8"))

    def predict(self, data):
        """Predictions of rows, float32: [rows], or with several labels or classes [rows, len(labels)].

        They are probabilities, or the values of labels that are numbers; NaN for a row that cannot be read. Labels are
        ignored, and may be missing. Raises ConfigError and DataError.
        """
        with paths_of(data) as paths:
            predictions = self._engine.predict(paths)
        return predictions[:, 0] if len(self.labels) == 1 else predictions

    def evaluate(self, data=None):
        """Metrics on labelled rows, a dict as "eval" of `summary`: {"examples": 9000, "auc": 0.81, ...}; None where a metric
        is undefined. Without `data`, those of the part that the run has kept for evaluation."""
        with paths_of(data) if data is not None else contextlib.nullcontext([]) as paths:
            return json.loads(self._engine.evaluate(paths))

    def save(self, folder, overwrite=False):
        """Writes what `satrap export` does: the network in ONNX, the rows of the tables and export.json. satrap.Scorer(folder)
        reads it. `overwrite` replaces an earlier export."""
        self._engine.save(os.fspath(folder), overwrite)

    def plot(self):
        """A figure of matplotlib with the run's curves: loss, and the first metric beside it, of training and evaluation."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("satrap.Model.plot needs matplotlib: pip install matplotlib; the numbers are in "
                              "satrap.read_metrics(model.run_dir)") from None
        metrics = read_metrics(self.run_dir)
        quality = next((name for name in ("auc", "accuracy", "rmse") if f"train.{name}" in metrics or f"eval.{name}" in metrics),
                       "auc")
        figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
        for axis, title, curves in ((axes[0], "loss", ("train.loss", "eval.logloss")),
                                    (axes[1], quality, (f"train.{quality}", f"eval.{quality}"))):
            for name in curves:
                if name in metrics:
                    is_there = ~(metrics[name] != metrics[name])
                    axis.plot(metrics["step"][is_there], metrics[name][is_there], label=name.split(".")[0],
                              marker="." if name.startswith("eval") else None)
            axis.set_xlabel("step")
            axis.set_title(title)
            axis.legend()
        pyplot.close(figure)  # whoever has it shows it: a notebook would twice
        return figure

    def __repr__(self):
        return f"<satrap.Model: {', '.join(self.labels)}, checkpoint {self.checkpoint}>"

    def _repr_html_(self):
        rows = {"checkpoint": self.checkpoint, "predicts": ", ".join(self.labels)}
        if pathlib.Path(self.run_dir, "summary.json").is_file():
            summary = self.summary
            rows |= {"steps": summary["step"], "examples": summary["examples"]}
            evaluated = summary.get("early_stopping", {}).get("eval") or summary.get("eval", {})
            rows |= {f"eval {name}": f"{value:.5g}" for name, value in evaluated.items() if isinstance(value, float)}
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items())
        return f"<table><caption>satrap.Model</caption>{cells}</table>"


@contextlib.contextmanager
def paths_of(data):
    files = files_of(data)
    if files is not None:
        yield files
        return
    with tempfile.TemporaryDirectory(prefix="satrap-") as folder:
        path = os.path.join(folder, "data.parquet")
        write_rows(data, path)
        yield [path]
