"""Columns of NumPy as Arrow's C stream interface, for programs without pyarrow.

The structs are those of arrow.apache.org/docs/format/CDataInterface.html. Buffers are not copied: a stream must live until
what it gave out is released.
"""
import ctypes

import numpy as np

from .errors import DataError


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowStream(ctypes.Structure):
    pass


RELEASE_SCHEMA, RELEASE_ARRAY, RELEASE_STREAM = (
    ctypes.CFUNCTYPE(None, ctypes.POINTER(struct)) for struct in (ArrowSchema, ArrowArray, ArrowStream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowSchema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowArray))
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(ArrowStream))
ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)), ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p)]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))), ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", RELEASE_ARRAY), ("private_data", ctypes.c_void_p)]
ArrowStream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_ERROR), ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p)]

NULLABLE = 2
FORMATS = {"i1": b"c", "u1": b"C", "i2": b"s", "u2": b"S", "i4": b"i", "u4": b"I", "i8": b"l", "u8": b"L", "f4": b"f",
           "f8": b"g"}
TIMES = {"s": b"tss:", "ms": b"tsm:", "us": b"tsu:", "ns": b"tsn:"}


def release(pointer):
    """Marks a struct and its children as released: their memory is Python's."""
    struct = pointer.contents
    for i in range(getattr(struct, "n_children", 0)):
        if struct.children[i].contents.release:
            release(struct.children[i])
    struct.release = type(struct.release)()


RELEASES = {ArrowSchema: RELEASE_SCHEMA(release), ArrowArray: RELEASE_ARRAY(release), ArrowStream: RELEASE_STREAM(release)}


class Column:
    """A format and buffers: validity (a bit per value, or None), offsets of texts and lists, values."""

    def __init__(self, format, length, buffers, children=()):
        self.format, self.length, self.buffers, self.children = format, length, buffers, children

    def schema(self, name, kept):
        struct = ArrowSchema(format=self.format, name=name.encode(), flags=NULLABLE, release=RELEASES[ArrowSchema])
        return self._with_children(struct, ArrowSchema, [child.schema("item", kept) for child in self.children], kept)

    def array(self, kept):
        addresses = [None if buffer is None else buffer.ctypes.data for buffer in self.buffers]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        kept += [pointers, self.buffers]
        has_nulls = bool(self.buffers) and self.buffers[0] is not None
        struct = ArrowArray(length=self.length, null_count=-1 if has_nulls else 0, n_buffers=len(addresses),
                            buffers=pointers, release=RELEASES[ArrowArray])
        return self._with_children(struct, ArrowArray, [child.array(kept) for child in self.children], kept)

    @staticmethod
    def _with_children(struct, kind, children, kept):
        pointers = (ctypes.POINTER(kind) * len(children))(*map(ctypes.pointer, children))
        kept += [struct, children, pointers]
        struct.n_children, struct.children = len(children), pointers
        return struct


class Batch:
    """Columns of NumPy as one record batch, by name: what has `__arrow_c_stream__`."""

    def __init__(self, columns):
        arrays = {str(name): one_dimension(values, name) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(arrays) < len(columns):
            raise DataError(f"two columns have the same name: {', '.join(map(repr, columns))}; rename one of them")
        if len(set(lengths.values())) > 1:
            raise DataError("columns differ in length: " + ", ".join(f"'{name}' {n}" for name, n in lengths.items()))
        self._columns = {name: column_of(values, name) for name, values in arrays.items()}
        self._length = next(iter(lengths.values()), 0)

    def __arrow_c_stream__(self, requested_schema=None):
        columns, length, kept, given = self._columns, self._length, [], []

        def get_schema(stream, out):
            fields = [column.schema(name, kept) for name, column in columns.items()]
            return give(ArrowSchema(format=b"+s", name=b"", release=RELEASES[ArrowSchema]), fields, out)

        def get_next(stream, out):
            if given:
                out.contents.release = RELEASE_ARRAY()  # the end
                return 0
            given.append(True)
            no_buffer = (ctypes.c_void_p * 1)(None)
            kept.append(no_buffer)
            struct = ArrowArray(length=length, n_buffers=1, buffers=no_buffer, release=RELEASES[ArrowArray])
            return give(struct, [column.array(kept) for column in columns.values()], out)

        def give(struct, children, out):
            Column._with_children(struct, type(struct), children, kept)
            ctypes.memmove(out, ctypes.addressof(struct), ctypes.sizeof(struct))
            return 0

        # Functions that know nothing of `self`: the arrays go as soon as the last reference to it does.
        self._stream = ArrowStream(get_schema=GET_SCHEMA(get_schema), get_next=GET_NEXT(get_next),
                                   get_last_error=GET_ERROR(lambda stream: None), release=RELEASES[ArrowStream])
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._stream), b"arrow_array_stream", None)


