"""What a page in Markdown is made of: prose, blocks of code, links and headings."""

import dataclasses
import re

FENCE = re.compile(r"^\s*```")
NOT_RUN = re.compile(r"^<!-- not run: (\S.*) -->$")
# A sentence ends at a period, an exclamation or question mark before a space, but not after these.
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf)|…)\.$")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block. `not_run` is what a comment before it gives as the reason not to run it, or None."""
    language: str
    line: int
    text: str
    not_run: str | None


def blocks(text):
    """The fenced blocks of a page, in its order."""
    found, lines, before, opened = [], [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        if opened is not None:
            if FENCE.match(line):
                found.append(Block(*opened[:2], "".join(lines), opened[2]))
                opened, lines = None, []
            else:
                lines.append(line + "\n")
        elif FENCE.match(line):
            mark = NOT_RUN.match(before.strip())
            opened = line.strip().strip("`"), number, mark[1] if mark else None
        if line.strip():
            before = line
    return found


def without_code(text):
    """The page with empty lines in the place of fenced blocks and of comments, so that lines keep their numbers."""
    inside, lines = False, []
    for line in text.splitlines():
        fence = bool(FENCE.match(line))
        lines.append("" if inside or fence or line.startswith("<!--") else line)
        inside ^= fence
    return lines


def is_table(line):
    return line.lstrip().startswith("|")


def paragraphs(text):
    """(line, words) of each paragraph and each item of a list. Headings, tables and code are left out; code within a
    line is one word, and of a link only what is shown counts."""
    found, first, parts = [], 0, []

    def end():
        if parts:
            words = re.sub(r"`[^`]*`", "`code`", " ".join(parts))
            words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", words)
            found.append((first, words.replace("**", "").replace("*", "")))
        parts.clear()

    for number, line in enumerate(without_code(text), 1):
        item = re.match(r"\s*(?:[-*]|\d+\.) +(.*)", line)
        if not line.strip() or line.startswith("#") or is_table(line):
            end()
            continue
        if item:
            end()
        if not parts:
            first = number
        parts.append(item[1] if item else line.strip())
    end()
    return found


def sentences(words):
    """The sentences of a paragraph. What stands after its last mark is one too."""
    found, current = [], []
    for word in words.split():
        current.append(word)
        bare = word.rstrip("\"')")
        if bare.endswith((".", "!", "?")) and not ABBREVIATION.search(bare):
            found.append(" ".join(current))
            current = []
    return found + ([" ".join(current)] if current else [])


def num_words(sentence):
    """Words have a letter or a digit: a dash is none."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def headings(text):
    """(line, title) of each heading."""
    found = [(number, re.match(r"#+ +(.*)", line)) for number, line in enumerate(without_code(text), 1)]
    return [(number, match[1].strip()) for number, match in found if match]


def anchor(title):
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")


def anchors(text):
    found = set()
    for _, title in headings(text):
        name, number = anchor(title), 0
        while (wanted := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(wanted)
    return found


def links(text):
    """(line, target) of each link and picture."""
    return [(number, target) for number, line in enumerate(without_code(text), 1)
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line))]
