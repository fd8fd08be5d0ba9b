"""satrap from Python: scores rows with a model that `satrap export` has written, and reads a run's metrics.

    scorer = satrap.Scorer("model")                       # needs NumPy, and onnxruntime for a network in ONNX
    scorer.score({"user": [17, 4], "shop": ["a", None]})  # probabilities of two rows
    satrap.read_metrics("runs/clicks")["train.auc"]       # needs NumPy
"""
from .fields import InputError
from .metrics import read_metrics
from .scorer import Scorer

__all__ = ["InputError", "Scorer", "read_metrics"]
__version__ = "0.1.0"
