"""What README.md and docs/*.md say can be done: their commands run, and their configurations are valid.

A block of `sh` or `python` runs in a folder with a click log of 4,000 rows, its job and a run (`Pages.make_folder`),
after the blocks before it. The comment `<!-- not run: reason -->` before a block leaves it out; its commands and
options must exist nevertheless, as must those within lines. A block of `yaml` is valid; one that begins with
`# name.yaml` is also written to that file, for the commands after it.
"""
import functools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from cli import SATRAP, CliTest, satrap

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/architecture"))
import page_text  # noqa: E402

ROWS = 3000  # at most, of what a page generates
PROGRAMS = ["satrap", "satrap-ps", "satrap-run"]


@functools.cache
def programs():
    """A folder for PATH, which this process keeps until it ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="satrap-pages-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    shard = pathlib.Path(SATRAP).with_name("satrap-ps")
    for name, file in zip(PROGRAMS, [SATRAP, shard, SOURCE / "launch/satrap-run"]):
        (folder / name).symlink_to(file)
    return folder


def run_line(line, folder, timeout=60):
    """Runs lines of sh, which end at the first that fails."""
    path = f"{programs()}:{os.environ['PATH']}"
    return subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                          timeout=timeout, env={**os.environ, "PATH": path, "CUDA_VISIBLE_DEVICES": ""},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@functools.cache
def help_of(*words):
    done = run_line(" ".join([*words, "--help"]), "/")
    return done.stdout if done.returncode == 0 else None


def commands_of(line):
    """The commands of satrap's programs in a line, each as its words."""
    line = re.sub(r"\\\n", " ", line)
    line = re.sub(r"(^|\s)#.*", "", line, flags=re.M)
    found = []
    for part in re.split(r"&&|\|\||[;|&\n]|\$\(", line):
        words = part.split()
        while words and "=" in words[0]:  # variables of the environment
            words = words[1:]
        if words and words[0] in PROGRAMS:
            found.append(words)
    return found


def command_complaint(words):
    """Why this command cannot be meant, or None."""
    command = [words[0]]
    while len(words) > len(command) and re.fullmatch(r"[a-z]+", word := words[len(command)]):
        listed = re.search(rf"^ +{word} ", help_of(*command).partition("Subcommands:")[2], re.M)
        if not listed:
            break
        command.append(word)
    text = help_of(*command)
    if "Subcommands:" in text and len(words) > len(command) and not words[len(command)].startswith("-"):
        return f"'{' '.join(command)}' has no command '{words[len(command)]}'"
    for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", " ".join(words).partition(" -- ")[0]):
        if not re.search(rf"^ +(-\w, ?)?{option}(?![\w-])", text, re.M):
            return f"'{' '.join(command)}' has no option {option}"
    return None


def block_complaint(block, folder):
    """Why a block of a page is wrong, or None. Runs it, if nothing says why not."""
    if block.not_run and block.language != "sh":
        return None
    if block.language == "yaml":
        return configuration_complaint(block.text, folder)
    if block.language not in ("sh", "python"):
        return None
    if block.not_run is None:
        text = re.sub(r"(rows )(\d+)", lambda found: found[1] + str(min(int(found[2]), ROWS)), block.text)
        done = run_line(text if block.language == "sh" else shlex.join([sys.executable, "-c", text]), folder)
        return f"ends with status {done.returncode}: {done.stdout[-2000:]}" if done.returncode else None
    return next(filter(None, map(command_complaint, commands_of(block.text))), None)


def configuration_complaint(text, folder):
    named = re.match(r"# (\S+\.yaml)\n", text)
    path = pathlib.Path(folder, named[1] if named else "block.yaml")
    path.write_text(text)
    overrides = []
    if not named:  # a part of a job
        for key, value in [("train", "clicks.csv"), ("schema", "{label: clicked, features: [user, item]}")]:
            overrides += [] if re.search(rf"^  {key}:", text, re.M) else [f"data.{key}={value}"]
    done = satrap("config", "check", path.name, *overrides, cwd=folder)
    return f"is not valid: {done.stderr}" if done.returncode else None


def page_complaints(text, folder):
    """What cannot be done as a page says, with the line."""
    found = []
    for block in page_text.blocks(text):
        if why := block_complaint(block, folder):
            found.append(f"{block.line}: {why}")
    for number, line in enumerate(page_text.without_code(text), 1):
        for code in re.findall(r"`([^`]*)`", line):
            found += [f"{number}: {why}" for why in map(command_complaint, commands_of(code)) if why]
    return found


def click_log():
    """Rows whose label depends on the user, the item and a tag; in the order of time."""
    draw, lines = random.Random(1), ["time,user,item,country,price,tags,clicked"]
    for row in range(4000):
        user, item = draw.randrange(60), draw.randrange(40)
        tags = sorted(draw.sample(["red", "blue", "round", "sale"], draw.randrange(3)))
        clicked = draw.random() < 0.1 + 0.015 * item * (user % 3 == 0) + 0.2 * ("sale" in tags)
        time = f"2026-11-{1 + row // 150:02d} {row % 150 * 24 // 150:02d}:00:00"
        price = draw.expovariate(0.1) + item
        lines.append(f"{time},u{user},{item},{['US', 'DE'][user % 2]},{price:.2f},{'|'.join(tags)},{int(clicked)}")
    return lines


