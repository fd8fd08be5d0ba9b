"""`satrap data prepare`: published files become parts and configurations that train, whatever the threads and kills."""
import gzip
import json
import pathlib
import random
import signal
import subprocess
import time
import unittest

from cli import SATRAP, CliTest

SHARED = pathlib.Path(__file__).resolve().parents[2] / "../shared/data"
DEADLINE_S = 300
STEPS = ["train.max_steps=3", "device=cpu", "model.engine=native"]


# Tiny files of the published shape: a folder, a number of rows and a seed -> the files.

def criteo_row(draw):
    numbers = [str(draw.randrange(-1, 50)) if draw.random() < 0.7 else "" for _ in range(13)]
    ids = [f"{draw.randrange(2**32):08x}" if draw.random() < 0.9 else "" for _ in range(26)]
    return "\t".join([str(draw.randrange(2)), *numbers, *ids]) + "\n"


def make_criteo(folder, rows, seed):
    draw = random.Random(seed)
    (folder / "train.txt").write_text("".join(criteo_row(draw) for _ in range(rows)))


def make_avazu(folder, rows, seed):
    draw = random.Random(seed)
    columns = ["id", "click", "hour", "C1", "banner_pos", "site_id", "site_domain", "site_category", "app_id",
               "app_domain", "app_category", "device_id", "device_ip", "device_model", "device_type",
               "device_conn_type", *(f"C{i}" for i in range(14, 22))]
    lines = [",".join(columns)]
    for row in range(rows):
        day, hour = 21 + 10 * row // rows, draw.randrange(24)
        rest = [f"{draw.randrange(2**16):08x}" for _ in columns[3:]]
        lines.append(",".join([str(draw.randrange(2**64)), str(draw.randrange(2)), f"1410{day}{hour:02}", *rest]))
    with gzip.open(folder / "train.gz", "wt", compresslevel=1) as file:
        file.write("\n".join(lines) + "\n")


MAKERS = {"criteo": make_criteo, "avazu": make_avazu}


