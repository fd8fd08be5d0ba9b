"""One addition of each kind that ARCHITECTURE.md, section 7 lists: it touches the listed places alone, and works.

A copy of the tree gets all of them and is built once. Then each is used. Run by tests/wide/additions.sh.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import configuration_key
import device_operation
import listed_places
import model
import row_optimizer
import summary_number
import text_format
from copied_tree import ROOT, CopiedTree
from places import Edit

FOLDER = tempfile.mkdtemp(prefix="satrap-additions-")
unittest.addModuleCleanup(shutil.rmtree, FOLDER, ignore_errors=True)
os.environ["SATRAP_BIN"] = f"{FOLDER}/build/release/bin/satrap"
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/app", "tests/support", "python")]
from cli import CliTest  # noqa: E402
from python_onnx import WHY_NOT  # noqa: E402

MODULES = (configuration_key, row_optimizer, model, text_format, device_operation, summary_number)
ADDITIONS = [module.ADDITION for module in MODULES]
LONG = ("train.epochs=6", "train.metric_window=1000")


@functools.cache
def built_tree():
    tree = CopiedTree(FOLDER)
    for addition in ADDITIONS:
        tree.add(addition)
    tree.keep_only("tests/backend", "*_test.cpp", [device_operation.ADDITION.test.file])
    tree.build("satrap", "satrap_libtorch", "backend_tests", "backend_simt_tests")
    return tree


class Places(unittest.TestCase):
    def test_are_those_of_the_table(self):
        rows = listed_places.rows_of((ROOT / "ARCHITECTURE.md").read_text())
        for addition in ADDITIONS:
            with self.subTest(addition.kind):
                number, listed = rows[addition.kind]
                touched = [place.file for place in addition.places]
                self.assertEqual([], list(listed_places.complaints(number, listed, touched)))

    def test_bring_no_code_beside_them(self):
        for addition in ADDITIONS:
            for edit in [place for place in addition.places if isinstance(place, Edit)]:
                for old, new in edit.beside:
                    for line in set(new.splitlines()) - set(old.splitlines()):
                        self.assertRegex(line, "^(#include|///)", edit.file)

    def test_that_are_missing_or_unneeded_are_complaints(self):
        def check(*touched, number=3):
            return list(listed_places.complaints(number, ["a/b.h", "a/b.h", "src/"], touched))

        self.assertEqual([], check("src/x/y.cpp", "a/b.h", "a/b.h"))
        self.assertEqual(["a/b.h is listed, and not touched"], check("src/y.cpp", "a/b.h"))
        self.assertEqual(["src/z.cpp is touched, and not listed"], check("src/y.cpp", "src/z.cpp", "a/b.h", "a/b.h"))
        self.assertEqual(["the table says 4 places, and names 3"], check("src/y.cpp", "a/b.h", "a/b.h", number=4))

    def test_that_are_gone_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = CopiedTree(folder)
            for addition in ADDITIONS:
                tree.add(addition)
            with self.assertRaisesRegex(AssertionError, r"run_numbers.cpp: this text is there 0 times(.|\n)*resident"):
                tree.add(summary_number.ADDITION)
            (tree.root / "cuda/backend/rows.cu").unlink()
            with self.assertRaisesRegex(AssertionError, "there is no cuda/backend/rows.cu"):
                tree.put(device_operation.ADDITION.places[5])


class Uses(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.tree = built_tree()

    def train(self, config, *overrides):
        """What the run has logged, and the digest of its newest checkpoint."""
        log = self.succeed("train", config, *overrides).stderr
        return log, self.digest(self.dir / "run" / "checkpoints" / self.checkpoints()[-1])

    def reports(self):
        """The lines of metrics.jsonl that reports of training have written."""
        lines = (self.dir / "run" / "metrics.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if "train" in line]

    def assert_learned(self):
        """That the loss of the last rows has fallen over the epochs of LONG."""
        losses = [line["train"]["loss"] for line in self.reports()]
        self.assertLess(losses[-1], losses[0], losses)

    def test_a_configuration_key_is_explained_and_logged_and_may_change(self):
        explained = self.succeed("config", "explain", "train.say_at_start").stdout
        self.assert_words(explained, "string", "Text that is logged when training starts")
        config = self.job(rows=2000)
        said, digests = {}, set()
        for text in ("good day", "good night"):
            first, _ = self.train(config, "--overwrite", "train.max_steps=10", "train.say_at_start=good day")
            self.assertIn("good day", first)
            said[text], digest = self.train(config, "--resume", f"train.say_at_start={text}")
            digests.add(digest)
        change = "changed (does not affect what is learned): train.say_at_start: good day -> good night"
        self.assertIn(change, said["good night"])
        self.assertIn("good night", said["good night"].replace(change, ""))
        self.assertNotIn("train.say_at_start", said["good day"])
        self.assertEqual(1, len(digests))

    def test_a_row_optimizer_trains(self):
        config = self.job()
        digests = set()
        for optimizer in ("sgd", "sign"):
            words = f"tables.default.optimizer={{type: {optimizer}, lr: 0.02}}"
            digests.add(self.train(config, "--overwrite", *LONG, words)[1])
        self.assertEqual(2, len(digests))
        self.assert_learned()
        explained = self.succeed("config", "explain", "tables.default.optimizer").stdout
        self.assert_words(explained, "ftrl, sign", "against the sign")

    def test_a_model_trains_and_predicts(self):
        config = self.job()
        log, _ = self.train(config, *LONG, "model=linear")
        self.assertIn("linear with 118 dense parameters", log)
        self.assert_learned()
        page = self.succeed("predict", config, "model=linear", "--checkpoint", self.dir / "run").stdout
        scores = [float(line) for line in page.splitlines()[1:]]
        self.assertGreater(len(set(scores)), len(scores) // 2)
        self.out = self.dir / "model"
        self.succeed("export", "--checkpoint", self.dir / "run", "--out", self.out)
        if WHY_NOT:
            self.skipTest(WHY_NOT)
        import satrap
        names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
        lines = (self.dir / "eval.tsv").read_text().splitlines()[:50]
        exported = satrap.Scorer(self.out).score([dict(zip(names, line.split("\t"))) for line in lines]).ravel()
        for one, other in zip(scores, exported.tolist()):
            self.assertAlmostEqual(one, other, places=5)

    def test_a_text_format_gives_the_rows_of_csv(self):
        columns = ["clicked", "age", "user", "tags"]
        rows = [[str(r * 7 % 5 % 2), "" if r % 11 == 3 else str(r * 31 % 70), f"u{r * r % 51}", f"a{r % 4}|b{r % 3}"]
                for r in range(600)]
        self.write("rows.csv", "".join(",".join(row) + "\n" for row in [columns, *rows]))
        lines = [" ".join(f"{name}={value}" for name, value in zip(columns[::-1], row[::-1])) for row in rows]
        self.write("rows.logfmt", "\n".join(lines) + "\n")
        digests = set()
        for name in ("rows.csv", "rows.logfmt"):
            config = self.write("job.yaml", f"""\
