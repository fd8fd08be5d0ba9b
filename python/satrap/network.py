"""The dense network of an export, computed by the library of its format."""
import importlib
import os
import warnings

import numpy as np


class OnnxNetwork:
    """By onnxruntime, on the CPU."""

    def __init__(self, path):
        library = imported("onnxruntime", "a network in ONNX", "pip install onnxruntime")
        options = library.SessionOptions()
        # Its own count has CPUs that are not ours.
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        self._session = library.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def logits(self, numeric, pooled):
        logits, = self._session.run(["logits"], {"numeric": numeric, "pooled": pooled})
        return logits[:, 0] if logits.shape[1] == 1 else logits


class TorchScriptNetwork:
    """By PyTorch. The file is code."""

    def __init__(self, path):
        self._torch = imported("torch", "a network in TorchScript",
                               "pip install 'satrap[torch]', or torch where satrap is no wheel; or export with "
                               "--network onnx")
        self._module = self._torch.jit.load(path, map_location="cpu").eval()

    def logits(self, numeric, pooled):
        with self._torch.no_grad():
            return self._module(self._torch.from_numpy(numeric), self._torch.from_numpy(pooled)).numpy()


class Pt2Network:
    """By PyTorch, as torch.export has written it. The file is code."""

    def __init__(self, path):
        self._torch = imported("torch", "a network in pt2", "pip install torch; or export with --network onnx")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given buffer is not writable")  # nor will it be written to
            self._module = importlib.import_module("torch.export").load(path).module()

    def logits(self, numeric, pooled):
        empty = len(numeric) == 0  # of no rows some operations have no shape
        if empty:
            numeric, pooled = (np.zeros((1, part.shape[1]), np.float32) for part in (numeric, pooled))
        with self._torch.no_grad():
            logits = self._module(self._torch.from_numpy(numeric), self._torch.from_numpy(pooled)).numpy()
        logits = logits[:0] if empty else logits
        return logits[:, 0] if logits.shape[1] == 1 else logits


FORMATS = {"onnx": OnnxNetwork, "torchscript": TorchScriptNetwork, "pt2": Pt2Network}


def load_network(folder, model):
    """model: that of export.json. logits(numeric, pooled) of the network: [rows], or [rows, outputs] for several."""
    return FORMATS[model.get("format", "torchscript")](folder / model["file"])


def sigmoid(logits):
    small = np.exp(-np.abs(logits))  # no overflow
    return np.where(logits < 0, small, np.float32(1)) / (1 + small)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def predictions_of(logits, labels):
    """labels: those of export.json, which say what makes predictions of their logits."""
    names = [label.get("prediction", "sigmoid") for label in labels]
    functions = {"sigmoid": sigmoid, "identity": lambda values: values, "softmax": softmax}
    if len(set(names)) == 1:
        return functions[names[0]](logits)
    return np.stack([functions[name](logits[:, at]) for at, name in enumerate(names)], axis=1)


def imported(name, what, remedy):
    """A library which takes seconds to load, and which read_metrics does without."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"satrap.Scorer needs {name} for {what}, and it is not installed: {remedy}",
                                  name=name) from None
