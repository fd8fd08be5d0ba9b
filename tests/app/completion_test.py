"""`satrap completion`: bash is asked for completions as readline would ask; zsh and fish read their scripts."""
import os
import shutil
import subprocess
import unittest

from cli import SATRAP, CliTest, satrap

# Calls the function that bash would call, with the words as bash cuts them, and prints its answers.
ASK = """\
source <("$SATRAP" completion bash) || exit 1
COMP_WORDBREAKS=$2 COMP_LINE=$1 COMP_POINT=${#1}
_satrap satrap "${1##* }" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Bash(CliTest):
    def ask(self, line, breaks=" \t\n\"'><=;|&(:"):
        done = subprocess.run(["bash", "-c", ASK, "bash", line, breaks], capture_output=True, text=True,
                              cwd=self.dir, env={**os.environ, "SATRAP": SATRAP}, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.ask("satrap tr"), ["train"])
        self.assertEqual(self.ask("satrap config "), ["check", "dump", "explain", "--help", "-h"])
        self.assertEqual(self.ask("satrap completion z"), ["zsh"])
        self.assertLessEqual({"init", "train", "predict", "data", "store", "doctor"}, set(self.ask("satrap ")))

    def test_options_of_the_command_alone(self):
        self.assertEqual(self.ask("satrap train --res"), ["--resume", "--resume-from"])
        self.assertEqual(self.ask("satrap checkpoint reshard runs/a --sh"), ["--shards"])
        self.assertEqual(self.ask("satrap doctor --res"), [])

    def test_words_that_an_option_takes(self):
        self.assertEqual(self.ask("satrap export --format "), ["npy", "safetensors"])
        self.assertEqual(self.ask("satrap export --format=s"), ["safetensors"])
        self.assertEqual(self.ask("satrap init a.csv --label "), [])

    def test_files_where_files_are_meant(self):
        self.write("clicks.csv", "")
        self.write("my clicks.csv", "")
        self.assertEqual(self.ask("satrap init cl"), ["clicks.csv"])
        self.assertEqual(self.ask("satrap predict --out cl"), ["clicks.csv"])
        self.assertEqual(self.ask("satrap train cli"), ["clicks.csv"])
        self.assertEqual(self.ask("satrap init my"), ["my", "clicks.csv"])  # one answer, two words of this test
        self.assertEqual(self.ask("satrap doctor cl"), [])

    def test_keys_of_the_configuration(self):
        self.assertEqual(self.ask("satrap train job.yaml train.mod"), ["train.mode="])
        self.assertEqual(self.ask("satrap eval tables.default.di"), ["tables.default.dim="])
        self.assertEqual(self.ask("satrap config explain train.mod"), ["train.mode"])
        self.assertEqual(self.ask("satrap checkpoint ls train.mod"), [])

    def test_values_of_keys(self):
        self.write("day_1.gz", "")
        self.assertEqual(self.ask("satrap train job.yaml train.mode=s"), ["sync"])
        self.assertEqual(self.ask("satrap train job.yaml train.mode=s", breaks=" \t\n"), ["train.mode=sync"])
        self.assertEqual(self.ask("satrap train job.yaml train.deterministic="), ["true", "false"])
        self.assertEqual(self.ask("satrap train job.yaml data.train.path=da"), ["day_1.gz"])
        self.assertEqual(self.ask("satrap train job.yaml no.such.key=da"), [])

    def test_every_key_that_is_offered_exists(self):
        for key in self.ask("satrap config explain tables.")[:5] + self.ask("satrap config explain train.w"):
            self.succeed("config", "explain", key)

    def test_an_unknown_shell(self):
        self.assert_words(self.fail_with(2, "completion", "tcsh"), "tcsh", "bash", "zsh", "fish")


class OtherShells(CliTest):
    def run_shell(self, shell, *arguments):
        program = shutil.which(shell)
        if program is None:
            self.skipTest(f"no {shell}")
        script = self.write(f"completion.{shell}", satrap("completion", shell).stdout)
        done = subprocess.run([program, *arguments, script], capture_output=True, text=True, timeout=60,
                              cwd=self.dir, env={**os.environ, "HOME": str(self.dir)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_zsh_reads_its_script(self):
        self.run_shell("zsh", "-n")

    def test_fish_answers(self):
        def ask(line):
            answers = self.run_shell("fish", "-c", f'source $argv[1]; complete -C "{line}"')
            return [answer.split("\t")[0] for answer in answers]
        self.assertEqual(ask("satrap tra"), ["train"])
        self.assertEqual(ask("satrap config exp"), ["explain"])
        self.assertEqual(ask("satrap train --resume-"), ["--resume-from"])
        self.assertEqual(ask("satrap export --format s"), ["safetensors"])
        self.assertEqual(ask("satrap train job.yaml train.mode=s"), ["train.mode=sync"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
