"""satrap from Python: fits models, trains a PyTorch network with satrap's tables, scores rows, reads a run's metrics.

    model = satrap.fit(frame, label="clicked")            # needs NumPy, and the compiled part, satrap._engine
    model.predict(frame)                                  # probabilities; also evaluate, save, plot
    satrap.load("runs/model")                             # the model of a run

    job = satrap.Job("clicks.yaml", {"train.epochs": 2})  # needs the compiled part, satrap._engine
    trainer = satrap.Trainer(job, net, optimizer)         # needs PyTorch
    for batch in trainer:
        logits = net(batch)
        trainer.step(loss_of(logits, batch.labels), scores=logits)
    satrap.evaluate(job, net)                             # and satrap.predict, satrap.export

    scorer = satrap.Scorer("model")                       # needs NumPy, and onnxruntime for a network in ONNX
    scorer.score({"user": [17, 4], "shop": ["a", None]})  # probabilities of two rows
    satrap.read_metrics("runs/clicks")["train.auc"]       # needs NumPy
"""
import importlib

from .errors import ConfigError, DataError, DivergedError, Error

__all__ = ["ConfigError", "DataError", "DivergedError", "Error", "InputError", "Job", "Model", "Scorer", "Trainer", "evaluate",
           "export", "fit", "load", "predict", "read_metrics"]
__version__ = "0.1.0"

_LOADED_WHEN_USED = {"Job": "job", "Model": "model", "Trainer": "trainer", "evaluate": "commands", "export": "commands",
                     "fit": "fitting", "load": "model", "predict": "commands", "InputError": "fields", "Scorer": "scorer",
                     "read_metrics": "metrics"}  # NumPy has threads, which must not be there before commands.main


def __getattr__(name):
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module 'satrap' has no attribute '{name}'")
    try:
        module = importlib.import_module(f".{_LOADED_WHEN_USED[name]}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"satrap.{name} trains networks of PyTorch, which is not here: pip install 'torch>=2.11', or "
                          "'satrap[torch]'. satrap.Job, satrap.Scorer, satrap.read_metrics and the commands work without "
                          "it") from None
    return getattr(module, name)
