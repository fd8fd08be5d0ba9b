"""The table of ARCHITECTURE.md, section 7: which places an addition touches.

A row is `| kind (N) | places |`. The first sentence of the places has them: paths in `code`, where * stands for a part
of a name and a folder for any file below it, each followed by "twice" if it is touched twice. Later sentences have what
only some additions need.
"""

import collections
import fnmatch
import re

ROW = re.compile(r"^\| ([\w ]+) \((\d+)\) \| (.+) \|$", re.M)
PLACE = re.compile(r"`([\w*.]+/[\w*./]*)`( twice)?")


def rows_of(page):
    """{kind: (number, [path, ...])}"""
    section = page[page.index("## 7. Where to add what"):]
    rows = {}
    for kind, number, places in ROW.findall(section):
        first = re.split(r"\. (?=[A-Z])", places)[0]
        rows[kind] = int(number), [path for path, twice in PLACE.findall(first) for _ in range(2 if twice else 1)]
    return rows


def matches(path, listed):
    return path.startswith(listed) if listed.endswith("/") else fnmatch.fnmatchcase(path, listed)


def complaints(number, listed, touched):
    """Differences between a row and the files of an addition's places, one for each place."""
    if number != len(listed):
        yield f"the table says {number} places, and names {len(listed)}"
    left = collections.Counter(touched)
    for place in sorted(listed, key=lambda place: ("*" in place or place.endswith("/"), -len(place))):
        found = next((path for path in sorted(left.elements()) if matches(path, place)), None)
        if found is None:
            yield f"{place} is listed, and not touched"
        else:
            left[found] -= 1
    for path in sorted(left.elements()):
        yield f"{path} is touched, and not listed"
