"""Jobs with a cache of parsed rows: the same model as without, whatever happens to the cache or to the data."""
import signal
import subprocess
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest, satrap

ROWS = 20000
JOB = """\
run_dir: run
device: cpu
seed: 7
data:
  train: "day_*.csv"
  eval: {fraction: 0.2, by: user}
  shuffle_rows: 300
  batch_size: 100
  schema:
    label: click
    numeric: [{name: age, transform: zscore}, price]
    features: [user, {name: items, separator: "|", max_length: 3, keep: last}]
tables: {default: {dim: 4, optimizer: {type: adagrad, lr: 0.05}}}
model: {type: deepfm, hidden: [8]}
train: {mode: sync, deterministic: true, threads: 1, epochs: 2}
checkpoint: {every: 50 steps, keep: 3}
"""


def make_rows(begin, end, factor=31):
    lines = ["click,age,price,user,items"]
    for r in range(begin, end):
        age = "bad" if r % 301 == 7 else "" if r % 11 == 3 else r * factor % 70
        lines.append(f"{int((r * 7 + r // 3) % 5 < 2)},{age},{r * 13 % 97 / 4},user {r * r % 501},{r % 41}|{r % 7}")
    return "\n".join(lines) + "\n"


class Cache(CliTest):
    def setUp(self):
        super().setUp()
        self.write("day_1.csv", make_rows(0, ROWS // 3))
        self.write("day_2.csv", make_rows(ROWS // 3, ROWS))
        self.write("job.yaml", JOB)

    def train(self, *more):
        """The digest of the model, and what the log says."""
        done = self.succeed("train", "job.yaml", *more, cwd=self.dir)
        newest = self.checkpoints("run")[-1]
        return (newest, self.digest(self.dir / "run" / "checkpoints" / newest)), done.stderr

    def caches(self):
        return sorted(self.dir.glob("cache/*.rows*"))

    def test_the_model_is_that_without_a_cache(self):
        expected, _ = self.train("--overwrite")
        found, log = self.train("data.cache=cache", "--overwrite", "data.reader_threads=3")
        self.assertEqual(found, expected)
        self.assertEqual(len(self.caches()), 2)
        self.assert_words(log, "training rows are now in", "evaluation rows are now in", "bytes per row")
        found, log = self.train("data.cache=cache", "--overwrite")
        self.assertEqual(found, expected)
        self.assertNotIn("are now in", log)

    def test_a_run_that_stops_goes_on_with_the_same_bits(self):
        expected, _ = self.train("--overwrite")
        for steps in [70, 200]:  # in the first epoch, without a cache yet, and in the second one
            self.train("data.cache=cache", "--overwrite", f"train.max_steps={steps}")
            self.assertEqual(self.train("data.cache=cache", "--resume")[0], expected)

    def test_after_a_kill_the_cache_is_whole_or_not_there(self):
        expected, _ = self.train("--overwrite")
        with subprocess.Popen([SATRAP, "train", "job.yaml", "data.cache=cache", "--overwrite"], cwd=self.dir,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
            for line in running.stderr:
                if "dense parameters" in line:  # about to train
                    running.send_signal(signal.SIGKILL)
            running.wait(TIMEOUT_S)
        self.assertEqual(self.train("data.cache=cache", "--overwrite")[0], expected)
        self.assertFalse(list(self.dir.glob("cache/*.part")))
        self.assertEqual(self.train("data.cache=cache", "--overwrite")[0], expected)

    def test_a_changed_file_is_parsed_again(self):
        self.train("data.cache=cache", "--overwrite")
        self.write("day_2.csv", make_rows(ROWS // 3, ROWS + 5, factor=17))
        expected, _ = self.train("--overwrite")
        found, log = self.train("data.cache=cache", "--overwrite")
        self.assertEqual(found, expected)
        self.assert_words(log, "day_2.csv' as it was before", "parsed again")
        self.assertEqual(len(self.caches()), 2)

    def test_damage_is_said_and_parsed_again(self):
        expected, _ = self.train("data.cache=cache", "--overwrite")
        for cache in self.caches():
            content = bytearray(cache.read_bytes())
            content[len(content) // 2] ^= 1
            cache.write_bytes(content)
        found, log = self.train("data.cache=cache", "--overwrite")
        self.assertEqual(found, expected)
        self.assert_words(log, "damaged", "parsed again")

    def test_a_limit_holds_for_the_folder_and_the_model_stays(self):
        expected, _ = self.train("data.cache=cache", "--overwrite")
        sizes = {cache.name: cache.stat().st_size for cache in self.caches()}
        training, evaluation = (next(n for n in sizes if n.startswith(rows)) for rows in ("training", "evaluation"))
        limit = f"data.cache.max_size={sizes[training] + sizes[evaluation] // 2}"
        for cache in self.caches():
            cache.unlink()
        found, log = self.train("data.cache=cache", limit, "--overwrite")
        self.assertEqual(found, expected)
        self.assertEqual([cache.name for cache in self.caches()], [training])  # in use until the run ends
        self.assertEqual(log.count("not cached: they need about"), 1, log)
        self.assert_words(log, "are in use")
        found, log = self.train("data.cache=cache", "data.cache.max_size=5kB", "--overwrite")
        self.assertEqual(found, expected)
        self.assert_words(log, "not cached: they need about", "data.cache.max_size", "4.88KiB")
        self.assertEqual([cache.name for cache in self.caches()], [training])  # which this run reads
        self.write("day_2.csv", make_rows(ROWS // 3, ROWS, factor=17))
        _, log = self.train("data.cache=cache", f"data.cache.max_size={sizes[training] + 1000}", "--overwrite")
        self.assert_words(log, "is removed to make room", "training rows are now in")
        self.assertEqual([cache.name for cache in self.caches()], [training])
        error = self.fail_with(2, "train", "job.yaml", "data.cache=cache", "data.cache.max_size=much", cwd=self.dir)
        self.assert_words(error, "data.cache.max_size", "much")

    def test_a_cache_of_what_is_read_once_is_refused(self):
        error = self.fail_with(2, "train", "job.yaml", "data.cache=cache", "data.train=-", cwd=self.dir)
        self.assert_words(error, "data.cache", "standard input")
        error = self.fail_with(1, "train", "job.yaml", "data.cache=job.yaml", cwd=self.dir)
        self.assert_words(error, "job.yaml")
        self.assertNotEqual(satrap("config", "check", "job.yaml", "data.cachee=x", cwd=self.dir).returncode, 0)


if __name__ == "__main__":
    unittest.main()
