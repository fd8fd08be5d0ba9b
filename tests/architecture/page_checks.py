"""What all pages are held to: lengths, links, measured numbers, and questions that a page answers."""

import re

import page_text

WORDS = 35
COLUMNS = 120
SCREEN = 40
RATE = re.compile(r"\d[\d.,]*[ -]?(?:k |M )?(?:examples|rows|lines|ids)?(?:/s\b| per second)|\d[\d.,]*[ -]?[GMT]FLOP"
                  r"|\d[\d.,]*[ -]?[KMGT]i?B/s|\d[\d.,]* times (?:as|faster|slower|the)\b|\d[\d.,]* ?% (?:faster|slower)")
TIME_OR_SIZE = re.compile(r"\d[\d.,]*[ -]?(?:ms|us|µs|ns)\b|\d\.\d+ ?(?:s|min|h|[KMGT]i?B)\b"
                          r"|(?:takes?|took|needs?) (?:about )?\d[\d.,]* ?(?:s|min|minutes|seconds|hours|[KMGT]i?B)\b")


def shape_complaints(name, text, most):
    """What is too long on a page. It may have `most` lines; None: nobody said how many."""
    lines = text.splitlines()
    if most is None:
        yield f"{name}: no length is given for it"
    elif len(lines) > most:
        yield f"{name}: has {len(lines)} lines, at most {most} are allowed"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not page_text.is_table(line) and "](" not in line:
            yield f"{name}:{number}: has {len(line)} columns, at most {COLUMNS} are allowed"
    for number, words in page_text.paragraphs(text):
        for sentence in page_text.sentences(words):
            if (count := page_text.num_words(sentence)) > WORDS:
                yield f"{name}:{number}: a sentence has {count} words, at most {WORDS} are allowed: {sentence}"


def measure_complaints(name, text, place, patterns, allowed=()):
    """What matches one of the patterns belongs to `place`; the sections that `allowed` names may have it too."""
    section = ""
    for number, line in enumerate(page_text.without_code(text), 1):
        section = line.strip("# ") if line.startswith("#") else section
        found = next(filter(None, (pattern.search(line) for pattern in patterns)), None)
        if found and section not in allowed:
            yield f"{name}:{number}: '{found[0]}' was measured: its place is {place}"


def link_complaints(root, path):
    text = path.read_text(encoding="utf-8")
    for number, link in page_text.links(text):
        target, _, wanted = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        place = f"{path.relative_to(root).as_posix()}:{number}"
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            yield f"{place}: there is no {target}"
        elif wanted and wanted not in page_text.anchors(file.read_text(encoding="utf-8")):
            yield f"{place}: {target or 'this page'} has no heading #{wanted}"


def questions(root, name):
    """(line, question, page, heading, words) of each row of a table of questions."""
    path = root / name
    if not path.is_file():
        return []
    rows = [(number, [cell.strip() for cell in line.strip().strip("|").split("|")])
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if page_text.is_table(line)]
    return [(number, *cells) for number, cells in rows[2:]]


def question_complaints(root, name):
    """The questions that their page does not answer within a screen of the heading."""
    for number, _question, page, heading, words in questions(root, name):
        place = f"{name}:{number}"
        if not (root / page).is_file():
            yield f"{place}: there is no {page}"
            continue
        text = (root / page).read_text(encoding="utf-8")
        first = next((line for line, title in page_text.headings(text) if title == heading), None)
        if first is None:
            yield f"{place}: {page} has no heading '{heading}'"
            continue
        screen = " ".join(" ".join(text.splitlines()[first - 1:first - 1 + SCREEN]).split())
        if missing := [word for word in re.findall(r"`([^`]*)`", words) if word not in screen]:
            yield f"{place}: not within {SCREEN} lines of '{heading}' in {page}: {', '.join(missing)}"
