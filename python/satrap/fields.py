"""Values of a column as numbers and ids: what training makes of the same text.

A value is a text, as it would stand in the data; a number; a truth value; None, NaN or pandas' NA, which are missing;
or, for a feature with several ids, a list of texts and numbers.

How a value becomes an id and a number is rule 2 or, for models that were begun with an older satrap, rule 1
(data.schema.value_rule). Rule 2: numbers are float64 until they are inputs; what is one value is one id.
"""
import datetime
import math
import re

import numpy as np

from . import times
from .xxh3 import xxh3

BITS64 = 2**64 - 1
MISSING_ID = 0x6D697373696E67
NO_NUMBER = {  # what programs write for a number that is not there
    "nan", "null", "na", "n/a", "none", "\\n", "-nan", "<na>", "#n/a", "#n/a n/a", "#na", "nan(ind)", "-nan(ind)",
    "1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INT = re.compile(r"[0-9]+|-[0-9]+")
HEX = re.compile(r"(0[xX])?[0-9a-fA-F]+")
WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*)([eE][+-]?[0-9]+)?|([eE]\+[0-9]+))")  # hex digits have no "+"
MOST_PAIRS = 65_536  # of a cross in a row: src/data/rows/cross_limit.h
FIRST_TOO_LARGE = float.fromhex("0x1.FFFFFFp127")  # of a float32


class InputError(ValueError):
    """Rows that cannot be scored; the message names column, row and value."""


class BadValue(Exception):
    """What was expected of a value; its column and row are known to the caller."""


def plain_values(array):
    """The values of NumPy's array or scalar as Python's. A float32 is the double nearest to its shortest text, as a file
    would have it: 0.1, not 0.10000000149."""
    kind = getattr(array, "dtype", None)
    if getattr(kind, "kind", None) == "M" and not hasattr(kind, "tz"):
        array = np.asarray(array).astype("datetime64[us]")  # nanoseconds would be integers
        values = array.tolist()
        if any(isinstance(value, int) for value in np.ravel(np.array(values, object))):
            raise BadValue("expected a time of the years 1 to 9999")
        return values
    if kind in (np.dtype("float32"), np.dtype("float16")):
        array = np.asarray(array).astype(str).astype(np.float64)
    return array.tolist()


def without_quotes(element):
    """An element of "['a', 'b']"."""
    is_quoted = len(element) > 1 and element[0] == element[-1] and element[0] in "'\""
    return element[1:-1] if is_quoted else element


def is_no_number(text):
    return text.lower() in NO_NUMBER


def parse_number(text):
    """The double nearest to a decimal number; None if the text is none, or no float32 is near it."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value + 0.0 if abs(value) < FIRST_TOO_LARGE else None  # -0 is 0


def text_of_real(value):
    """Python's, but that whole numbers below 1e16 have no ".0"."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else str(value)


def canonical_text(text, decimal="."):
    """The text by which a text is an id: of a truth value "true" or "false"; of a number with a point, or an exponent with
    its "+", that is whole its digits. "1e5" may be hex digits and "1.10" a version: they stay."""
    if text.lower() in ("true", "false"):
        return text.lower()
    match = WHOLE.fullmatch(text.replace(decimal, ".") if decimal != "." and "." not in text else text)
    if not match or (decimal != "." and "." in text):
        return text
    sign, whole, fraction, *exponents = match.groups()
    exponent = exponents[0] or exponents[1]
    if exponent is None and not fraction.strip("0"):
        digits = whole.lstrip("0") or "0"
        return "-" + digits if sign == "-" and digits != "0" else digits
    value = float(match.group()) if exponent else math.nan
    return text_of_real(value) if value.is_integer() and abs(value) < 2**53 else text


def id_text_of_rule_1(type, given, value):
    if isinstance(given, bool):
        raise BadValue("expected a text or a number")
    if type == "hex" and value is not None and not isinstance(given, (str, list, tuple)):
        raise BadValue("expected a text of hex digits")
    if not isinstance(value, float):
        return value
    if type != "int" or not value.is_integer():
        raise BadValue("expected a text or an integer")
    return str(int(value))