def one_dimension(values, name):
    if isinstance(values, np.ma.MaskedArray):
        masks, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[masks] = None
    if not hasattr(values, "dtype") and (isinstance(values, str) or not hasattr(values, "__len__")):
        raise DataError(f"column '{name}': must be an array or a list, of one value for each row, got {type(values).__name__}")
    array = np.asarray(values) if hasattr(values, "dtype") else objects(values)
    if array.ndim != 1:
        raise DataError(f"column '{name}': has the shape {list(array.shape)}, and must have one value for each row, [rows]")
    return array


def objects(values):
    return np.fromiter(values, object, len(values))


def column_of(array, name):
    """What Arrow calls it. Throws DataError."""
    kind, n = array.dtype.kind, len(array)
    if kind == "O":
        return column_of_objects(array, name)
    if kind == "U":
        return texts(array.tolist())
    if kind == "b":
        return Column(b"b", n, [None, np.packbits(array, bitorder="little")])
    if kind == "M":
        unit = np.datetime_data(array.dtype)[0]
        unit = unit if unit in TIMES else "s"
        array = array.astype(f"datetime64[{unit}]")  # also from a multiple of a unit, and from other bytes
        return Column(TIMES[unit], n, [bits(~np.isnat(array)), buffer(array.view(np.int64))])
    if kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64)
    if kind not in "iuf":
        raise DataError(f"column '{name}': is of type {array.dtype}, and satrap reads numbers, texts, truth values, "
                        "times, and lists of integers or texts: convert it, or leave the column out")
    return Column(FORMATS[array.dtype.newbyteorder("=").str[1:]], n, [None, buffer(array)])


def column_of_objects(array, name):
    """Of objects of Python, whose first that is not missing says what they are."""
    values = [None if is_missing(value) else value for value in array.tolist()]
    kinds = {kind_of(value) for value in values if value is not None}
    if not kinds:
        return texts(values)
    if kinds == {"text"}:
        return texts(values)
    if kinds == {"list"}:
        return lists(values, name)
    there = bits(np.array([value is not None for value in values], bool))
    filled = [0 if value is None else value for value in values]
    if kinds == {"bool"}:
        return Column(b"b", len(values), [there, np.packbits(np.array(filled, bool), bitorder="little")])
    if kinds == {"int"}:
        is_wide = max(filled) >= 2**63
        try:
            return Column(b"L" if is_wide else b"l", len(values), [there, np.array(filled, np.uint64 if is_wide else np.int64)])
        except OverflowError:
            raise DataError(f"column '{name}': has integers of more than 64 bits; make texts of them") from None
    if kinds <= {"int", "float"}:
        return Column(b"g", len(values), [there, np.array(filled, np.float64)])
    raise DataError(f"column '{name}': has values of several types, or of one that satrap does not read: "
                    f"{', '.join(sorted(kinds))}; make all of them texts, or all of them numbers")


def is_missing(value):
    """None, NaN, and pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def kind_of(value):
    kinds = {str: "text", bool: "bool", np.bool_: "bool"}
    if type(value) in kinds:
        return kinds[type(value)]
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return "list"
    return "text" if isinstance(value, str) else type(value).__name__


def lists(values, name):
    ends = np.cumsum([0] + [0 if value is None else len(value) for value in values], dtype=np.int64)
    elements = objects([element for value in values if value is not None for element in value])
    child = column_of_objects(elements, name)
    return Column(b"+L", len(values), [bits(np.array([value is not None for value in values], bool)), ends], [child])


def texts(values):
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0] + list(map(len, encoded)), dtype=np.int64)
    there = bits(np.array([value is not None for value in values], bool))
    return Column(b"U", len(values), [there, ends, np.frombuffer(b"".join(encoded) or b"\0", np.uint8)])


def bits(there):
    return None if there.all() else np.packbits(there, bitorder="little")


def buffer(array):
    """Contiguous and of this machine's byte order; never empty, since it has an address."""
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return array if len(array) else np.zeros(1, array.dtype)
