"""A net as a file for programs without satrap."""
import io
import pathlib
import tempfile
import warnings

import torch

from .batch import Batch
from .errors import ConfigError, Error
from .state import encode

ROWS = 7  # of the inputs that an export is made with
OTHER_ROWS = (1, 4)  # with which it is tried out


class Inputs:
    """Stands for a call of the engine: tensors from elsewhere."""
    step, trains, has_weights = 0, False, False

    def __init__(self, numeric, pooled):
        self._numeric, self._pooled = numeric, pooled
        self.num_examples = numeric.shape[0]

    def numeric(self, lease):
        return self._numeric

    def pooled(self, lease):
        return self._pooled


class Exported(torch.nn.Module):
    """The net as a function of the two inputs that an export describes."""

    def __init__(self, job, net, predict):
        super().__init__()
        self.net = net
        self._job, self._predict = job, predict

    def forward(self, numeric, pooled):
        predict = self.net if self._predict is None else self._predict
        return predict(Batch(self._job, None, Inputs(numeric, pooled))).reshape(-1, self._job.num_outputs)


def exported(job, net, predict, format):
    """The bytes of the net in evaluation mode: "onnx", "pt2", or "safetensors" of its parameters and buffers."""
    if format == "safetensors":
        return encode(dict(net.state_dict()))
    module = Exported(job, net, None if predict is net else predict)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = program_of(module, job)
            return bytes_of_onnx(program) if format == "onnx" else bytes_of_pt2(program)
    finally:
        for part, mode in modes:
            part.training = mode


def inputs_of(job, rows):
    generator = torch.Generator().manual_seed(rows)
    return tuple(torch.rand(rows, width, generator=generator) for width in job._engine.input_widths)


def program_of(module, job):
    """As torch.export has it, for any number of rows; tried out with other numbers than it was made with."""
    rows = torch.export.Dim("rows")
    problem = None
    for strict in (False, True):  # strict: by the bytecode, which also finds that len(batch) is the number of rows
        try:
            program = torch.export.export(module, inputs_of(job, ROWS), dynamic_shapes=({0: rows}, {0: rows}), strict=strict)
            break
        except Exception as error:  # torch names dozens of kinds
            problem = problem or error
    else:
        raise Error("export: torch.export cannot follow the net for any number of rows; take that number from a tensor, "
                    f"such as batch.numeric.shape[0], and branch on no values: {problem}") from problem
    for count in OTHER_ROWS:
        inputs = inputs_of(job, count)
        if not torch.allclose(program.module()(*inputs), module(*inputs), rtol=1e-4, atol=1e-5):
            raise Error(f"export: the exported net computes something else for {count} rows than the net: it must compute "
                        "each row for itself in evaluation mode, without random numbers")
    return program


def bytes_of_pt2(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


def bytes_of_onnx(program):
    try:
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "onnxscript":
            raise
        raise ConfigError("--network: onnx: PyTorch writes it with the package onnxscript, which is not installed: pip "
                          "install onnxscript, or write --network pt2") from None
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "dense.onnx")
        written = torch.onnx.export(program, dynamo=True, input_names=["numeric", "pooled"], output_names=["logits"],
                                    verbose=False)
        written.save(str(path), external_data=False)
        return path.read_bytes()
