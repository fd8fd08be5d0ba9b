"""An addition to the tree: the places that it touches, as edits and new files. Uses of it are in additions_test.py."""

import dataclasses


@dataclasses.dataclass
class Edit:
    """One place in a file: `old`, which is there once, becomes `new`. `beside`: lines of #include and of comments that
    the place brings, as (old, new)."""
    file: str
    old: str
    new: str
    beside: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def after(file, anchor, text, beside=()):
    return Edit(file, anchor, anchor + text, list(beside))


def before(file, anchor, text, beside=()):
    return Edit(file, anchor, text + anchor, list(beside))


@dataclasses.dataclass
class NewFile:
    file: str
    text: str


@dataclasses.dataclass
class Addition:
    """`kind`: what the table of ARCHITECTURE.md calls it. `test`: a test of it, which is no place."""
    kind: str
    places: list[Edit | NewFile]
    test: NewFile | None = None
