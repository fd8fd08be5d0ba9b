"""Values of a column as numbers and ids: what training makes of the same text.

A value is a text, as it would stand in the data; a number; None, NaN or pandas' NA, which are missing; or, for a
feature with several ids, a list of texts and integers. Integers count as their decimal text.
"""
import math
import re

import numpy as np

from .xxh3 import xxh3

BITS64 = 2**64 - 1
MISSING_ID = 0x6D697373696E67
NO_NUMBER = {"nan", "null", "na", "n/a", "none", "\\n"}  # what programs write for a number that is not there
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INT = re.compile(r"[0-9]+|-[0-9]+")
HEX = re.compile(r"(0[xX])?[0-9a-fA-F]+")


class InputError(ValueError):
    """Rows that cannot be scored; the message names column, row and value."""


class BadValue(Exception):
    """What was expected of a value; its column and row are known to the caller."""


def is_no_number(text):
    return text.lower() in NO_NUMBER


def parse_number(text):
    """A finite decimal number, the nearest double rounded to float32; None if the text is none."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return float(np.float32(value)) if abs(value) < float(np.finfo(np.float32).max) else None


def id_text(type, given, value):
    """A plain value that was `given` for ids, with an integer in a float, as pandas has it beside NaN, as its text."""
    if type == "hex" and value is not None and not isinstance(given, (str, list, tuple)):
        raise BadValue("expected a text of hex digits")
    if not isinstance(value, float):
        return value
    if type != "int" or not value.is_integer():
        raise BadValue("expected a text or an integer")
    return str(int(value))


class FieldReader:
    """Reads values by the rules of export.json: its section "text" and those of a column."""

    def __init__(self, text):
        self._trim = text["trim"]
        self._missing = {"", *text["missing"]}
        self._has_decimal_comma = text.get("decimal", ".") == ","
        self._missing_numbers = {self._parse(token) for token in self._missing} - {None}
        self._hashes = {}

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
        boundaries = np.array(feature["boundaries"], np.float32)
        return [int(np.searchsorted(boundaries, np.float32(number), side="right"))], [1.0]

    def bag(self, feature, values):
        """The ids of a feature, from the values of its columns, and their weights."""
        ids, weights = [], []
        for value in values:
            value = id_text(feature["type"], value, self._plain(value))
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
        if not isinstance(value, str) or not self._has_decimal_comma:
            return parse_number(str(value))
        return None if "." in value else parse_number(value.replace(",", "."))

    def _plain(self, value):
        """A text; a float; a list; or None, if the value is missing."""
        if hasattr(value, "tolist"):
            value = value.tolist()  # NumPy's
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            return None
        if isinstance(value, bool):
            raise BadValue("expected a text or a number")
        if isinstance(value, int):
            value = str(value)
        if isinstance(value, str):
            value = value.strip(" \t") if self._trim else value
            return None if value in self._missing else value
        if isinstance(value, float):
            return None if math.isnan(value) or parse_number(str(value)) in self._missing_numbers else value
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
            value = value.split(feature["separator"]) if feature["separator"] else [value]
        elif not feature["separator"]:
            raise BadValue("expected one id")
        else:
            value = [id_text(feature["type"], element, self._plain(element)) or "" for element in value]
            if not all(isinstance(element, str) for element in value):
                raise BadValue("expected a list of texts and integers")
        return [element.strip(" ") for element in value] if self._trim else value

    def _id(self, type, text):
        """None if the text says that there is none."""
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