def mix64(x):
    """The finalizer of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & BITS64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & BITS64
    return x ^ x >> 31


def hash64(first, second):
    """A hash of two numbers in order, that of satrap/core/hash.h."""
    return mix64(mix64(first + 0x9E3779B97F4A7C15 & BITS64) ^ (second + 0xD1B54A32D192ED03 & BITS64))


def cross(feature, first, second):
    """The ids of a feature that is made of two others in a row, all pairs, and their weights."""
    if len(first[0]) * len(second[0]) > MOST_PAIRS:
        raise BadValue(f"more than {MOST_PAIRS} pairs of ids in a row; give its features a max_length, got "
                       f"\"{len(first[0])} x {len(second[0])}\"")
    pairs = [(hash64(a, b), float(np.float32(v) * np.float32(w))) for a, v in zip(*first) for b, w in zip(*second)]
    if not pairs and feature["missing"] == "own_id":
        return [MISSING_ID], [1.0]
    return [id for id, _ in pairs], [weight for _, weight in pairs]


class FieldReader:
    """Reads values by the rules of export.json: its section "text" and those of a column."""

    def __init__(self, text):
        self._rule = text.get("value_rule", 1)
        self._trim = text["trim"]
        self._missing = {"", *text["missing"]}
        self._decimal = text.get("decimal", ".")
        self._has_decimal_comma = self._decimal == ","
        self._missing_numbers = {self._parse(token) for token in self._missing} - {None}
        self._hashes = {}
        self.real = np.float32 if self._rule == 1 else np.float64  # of a number that is no input yet

    def number(self, value):
        """A float, NaN if it is missing."""
        value = self._plain(value)
        if value is None:
            return math.nan
        number = None if isinstance(value, list) else self._parse(value)
        if number is None and not (isinstance(value, str) and is_no_number(value)):
            raise BadValue("expected a finite number")
        return math.nan if number is None else number

    def bucket(self, feature, value):
        """The ids of a feature that is made of the ranges of a number, and their weights."""
        number = self.number(value)
        if math.isnan(number):
            return ([MISSING_ID], [1.0]) if feature["missing"] == "own_id" else ([], [])
        boundaries = np.array(feature["boundaries"], np.float32 if self._rule == 1 else np.float64)
        return [int(np.searchsorted(boundaries, boundaries.dtype.type(number), side="right"))], [1.0]

    def time(self, value):
        """Milliseconds since 1970, or None if there is none."""
        if hasattr(value, "tolist"):
            value = plain_values(value)
        try:
            if isinstance(value, datetime.date) and type(value).__name__ != "NaTType":
                return times.ms_of_value(value)
            value = self._plain(value)
            if isinstance(value, list):
                raise times.NoTime
            return None if value is None else self._time_of_plain(value)
        except times.NoTime:
            raise BadValue("expected a time of the years 1 to 9999") from None

    def _time_of_plain(self, value):
        """Of a text or a float."""
        try:
            return times.ms_of_text(str(value))
        except times.NoTime:
            number = self._parse_real(value)
        if number is not None:
            return times.ms_of_number(number)
        if isinstance(value, str) and is_no_number(value):
            return None
        raise times.NoTime

    def age(self, config, time, since):
        """A float, NaN if a time is missing."""
        time, since = self.time(time), self.time(since)
        missing = time is None or since is None
        return math.nan if missing else (time - since) / times.UNITS_MS[config["unit"]]

    def part(self, feature, value):
        """The ids of a feature that is made of a time, and their weights."""
        ms = self.time(value)
        if ms is None:
            return ([MISSING_ID], [1.0]) if feature["missing"] == "own_id" else ([], [])
        return [times.id_of_part(feature["part"], feature["zone"], ms)], [1.0]

    def bag(self, feature, values):
        """The ids of a feature, from the values of its columns, and their weights."""
        ids, weights = [], []
        for value in values:
            value = self._id_text(feature["type"], value)
            before = len(ids)
            if value is not None:
                self._add(feature, value, ids, weights)
            is_none = value is None or (isinstance(value, str) and is_no_number(value))
            if len(ids) == before and is_none and feature["missing"] == "own_id":
                ids.append(MISSING_ID)
                weights.append(1.0)
        return ids, weights

    def _parse(self, value):
        """A float, from itself or from a text in the notation of the data; None if it is none."""
        if isinstance(value, str) and self._rule != 1 and value.lower() in ("true", "false"):
            return float(value.lower() == "true")
        number = self._parse_real(value)
        return float(np.float32(number)) if self._rule == 1 and number is not None else number

    def _parse_real(self, value):
        """The same of no truth value, always in 64 bits."""
        if isinstance(value, str) and self._has_decimal_comma:
            return None if "." in value else parse_number(value.replace(",", "."))
        return parse_number(str(value))

    def _id_text(self, type, given):
        """A plain value for ids: a text, a list, or None."""
        value = self._plain(given)
        if self._rule == 1:
            return id_text_of_rule_1(type, given, value)
        if value is None or isinstance(value, list):
            return value
        if type == "hex" and not isinstance(given, str):
            raise BadValue("expected a text of hex digits")
        return text_of_real(value) if isinstance(value, float) else value

    def _plain(self, value):
        """A text; a float; a list; or None, if the value is missing."""
        if hasattr(value, "tolist"):
            value = plain_values(value)  # NumPy's
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            return None
        if isinstance(value, bool):
            if self._rule == 1:
                raise BadValue("expected a text or a number")
            value = "true" if value else "false"
        if isinstance(value, int):
            value = str(value)
        if isinstance(value, str):
            value = value.strip(" \t") if self._trim else value
            return None if value in self._missing else value
        if isinstance(value, float):
            return None if math.isnan(value) or self._parse(value) in self._missing_numbers else value
        if isinstance(value, (list, tuple)):
            return list(value) or None
        raise BadValue("expected a text, a number or a list")

    def _add(self, feature, value, ids, weights):
        limit = feature["max_length"] or math.inf
        for element in self._elements(feature, value):
            if feature["keep"] != "last" and len(ids) >= limit:
                break
            weight = 1.0
            if feature["weight_separator"] and feature["weight_separator"] in element:
                element, text = element.rsplit(feature["weight_separator"], 1)
                weight = self._parse(text)
                if weight is None:
                    raise BadValue("expected a number as the weight")
            id = self._id(feature["type"], element) if element else None
            if id is not None:
                ids.append(id)
                weights.append(weight)
        if len(ids) > limit:
            del ids[:-limit], weights[:-limit]

    def _elements(self, feature, value):
        if isinstance(value, str):
            if self._rule != 1 and feature["separator"] and value[:1] == "[" and value[-1:] == "]" and len(value) > 1:
                elements = [element.strip(" ") for element in value[1:-1].split(feature["separator"])]
                return ["" if is_no_number(element) else without_quotes(element) for element in elements]
            value = value.split(feature["separator"]) if feature["separator"] else [value]
        else:
            value = [self._id_text(feature["type"], element) or "" for element in value]
            if not all(isinstance(element, str) for element in value):
                raise BadValue("expected a list of texts and integers")
        return [element.strip(" ") for element in value] if self._trim else value

    def _id(self, type, text):
        """None if the text says that there is none."""
        if self._rule != 1 and type != "hex":
            text = canonical_text(text, self._decimal)
            text = {"true": "1", "false": "0"}.get(text, text) if type == "int" else text
        if type == "string":
            if text not in self._hashes:
                self._hashes[text] = xxh3(text.encode())
            return self._hashes[text]
        if type == "int":
            id = int(text) if INT.fullmatch(text) else None
            if id is not None and -2**63 <= id <= BITS64:
                return id & BITS64
        elif HEX.fullmatch(text) and int(text, 16) <= BITS64:
            return int(text, 16)
        if is_no_number(text):
            return None
        raise BadValue("expected an integer of 64 bits" if type == "int" else "expected up to 16 hex digits")
