"""What is in data commands no terminal, whichever command prints it; a pipe and a file get it as it is."""
import os
import pty
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, read_terminal

TITLE = "\x1b]0;pwn\x07"


class Terminal(CliTest):
    def setUp(self):
        super().setUp()
        rows = [f'"v\x1b[2J{i % 5}",{i % 3},{i % 2}\n' for i in range(200)]
        self.data = self.write("e.csv", f"a{TITLE},\xc2\x9b31m,clicked\n" + "".join(rows))
        self.succeed("init", self.data, cwd=self.dir)
        self.job = self.dir / "e.yaml"

    def on_terminal(self, *args):
        """All that the command prints to a terminal on standard output."""
        ours, theirs = pty.openpty()
        program = subprocess.Popen([SATRAP, *map(str, args)], stdin=subprocess.DEVNULL, stdout=theirs,
                                   stderr=subprocess.PIPE, cwd=self.dir)
        os.close(theirs)
        shown = read_terminal(ours)
        error = program.communicate(timeout=TIMEOUT_S)[1]
        self.assertEqual(program.returncode, 0, error)
        return shown

    def test_no_command_hands_control_bytes_to_it(self):
        self.succeed("train", self.job, cwd=self.dir)
        run = next(path.parent for path in self.dir.rglob("config.yaml") if "checkpoints" not in path.parts)
        for command in (["data", "head", self.job], ["data", "stats", self.job],
                        ["config", "check", "--data", self.job], ["train", "--dry-run", self.job],
                        ["predict", "--checkpoint", run, "--data", self.data, "--keep", "a" + TITLE],
                        ["predict", "--checkpoint", run, "--data", self.data, "--keep", "a" + TITLE, "--out",
                         "/dev/stdout"]):
            with self.subTest(command[:2]):
                shown = self.on_terminal(*command)
                self.assertEqual([byte for byte in shown if byte < 32 and byte not in b"\r\n\t"], [])
                self.assertNotIn(b"\xc2\x9b", shown)
                self.assertIn(rb"\x1b", shown)
                self.assertGreater(shown.count(b"\n"), 3)

    def test_a_pipe_gets_the_bytes(self):
        self.succeed("train", self.job, cwd=self.dir)
        run = next(path.parent for path in self.dir.rglob("config.yaml") if "checkpoints" not in path.parts)
        lines = self.succeed("predict", "--checkpoint", run, "--data", self.data, "--keep", "a" + TITLE,
                             cwd=self.dir).stdout.split("\n")
        self.assertTrue(lines[0].startswith(f"a{TITLE}\t"), lines[0])
        self.assertTrue(lines[1].startswith("v\x1b[2J0\t"), lines[1])


class Names(CliTest):
    """A line end in a name, of a column in quotes, makes no second line of an error."""

    def error_of(self, *args):
        return self.fail_with(2, *args, cwd=self.dir)

    def test_init(self):
        self.write("names.csv", '"a\nb",clicked\n' + "".join(f"{i % 3},{i}x\n" for i in range(50)))
        self.assert_words(self.error_of("init", "names.csv"), r"a\x0ab", "no column looks like a label")
        self.assert_words(self.error_of("init", "names.csv", "--label", "a\nc"), r"did you mean 'a\x0ab'")
        self.write("constant.csv", '"a\nb",clicked\n' + "".join(f"1,{i % 2}\n" for i in range(50)))
        self.assert_words(self.error_of("init", "constant.csv"), r"a\x0ab (1 in every row)")

    def test_training(self):
        rows = "".join(f"{i % 3},{i % 7},{i % 2}\n" for i in range(50))
        self.write("names.csv", '"a\nb",n,clicked\n' + rows)
        self.succeed("init", "names.csv", cwd=self.dir)
        self.write("names.csv", '"a\nc",n,clicked\n' + rows)
        self.assert_words(self.error_of("train", "names.yaml"), r"column 'a\x0ab'", r"did you mean 'a\x0ac'")
        self.write("names.csv", '"a\nb","a\nb",clicked\n' + rows)
        self.assert_words(self.error_of("train", "names.yaml", "--overwrite"), r"two columns are named 'a\x0ab'")


if __name__ == "__main__":
    unittest.main(verbosity=2)
