"""Files as people have them: each is read, or refused by what it is and with a command that helps."""
import gzip
import json
import os
import signal
import subprocess
import time
import unittest

from cli import SANITIZED, SATRAP, TIMEOUT_S, CliTest

JOB = """
run_dir: run
device: cpu
data:
  train: {path}
  batch_size: 2
  schema: {{label: click, features: [user]}}
tables: {{default: {{dim: 2}}}}
model: {{type: ffnn, top: [4]}}
train: {{deterministic: true, threads: 1}}
checkpoint: {{every: never}}
"""
ROWS = "click,user\n" + "".join(f"{r % 2},u{r % 3}\n" for r in range(8))


class OddFiles(CliTest):
    def refused(self, name, text, *words, status=1):
        (self.dir / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        self.assert_words(self.fail_with(status, "init", name, "--label", "click", cwd=self.dir), name, *words)

    def test_what_a_file_is_is_said(self):
        array = json.dumps([{"click": i % 2, "user": f"u{i}"} for i in range(20)])
        self.refused("a.json", array, "is a JSON array", "jq -c '.[]'")
        self.refused("b.json", array.replace("}, ", "},\n"), "is a JSON array", "jq -c '.[]'")
        self.refused("a.orc", b"ORC\x08\x03\x10\x12\x00\n" * 20, "is an ORC file", "pyarrow.orc")
        self.refused("utf16.csv", ROWS.encode("utf-16-le"), "UTF-16", "iconv -f utf-16le -t utf-8")
        self.refused("mac.csv", ROWS.replace("\n", "\r"), "end with CR alone", "tr '\\r' '\\n'")
        self.refused("comments.csv", "# of a tool\n# more\n" + ROWS, "after 2 other lines", "grep -v '^#' comments.csv")
        self.refused("title.csv", "Clicks of Monday\n" + ROWS, "after 1 other line", "tail -n +2 title.csv")

    def test_what_train_would_refuse_is_not_written(self):
        self.write("twice.csv", "click,user,click\n" + "".join(f"{r % 2},u{r % 3},{r % 2}\n" for r in range(40)))
        error = self.fail_with(2, "init", "twice.csv", "--label", "click", cwd=self.dir)
        self.assert_words(error, "twice.csv", "two columns are named 'click'")
        self.assertEqual(os.listdir(self.dir), ["twice.csv"])

    def test_a_message_shows_bytes_that_are_0(self):
        self.write("job.yaml", JOB.format(path="nul.csv"))
        (self.dir / "nul.csv").write_bytes(b"click,us\0er\n1,a\n")
        self.assert_words(self.fail_with(1, "train", "job.yaml", cwd=self.dir), "bytes that are 0", "nul.csv")

    def test_empty_files_have_no_rows(self):
        for name, text in [("0.csv", ROWS), ("1.csv", ""), ("3.csv", ROWS), ("_SUCCESS", "")]:
            self.write(name, text)
        (self.dir / "2.csv.gz").write_bytes(gzip.compress(b""))
        self.write("job.yaml", JOB.format(path='{path: ["[0-9]*", _SUCCESS]}'))
        self.succeed("train", "job.yaml", cwd=self.dir)
        summary = json.loads((self.dir / "run/summary.json").read_text())
        self.assertEqual((summary["finished"], summary["examples"]), (True, 16))
        self.assert_words(self.fail_with(1, "train", "job.yaml", "data.train=1.csv", "run_dir=none", cwd=self.dir),
                          "1.csv' is empty")

    def test_a_later_file_that_cannot_be_read_leaves_a_checkpoint(self):
        whole = gzip.compress(ROWS.encode())
        self.write("0.csv", ROWS)
        (self.dir / "1.csv.gz").write_bytes(whole[:-12])
        self.write("job.yaml", JOB.format(path='{path: "[0-9]*"}'))
        self.assert_words(self.fail_with(1, "train", "job.yaml", cwd=self.dir), "1.csv.gz", "truncated")
        self.assertFalse((self.dir / "run/summary.json").exists())
        self.assertEqual(os.listdir(self.dir / "run/checkpoints"), ["step-000000000004"])
        (self.dir / "1.csv.gz").write_bytes(whole)
        self.succeed("train", "job.yaml", "--resume", cwd=self.dir)
        digest = self.succeed("checkpoint", "verify", self.dir / "run").stdout.split("digest ")[-1]
        self.succeed("train", "job.yaml", "run_dir=again", cwd=self.dir)
        self.assertEqual(self.succeed("checkpoint", "verify", self.dir / "again").stdout.split("digest ")[-1], digest)

    def test_a_job_of_the_old_rule_goes_on_by_it(self):
        self.write("a.csv", "click,user\n" + "".join(f"{r % 2},{r % 3 == 0}\n" for r in range(8)))
        self.write("job.yaml", JOB.format(path="a.csv"))
        self.succeed("train", "job.yaml", "data.schema.value_rule=1", cwd=self.dir)
        for config in [self.dir / "run/config.yaml", *(self.dir / "run/checkpoints").glob("*/config.yaml")]:
            text = config.read_text()  # as one that was written before there were rules
            self.assertIn("value_rule: 1", text)
            self.assertNotIn("value_rule", text.replace("value_rule: 1", ""))
        self.assert_words(self.fail_with(2, "train", "job.yaml", "--resume", cwd=self.dir), "data.schema.value_rule",
                          "1 -> 2", "data.schema.value_rule: 1")
        self.assert_words(self.fail_with(2, "predict", "job.yaml", "--checkpoint", "run", "--data", "a.csv",
                                         cwd=self.dir), "data.schema.value_rule")
        scores = self.succeed("predict", "--checkpoint", "run", "--data", "a.csv", cwd=self.dir).stdout
        upper = self.write("b.csv", (self.dir / "a.csv").read_text().replace("True", "true"))
        other = self.succeed("predict", "--checkpoint", "run", "--data", upper, cwd=self.dir).stdout
        self.assertNotEqual(scores, other)  # by rule 1, "True" and "true" are two ids

    def test_a_file_of_ones_own_has_the_rule_of_today(self):
        """Also one with the name of a run's, beside a folder of checkpoints."""
        (self.dir / "checkpoints").mkdir()
        self.write("a.csv", ROWS)
        self.write("config.yaml", JOB.format(path="a.csv"))
        self.succeed("train", "config.yaml", "run_dir=run", cwd=self.dir)
        self.assertIn("value_rule: 2", (self.dir / "run/config.yaml").read_text())

    def test_a_bad_row_is_said_once(self):
        self.write("a.csv", ROWS + "x,u1\n" + ROWS[11:] * 4)
        self.write("job.yaml", JOB.format(path="a.csv").replace("batch_size: 2", "eval: {path: a.csv}\n  batch_size: 2"))
        log = self.succeed("train", "job.yaml", "train.eval_every=2 steps", "data.max_bad_rows=0", cwd=self.dir).stderr
        self.assertEqual(log.count("bad row skipped"), 1, log)

    def test_each_word_for_a_missing_number_is_counted(self):
        words = ["#N/A", "-nan", "inf", "-", ""]
        rows = [f"{r % 2},{words[r % 10] if r % 10 < 5 else f'{r}.5'}" for r in range(400)]
        self.write("words.csv", "click,price\n" + "\n".join(rows) + "\n")
        self.succeed("init", "words.csv", "--label", "click", cwd=self.dir)
        job = (self.dir / "words.yaml").read_text()
        self.assert_words(job, "50 % missing (#N/A 10 %, - 10 %, -nan 10 %, inf 10 %)",
                          "and the empty text; without inf its rows are bad")


class Signals(CliTest):
    def setUp(self):
        super().setUp()
        # Gigabytes, of which a pass takes a minute.
        member = gzip.compress(b"click,user,n\n" + b"1,u1,1764316800\n0,u2,1764316801\n" * 300_000)
        rest = gzip.compress(b"1,u1,1764316800\n0,u2,1764316801\n" * 300_000)
        with open(self.dir / "rows.csv.gz", "wb") as file:
            file.write(member)
            for _ in range(1500):
                file.write(rest)

    def check(self, words, *settings):
        self.write("job.yaml", JOB.format(path="rows.csv.gz"))
        process = subprocess.Popen([SATRAP, "train", "job.yaml", *settings], cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with process.stderr:
            for line in process.stderr:
                if words in line:
                    break
            else:
                self.fail(f"no line says '{words}'")
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            log = process.stderr.read()
        self.assertEqual(process.wait(TIMEOUT_S), 143, log)
        self.assertLess(time.monotonic() - began, 20 if SANITIZED else 5)  # a second, and a busy machine
        self.assertFalse((self.dir / "run/checkpoints").exists() and os.listdir(self.dir / "run/checkpoints"))

    def test_sigterm_while_rows_are_counted(self):
        self.check("counting rows: ", "data.eval={fraction: 0.1, by: tail}")

    def test_sigterm_while_transforms_are_fitted(self):
        self.check("fitting z-scores and ranges: ", "data.fit_rows=0",
                   "data.schema.numeric=[{name: n, transform: zscore}]")


if __name__ == "__main__":
    unittest.main(verbosity=2)
