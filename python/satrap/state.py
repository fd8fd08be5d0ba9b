"""The state of a program as the bytes of a SafeTensors file: tensors, and all else as JSON in its metadata. No pickle."""
import collections
import json
import struct

import torch

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
KEY = "satrap.state"  # of the metadata
PADDING = "padding"   # the tensor that makes the size a multiple of 8
UNIT = 8


class BadState(ValueError):
    """A value that cannot be kept, or bytes that are no state."""


def encode(tree):
    """The bytes of a tree of dicts, lists, tuples, tensors, numbers, texts and None; their size is a multiple of 8."""
    tensors = {}
    described = json.dumps(flatten(tree, "", tensors))
    header, parts, end = {"__metadata__": {KEY: described}}, [], 0
    for name, tensor in tensors.items():
        values = bytes_of(tensor)
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + len(values)]}
        parts.append(values)
        end += len(values)
    if end % UNIT:
        missing = UNIT - end % UNIT
        name = PADDING
        while name in header:
            name += "_"
        header[name] = {"dtype": "U8", "shape": [missing], "data_offsets": [end, end + missing]}
        parts.append(bytes(missing))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % UNIT)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def decode(data):
    """The tree that encode() was given. Its tensors have memory of their own."""
    try:
        size, = struct.unpack_from("<Q", data)
        header = json.loads(data[UNIT:UNIT + size])
        described = json.loads(header.pop("__metadata__")[KEY])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise BadState(f"the state of the network in the checkpoint cannot be read: {error}") from None
    values = bytearray(data[UNIT + size:])
    return unflatten(described, {name: tensor_of(values, about) for name, about in header.items()})


def bytes_of(tensor):
    if tensor.numel() == 0:
        return b""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def tensor_of(values, about):
    begin, end = about["data_offsets"]
    dtype = DTYPES[about["dtype"]]
    if begin == end:
        return torch.empty(about["shape"], dtype=dtype)
    return torch.frombuffer(values[begin:end], dtype=dtype).reshape(about["shape"])


def flatten(value, path, tensors):
    """A JSON form of the tree: what JSON has not is a list that begins with its kind. Tensors go to `tensors`."""
    def inner(part, key):
        return flatten(part, f"{path}.{key}" if path else str(key), tensors)

    if isinstance(value, torch.Tensor):
        if value.dtype not in NAMES:
            raise BadState(f"state '{path}': a tensor of {value.dtype} cannot be kept")
        tensors[path] = value
        return ["tensor", path]
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, collections.Counter):
        return ["counter", [[inner(key, "key"), count] for key, count in value.items()]]
    if isinstance(value, dict):
        return ["dict", [[inner(key, "key"), inner(part, key)] for key, part in value.items()]]
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, [inner(part, number) for number, part in enumerate(value)]]
    raise BadState(f"state '{path}': {type(value).__name__} cannot be kept; numbers, texts, lists, tuples, dicts and "
                   "tensors can")


def unflatten(value, tensors):
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "tensor":
        return tensors[content]
    if kind in ("dict", "counter"):
        pairs = {unflatten(key, tensors): unflatten(part, tensors) for key, part in content}
        return pairs if kind == "dict" else collections.Counter(pairs)
    parts = [unflatten(part, tensors) for part in content]
    return parts if kind == "list" else tuple(parts)
