"""Signals: the first one ends a job with a checkpoint, from which it can continue; the second one ends it at once."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from cli import SATRAP, TIMEOUT_S, CliTest

ENDLESS = ["train.epochs=1000000"]


def threads_of(pid):
    names = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            names.append(path.read_text().strip())
    return names


def is_pending(pid, number):
    masks = re.findall(r"(?:SigPnd|ShdPnd):\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def cpu_ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def is_idle(pid):
    """Whether half a second passes with almost no work done."""
    before = cpu_ticks(pid)
    time.sleep(0.5)
    return cpu_ticks(pid) - before <= 1


class Stop(CliTest):
    def start(self, job, *args, **kwargs):
        """Starts an endless job and returns once it has reported a step."""
        program = subprocess.Popen([SATRAP, "train", job, *ENDLESS, *args], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        self.log = []
        for line in program.stderr:
            self.log.append(line)
            if "examples/s" in line:
                return program
        self.fail(f"no report: {self.log}")

    def end(self, program):
        """The exit status; everything that the program wrote is then in self.log."""
        self.log.append(program.stderr.read())
        return program.wait(TIMEOUT_S)

    def wait_until(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def stop_with(self, number, status):
        job = self.job(rows=1000)
        program = self.start(job)
        program.send_signal(number)
        self.assertEqual(self.end(program), status, self.log)
        self.assertIn("--resume", "".join(self.log))
        newest = self.dir / "run" / "checkpoints" / self.checkpoints()[-1]
        self.digest(newest)
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(newest.name, f"step-{summary['step']:012}")
        self.assertIn('"finished":false', (self.dir / "run" / "report.html").read_text())
        return job, summary["step"]

    def test_sigterm_then_resume_ends_as_if_nothing_had_happened(self):
        job, step = self.stop_with(signal.SIGTERM, 143)
        until = f"train.max_steps={step + 15}"
        self.succeed("train", job, *ENDLESS, until, "--resume")
        self.succeed("train", job, *ENDLESS, until, f"run_dir={self.dir / 'whole'}")
        self.assertEqual(*(self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1])
                           for run in ("run", "whole")))
        lines = (self.dir / "run" / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        self.assertEqual(steps, sorted(steps), "metrics go on where they ended")

    def test_sigint(self):
        self.stop_with(signal.SIGINT, 130)

    def test_stopped_twice_in_a_row(self):
        job, first = self.stop_with(signal.SIGTERM, 143)
        program = self.start(job, "--resume")
        program.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(program), 143, self.log)
        self.assertGreater(int(self.checkpoints()[-1][5:]), first)

    def test_a_second_signal_ends_it_at_once(self):
        # Standard error is a full pipe that nobody reads: the job cannot end by itself.
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        program = subprocess.Popen([SATRAP, "train", self.job(rows=1000), *ENDLESS],
                                   stdout=subprocess.DEVNULL, stderr=writer)
        self.addCleanup(program.kill)
        self.wait_until(lambda: "signals" in threads_of(program.pid))
        program.send_signal(signal.SIGTERM)
        self.wait_until(lambda: not is_pending(program.pid, signal.SIGTERM))
        self.assertIsNone(program.poll(), "the first signal does not end it")
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(TIMEOUT_S), -signal.SIGTERM)
        os.close(reader)
        os.close(writer)

    def test_kill_leaves_only_whole_checkpoints(self):
        job = self.job(rows=1000)
        program = self.start(job, "checkpoint.every=1 steps")
        program.kill()
        self.assertEqual(self.end(program), -signal.SIGKILL)
        self.succeed("checkpoint", "verify", self.dir / "run")
        step = int(self.checkpoints()[-1][5:])
        self.succeed("train", job, *ENDLESS, f"train.max_steps={step + 3}", "--resume")
        self.assertEqual(int(self.checkpoints()[-1][5:]), step + 3)

    def test_an_ignored_signal_stays_ignored(self):
        job = self.job(rows=1000)
        program = self.start(
            job, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        program.send_signal(signal.SIGINT)
        for _ in range(20):
            self.assertNotEqual(program.stderr.readline(), "")  # it continues to report
        program.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(program), 143)

    def check_stops_while_it_waits_for_input(self, job, *settings, **kwargs):
        program = subprocess.Popen(
            [SATRAP, "train", job, "data.train.path=-", *settings], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.addCleanup(program.kill)
        rows = (self.dir / "train.tsv").read_bytes()
        program.stdin.write(rows)  # and no end of file
        program.stdin.flush()
        for line in program.stderr:
            if b"examples/s" in line:
                break
        self.wait_until(lambda: is_idle(program.pid))  # it has used up all the rows
        program.send_signal(signal.SIGTERM)
        status = program.wait(TIMEOUT_S)  # with standard input still open
        error = program.stderr.read()
        for pipe in [program.stdin, program.stdout, program.stderr]:
            pipe.close()
        self.assertEqual(status, 143, error)
        self.succeed("checkpoint", "verify", self.dir / "run")

    def test_waiting_for_input_does_not_keep_it_from_stopping(self):
        self.check_stops_while_it_waits_for_input(self.job(rows=1000))

    def test_nor_with_rows_on_a_shard(self):
        job = self.job(rows=1000)
        (self.dir / "store").mkdir()
        env = {**os.environ, "SATRAP_STORE": f"file://{self.dir}/store", "SATRAP_TOKEN": "secret",
               "SATRAP_SHARDS": "1", "RANK": "0", "WORLD_SIZE": "1"}
        settings = ["embedding.store=ps", "cluster.timeout=60s"]
        shard = subprocess.Popen(
            [os.path.join(os.path.dirname(SATRAP), "satrap-ps"), job, *settings,
             "--shard", "0", "--shards", "1"], env=env, stderr=subprocess.DEVNULL)
        self.addCleanup(shard.wait)
        self.addCleanup(shard.kill)
        self.check_stops_while_it_waits_for_input(job, *settings, env=env)


class Waiting(CliTest):
    """A signal while a reader waits for input that does not come ends the program soon, as it would have otherwise."""

    LIMIT_S = 30  # a second, and room for a busy machine and sanitizers

    def fifo(self):
        path = self.dir / "fifo"
        os.mkfifo(path)
        return path

    def silent(self):
        """A pipe from which nothing comes; its reading end."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        return reader

    def start(self, *args, stdin=subprocess.DEVNULL):
        program = subprocess.Popen([SATRAP, *map(str, args)], stdin=stdin, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        return program

    def end(self, program, number=signal.SIGTERM, status=143, is_busy=False):
        """Stops the program once it does nothing but wait for input, or has begun to read; returns what it wrote."""
        deadline = time.monotonic() + TIMEOUT_S
        while not ("data-cut" in threads_of(program.pid) and (is_busy or is_idle(program.pid))):
            self.assertIsNone(program.poll())
            self.assertLess(time.monotonic(), deadline)
        program.send_signal(number)
        self.assertEqual(program.wait(self.LIMIT_S), status)
        return program.stderr.read()

    def check_checkpoint(self, error):
        self.assertIn("--resume", error)
        self.assertEqual(self.checkpoints(), ["step-000000000000"])
        self.succeed("checkpoint", "verify", self.dir / "run")

    def test_for_the_first_row(self):
        program = self.start("train", self.job(rows=100), "data.train.path=-", stdin=self.silent())
        self.check_checkpoint(self.end(program))

    def test_for_the_first_row_in_hybrid_mode(self):
        program = self.start("train", self.job(rows=100), "data.train.path=-", "train.deterministic=false",
                             stdin=self.silent())
        self.check_checkpoint(self.end(program))

    def test_for_the_first_row_sigint(self):
        program = self.start("train", self.job(rows=100), "data.train.path=-", stdin=self.silent())
        self.check_checkpoint(self.end(program, signal.SIGINT, 130))

    def test_for_a_writer_of_a_named_pipe(self):
        job = self.job(rows=1000)
        program = self.start("train", job, f"data.train.path={self.fifo()}")
        self.check_checkpoint(self.end(program))
        self.succeed("train", job, "--resume")
        self.succeed("train", job, f"run_dir={self.dir}/whole")
        self.assertEqual(*(self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1])
                           for run in ("run", "whole")))

    def test_for_rows_from_a_named_pipe(self):
        fifo = self.fifo()
        program = self.start("train", self.job(rows=100), f"data.train.path={fifo}")
        writer = os.open(fifo, os.O_WRONLY)
        self.addCleanup(os.close, writer)
        os.write(writer, (self.dir / "train.tsv").read_bytes()[:1000])  # some rows and a part of one
        self.check_checkpoint(self.end(program))

    def test_for_the_first_row_of_a_file(self):
        job = self.job(rows=1000)
        blank = subprocess.run(["zstd", "-qc"], input=b"\n" * (64 << 20), capture_output=True, check=True).stdout
        rows = self.dir / "rows.zst"
        rows.write_bytes(2000 * blank)  # minutes of blank lines
        program = self.start("train", job, f"data.train.path={rows}")
        self.check_checkpoint(self.end(program, is_busy=True))

    def test_for_evaluation_data_while_training(self):
        job = self.job(rows=1000)
        program = self.start("train", job, f"data.eval.path={self.fifo()}", "train.eval_every=4 steps")
        self.assertIn("--resume", self.end(program))
        self.assertEqual(self.checkpoints()[-1], "step-000000000004")

    def test_in_eval_and_predict(self):
        job = self.job(rows=200)
        self.succeed("train", job)
        fifo = self.fifo()
        for args in [["eval", job, f"data.eval.path={fifo}"], ["predict", job, "--data", fifo],
                     ["predict", job, "--data", "-", "--out", self.dir / "out"]]:
            with self.subTest(args=args):
                program = self.start(*args, "--checkpoint", self.dir / "run", stdin=self.silent())
                self.assertNotIn("error: ", self.end(program))
        self.assertFalse((self.dir / "out").exists(), "an incomplete file")

    def test_for_the_reader_of_predictions(self):
        job = self.job(rows=200)
        self.succeed("train", job)
        program = self.start("predict", job, "--checkpoint", self.dir / "run", "--out", self.fifo())
        deadline = time.monotonic() + TIMEOUT_S
        while not is_idle(program.pid):
            self.assertLess(time.monotonic(), deadline)
        program.terminate()
        self.assertEqual(program.wait(self.LIMIT_S), -signal.SIGTERM)

    def test_in_looking_at_data(self):
        for command in ["head", "stats"]:
            with self.subTest(command=command):
                program = self.start("data", command, self.job(rows=100), "data.train.path=-", stdin=self.silent())
                self.end(program, status=-signal.SIGTERM)

    def test_a_named_pipe_is_read_to_its_end(self):
        """Its writer comes and goes at any time: the rows are those of the file."""
        job = self.job(rows=1000)
        fifo = self.fifo()
        program = self.start("train", job, f"data.train.path={fifo}")
        with open(fifo, "wb") as writer:
            rows = (self.dir / "train.tsv").read_bytes()
            for begin in range(0, len(rows), 30_000):
                writer.write(rows[begin:begin + 30_000])
                writer.flush()
        self.assertEqual(program.wait(TIMEOUT_S), 0, program.stderr.read())
        self.succeed("train", job, f"run_dir={self.dir}/plain")
        self.assertEqual(*(self.digest(self.dir / run / "checkpoints" / self.checkpoints(run)[-1])
                           for run in ("run", "plain")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
