"""Rows in the forms in which a caller may have them, as columns."""
from .fields import BadValue, InputError, plain_values


def columns_of(rows, names):
    """The columns `names` of `rows` as lists, and the number of rows.

    Rows are a mapping from column to values (a dict of lists or arrays, a pandas DataFrame), or an iterable of mappings
    from column to value. Other columns are ignored. Throws InputError.
    """
    if isinstance(rows, (str, bytes)):
        raise InputError(f"expected rows, got the text {rows!r}: read the file first")
    if hasattr(rows, "keys"):
        return columns_of_mapping(rows, names)
    try:
        rows = list(rows)
    except TypeError:
        raise InputError(f"expected a mapping of columns or an iterable of rows, got {type(rows).__name__}") from None
    for number, row in enumerate(rows):
        if not hasattr(row, "keys"):
            raise InputError(f"row {number}: expected a mapping of columns, got {type(row).__name__}")
    keys = [keys_of(row, names, f"row {number}") for number, row in enumerate(rows)]
    return {name: [row[key[name]] for row, key in zip(rows, keys)] for name in names}, len(rows)


def columns_of_mapping(rows, names):
    keys = keys_of(rows, names, "the rows")
    columns = {name: values_of(rows[keys[name]], name) for name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("columns differ in length: " + ", ".join(f"'{n}' {k}" for n, k in lengths.items()))
    return columns, next(iter(lengths.values()), 0)


def values_of(values, name):
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InputError(f"column '{name}': expected a list of values, one for each row, got {values!r}")
    try:
        return plain_values(values) if hasattr(values, "tolist") else list(values)
    except BadValue as error:
        raise InputError(f"column '{name}': {error}") from None


def keys_of(mapping, names, what):
    """The keys of columns by name: columns of files without a header are numbers, also as integers."""
    keys = {str(key): key for key in mapping.keys()}
    missing = [name for name in names if name not in keys]
    if missing:
        many = "columns" if len(missing) > 1 else "column"
        listed = ", ".join(f"'{name}'" for name in missing)
        there = ", ".join(f"'{name}'" for name in keys) or "none"
        raise InputError(f"{what}: no {many} {listed}, which the model reads; there are {there}")
    return keys
