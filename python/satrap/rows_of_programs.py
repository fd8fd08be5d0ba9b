"""Rows that a program has, written to a file of Parquet by Arrow's C stream interface."""
import os
from collections.abc import Mapping

from .arrow import Batch
from .errors import DataError
from .job import _engine

ACCEPTED = ("a path or glob, or a list of them; a DataFrame of pandas or polars; a table or reader of pyarrow; what else has "
            "__arrow_c_stream__; a dict from column to an array; or an iterable of such tables")


def files_of(data):
    """The paths and globs that `data` is; None: it is rows."""
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if not isinstance(data, (list, tuple)) or not data or not all(isinstance(one, (str, os.PathLike)) for one in data):
        return None
    files = [os.fspath(one) for one in data]
    if "-" in files:
        raise DataError("data: standard input can be read only once; write the rows to a file")
    return files


def write_rows(data, path):
    """Writes all rows to a file of Parquet, batch by batch. Throws DataError."""
    writer = _engine.write_parquet(os.fspath(path))
    for batch in [data] if is_table(data) else batches_of(data):
        owner, stream = stream_of(batch)  # the owner of what is in the stream
        writer.append(stream)
    writer.finish()


def is_table(data):
    return isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__") or is_frame(data)


def is_frame(data):
    """Whether it is a DataFrame of pandas, of any version."""
    return hasattr(data, "reset_index") and hasattr(data, "dtypes") and hasattr(data, "columns")


def batches_of(data):
    try:
        batches = iter(data)
    except TypeError:
        batches = None
    if batches is None or isinstance(data, (bytes, bytearray)):
        raise DataError(f"data: must be {ACCEPTED}; got {type(data).__name__}")
    for number, batch in enumerate(batches):
        if not is_table(batch):
            raise DataError(f"data: batch {number} must be a table (a DataFrame, what has __arrow_c_stream__, or a dict from "
                            f"column to an array), and is {type(batch).__name__}")
        yield batch


def values_of(series):
    """The array of pandas' series; times of a zone are those of UTC."""
    return (series.dt.tz_convert(None) if getattr(series.dtype, "tz", None) is not None else series).to_numpy()


def stream_of(batch):
    """What must live while the stream is read, and the capsule of the stream."""
    if is_frame(batch):
        if not batch.columns.is_unique:
            twice = batch.columns[batch.columns.duplicated()][0]
            raise DataError(f"two columns have the name '{twice}': rename one of them")
        batch = batch.reset_index(drop=True)  # Arrow would make a column of it
    if hasattr(batch, "__arrow_c_stream__"):
        try:
            return batch, batch.__arrow_c_stream__()
        except ImportError:  # pandas without pyarrow
            if not is_frame(batch):
                raise
        except (TypeError, ValueError) as error:  # pyarrow's, of pandas' objects
            raise DataError(f"data: {error}") from None
    if is_frame(batch):
        batch = {name: values_of(batch[name]) for name in batch.columns}
    batch = Batch(batch)
    return batch, batch.__arrow_c_stream__()
