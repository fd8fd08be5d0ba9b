"""`satrap data prepare`: published files become parts and configurations that train, whatever the threads and kills."""
import csv
import gzip
import hashlib
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import time
import unittest

from cli import SANITIZED, SATRAP, CliTest
from published_files import (MAKERS, MAY_13, SMALL, PrepareCase, make_adult, make_avazu, make_criteo, make_criteo_1tb,
                             make_frappe, make_movielens, make_taobao)

SHARED = pathlib.Path(__file__).resolve().parents[2] / "../shared/data"
DEADLINE_S = 300
STEPS = ["train.max_steps=3", "data.batch_size=64", "device=cpu", "model.engine=native"]

# Files that are there when a preparation is in the middle of its work; parts and manifests are chosen by the test.
RUNS = {"movielens": ["prepare.work/by-user-00000.zst", "prepare.work/by-time-00000.zst"],
        "taobao": ["prepare.work/actions-00001.zst", "prepare.work/rows-00000.zst"]}


class PrepareTest(PrepareCase):
    def kill_and_continue(self, name, out, event, *options):
        """Kills a preparation as soon as the file `event` is there, if that comes to pass, then continues it."""
        process = subprocess.Popen([SATRAP, "data", "prepare", name, "--from", self.source, "--out", self.dir / out,
                                    *SMALL, *options],
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
                self.assertNotIn("prepare.work", [path.name for path in (self.dir / f"{name}1").iterdir()])
                if SANITIZED and name != "taobao":
                    continue
                configuration = pathlib.Path(printed.split("satrap train ")[1].strip())
                done = self.succeed("train", self.dir / configuration, *STEPS)
                self.assert_words(done.stdout, "3 steps", "eval")
                for other in sorted((self.dir / f"{name}1").glob("*.yaml")):
                    if other.name != "schema.yaml":
                        self.succeed("config", "check", "--data", other, "device=cpu")

    def test_a_killed_preparation_continues_with_the_same_bytes(self):
        for name, make in MAKERS.items():
            if name == "kwai" or (SANITIZED and name not in ("criteo", "taobao")):
                continue  # kwai has no parts; sanitizers see each kind of work once
            with self.subTest(name):
                for old in self.source.iterdir():
                    old.unlink()
                make(self.source, 1000, seed=2)
                self.prepare(name, f"{name}-whole")
                parts = sorted(path.name for path in (self.dir / f"{name}-whole").glob("train-*"))
                self.assertGreater(len(parts), 2)
                draw = random.Random(3)
                for event in ["prepare.json", draw.choice(parts), *RUNS.get(name, [])]:
                    out = f"{name}-{event.replace('/', '-')}"
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

    def test_the_last_day_of_criteo_1tb_is_test_then_validation(self):
        make_criteo_1tb(self.source, 24 * 10, seed=4)
        self.prepare("criteo_1tb", "out")
        days = [gzip.open(self.source / f"day_{day}.gz", "rt").read().splitlines() for day in range(24)]
        days = [[line.split("\t") for line in day] for day in days]
        self.assertEqual(11, len(days[23]))
        self.assertEqual(sum(days[:23], []), self.rows("out", "train"))
        self.assertEqual(days[23][:6], self.rows("out", "test"))
        self.assertEqual(days[23][6:], self.rows("out", "validation"))

    def test_movielens_history_is_strictly_before(self):
        make_movielens(self.source, 900, seed=6)
        self.prepare("movielens", "out")
        with open(self.source / "ratings.csv") as file:
            published = [(int(u), m, float(r), int(t)) for u, m, r, t in list(csv.reader(file))[1:]]
        expected = []
        for user, movie, rating, moment in sorted(published, key=lambda row: (row[3], row[0])):
            liked = sorted((row for row in published if row[0] == user and row[2] >= 4 and row[3] < moment),
                           key=lambda row: row[3])
            expected.append([str(int(rating >= 4)), str(user), movie, "|".join(row[1] for row in liked[-50:])])
        self.assertEqual(expected, self.rows("out", "train") + self.rows("out", "test"))
        self.assertEqual(90, len(self.rows("out", "test")))

    def test_formats_of_movielens_give_the_same_rows(self):
        make_movielens(self.source, 200, seed=6)
        self.prepare("movielens", "out")
        text = (self.source / "ratings.csv").read_text().split("\n", 1)[1]
        (self.source / "ratings.csv").unlink()
        for name, delimiter in (("ratings.dat", "::"), ("u.data", "\t")):
            (self.source / name).write_text(text.replace(",", delimiter))
            self.prepare("movielens", name)
            (self.source / name).unlink()
            self.assertEqual(self.rows("out", "train"), self.rows(name, "train"))

    def test_frappe_threshold_is_the_median_of_training_rows(self):
        make_frappe(self.source, 500, seed=7)
        self.prepare("frappe", "out")
        published = [line.split("\t") for line in (self.source / "frappe.csv").read_text().splitlines()[1:]]
        train, test = self.rows("out", "train"), self.rows("out", "test")
        self.assertEqual(500, len(train) + len(test))
        self.assertTrue(60 < len(test) < 140, len(test))
        left, counts, rows = list(published), [], []
        for row in train:  # the training rows in the order of the file
            while left[0][:2] + left[0][3:] != row[1:]:
                left.pop(0)
            counts.append(int(left.pop(0)[2]))
            rows.append(row)
        median = statistics.median_low(counts)
        self.assertEqual([str(int(count > median)) for count in counts], [row[0] for row in rows])

    def test_taobao_history_is_strictly_before_and_of_the_user(self):
        make_taobao(self.source, 150, seed=8)
        self.prepare("taobao", "out")

        def table(name):
            with open(self.source / name) as file:
                return list(csv.reader(file))[1:]
        ads = {row[0]: ["" if field == "NULL" else field for field in row[1:]] for row in table("ad_feature.csv")}
        profiles = {row[0]: row[1:] for row in table("user_profile.csv")}
        actions = [(user, int(moment), *rest) for user, moment, *rest in table("behavior_log.csv")]
        expected = {"train": [], "test": []}
        impressions = [(row[0], int(row[1]), *row[2:]) for row in table("raw_sample.csv")]
        for user, moment, ad, pid, _, click in sorted(impressions, key=lambda row: (row[1], int(row[0]))):
            before = sorted((a for a in actions if a[0] == user and a[1] < moment), key=lambda a: a[1])[-50:]
            hour = str((moment + 8 * 3600) % 86400 // 3600)
            expected["test" if moment >= MAY_13 else "train"].append(
                [click, hour, user, *profiles.get(user, [""] * 8), ad, *ads.get(ad, [""] * 5), pid,
                 *("|".join(a[column] for a in before) for column in (2, 3, 4))])
        self.assertEqual(expected["train"], self.rows("out", "train"))
        self.assertEqual(expected["test"], self.rows("out", "test"))

    def test_adult_keeps_rows_without_the_comment(self):
        make_adult(self.source, 40, seed=9)
        md5 = hashlib.md5((self.source / "adult.test").read_bytes()).hexdigest()
        for _ in range(2):  # the second time from the manifest
            self.assert_words(self.prepare("adult", "out").stdout, "adult.test is not the published copy", md5)
        lines = [line.split("\t") for line in (self.source / "adult.test").read_text().splitlines()[1:]]
        self.assertEqual(lines, self.rows("out", "test"))
        self.assertEqual(40, len(self.rows("out", "train")))

    def test_a_run_outside_of_what_is_expected_is_an_error(self):
        self.prepare("kwai", "out")
        job = [self.dir / "out/dlrm.yaml", *STEPS, "--overwrite"]
        error = self.fail_with(1, "train", *job, "train.expect={auc: [0.99, 1]}")
        self.assert_words(error, "train.expect.auc", "expected 0.99 to 1", "look at")
        self.assertTrue((self.dir / "out/runs/dlrm/summary.json").exists())
        self.succeed("train", *job, "train.expect={auc: [0, 1]}")
        done = self.succeed("train", *job, "train.expect={auc: [0.99, 1], min_examples: 1000000}")
        self.assert_words(done.stderr, "train.expect", "1,000,000")
        for wrong, words in (("{auc: [0.5]}", "two numbers"), ("{auc: [0.9, 0.1]}", "two numbers"),
                             ("{min_examples: 5}", "no effect")):
            self.assert_words(self.fail_with(2, "train", *job, f"train.expect={wrong}"), words)

    def test_bad_input_is_named(self):
        error = self.fail_with(2, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "train.txt", str(self.source), "https://")
        error = self.fail_with(2, "data", "prepare", "criteo", "--out", self.dir / "out")
        self.assert_words(error, "--from is missing", "criteo", "https://")
        error = self.fail_with(2, "data", "prepare", "kwai", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "--from", "kwai", "no files")
        error = self.fail_with(2, "data", "prepare", "netflix", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "netflix", "criteo", "avazu")
        make_criteo(self.source, 20, seed=1)
        with open(self.source / "train.txt", "a") as file:
            file.write("1\t2\t3\n")
        error = self.fail_with(1, "data", "prepare", "criteo", "--from", self.source, "--out", self.dir / "out")
        self.assert_words(error, "train.txt:21", "3 columns", "40")

    def test_md5_that_openssl_refuses_is_noted(self):
        make_adult(self.source, 40, seed=9)
        fips = self.write("openssl.cnf", "openssl_conf = init\n[init]\nalg_section = algorithms\n"
                                         "[algorithms]\ndefault_properties = fips=yes\n")
        for _ in range(2):  # the second time from the manifest
            done = self.succeed("data", "prepare", "adult", "--from", self.source, "--out", self.dir / "out",
                                env={**os.environ, "OPENSSL_CONF": str(fips)})
            self.assert_words(done.stdout, "adult.data", "MD5 was not checked", "train       40 rows")
            self.assertNotIn("is not the published copy", done.stdout)

    def test_the_names_of_a_header_are_checked(self):
        make_avazu(self.source, 20, seed=5)
        with gzip.open(self.source / "train.gz", "rt") as file:
            lines = file.read().splitlines()
        make_movielens(self.source, 20, seed=6)
        ratings = (self.source / "ratings.csv").read_text().splitlines()
        for name, file, text, words in (
                ("avazu", "train.gz", lines[1:], ["column 1", "'id'"]),
                ("avazu", "train.gz", [lines[0].replace("hour", "day"), *lines[1:]], ["column 3", "'day'", "'hour'"]),
                ("avazu", "train.gz", [lines[0] + ",more", *lines[1:]], ["25 columns", "24"]),
                ("movielens", "ratings.csv", ratings[1:], ["column 1", "'userId'"]),
                ("movielens", "ratings.csv", ["userId,movieId,tag,timestamp"], ["column 3", "'tag'", "'rating'"])):
            with (gzip.open if file.endswith(".gz") else open)(self.source / file, "wt") as out:
                out.write("\n".join(text) + "\n")
            error = self.fail_with(1, "data", "prepare", name, "--from", self.source, "--out", self.dir / "out")
            self.assert_words(error, f"{file}:1: ", "published one", *words)
            shutil.rmtree(self.dir / "out")


class SamplesTest(CliTest):
    """Samples of the published files, which may be next to the checkout."""

    SAMPLES = {"criteo": "criteo_kaggle", "avazu": "avazu", "movielens": "movielens_small", "frappe": "frappe",
               "adult": "adult"}

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
