"""The command line of `satrap`: help, version, usage errors, and where the output goes."""
import os
import re
import shutil
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

COMMANDS = [
    ("init",),
    ("train",),
    ("eval",),
    ("predict",),
    ("export",),
    ("data",),
    ("data", "generate"),
    ("data", "prepare"),
    ("data", "head"),
    ("data", "stats"),
    ("ps",),
    ("loader",),
    ("store",),
    ("config",),
    ("config", "check"),
    ("config", "dump"),
    ("config", "explain"),
    ("checkpoint",),
    ("checkpoint", "ls"),
    ("checkpoint", "verify"),
    ("report",),
    ("checkpoint", "reshard"),
    ("doctor",),
    ("completion",),
]


class Help(CliTest):
    def test_every_command_has_help_on_standard_output(self):
        for command in [(), *COMMANDS]:
            with self.subTest(command=command):
                done = self.succeed(*command, "--help")
                self.assertEqual(done.stderr, "")
                self.assertIn("--help", done.stdout)
                self.assertEqual(self.succeed(*command, "-h").stdout, done.stdout)

    def test_help_ends_with_an_example_whose_options_and_keys_exist(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                page = self.succeed(*command, "--help").stdout
                [example] = re.findall(r"\nExample:\n  (.*)\n*\Z", page)
                words = re.sub(r".*(?=\bsatrap )", "", example).rstrip(")").split()[1:]
                self.assertEqual(tuple(words[:len(command)]), command)
                if tuple(words[:2]) in COMMANDS:  # a group
                    page = self.succeed(*words[:2], "--help").stdout
                for option in (word for word in words if word.startswith("--")):
                    self.assertRegex(page, rf"(?m)^  {option}\b")
                for word in words[1:]:
                    if "=" in word:
                        self.succeed("config", "explain", word.partition("=")[0])

    def test_the_first_page_has_three_examples(self):
        examples = self.succeed("--help").stdout.partition("\nExamples:\n")[2]
        self.assertEqual(["init", "train", "predict"], re.findall(r"(?m)^  satrap (\w+)", examples))

    def test_help_is_a_command_too(self):
        for command in [(), ("train",), ("config", "dump")]:
            self.assertEqual(self.succeed("help", *command).stdout, self.succeed(*command, "--help").stdout)

    def test_help_on_what_does_not_exist(self):
        for words in [("help", "trian"), ("trian", "--help")]:
            self.assert_words(self.fail_with(2, *words), "unknown command 'trian'", "'train'")
        self.assert_words(self.fail_with(2, "config", "dmup", "--help"), "unknown command 'dmup'", "'dump'")

    def test_the_first_page_lists_every_command(self):
        page = self.succeed("--help").stdout
        for name in sorted({command[0] for command in COMMANDS}):
            self.assertRegex(page, rf"(?m)^\s+{name}\s+\S")

    def test_groups_list_their_commands(self):
        for group, name in (command for command in COMMANDS if len(command) == 2):
            self.assertRegex(self.succeed(group, "--help").stdout, rf"(?m)^\s+{name}\s+\S")

    def test_the_shard_program_is_the_command_ps(self):
        program = os.path.join(os.path.dirname(SATRAP), "satrap-ps")
        done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
        for option in ["--shard ", "--shards ", "--workers ", "SATRAP_STORE"]:
            self.assertIn(option, done.stdout)
            self.assertIn(option, self.succeed("ps", "--help").stdout)

    def test_programs_load_libtorch_only_when_they_need_it(self):
        for program in [SATRAP, os.path.join(os.path.dirname(SATRAP), "satrap-ps")]:
            needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            self.assertNotIn("torch", needed)
            self.assertNotIn("cuda", needed)

    def test_a_libtorch_or_a_writer_of_onnx_that_cannot_be_opened_is_named(self):
        for folder in ["bin", "lib"]:
            os.mkdir(self.dir / folder)
        program = shutil.copy(SATRAP, self.dir / "bin")
        for name in ["libtorch", "onnx"]:
            self.write(f"lib/libsatrap_{name}.so", "no library")
        job = self.job(rows=100)
        for status, arguments, words in [
                (0, ["doctor"], ["off: libsatrap_libtorch.so", "cannot be opened"]),
                (0, ["doctor"], ["off: libsatrap_onnx.so", "./launch/setup.sh run"]),
                (0, ["train", job, "train.precision=fp32"], []),
                (1, ["export", job, "--checkpoint", self.dir / "run", "--out", self.dir / "model"],
                 ["error: libsatrap_onnx.so", "cannot be opened", "./launch/setup.sh run", "--network torchscript"]),
                (1, ["train", job, "model.engine=graph", f"run_dir={self.dir / 'graph'}"],
                 ["error: libsatrap_libtorch.so", "model.engine: graph", "cannot be opened"])]:
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
            for word in words:
                self.assertIn(word, done.stdout + done.stderr)

    def test_a_shard_says_what_it_misses(self):
        job = self.write("job.yaml", "run_dir: x\ndata: {schema: criteo, train: {path: a.tsv}}\nmodel: {type: ffnn}\n")
        self.assertIn("SATRAP_STORE", self.fail_with(2, "ps", job, "--shard", "0", "--shards", "1"))
        self.assertIn("--shard", self.fail_with(2, "ps", job, "--shard", "1", "--shards", "1"))

    def test_train_documents_its_options(self):
        page = self.succeed("train", "--help").stdout
        for option in ["CONFIG", "--resume", "--resume-from", "--overwrite", "key.path=value"]:
            self.assertIn(option, page)

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout, r"^satrap \d+\.\d+\.\d+\n$")


