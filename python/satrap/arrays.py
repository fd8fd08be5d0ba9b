"""The arrays of an export, mapped into memory: their pages are read when they are used."""
import json

import numpy as np

DTYPES = {"U64": "<u8", "F32": "<f4"}  # of SafeTensors, that an export has


def read_array(path, name):
    """The only array of a file .npy, or the tensor `name` of a file .safetensors."""
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        tensor = json.loads(file.read(header_bytes))[name]
    dtype, shape = np.dtype(DTYPES[tensor["dtype"]]), tuple(tensor["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    return np.memmap(path, dtype, "r", 8 + header_bytes + tensor["data_offsets"][0], shape)
