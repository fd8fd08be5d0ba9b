"""Training data that change between a stop and --resume: refused where they have been read, told where they have not.

One job is trained up to row 140 of four files of 100 rows: p0 has been read, p1 up to its row 40, p2 and p3 not at all.
Each test resumes a copy of its folder."""
import gzip
import os
import pathlib
import shutil
import tempfile
import unittest

from cli import JOB, CliTest, click_log, satrap

ROWS = 100  # of a file
STOP, END = 7, 20  # steps of 20 rows
ACCEPT = "--accept-changed-data"


def files_of_the_log(names, rows=ROWS):
    log = click_log()
    return {name: "".join(log[i * rows:(i + 1) * rows]) for i, name in enumerate(names)}


class ChangedData(CliTest):
    NAMES = ["p0.tsv", "p1.tsv", "p2.tsv", "p3.tsv"]
    STEPS = STOP

    @classmethod
    def setUpClass(cls):
        cls.trained = pathlib.Path(tempfile.mkdtemp(prefix="satrap-data-"))
        cls.addClassCleanup(shutil.rmtree, cls.trained, ignore_errors=True)
        (cls.trained / "data").mkdir()
        for name, text in files_of_the_log(cls.NAMES).items():
            (cls.trained / "data" / name).write_bytes(cls.bytes_of(text))
        (cls.trained / "eval.tsv").write_text("".join(click_log()[:50]))
        text = JOB.format(run_dir="run", train="data/p*", eval="eval.tsv")
        (cls.trained / "job.yaml").write_text(text.replace("batch_size: 100", "batch_size: 20"))
        done = satrap("train", "job.yaml", *cls.settings(cls.STEPS), cwd=cls.trained)
        assert done.returncode == 0, done.stderr

    @classmethod
    def settings(cls, steps):
        return [f"train.max_steps={steps}"]

    @staticmethod
    def bytes_of(text):
        return text.encode()

    def setUp(self):
        super().setUp()
        shutil.copytree(self.trained, self.dir, dirs_exist_ok=True)  # with the times of the files
        self.data = self.dir / "data"

    def resume(self, *flags):
        """To the end of the data."""
        return satrap("train", "job.yaml", *self.settings(1000), "--resume", *flags, cwd=self.dir)

    def rows(self, name):
        return (self.data / name).read_text().splitlines(keepends=True)

    def put(self, name, rows):
        (self.data / name).write_text("".join(rows))

    def assert_refused(self, *lines):
        """One error line with the words of each of `lines`, then one with the way on."""
        done = self.resume()
        self.assertEqual(done.returncode, 2, done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), len(lines) + 1, done.stderr)
        for error, words in zip(errors, lines):
            self.assert_words(error, "step-", *words)
        self.assert_words(errors[-1], ACCEPT)
        self.assertEqual(self.checkpoints()[-1], f"step-{self.STEPS:012}")
        return done

    def assert_taken(self, *words, steps=END):
        done = self.resume()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_words(done.stderr, *words)
        self.assertEqual(self.checkpoints()[-1], f"step-{steps:012}")
        return done

    def assert_unnoticed(self):
        done = self.assert_taken()
        self.assertNotRegex(done.stderr, "data/p|warning")
        return done


