"""`satrap export`: the folder is complete or does not exist; and what it refuses."""
import ctypes
import json
import os
import pathlib
import sys
import unittest

import numpy as np

from cli import CliTest

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
sys.path[:0] = [str(SOURCE / "python"), str(pathlib.Path(__file__).parents[1] / "support")]
import satrap  # noqa: E402
from python_onnx import WHY_NOT  # noqa: E402

XXHASH = ctypes.CDLL("libxxhash.so.0")
XXHASH.XXH3_64bits.restype = ctypes.c_uint64


class Export(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.job(rows=500)
        self.succeed("train", self.config)
        self.out = self.dir / "model"
        self.command = ["export", self.config, "--checkpoint", self.dir / "run", "--out", self.out]

    def assert_nothing_else_is_left(self):
        self.assertEqual([p.name for p in self.dir.glob(".*")], [])

    def test_the_files_are_those_of_the_description(self):
        page = self.succeed(*self.command).stdout
        self.assertIn("step 5 ", page)
        about = json.loads((self.out / "export.json").read_text())
        self.assertEqual(about["step"], 5)
        self.assertEqual(len(about["tables"]), 26)
        self.assertEqual({p.name for p in self.out.iterdir()}, {"export.json", *about["files"]})
        for table in about["tables"]:
            self.assertIn(table["keys"], about["files"])
            self.assertIn(table["weights"], about["files"])
        for name, file in about["files"].items():
            content = (self.out / name).read_bytes()
            self.assertEqual(len(content), file["bytes"], name)
            self.assertEqual(f"{XXHASH.XXH3_64bits(content, len(content)):016x}", file["xxh3"], name)
        self.assert_nothing_else_is_left()

    def test_ids_are_those_of_the_data(self):
        self.succeed(*self.command)
        content = (self.out / "C1.keys.npy").read_bytes()
        self.assertTrue(content.startswith(b"\x93NUMPY\x01\x00"))
        start = 10 + int.from_bytes(content[8:10], "little")
        self.assertEqual(start % 64, 0)
        keys = {int.from_bytes(content[i:i + 8], "little") for i in range(start, len(content), 8)}
        lines = (self.dir / "train.tsv").read_text().splitlines()
        self.assertEqual(keys, {int(line.split("\t")[14], 16) for line in lines} - {""})

    def tables(self, about):
        """The tables of an export in SafeTensors: (keys, weights) by name, read by the definition of the format."""
        tables = {}
        for table in about["tables"]:
            self.assertEqual(table["keys"], table["weights"])
            content = (self.out / table["keys"]).read_bytes()
            begin = 8 + int.from_bytes(content[:8], "little")
            header = json.loads(content[8:begin])
            arrays = [np.frombuffer(content[begin:][slice(*header[name]["data_offsets"])], dtype)
                      .reshape(header[name]["shape"]) for name, dtype in [("keys", "<u8"), ("weights", "<f4")]]
            self.assertEqual(begin + sum(array.nbytes for array in arrays), len(content))
            tables[table["name"]] = arrays
        return tables

    def test_names_of_any_length(self):
        names = ["推荐系统" * 8, "x" * 247, "y" * 159 + "/", "y" * 158 + "/z"]
        self.write("long.csv", ",".join(["click", *names]) + "\n" + "".join(
            f"{r % 2}," + ",".join(f"t{(r + c) % 3}" for c in range(len(names))) + "\n" for r in range(40)))
        self.succeed("init", "long.csv", cwd=self.dir)
        self.succeed("train", "long.yaml", "run_dir=long", "train.max_steps=3", cwd=self.dir)
        self.succeed("export", "--checkpoint", "long", "--out", "names", cwd=self.dir)
        about = json.loads((self.dir / "names/export.json").read_text())
        self.assertEqual(sorted(table["name"] for table in about["tables"]), sorted(names))
        files = [table["keys"] for table in about["tables"]]
        self.assertEqual(len(set(files)), len(names))
        for file in files:
            self.assertTrue((self.dir / "names" / file).is_file(), file)

    def test_safetensors_hold_the_same_rows(self):
        self.succeed(*self.command)
        npy = {name: [np.load(self.out / f"{name}.{part}.npy") for part in ["keys", "weights"]]
               for name in ["C1", "C2", "C26"]}
        self.assertIn("safetensors", self.fail_with(2, *self.command, "--overwrite", "--format", "onnx"))
        self.succeed(*self.command, "--overwrite", "--format", "safetensors")
        about = json.loads((self.out / "export.json").read_text())
        self.assertEqual(list(self.out.glob("*.npy")), [])
        tables = self.tables(about)
        self.assertEqual(len(tables), 26)
        for name, arrays in npy.items():
            np.testing.assert_array_equal(tables[name][0], arrays[0])
            np.testing.assert_array_equal(tables[name][1], arrays[1])

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_safetensors_give_the_same_scores(self):
        rows = [dict(zip([f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)],
                         line.split("\t")[1:])) for line in (self.dir / "train.tsv").read_text().splitlines()[:20]]
        self.succeed(*self.command)
        scores = satrap.Scorer(self.out).score(rows).tobytes()
        self.succeed(*self.command, "--overwrite", "--format", "safetensors")
        self.assertEqual(satrap.Scorer(self.out).score(rows).tobytes(), scores)

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_a_table_without_rows(self):
        data = self.write("rare.csv", "clicked,user,rare\n1,3,\n0,4,\n1,3,\n0,9,\n")
        job = self.write("rare.yaml", f"""\
run_dir: {self.dir}/rare
device: cpu
data:
  schema: {{label: clicked, features: [{{name: user, type: int}}, {{name: rare, type: int}}]}}
  train: {data}
  batch_size: 2
model: {{type: ffnn, bottom: [], top: [4]}}
""")
        self.succeed("train", job)
        scores = []
        for form in ["npy", "safetensors"]:
            self.succeed("export", "--checkpoint", self.dir / "rare", "--out", self.out, "--overwrite",
                         "--format", form)
            about = json.loads((self.out / "export.json").read_text())
            self.assertEqual({table["name"]: table["rows"] for table in about["tables"]}, {"user": 3, "rare": 0})
            scores.append(satrap.Scorer(self.out).score({"user": [3, 4], "rare": [None, 7]}).tolist())
        self.assertEqual(*scores)

    def test_the_library_of_the_format_reads_them(self):
        try:
            from safetensors.numpy import load_file
        except ImportError:
            self.skipTest("no package safetensors")
        self.succeed(*self.command, "--format", "safetensors")
        for name, (keys, weights) in self.tables(json.loads((self.out / "export.json").read_text())).items():
            loaded = load_file(self.out / f"{name}.safetensors")
            np.testing.assert_array_equal(loaded["keys"], keys)
            np.testing.assert_array_equal(loaded["weights"], weights)

    def test_an_earlier_export_is_replaced_only_when_asked_to(self):
        self.succeed(*self.command)
        self.assert_words(self.fail_with(2, *self.command), str(self.out), "--overwrite")
        (self.out / "dense.onnx").write_text("old")
        self.succeed(*self.command, "--overwrite")
        self.assertNotEqual((self.out / "dense.onnx").read_bytes(), b"old")
        self.assert_nothing_else_is_left()

    def test_a_folder_with_anything_else_is_never_replaced(self):
        self.out.mkdir()
        (self.out / "thesis.txt").write_text("years of work")
        for options in [[], ["--overwrite"]]:
            self.assert_words(self.fail_with(2, *self.command, *options), str(self.out), "not an export")
        self.assertEqual([p.name for p in self.out.iterdir()], ["thesis.txt"])
        (self.out / "thesis.txt").unlink()
        self.succeed(*self.command)  # an empty folder is fine

    def test_a_damaged_checkpoint_leaves_no_export(self):
        newest = self.dir / "run/checkpoints" / self.checkpoints()[-1]
        table = newest / "table-3.bin"
        table.write_bytes(table.read_bytes()[:-1] + b"?")
        self.assert_words(self.fail_with(1, *self.command), "table-3.bin", "checksum")
        self.assertFalse(self.out.exists())
        self.assert_nothing_else_is_left()

    def test_a_job_with_another_model_is_refused(self):
        self.assert_words(self.fail_with(2, *self.command, "model.top=[17]"), "another model.top")
        self.assertFalse(self.out.exists())

    def test_a_link_to_a_folder_stays_one(self):
        self.succeed(*self.command)
        link = self.dir / "current"
        link.symlink_to(self.out)
        self.command[-1] = link
        self.succeed(*self.command, "--overwrite")
        self.assertTrue(link.is_symlink() and (link / "export.json").exists())
        self.assert_nothing_else_is_left()

    def test_a_path_that_ends_in_a_slash(self):
        self.command[-1] = f"{self.out}/"
        self.succeed(*self.command)
        self.assertTrue((self.out / "export.json").exists())
        self.assert_nothing_else_is_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