run_dir: run
device: cpu
data:
  train: {name}
  batch_size: 100
  schema: {{label: clicked, numeric: [age], features: [user, {{name: tags, separator: "|"}}]}}
tables: {{default: {{dim: 4}}}}
model: {{type: deepfm, hidden: [8]}}
train: {{deterministic: true, threads: 1}}
""")
            digests.add(self.train(config, "--overwrite")[1])
        self.assertEqual(1, len(digests))
        self.write("rows.logfmt", "clicked=1 age=3 user=u1\nclicked\n")
        self.assert_words(self.succeed("data", "head", config).stderr, "rows.logfmt:2", "expected key=value")
        self.assert_words(self.fail_with(2, "train", self.dir / "rows.logfmt"), "is data by its name")

    def test_a_device_operation_gives_the_bits_of_a_loop(self):
        for program in ("backend_tests", "backend_simt_tests"):
            done = subprocess.run([self.tree.build_folder / "tests" / program, "--gtest_filter=ScaleRows.*"],
                                  capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            self.assertIn("[  PASSED  ] 1 test.", done.stdout)

    def test_a_summary_number_is_written(self):
        self.train(self.job(rows=500))
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        for numbers in [summary, *self.reports()]:
            self.assertEqual(numbers["mean_row_bytes"], numbers["table_bytes"] / numbers["rows"])

    def test_the_page_of_the_keys_is_written(self):
        page = self.tree.root / "docs" / "configuration.md"
        before = page.read_text()
        environment = {**os.environ, "SATRAP_SOURCE_DIR": str(self.tree.root), "SATRAP_RECORD": "1"}
        command = [sys.executable, "tests/app/configuration_page_test.py"]
        done = subprocess.run(command, env=environment, cwd=self.tree.root, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        after = page.read_text()
        for words in ("| `train.say_at_start` |", "ftrl, sign", "torchscript, linear", "libffm, logfmt"):
            self.assertEqual((0, True), (before.count(words), words in after), words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
