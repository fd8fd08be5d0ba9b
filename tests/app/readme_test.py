"""The configurations in README.md are valid, and its commands exist."""
import os
import pathlib
import re
import unittest

from cli import CliTest

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".")
README = (SOURCE / "README.md").read_text()


class Readme(CliTest):
    def test_configurations_are_valid(self):
        blocks = re.findall(r"```yaml\n(.*?)```", README, re.S)
        blocks += re.findall(r"<< 'YAML'\n(.*?)\nYAML\n", README, re.S)
        self.assertGreaterEqual(len(blocks), 3)
        for block in blocks:
            if "run_dir" not in block:  # a part of a job
                block = f"run_dir: {self.dir}/run\n" + block
            if "  train:" not in block:
                block = block.replace("data:\n", "data:\n  train: {path: train.csv}\n")
            with self.subTest(block=block):
                self.succeed("config", "check", self.write("job.yaml", block))

    def test_commands_exist(self):
        commands = set(re.findall(r"satrap ((?:data|config|checkpoint) [a-z]+|train|eval|predict|export|report|doctor)", README))
        self.assertGreaterEqual(len(commands), 8)
        for command in commands:
            self.succeed(*command.split(), "--help")

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

    def test_links_lead_somewhere(self):
        pages = [*SOURCE.glob("*.md"), *SOURCE.glob("docs/*.md")]
        self.assertGreater(len(pages), 5)
        for page in pages:
            for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_the_messages_are_those_of_the_programs(self):
        section = README.split("\n## Messages and what to do\n")[1].split("\n## ")[0]
        messages = re.findall(r"^\| `(.*?)` \| \S", section, re.M)
        self.assertEqual(len(messages), 10)
        sources = [*(SOURCE / "src").rglob("*.cpp"), *(SOURCE / "launch").rglob("*.py")]
        text = "\n".join(path.read_text() for path in sources)
        text = re.sub(r'"\s*\n\s*f?"', "", text)  # literals that continue on the next line
        for message in messages:
            for part in filter(None, (part.strip(" '") for part in message.split("…"))):
                with self.subTest(message):
                    self.assertTrue(part in text, part)


if __name__ == "__main__":
    unittest.main(verbosity=2)