class AfterAStop(ChangedData):
    def test_nothing_changed(self):
        self.assert_unnoticed()

    # Behind the position

    def test_a_row_changed(self):
        rows = self.rows("p0.tsv")
        rows[50] = ("1" if rows[50][0] == "0" else "0") + rows[50][1:]  # its label
        self.put("p0.tsv", rows)
        self.assert_refused(["data/p0.tsv", "other content of the same", " -> "])

    def test_a_file_removed(self):
        (self.data / "p0.tsv").unlink()
        done = self.assert_refused(["data/p0.tsv", "gone"])
        self.assertNotIn("p1.tsv", done.stderr.split("error: ", 1)[1])

    def test_a_file_truncated(self):
        size = (self.data / "p0.tsv").stat().st_size
        self.put("p0.tsv", self.rows("p0.tsv")[:90])
        self.assert_refused(["data/p0.tsv", f"{size} bytes -> {(self.data / 'p0.tsv').stat().st_size} bytes"])

    def test_a_file_with_more_rows(self):
        self.put("p0.tsv", self.rows("p0.tsv") + self.rows("p3.tsv")[:1])
        self.assert_refused(["data/p0.tsv", " bytes -> "])

    def test_a_file_rewritten_with_the_same_size(self):
        rows = self.rows("p0.tsv")
        before = (self.data / "p0.tsv").stat()
        self.put("p0.tsv", reversed(rows))
        os.utime(self.data / "p0.tsv", ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual((self.data / "p0.tsv").stat().st_size, before.st_size)
        self.assert_refused(["data/p0.tsv", "content", " -> "])

    def test_names_exchanged(self):
        (self.data / "p0.tsv").rename(self.data / "aside")
        (self.data / "p2.tsv").rename(self.data / "p0.tsv")
        (self.data / "aside").rename(self.data / "p2.tsv")
        self.assert_refused(["data/p0.tsv", " -> "])

    def test_contents_swapped(self):
        first, second = self.rows("p0.tsv"), self.rows("p1.tsv")
        self.put("p0.tsv", second)
        self.put("p1.tsv", first)
        self.assert_refused(["data/p0.tsv", " -> "], ["data/p1.tsv", " -> "])

    def test_a_file_added_in_front(self):
        self.put("p.tsv", self.rows("p3.tsv"))
        self.assert_refused(["data/p.tsv", "added", "before", "data/p0.tsv"])

    def test_a_file_added_among_those_read(self):
        self.put("p0b.tsv", self.rows("p3.tsv"))
        self.assert_refused(["data/p0b.tsv", "added", "before", "data/p1.tsv"])

    def test_another_order_of_the_same_files(self):
        done = self.resume("data.train.path=[data/p1.tsv, data/p0.tsv, data/p2.tsv, data/p3.tsv]")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assert_words(done.stderr, "data/p1.tsv", "order", ACCEPT)

    # At the position

    def test_the_current_file_truncated_before_the_position(self):
        self.put("p1.tsv", self.rows("p1.tsv")[:30])
        self.assert_refused(["data/p1.tsv", " bytes -> "])

    def test_the_current_file_truncated_after_the_position(self):
        self.put("p1.tsv", self.rows("p1.tsv")[:80])
        self.assert_refused(["data/p1.tsv", " bytes -> "])

    def test_the_current_file_grown_at_its_end(self):
        self.put("p1.tsv", self.rows("p1.tsv") + self.rows("p3.tsv")[:20])
        self.assert_taken("changed: data file data/p1.tsv", "grown", steps=END + 1)

    # Ahead of the position

    def test_a_row_changed_ahead(self):
        self.put("p3.tsv", self.rows("p3.tsv")[:-1] + self.rows("p0.tsv")[:1])
        self.assert_taken("changed: data file data/p3.tsv", " bytes -> ")

    def test_a_file_removed_ahead(self):
        (self.data / "p2.tsv").unlink()
        self.assert_taken("changed: data file data/p2.tsv", "not read", "gone", steps=END - 5)

    def test_a_file_added_ahead(self):
        self.put("p2b.tsv", self.rows("p0.tsv"))
        self.assert_taken("changed: data file data/p2b.tsv", "added", steps=END + 5)

    def test_contents_swapped_ahead(self):
        second, third = self.rows("p2.tsv")[:99], self.rows("p3.tsv")
        self.put("p2.tsv", third)
        self.put("p3.tsv", second)
        self.assert_taken("changed: data file data/p2.tsv", "changed: data file data/p3.tsv", steps=END)

    # No differences

    def test_a_file_appended_at_the_end_of_the_glob(self):
        self.put("p4.tsv", self.rows("p0.tsv"))
        done = self.assert_taken("1 data file appended: data/p4.tsv", steps=END + 5)
        self.assertNotIn("changed: data", done.stderr)

    def test_a_touch(self):
        for name in self.NAMES[:2]:
            os.utime(self.data / name, ns=(1, 1))
        self.assert_unnoticed()

    def test_a_copy_at_another_place(self):
        (self.dir / "data").rename(self.dir / "moved")
        done = self.resume("data.train.path=moved/p*")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_words(done.stderr, "data/p0.tsv -> moved/p0.tsv")

    # The way on

    def test_accepted_data_are_read_from_the_position_on(self):
        (self.data / "p0.tsv").unlink()
        done = self.resume(ACCEPT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_words(done.stderr, "accepted: data file data/p0.tsv", "gone", "row 140")
        self.assertEqual(self.checkpoints()[-1], f"step-{END - 5:012}")
        done = self.resume()  # they are of record now
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("data/p0.tsv", done.stderr)

    def test_accepting_is_for_resuming(self):
        done = satrap("train", "job.yaml", ACCEPT, cwd=self.dir)
        self.assertEqual(done.returncode, 2)
        self.assert_words(done.stderr, ACCEPT, "--resume")


class AtTheEnd(ChangedData):
    """All rows have been trained on."""
    STEPS = END

    def test_the_next_days_are_trained_on(self):
        self.put("p4.tsv", self.rows("p0.tsv"))
        self.put("p10.tsv", self.rows("p1.tsv"))
        self.assert_taken("2 data files appended: data/p4.tsv, data/p10.tsv", steps=END + 10)

    def test_rows_appended_to_the_last_file_are_trained_on(self):
        self.put("p3.tsv", self.rows("p3.tsv") + self.rows("p0.tsv"))
        self.assert_taken("changed: data file data/p3.tsv", "grown", steps=END + 5)

    def test_a_last_line_that_goes_on_is_another_row(self):
        whole = self.rows("p3.tsv")
        text = "".join(whole).rstrip("\n")
        (self.data / "p3.tsv").write_text(text)
        shutil.rmtree(self.dir / "run")
        done = satrap("train", "job.yaml", *self.settings(END), cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.data / "p3.tsv").write_text(text + "00\n")
        self.assert_refused(["data/p3.tsv", " bytes -> "])

    def test_a_day_that_was_trained_on_is_not_removed_silently(self):
        (self.data / "p0.tsv").unlink()
        self.put("p4.tsv", self.rows("p1.tsv"))
        self.assert_refused(["data/p0.tsv", "gone"])


class Compressed(ChangedData):
    NAMES = ["p0.tsv.gz", "p1.tsv.gz", "p2.tsv.gz", "p3.tsv.gz"]

    @staticmethod
    def bytes_of(text):
        return gzip.compress(text.encode(), 1, mtime=0)

    def test_it_again_is_another_file(self):
        path = self.data / "p0.tsv.gz"
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 9, mtime=0))
        self.assert_refused(["data/p0.tsv.gz", " bytes -> "])
        done = self.resume(ACCEPT)
        self.assertEqual(done.returncode, 0, done.stderr)


