"""Which failures are final: those of the kind that a second run may hide and must not.

Unequal bits, reports of sanitizers, signals, lost rows and exceeded time limits fail at once. Any other test that fails
is run twice more and is FLAKY if it passes both times. A failure is of these kinds by how ctest says that it ended, by
a sanitizer's own words, and by its assertions: the lines of code and the values in which a test compares. When in
doubt it is final.
"""

import re

SANITIZER_STATUS = 86  # of a program with a sanitizer's report: tests/support/sanitizers/options.cpp
SANITIZER = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer[: ]|: runtime error: |libFuzzer: ")
SIGNAL = re.compile(r"Segmentation fault|\bcore dumped\b|\bterminate called\b|\bSIG(SEGV|ABRT|BUS|ILL|FPE)\b")
# Of a program that a test has started, in what it raises.
STATUS_OF_SIGNAL = re.compile(r"(?<![\w.])-(4|6|7|8|11)(?![\w.])|AssertionError: (-\d{1,2} !=|\S+ != -\d{1,2}\b)"
                              r"|\b(ended|died) with (-\d|<Signals)|exit status -\d")
STATUS_OF_SANITIZER = re.compile(rf"(?<![\w.]){SANITIZER_STATUS}(?![\w.])")
LIMIT = re.compile(r"TimeoutExpired|TimeoutError|\bHang: |\bdeadline\b|\bnot (?:\w+ )*within [\d.]+ m?s\b|\bdoes not end\b")
# What a test calls the things that must be equal whatever the timing.
BITS = re.compile(r"(?i)digest|checksum|\bcrc|sha256|xxh|(?:^|[\W_])bits?(?:$|[\W_])|bitwise|same_as|identical|bit_pattern"
                  r"|memcmp|\bunequal\b|read_bytes|tobytes|filecmp|array_equal")
ROWS = re.compile(r"(?i)(?:^|[\W_])(rows?|examples?|lines|messages?|records|keys|offsets?|ids)(?:$|[\W_])")
COMPARES = re.compile(r"assert(Count|List|Dict|Tuple|Sequence|Set|Multi\w*)?Equal|EXPECT_EQ|ASSERT_EQ|EXPECT_THAT"
                      r"|ASSERT_THAT|Expected equality| == | != |Differ|differ|doesn't (match|have)")
LOST = re.compile(r"(?i)\b(rows?|examples?|lines?|messages?|records)\b[^\n]{0,40}\b(lost|missing|twice|again|short)\b"
                  r"|\b(lost|missing|duplicated?)\b[^\n]{0,20}\b(rows?|examples?|lines?|messages?|records)\b")
# Hexadecimal numbers, decimals and bytes: what digests, hashes, floating-point numbers and files look like.
PRECISE = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b\d+\.\d+(?:[eE][-+]?\d+)?\b|\bb'")
TOLERANT = re.compile(r"within .*(places|delta)|The difference between")
WITHOUT_ASSERTION = 30  # lines at the end of an output in which no assertion is found

_PYTHON_BLOCK = re.compile(r"^={20,}\n((?:FAIL|ERROR): .*?)(?=^={20,}$|^-{20,}\nRan |\Z)", re.M | re.S)
_GTEST_FAILURE = r"^(?:[^\n]+:\d+|unknown file): Failure$"
_GTEST_BLOCK = re.compile(rf"{_GTEST_FAILURE}.*?(?=^\n|^\[|{_GTEST_FAILURE}|\Z)", re.M | re.S)
_GTEST_NAME = re.compile(r"^\[  FAILED  \] (\S+)", re.M)


def _words(name):
    """A name in CamelCase as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)


def _python_assertion(block):
    """Of one failed test of unittest: its name and its sentence, its lines of code, and the first lines of what was
    unequal."""
    title, _, rest = block.split("\nStdout:")[0].partition("\n-----")
    trace = rest.rpartition("\nTraceback (most recent call last):\n")[2]
    code = re.findall(r"^ {4}.*$", rest, re.M)
    raised = re.search(r"^[^\s].*(?:\n.*){0,4}", trace, re.M)
    return "\n".join([title, *code, raised.group()[:1000] if raised else ""])


def assertions(output):
    """The parts of what a failed test printed that say what was compared. Where there are none, its end."""
    found = [_python_assertion(match.group(1)) for match in _PYTHON_BLOCK.finditer(output)]
    names = " ".join(map(_words, _GTEST_NAME.findall(output)))
    found += [f"{names}\n{match.group()[:2000]}" for match in _GTEST_BLOCK.finditer(output)]
    return found or ["\n".join(output.rstrip().splitlines()[-WITHOUT_ASSERTION:])]


def _of_assertion(text):
    if LIMIT.search(text):
        return "exceeded a time limit"
    if STATUS_OF_SIGNAL.search(text):
        return "a signal"
    if STATUS_OF_SANITIZER.search(text):
        return "a sanitizer's report"
    if BITS.search(text):
        return "unequal bits"
    if LOST.search(text) or (COMPARES.search(text) and ROWS.search(text)):
        return "lost rows"
    if not TOLERANT.search(text) and COMPARES.search(text) and PRECISE.search(text):
        return "unequal bits"
    return None


def final_reason(end, output):
    """Why a failed test is not run again; None if it is. `end`: how ctest says that it ended."""
    if "Timeout" in end:
        return "exceeded its time limit"
    if "Exception" in end or "Subprocess" in end:
        return "a signal"
    if SANITIZER.search(output):
        return "a sanitizer's report"
    if SIGNAL.search(output):
        return "a signal"
    return next(filter(None, map(_of_assertion, assertions(output))), None)