class Usage(CliTest):
    def test_nothing_to_do(self):
        self.assert_words(self.fail_with(2), "subcommand", "satrap --help")

    def test_a_group_wants_a_command(self):
        for group in ["data", "config", "checkpoint"]:
            self.assert_words(self.fail_with(2, group), f"satrap {group} --help")

    def test_unknown_command_suggests_the_nearest(self):
        self.assert_words(self.fail_with(2, "trian", "x.yaml"), "'trian'", "'train'")
        self.assert_words(self.fail_with(2, "config", "dmup"), "'dmup'", "'dump'")

    def test_unknown_option(self):
        self.assert_words(self.fail_with(2, "train", "x.yaml", "--resum"), "unknown option '--resum'",
                          "did you mean '--resume'?", "satrap train --help")
        self.assert_words(self.fail_with(2, "train", "--resum"), "did you mean '--resume'?")
        self.assert_words(self.fail_with(2, "init", "x.csv", "--lable=y"), "unknown option '--lable', did you mean "
                          "'--label'?")
        self.assert_words(self.fail_with(2, "train", "x.yaml", "--nothing-like-it"), "unknown option "
                          "'--nothing-like-it'; see `satrap train --help`")

    def test_an_unknown_option_before_the_command(self):
        for words in [("--verison",), ("--verison", "train", "x.yaml")]:
            self.assert_words(self.fail_with(2, *words), "unknown option '--verison', did you mean '--version'?")

    def test_missing_arguments(self):
        self.assert_words(self.fail_with(2, "train"), "CONFIG", "required")
        self.assert_words(self.fail_with(2, "eval", "x.yaml"), "--checkpoint", "required")
        self.assert_words(self.fail_with(2, "predict", "x.yaml"), "--checkpoint", "required")
        self.assert_words(self.fail_with(2, "export", "x.yaml", "--checkpoint", "run"), "--out", "required")
        self.assert_words(self.fail_with(2, "checkpoint", "ls"), "DIR", "required")
        self.assert_words(self.fail_with(2, "report"), "RUN", "required")
        self.assert_words(self.fail_with(2, "data", "generate", "--rows", "5"), "--out", "required")

    def test_options_that_exclude_each_other(self):
        self.assert_words(
            self.fail_with(2, "train", "x.yaml", "--resume", "--overwrite"),
            "--resume", "--overwrite")
        self.assert_words(
            self.fail_with(2, "train", "x.yaml", "--resume", "--resume-from", "run"),
            "--resume", "--resume-from")
        self.assert_words(
            self.fail_with(2, "train", "x.yaml", "--overwrite", "--resume-from", "run"),
            "--overwrite", "--resume-from")

    def test_an_option_that_needs_another(self):
        self.assert_words(
            self.fail_with(2, "data", "generate", "--out", "-", "--eval-rows", "5"),
            "--eval-rows", "--eval-out")

    def test_numbers_that_are_none(self):
        self.assert_words(
            self.fail_with(2, "data", "generate", "--rows", "many", "--out", "-"), "command line", "rows", "many")


class Output(CliTest):
    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w") as full:
            self.assert_words(self.fail_with(1, "doctor", stdout=full), "standard output",
                              "no space left")

    def test_a_closed_pipe_ends_a_command_without_a_word(self):
        for command in [("config", "explain"), ("--help",), ("doctor",)]:
            reader, writer = os.pipe()
            os.close(reader)
            done = satrap(*command, stdout=writer)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (141, ""), command)

    def test_a_closed_pipe_ends_the_generator(self):
        program = subprocess.Popen(
            [SATRAP, "data", "generate", "--rows", "100000000", "--out", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        program.stdout.readline()
        program.stdout.close()
        error = program.stderr.read()
        program.stderr.close()
        self.assertEqual((program.wait(TIMEOUT_S), error), (141, ""))


class Doctor(CliTest):
    def test_doctor_tells_what_is_on_and_what_is_off(self):
        page = self.succeed("doctor").stdout
        for name in ["satrap", "build", "cpu", "threads", "memory", "torch", "precision",
                     "onnx", "device", "cuda"]:
            self.assertRegex(page, rf"(?m)^{name}\s+\S")
        self.assertRegex(page, r"(?m)^precision +fp32; .*auto picks (fp32|bf16) .*GFLOP/s")
        self.assertRegex(page, r"(?m)^torch .*2\.11")
        self.assertRegex(page, r"(?m)^cuda\s+off: \S")

    def test_doctor_tells_how_large_a_cache_would_be(self):
        page = self.succeed("doctor").stdout
        memory = float(re.search(r"^memory +([0-9.]+) GiB", page, re.M).group(1))
        cache = float(re.search(r"^cache .*embedding\.cache\.memory=auto is ([0-9.]+) GiB", page, re.M).group(1))
        self.assertGreater(cache, 0)
        self.assertLessEqual(cache, 0.1 * memory + 0.1)  # less in a container with a limit

    def test_doctor_tells_what_protects_the_network(self):
        for token, words in [("", "127.0.0.1 only"), ("secret", "neither encrypted nor authenticated")]:
            page = self.succeed("doctor", env=dict(os.environ, SATRAP_TOKEN=token)).stdout
            self.assert_words(page, words)
            self.assertNotIn("secret:", page)

    def test_doctor_counts_the_cpus_it_may_use(self):
        cpu = min(os.sched_getaffinity(0))
        done = satrap("doctor", preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"(?m)^threads\s+1 by default")


if __name__ == "__main__":
    unittest.main(verbosity=2)
