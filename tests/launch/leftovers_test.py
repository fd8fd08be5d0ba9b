"""Folders that a killed launcher leaves in the temporary directory: the next one removes them."""
import os
import pathlib
import shutil
import sys
import unittest
from unittest import mock

from launcher import ROOT, LauncherTest

sys.path.insert(0, str(ROOT / "launch"))
from satrap_run import store_folder  # noqa: E402

RANK_WAITS = "wait_for_signal()"


class Leftovers(LauncherTest):
    def folders(self):
        return set((self.dir / "tmp").iterdir())

    def start_waiting(self):
        (self.dir / "diary").unlink(missing_ok=True)
        self.script("rank-0", RANK_WAITS)
        job = self.start_job("job.yaml")
        self.wait_for("waits", "rank-0")
        return job

    def test_the_folder_of_a_killed_launcher_goes_with_the_next_start(self):
        job = self.start_waiting()
        job.kill()
        job.wait(60)
        self.assert_no_orphans()
        self.assertEqual(len(self.folders()), 1)
        self.script("rank-0", "")
        self.run_job("job.yaml")
        self.assertEqual(self.folders(), set())

    def test_the_folder_of_a_living_launcher_stays(self):
        job = self.start_waiting()
        before = self.folders()
        store = pathlib.Path(self.diary("rank-0", "started")[0]["env"]["SATRAP_STORE"].removeprefix("file://"))
        self.script("rank-0", "")
        other = self.start_job("job.yaml")
        self.assertEqual(other.communicate(timeout=60), ("", ""))
        self.assertEqual(self.folders(), before)
        self.assertTrue(store.is_dir())
        job.terminate()
        self.end(job, 143)
        self.assertEqual(self.folders(), set())

    def sweep(self):
        with mock.patch.object(store_folder.tempfile, "gettempdir", lambda: str(self.dir / "tmp")):
            store_folder.remove_leftovers()

    def leftover(self, name, lock=None):
        folder = self.dir / "tmp" / name
        folder.mkdir(mode=0o700)
        (folder / "lock").write_text(store_folder.boot_id() if lock is None else lock)
        (folder / "attempt-0").mkdir()
        return folder

    def test_what_is_not_certainly_a_dead_launchers_stays(self):
        gone = self.leftover("satrap-run-a")
        other_boot = self.leftover("satrap-run-b", lock="another machine that shares this folder")
        other_name = self.leftover("other-c")
        no_lock = self.leftover("satrap-run-d")
        (no_lock / "lock").unlink()
        precious = self.leftover("precious")
        link = self.dir / "tmp" / "satrap-run-e"
        link.symlink_to(precious)
        linked_lock = self.leftover("satrap-run-f")
        (linked_lock / "lock").unlink()
        (linked_lock / "lock").symlink_to(precious / "lock")
        file = self.dir / "tmp" / "satrap-run-g"
        file.touch()
        self.sweep()
        self.assertEqual(self.folders(), {other_boot, other_name, no_lock, precious, link, linked_lock, file})
        self.assertFalse(gone.exists())
        self.assertTrue((precious / "attempt-0").is_dir())

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder to another user")
    def test_that_of_another_user_stays(self):
        folder = self.leftover("satrap-run-a")
        os.chown(folder, 65534, 65534)
        self.sweep()
        self.assertTrue(folder.exists())

    def test_a_folder_that_is_taken_for_a_leftover_before_it_is_locked_is_replaced(self):
        lock, removed = store_folder.lock, []

        def swept_first(folder):
            if not removed:
                shutil.rmtree(folder)
                removed.append(folder)
            return lock(folder)
        with mock.patch.object(store_folder.tempfile, "tempdir", str(self.dir / "tmp")), \
                mock.patch.object(store_folder, "lock", swept_first):
            with store_folder.StoreFolder() as folder:
                self.assertNotEqual(folder, removed[0])
                self.assertEqual(self.folders(), {folder})
                self.sweep()
                self.assertEqual(self.folders(), {folder})
        self.assertEqual(self.folders(), set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
