"""Checks every include within a module against its rooms, the folders of src/<module>/.

A file in a room includes files of its own room and of rooms on lower floors; rooms of one floor do not know each other.
So there is no circle. A public header is in the room of the source of its name, or in the one that PUBLIC names. No
file lies outside of a room, and no room has more than MOST_FILES files.
"""

import os
import pathlib
import re
import unittest

from trees import TreeTest

from layers_test import INCLUDE, SUFFIXES

# Lowest first.
FLOORS = {
    "data": [
        {"terms"},
        {"rows"},
        {"files"},
        {"text", "generate", "cache", "http"},
        {"columnar", "s3", "hdfs"},
        {"topic", "arrow"},
        {"deliveries", "kafka"},
        {"passes"},
        {"check", "look"},
    ],
}

# The rooms of public headers without a source of their name.
PUBLIC = {
    "data": {
        "bad_rows.h": "rows",
        "batch.h": "terms",
        "batch_source.h": "terms",
        "file_name.h": "terms",
        "kafka_support.h": "topic",
        "parquet_support.h": "columnar",
        "role.h": "terms",
        "row_block_source.h": "rows",
        "store_support.h": "files",
        "texts.h": "terms",
        "topic.h": "topic",
    },
}

MOST_FILES = 40


def floor_of(module, room):
    """The number of its floor, or None if it is no room of the module."""
    return next((number for number, rooms in enumerate(FLOORS[module]) if room in rooms), None)


def sources(folder):
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES]


def room_of_public(root, module, name):
    """The room of include/satrap/<module>/<name>, or None."""
    source = pathlib.PurePosixPath(name).with_suffix(".cpp").name
    rooms = [path.parent.name for path in (root / "src" / module).glob(f"*/{source}")]
    return rooms[0] if len(rooms) == 1 else PUBLIC[module].get(name)


def room_of(root, module, name):
    """The room of a file of the module, named as in an include; None if it is in none."""
    match = re.fullmatch(rf"(satrap|src)/{module}/(?:(\w+)/)?(\w+\.\w+)", name)
    if match is None:
        return None
    return room_of_public(root, module, match[3]) if match[1] == "satrap" else match[2]


def include_complaint(root, module, room, target_name):
    """Why a file in this room must not include that one of the module, or None."""
    target = room_of(root, module, target_name)
    if floor_of(module, target) is None:
        return None  # said of that file
    if target != room and floor_of(module, target) >= floor_of(module, room):
        return f"{room} may include only rooms on lower floors, not {target}"
    return None


def file_complaints(root, module, path):
    """What is wrong with one file of the module: (line or None, why)."""
    name = path.relative_to(root).as_posix().removeprefix("include/")
    room = room_of(root, module, name)
    if room is None:
        yield None, (f"lies in no room; name one in PUBLIC of {pathlib.Path(__file__).name}"
                     if name.startswith("satrap/") else f"lies in no room; move it to a folder of src/{module}")
        return
    if floor_of(module, room) is None:
        floors = " → ".join(" | ".join(sorted(rooms)) for rooms in FLOORS[module])
        yield None, f"'{room}' is not a room: they are {floors}"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        why = match and include_complaint(root, module, room, match[2])
        if why:
            yield number, f"{match[2]}: {why}"


def violations(root):
    root = pathlib.Path(root)
    found = []
    for module in FLOORS:
        for folder in (root / "include" / "satrap" / module, root / "src" / module):
            for path in sources(folder):
                for number, why in file_complaints(root, module, path):
                    place = path.relative_to(root).as_posix() + (f":{number}" if number else "")
                    found.append(f"{place}: {why}")
        for room in sorted((root / "src" / module).glob("*/")):
            if len(sources(room)) > MOST_FILES:
                found.append(f"{room.relative_to(root)}: has {len(sources(room))} files; divide it, at most "
                             f"{MOST_FILES} are found at a look")
    return found


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_own_room_and_lower_floors_pass(self):
        self.assertEqual([], self.check({
            "include/satrap/data/open_rows.h": '#include "satrap/data/role.h"\n#include "satrap/core/error.h"\n',
            "include/satrap/data/role.h": "#include <string>\n",
            "src/data/passes/open_rows.cpp": '#include "satrap/data/open_rows.h"\n#include "src/data/text/text_rows.h"\n',
            "src/data/text/text_rows.h": '#include "src/data/text/row_parser.h"\n',
            "src/data/text/row_parser.h": "",
            "src/data/README.md": "",
            "src/core/log.cpp": '#include "src/core/terminal.h"\n',
        }))

    def test_upward_include_is_refused(self):
        self.assert_reported({"src/data/rows/filler.h": '\n#include "src/data/text/row_parser.h"\n',
                             "src/data/text/row_parser.h": ""},
                            "src/data/rows/filler.h:2", "rows may include only rooms on lower floors, not text")

    def test_include_of_the_same_floor_is_refused(self):
        self.assert_reported({"src/data/cache/file.cpp": '#include "src/data/text/row_parser.h"\n',
                             "src/data/text/row_parser.h": ""},
                            "src/data/cache/file.cpp:1", "cache may include only")

    def test_a_public_header_is_in_the_room_of_its_source(self):
        files = {"include/satrap/data/open_rows.h": "", "src/data/passes/open_rows.cpp": ""}
        self.assert_reported({**files, "src/data/rows/filler.h": '#include "satrap/data/open_rows.h"\n'},
                            "src/data/rows/filler.h:1", "not passes")
        self.assert_reported({**files, "include/satrap/data/open_rows.h": '#include "src/data/look/sample.h"\n',
                             "src/data/look/sample.h": ""},
                            "include/satrap/data/open_rows.h:1", "not look")

    def test_a_public_header_without_a_source_is_in_the_room_that_is_named(self):
        self.assert_reported({"include/satrap/data/role.h": '#include "src/data/rows/filler.h"\n',
                             "src/data/rows/filler.h": ""},
                            "include/satrap/data/role.h:1", "terms may include only")
        self.assert_reported({"include/satrap/data/new.h": ""}, "include/satrap/data/new.h", "name one in PUBLIC")

    def test_a_file_outside_of_every_room_is_refused(self):
        self.assert_reported({"src/data/loader.cpp": ""}, "src/data/loader.cpp", "move it to a folder of src/data")
        self.assert_reported({"src/data/utils/misc.cpp": ""}, "src/data/utils/misc.cpp", "'utils' is not a room")

    def test_a_room_with_too_many_files_is_refused(self):
        files = {f"src/data/rows/row_{number}.h": "" for number in range(MOST_FILES)}
        self.assertEqual([], self.check(files))
        self.assert_reported({**files, "src/data/rows/one_more.h": ""}, "src/data/rows", f"has {MOST_FILES + 1} files")


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_include_follows_the_floors(self):
        self.assertEqual([], violations(self.root))

    def test_every_room_has_files(self):
        for module, floors in FLOORS.items():
            for room in set().union(*floors):
                self.assertTrue(sources(self.root / "src" / module / room), room)

    def test_only_headers_without_a_source_of_their_name_are_named(self):
        for module, headers in PUBLIC.items():
            for name in headers:
                self.assertTrue((self.root / "include/satrap" / module / name).is_file(), name)
                source = pathlib.PurePosixPath(name).with_suffix(".cpp").name
                self.assertEqual([], list((self.root / "src" / module).glob(f"*/{source}")), name)


if __name__ == "__main__":
    unittest.main()