class SecondEpoch(ChangedData):
    """Stopped at row 140 of the second epoch: p2 and p3 have been read, but are ahead."""
    STEPS = END + STOP

    @classmethod
    def settings(cls, steps):
        return ["train.epochs=2", f"train.max_steps={steps}"]

    def test_what_is_read_again_may_change(self):
        self.put("p3.tsv", self.rows("p3.tsv")[:-1] + self.rows("p0.tsv")[:1])
        self.assert_taken("changed: data file data/p3.tsv", steps=2 * END)

    def test_what_this_epoch_has_read_may_not(self):
        self.put("p1.tsv", self.rows("p1.tsv")[:80])
        self.assert_refused(["data/p1.tsv", " bytes -> "])


class Shuffled(ChangedData):
    """The rows after the position that are in the shuffle buffer have been read."""
    @classmethod
    def settings(cls, steps):
        return ["data.shuffle_rows=100", f"train.max_steps={steps}"]

    def test_nothing_changed(self):
        self.assert_unnoticed()

    def test_a_file_that_is_in_the_buffer(self):
        self.put("p2.tsv", self.rows("p2.tsv")[:-1] + self.rows("p0.tsv")[:1])
        self.assert_refused(["data/p2.tsv", " -> "])


class LookupsAhead(ChangedData):
    """Continued from a checkpoint that has the lookups of the last two steps, of 30 and 10 rows."""
    STEPS = 14

    @classmethod
    def settings(cls, steps):
        return ["data.batch_size=30", "checkpoint.every=12 steps", f"train.max_steps={steps}"]

    def resume(self, *flags):
        return satrap("train", "job.yaml", *self.settings(1000), "--resume-from",
                      self.dir / "run" / "checkpoints" / "step-000000000012", *flags, cwd=self.dir)

    def test_they_are_taken_if_nothing_changed(self):
        whole = self.digest(self.dir / "run" / "checkpoints" / "step-000000000014")
        self.assertNotIn("made again", self.assert_taken(steps=14).stderr)
        self.assertEqual(self.digest(self.dir / "run" / "checkpoints" / "step-000000000014"), whole)

    def test_they_are_made_again_if_the_last_step_gets_more_rows(self):
        self.put("p4.tsv", self.rows("p0.tsv"))
        self.assert_taken("1 data file appended", "are made again", steps=17)


if __name__ == "__main__":
    unittest.main(verbosity=2)