class Pages(CliTest):
    """Has folders in which the blocks of pages run."""

    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(programs()) / "made"
        if cls.made.exists():
            return
        cls.made.mkdir()
        lines = click_log()
        (cls.made / "clicks.csv").write_text("\n".join(lines) + "\n")
        (cls.made / "new.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines[:300]) + "\n")
        done = run_line("satrap init clicks.csv && satrap train clicks.yaml train.max_steps=100", cls.made)
        if done.returncode:
            raise AssertionError(done.stdout)

    def make_folder(self, text):
        """With clicks.csv, and new.csv without the label; but for pages that begin there, also with clicks.yaml, as
        `satrap init` writes it, and the run runs/clicks."""
        folder = pathlib.Path(shutil.copytree(self.made, tempfile.mkdtemp(dir=self.dir), dirs_exist_ok=True))
        if "satrap init clicks.csv" in text:
            (folder / "clicks.yaml").unlink()
            shutil.rmtree(folder / "runs")
        return folder


class Project(Pages):
    def test_what_the_pages_say_can_be_done(self):
        pages = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
        self.assertGreater(len(pages), 5)
        found = []
        for page in pages:
            text = page.read_text()
            found += [f"{page.relative_to(SOURCE)}:{why}" for why in page_complaints(text, self.make_folder(text))]
        self.assertEqual([], found)

    def test_the_messages_are_those_of_the_programs(self):
        messages = re.findall(r"^\| `(.*?)` \| \S", (SOURCE / "docs/troubleshooting.md").read_text(), re.M)
        self.assertGreaterEqual(len(messages), 20)
        sources = [*(SOURCE / "src").rglob("*.cpp"), *(SOURCE / "launch").rglob("*.py")]
        text = "\n".join(path.read_text() for path in sources)
        text = re.sub(r'"\s*\n\s*f?"', "", text)  # literals that continue on the next line
        for message in messages:
            for part in filter(None, (part.strip(" '") for part in message.split("…"))):
                with self.subTest(message):
                    self.assertTrue(part in text, part)

    def test_the_page_of_the_output_has_every_key_of_a_summary_and_every_file_of_a_run(self):
        page = (SOURCE / "docs/output.md").read_text()
        run = self.make_folder("") / "runs/clicks"
        rows = "\n".join(line.split(" | ")[0] for line in page.splitlines() if page_text.is_table(line))
        for name in [*json.loads((run / "summary.json").read_text()), *(path.name for path in run.iterdir())]:
            with self.subTest(name):
                self.assertRegex(rows, rf"[`/]{re.escape(name)}[`./]")

    def test_the_tests_of_the_threat_model_exist(self):
        text = (SOURCE / "SECURITY.md").read_text()
        rows = re.findall(r"^\| .* \| .* \| (.*) \|$", text, re.M)
        named = re.findall(r"`([^`]+)`", " ".join(row for row in rows))
        self.assertGreater(len(named), 30)
        files = {str(path.relative_to(SOURCE / "tests")): path for path in (SOURCE / "tests").rglob("*.*")}
        sources = "\n".join(files[name].read_text() for name in files if name.endswith("_test.cpp"))
        for name in named:
            with self.subTest(name):
                if name.endswith(".py"):
                    self.assertIn(name, files)
                elif name.startswith("fuzz."):
                    pattern = name.removeprefix("fuzz.").replace("*", ".*")
                    self.assertTrue(any(re.fullmatch(rf"fuzz/{pattern}_fuzz\.cpp", f) for f in files))
                elif not name.startswith("tests/"):
                    suite, _, case = name.rpartition(".")
                    case = case.replace("*", r"\w*")
                    suite = suite or r"\w+"
                    self.assertRegex(sources, rf"TEST(_F)?\({suite},\s*{case}\)")


class Checker(Pages):
    """What the checks above find in pages that are wrong."""

    def complaints(self, text):
        return page_complaints(text, self.make_folder(text))

    def assert_found(self, text, place, *words):
        found = self.complaints(text)
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith(f"{place}: "), found)
        self.assert_words(found[0], *words)

    def test_good_blocks_pass(self):
        self.assertEqual([], self.complaints(
            "# x\n```yaml\n# job.yaml\nrun_dir: r\n"
            "data: {train: clicks.csv, schema: {label: clicked, features: [user, item]}}\n```\n"
            "```sh\nsatrap config check job.yaml --data\n```\n`satrap checkpoint ls DIR`, `satrap-run --ps 2 CONFIG`\n"
            "<!-- not run: needs a broker -->\n```sh\nA=1 satrap train job.yaml --resume | tail  # --nothing\n```\n"
            "<!-- not run: x_test.py runs it -->\n```python\nnot Python\n```\n"))

    def test_a_command_that_fails(self):
        self.assert_found("\n```sh\nsatrap config check none.yaml\ntrue\n```\n", 2, "ends with status", "none.yaml")

    def test_a_command_that_is_not_run_and_does_not_exist(self):
        mark = "<!-- not run: needs a broker -->\n```sh\n"
        self.assert_found(mark + "satrap train j.yaml --continue\n```\n", 2, "'satrap train' has no option --continue")
        self.assert_found(mark + "satrap data tail job.yaml\n```\n", 2, "'satrap data' has no command 'tail'")
        self.assert_found(mark + "satrap-run \\\n  --shards 2 j.yaml\n```\n", 2, "'satrap-run' has no option --shards")

    def test_a_command_within_a_line(self):
        self.assert_found("One\ncan `satrap score FILE`.\n", 2, "'satrap' has no command 'score'")
        self.assert_found("| `satrap report RUN --format x` |\n", 1, "no option --format")

    def test_a_configuration_that_is_not_valid(self):
        self.assert_found("```yaml\ntrain: {epoch: 1}\n```\n", 1, "is not valid", "did you mean train.epochs")

    def test_python_that_fails(self):
        self.assert_found("```python\nprint(1)\nimport satrapp\n```\n", 1, "No module named 'satrapp'")


if __name__ == "__main__":
    unittest.main(verbosity=2)