class PrepareTest(CliTest):
    def setUp(self):
        super().setUp()
        self.source = self.dir / "from"
        self.source.mkdir()

    def prepare(self, name, out, *options):
        return self.succeed("data", "prepare", name, "--from", self.source, "--out", self.dir / out,
                            "--part-rows", 100, "--memory", "64KiB", *options)

    def rows(self, out, split):
        """The rows of a split, in the order of its parts."""
        parts = sorted((self.dir / out).glob(f"{split}-*.txt.zst"))
        text = b"".join(subprocess.run(["zstd", "-dc", part], stdout=subprocess.PIPE, check=True).stdout
                        for part in parts)
        return [line.split("\t") for line in text.decode().splitlines()]

    def contents(self, out):
        folder = self.dir / out
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def kill_and_continue(self, name, out, event, *options):
        """Kills a preparation as soon as the file `event` is there, if that comes to pass, then continues it."""
        process = subprocess.Popen([SATRAP, "data", "prepare", name, "--from", self.source, "--out", self.dir / out,
                                    "--part-rows", "100", "--memory", "64KiB", *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + DEADLINE_S
        while process.poll() is None and not (self.dir / out / event).exists() and time.monotonic() < deadline:
            time.sleep(0)
        process.kill()
        process.communicate()
        self.assertIn(process.returncode, (0, -signal.SIGKILL))
        self.prepare(name, out, *options)

    def test_every_set_is_the_same_for_any_threads_and_trains(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                for old in self.source.iterdir():
                    old.unlink()
                make(self.source, 700, seed=1)
                printed = self.prepare(name, f"{name}1", "--threads", "1").stdout
                self.prepare(name, f"{name}4", "--threads", "4")
                self.assertEqual(self.contents(f"{name}1"), self.contents(f"{name}4"))
                self.assertNotIn("work", [path.name for path in (self.dir / f"{name}1").iterdir()])
                configuration = pathlib.Path(printed.split("satrap train ")[1].strip())
                done = self.succeed("train", self.dir / configuration, *STEPS)
                self.assert_words(done.stdout, "3 steps", "eval")
                for other in sorted((self.dir / f"{name}1").glob("*.yaml")):
                    if other.name != "schema.yaml":
                        self.succeed("config", "check", "--data", other, "device=cpu")

    def test_a_killed_preparation_continues_with_the_same_bytes(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                for old in self.source.iterdir():
                    old.unlink()
                make(self.source, 1500, seed=2)
                self.prepare(name, f"{name}-whole")
                parts = sorted(path.name for path in (self.dir / f"{name}-whole").glob("train-*"))
                draw = random.Random(3)
                for event in ["prepare.json", *draw.sample(parts, 3)]:
                    out = f"{name}-{event}"
                    self.kill_and_continue(name, out, event, "--threads", str(draw.choice([1, 4])))
                    self.assertEqual(self.contents(f"{name}-whole"), self.contents(out), event)

    def test_a_finished_preparation_is_not_repeated(self):
        make_criteo(self.source, 300, seed=1)
        first = self.prepare("criteo", "out").stdout
        part = self.dir / "out/train-00001.txt.zst"
        before = part.stat().st_mtime_ns
        self.assertEqual(first, self.prepare("criteo", "out").stdout)
        self.assertEqual(before, part.stat().st_mtime_ns)

    def test_criteo_is_tested_on_its_last_seventh(self):
        for rows in (1, 7, 100, 699):
            make_criteo(self.source, rows, seed=rows)
            self.prepare("criteo", f"out{rows}")
            published = [line.split("\t") for line in (self.source / "train.txt").read_text().splitlines()]
            self.assertEqual(published[:6 * rows // 7], self.rows(f"out{rows}", "train"))
            self.assertEqual(published[6 * rows // 7:], self.rows(f"out{rows}", "test"))

    def test_avazu_is_tested_on_its_last_day(self):
        make_avazu(self.source, 500, seed=5)
        self.prepare("avazu", "out")
        with gzip.open(self.source / "train.gz", "rt") as file:
            published = [line.rstrip("\n").split(",") for line in file][1:]
        weekday = {day: time.strftime("%w", time.strptime(f"2014-10-{day}", "%Y-%m-%d")) for day in range(21, 31)}
        expected = {"train": [], "test": []}
        for _, click, hour, *rest in published:
            split = "test" if hour.startswith("141030") else "train"
            expected[split].append([click, str(int(hour[6:])), weekday[int(hour[4:6])], *rest])
        self.assertEqual(expected["train"], self.rows("out", "train"))
        self.assertEqual(expected["test"], self.rows("out", "test"))

    def test_bad_input_is_named(self):
        error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "train.txt", str(self.source), "https://")
        error = self.fail_with(2, "data", "prepare", "netflix", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "netflix", "criteo", "avazu")
        make_criteo(self.source, 20, seed=1)
        with open(self.source / "train.txt", "a") as file:
            file.write("1\t2\t3\n")
        error = self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "train.txt:21", "3 columns", "40")

    def test_a_folder_of_something_else_is_refused(self):
        make_criteo(self.source, 300, seed=1)
        (self.dir / "mine").mkdir()
        self.write("mine/notes.txt", "mine")
        error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "mine")
        self.assert_words(error, "mine", "new folder")
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
        self.assert_words(error, "prepare.json", "--overwrite")


class SamplesTest(CliTest):
    """Samples of the published files, which may be next to the checkout."""

    SAMPLES = {"criteo": "criteo_kaggle", "avazu": "avazu"}

    def test_samples_are_prepared_and_train_by_one_command_each(self):
        for name, folder in self.SAMPLES.items():
            with self.subTest(name):
                if not (SHARED / folder).is_dir():
                    self.skipTest(f"there is no ../shared/data/{folder}")
                done = self.succeed("data", "prepare", name, "--from", SHARED / folder, "--out", self.dir / name)
                configuration = done.stdout.split("satrap train ")[1].strip()
                self.succeed("train", configuration, *STEPS, cwd=self.dir)


if __name__ == "__main__":
    unittest.main()
