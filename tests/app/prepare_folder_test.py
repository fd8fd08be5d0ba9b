"""The folder of `satrap data prepare`: what it removes, keeps and refuses."""
import fcntl
import json
import unittest

from published_files import SMALL, PrepareCase, make_criteo, make_frappe


class PrepareFolderTest(PrepareCase):
    def test_a_folder_of_something_else_is_refused(self):
        make_criteo(self.source, 300, seed=1)
        (self.dir / "mine").mkdir()
        self.write("mine/notes.txt", "mine")
        for overwrite in ([], ["--overwrite"]):
            error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "mine",
                                   *overwrite)
            self.assert_words(error, "mine", "new folder")
        self.assertEqual({"notes.txt": b"mine"}, self.contents("mine"))
        self.prepare("criteo", "out")
        self.write("out/run.txt", "a run")
        make_criteo(self.source, 90, seed=2)
        error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "out", "other files", "--overwrite")
        self.prepare("criteo", "out", "--overwrite")
        self.assertEqual(6 * 90 // 7, len(self.rows("out", "train")))
        self.assertEqual("a run", (self.dir / "out/run.txt").read_text())

    def test_a_broken_manifest_is_named(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        self.write("out/prepare.json", json.dumps({"pieces": [{"train": "many"}]}))
        error = self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "prepare.json", "another folder")
        error = self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out",
                               "--overwrite")  # its parts are unknown
        self.assert_words(error, "prepare.json", "another folder")

    def test_the_source_is_not_among_the_parts(self):
        make_criteo(self.source, 300, seed=1)
        (self.dir / "out/download").mkdir(parents=True)
        make_criteo(self.dir / "out/download", 300, seed=1)
        (self.dir / "links").mkdir()
        (self.dir / "links/train.txt").symlink_to(self.dir / "out/download/train.txt")
        for source, out in (("from", "from"), ("from/", "./from/."), ("out/download", "out"), ("links", "out")):
            error = self.fail_with(2, "data", "prepare", "criteo", "--from", source, "--out", out, "--overwrite",
                                   cwd=self.dir)
            self.assert_words(error, "--out", out, "train.txt", "another folder")
        self.assertEqual({"download/train.txt"}, set(self.contents("out")))
        before = self.contents("from")
        self.prepare("criteo", "from/out")
        self.prepare("criteo", "from/out", "--overwrite")
        self.assertEqual(before["train.txt"], (self.source / "train.txt").read_bytes())

    def test_overwrite_removes_the_parts_of_the_manifest_alone(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        manifest = json.loads((self.dir / "out/prepare.json").read_text())
        del manifest["finished"]
        manifest["piece"] = manifest["pieces"].pop()  # as if killed before the last piece was counted
        self.write("out/prepare.json", json.dumps(manifest))
        mine = ["train.txt.zst", "train-00007.txt.zst", "test-00000.txt.zst.old", "work"]
        for name in mine:
            self.write(f"out/{name}", "mine")
        make_criteo(self.source, 90, seed=2)
        self.prepare("criteo", "out", "--overwrite")
        self.assertEqual(sorted(["train-00000.txt.zst", "test-00000.txt.zst", *mine]),
                         sorted(name for name in self.contents("out") if ".txt.zst" in name or name in mine))
        self.assertEqual({"mine"}, {(self.dir / "out" / name).read_text() for name in mine})

    def test_a_forged_manifest_removes_nothing_elsewhere(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        self.prepare("criteo", "other")
        other = self.contents("other")
        good = json.loads((self.dir / "out/prepare.json").read_text())
        pieces = [{"../other/train": 5}]
        for forged in ({"pieces": pieces}, {"piece": pieces[0]}, {"replaced": {"set": "criteo", "pieces": pieces}},
                       {"replaced": {"set": "criteo", "pieces": [], "piece": pieces[0]}}, {"replaced": 5},
                       {"pieces": [{f"{self.dir}/other/train": 5}]}):
            with self.subTest(forged):
                self.write("out/prepare.json", json.dumps(good | forged))
                for options in ([], ["--overwrite"]):
                    error = self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out",
                                           self.dir / "out", *options, *SMALL)
                    self.assert_words(error, "prepare.json: is no manifest of a preparation")
                self.assertEqual(other, self.contents("other"))
        self.write("out/prepare.json", json.dumps(good | {"pieces": [{"mine": 1}]}))
        (self.dir / "out/mine-00000.txt.zst").mkdir()
        self.write("out/mine-00000.txt.zst/notes", "mine")
        self.prepare("criteo", "out", "--overwrite")
        self.assertEqual((self.dir / "out/mine-00000.txt.zst/notes").read_text(), "mine")

    def test_a_killed_overwrite_continues(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        old = json.loads((self.dir / "out/prepare.json").read_text())
        make_criteo(self.source, 90, seed=2)
        self.prepare("criteo", "whole")
        manifest = json.loads((self.dir / "whole/prepare.json").read_text())
        begun = {"inputs": manifest["inputs"], "stages": {}, "pieces": [],
                 "replaced": {"set": "criteo", "pieces": old["pieces"]}}
        for options in ([], ["--overwrite"]):
            self.write("out/prepare.json", json.dumps(begun))
            self.write("out/train-00001.txt.zst", "old")
            self.prepare("criteo", "out", *options)
            self.assertEqual(self.contents("whole"), self.contents("out"))

    def test_only_its_own_temporary_files_are_removed(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        mine = ["notes.tmp", "a.tmp-b", "my.yaml.tmp-1", "notes.7.tmp", "work"]
        for name in [*mine, "train-00001.txt.zst.77.tmp", "prepare.json.tmp-77", "dlrm.yaml.tmp-77"]:
            self.write(f"out/{name}", "text")
        self.prepare("criteo", "out")
        self.assertEqual(sorted(mine), sorted(name for name in self.contents("out") if "tmp" in name or name == "work"))

    def test_configurations_are_written_last_and_edits_stay(self):
        make_criteo(self.source, 300, seed=1)
        with open(self.source / "train.txt", "a") as file:
            file.write("1\t2\t3\n")
        self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out", *SMALL)
        self.assertIn("train-00000.txt.zst", self.contents("out"))
        self.assertFalse(list((self.dir / "out").glob("*.yaml")))
        make_criteo(self.source, 300, seed=1)
        self.assertNotIn("is kept", self.prepare("criteo", "out", "--overwrite").stdout)
        edited = (self.dir / "out/dlrm.yaml").read_text() + "seed: 7\n"
        self.write("out/dlrm.yaml", edited)
        (self.dir / "out/deepfm.yaml").unlink()
        for options in ([], ["--overwrite"]):
            self.assert_words(self.prepare("criteo", "out", *options).stdout, "dlrm.yaml is kept")
            self.assertEqual(edited, (self.dir / "out/dlrm.yaml").read_text())
            self.assertTrue((self.dir / "out/deepfm.yaml").exists())
        make_frappe(self.source, 300, seed=1)
        self.prepare("frappe", "out", "--overwrite")  # has no dlrm.yaml, and no use for those of criteo
        self.assertEqual(sorted(["dlrm", "schema", "deepfm", "dcn_v2", "wide_deep"]),
                         sorted(path.stem for path in (self.dir / "out").glob("*.yaml")))

    def test_a_split_without_rows_is_noted(self):
        make_criteo(self.source, 1, seed=1)
        self.assert_words(self.prepare("criteo", "out").stdout, "note        train has no rows")
        make_criteo(self.source, 300, seed=1)
        self.assertNotIn("has no rows", self.prepare("criteo", "out", "--overwrite").stdout)

    def test_a_folder_is_for_one_preparation_at_a_time(self):
        make_criteo(self.source, 300, seed=1)
        self.prepare("criteo", "out")
        before = self.contents("out")
        with open(self.dir / "out/.prepare.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("process 4711 on elsewhere")
            lock.flush()
            error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out",
                                   "--overwrite")
            self.assert_words(error, "--out", str(self.dir / "out"), "process 4711 on elsewhere", "another folder")
        self.prepare("criteo", "out")
        self.assertEqual(before, self.contents("out"))


if __name__ == "__main__":
    unittest.main()
