"""Ctrl-C, SIGTERM, kill -9: everything ends, in the right order, and no process is left behind."""
import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from launcher import ROOT, LauncherTest

sys.path.insert(0, str(ROOT / "launch"))
from satrap_run.process import Process  # noqa: E402

RANK_WAITS = "wait_for_signal()"
ALL = ["rank-0", "rank-1", "shard-0", "shard-1"]
STUBBORN = """\
ignore(signal.SIGTERM, signal.SIGINT)
note('waits')
while True: time.sleep(1)"""


class Stop(LauncherTest):
    def running_job(self, *args, rank="wait_for_signal()", **kwargs):
        for number in [0, 1]:
            self.script(f"rank-{number}", rank)
        job = self.start_job("--ps", 2, "--nproc-per-node", 2, *args, "job.yaml", **kwargs)
        self.pids = self.wait_for("waits", *ALL)
        return job

    def stop_with(self, number, sent, status):
        job = self.running_job("--max-restarts", 3)
        job.send_signal(number)
        _, err = self.end(job, status)
        self.assertEqual({e["signal"] for e in self.diary(event="got") if e["who"].startswith("rank")}, {sent})
        self.assertEqual({e["signal"] for e in self.diary(event="got") if e["who"].startswith("shard")}, {15})
        order = [entry.split("-")[0] for entry in self.order("ends")]
        self.assertEqual(order, ["rank", "rank", "shard", "shard"])
        self.assertIn("ranks write a checkpoint and end", err)
        self.assertEqual({e["attempt"] for e in self.diary()}, {0}, "a job that is stopped does not restart")

    def test_ctrl_c_ends_ranks_then_shards(self):
        self.stop_with(signal.SIGINT, signal.SIGINT, 130)

    def test_sigterm_ends_ranks_then_shards(self):
        self.stop_with(signal.SIGTERM, signal.SIGTERM, 143)

    def test_a_terminal_that_goes_away_is_like_sigterm(self):
        self.stop_with(signal.SIGHUP, signal.SIGTERM, 128 + signal.SIGHUP)

    def test_a_signal_is_heard_while_processes_are_started(self):
        job = self.start_job("--ps", 512, "job.yaml")
        self.wait_for("started", "shard-0")
        job.send_signal(signal.SIGTERM)
        self.end(job, 143)
        self.assertLess(len(self.diary(event="started")), 512)

    def test_shards_wait_for_the_last_checkpoint(self):
        job = self.running_job(rank="wait_for_signal(before_end=lambda: wait_for_file(f'go-{NAME}'))")
        job.send_signal(signal.SIGINT)
        self.wait_for("got", "rank-0", "rank-1")
        (self.dir / "go-rank-0").touch()
        self.wait_until(lambda: not os.path.exists(f"/proc/{self.pids['rank-0']}"))
        self.assertEqual([e for e in self.diary(event="got") if e["who"].startswith("shard")], [])
        (self.dir / "go-rank-1").touch()
        self.end(job, 130)

    def test_a_second_signal_kills_everything_at_once(self):
        job = self.running_job(rank="wait_for_signal(before_end=lambda: wait_for_file('never'))")
        job.send_signal(signal.SIGINT)
        self.wait_for("got", "rank-0", "rank-1")
        job.send_signal(signal.SIGINT)
        _, err = self.end(job, 130)
        self.assertIn("killing all processes", err)

    def test_a_rank_that_ignores_the_signal_is_killed_after_the_grace(self):
        job = self.running_job("--grace", 0.2, rank=STUBBORN)
        job.terminate()
        _, err = self.end(job, 143)
        self.assertRegex(err, r"rank 0 \(pid \d+\) has not ended 0.2 s after SIGTERM and is killed")

    def test_a_rank_whose_checkpoint_fails_decides_the_status(self):
        job = self.running_job(rank="wait_for_signal(lambda number: 1 if NAME == 'rank-1' else 128 + number)")
        job.terminate()
        _, err = self.end(job, 1)
        self.assertIn("rank 1", err)

    def test_ranks_that_finish_all_the_same_are_a_finished_job(self):
        job = self.running_job(rank="wait_for_signal(lambda number: 0)")
        job.terminate()
        self.end(job, 0)

    def test_an_ignored_signal_stays_ignored(self):
        job = self.running_job(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGINT)
        os.kill(self.pids["rank-0"], signal.SIGSTOP)  # a stopped process can be ended as well
        os.kill(self.pids["rank-0"], signal.SIGCONT)
        job.terminate()
        self.end(job, 143)

    def test_a_signal_between_attempts_is_the_end(self):
        job = self.running_job("--max-restarts", 3, rank="wait_for_signal(before_end=lambda: wait_for_file('go'))")
        os.kill(self.pids["shard-0"], signal.SIGKILL)
        self.wait_for("got", "rank-0", "rank-1")
        job.terminate()
        (self.dir / "go").touch()
        _, err = self.end(job, 137)
        self.assertEqual({e["attempt"] for e in self.diary()}, {0})

    def test_a_signal_ends_the_wait_before_the_next_attempt(self):
        self.script("rank-0", "sys.exit(4)")
        began = time.monotonic()
        job = self.start_job("--max-restarts", 3, "--restart-delay", 30, "job.yaml")
        self.assertIn("attempt 1 of 3 starts in 30 s", job.stderr.readline())
        self.assert_nothing_runs_but(job)
        job.terminate()
        _, err = self.end(job, 4)
        self.assertIn("SIGTERM: the job ends", err)
        self.assertLess(time.monotonic() - began, 29)
        self.assertEqual({e["attempt"] for e in self.diary()}, {0})

    def assert_nothing_runs_but(self, job):
        self.wait_until(lambda: self.survivors() == [job.pid], "end of the attempt")


class Stopped(LauncherTest):
    """SIGSTOP: rank 0 writes its checkpoint, rank 1 has ended, no process waits for another."""

    def stopped_chief(self, *args):
        self.script("rank-1", "")
        self.script("rank-0", "note('waits')\nif ATTEMPT == 0: wait_for_file('go')")
        job = self.start_job("--nproc-per-node", 2, "--grace", 1.5, *args, "job.yaml")
        chief = self.wait_for("waits", "rank-0")["rank-0"]
        os.kill(chief, signal.SIGSTOP)
        return job, chief

    def test_for_good_is_a_failure(self):
        began = time.monotonic()
        job, chief = self.stopped_chief()
        _, err = self.end(job, 137)
        self.assertGreaterEqual(time.monotonic() - began, 1.5)
        self.assertIn(f"rank 0 (pid {chief}) has been stopped for 1.5 s and is killed", err)
        self.assertIn(f"rank 0 (pid {chief}) was killed by SIGKILL; the job ends", err)

    def test_for_good_starts_the_job_again(self):
        job, _ = self.stopped_chief("--max-restarts", 1)
        self.end(job, 0)
        self.assertEqual({e["attempt"] for e in self.diary(who="rank-0")}, {0, 1})

    def test_for_a_while_is_nothing(self):
        asyncio.run(self.stop_and_continue())

    async def stop_and_continue(self):
        process = Process(asyncio.get_running_loop(), "rank", 0, ["sleep", "1000"], {},
                          subprocess.DEVNULL, subprocess.DEVNULL, lambda process: None)
        try:
            self.assertEqual(process.stopped_for(), 0)
            process.send(signal.SIGSTOP)
            self.wait_until(lambda: process.stopped_for() > 0.05)
            process.send(signal.SIGCONT)
            self.wait_until(lambda: process.stopped_for() == 0)
            again = time.monotonic()
            process.send(signal.SIGSTOP)
            self.wait_until(lambda: process.stopped_for() > 0)
            self.assertLessEqual(process.stopped_for(), time.monotonic() - again, "the time before does not count")
        finally:
            process.kill()
            async with asyncio.timeout(30):
                while process.running:
                    await asyncio.sleep(0)


class Orphans(LauncherTest):
    def kill_launcher(self, script):
        self.script("rank-0", script)
        self.script("shard-0", script)
        job = self.start_job("--ps", 1, "job.yaml")
        self.wait_for("waits", "rank-0", "shard-0")
        self.assertGreaterEqual(len(self.survivors()), 3)
        job.kill()
        self.assertEqual(job.wait(60), -signal.SIGKILL)
        self.assert_no_orphans()

    def test_none_when_the_launcher_is_killed(self):
        self.kill_launcher(RANK_WAITS)

    def test_none_when_the_launcher_is_killed_and_they_ignore_everything_they_can(self):
        self.kill_launcher(STUBBORN)

    def test_none_when_the_launcher_is_killed_early(self):
        # At any moment of the start, including between fork and exec.
        for count in [0, 1, 2, 3]:
            (self.dir / "diary").unlink(missing_ok=True)
            job = self.start_job("--ps", 2, "--nproc-per-node", 2, "job.yaml")
            self.wait_until(lambda: len(self.survivors()) > count)
            job.kill()
            job.wait(60)
            self.assert_no_orphans()

    def test_what_a_rank_has_started_goes_with_it(self):
        self.script("rank-0", """\
if os.fork() == 0:
    ignore(signal.SIGTERM)
    touch('child')
    time.sleep(1000)
wait_for_file('child')""")
        self.run_job("job.yaml")

    def test_processes_have_groups_of_their_own(self):
        self.run_job("--ps", 1, "job.yaml")
        for start in self.diary(event="started"):
            self.assertEqual(start["group"], start["pid"])

    def test_every_child_killed_in_turn(self):
        self.script("rank-0", RANK_WAITS)
        self.script("rank-1", RANK_WAITS)
        for victim in ALL:
            (self.dir / "diary").unlink(missing_ok=True)
            job = self.start_job("--ps", 2, "--nproc-per-node", 2, "job.yaml")
            pids = self.wait_for("waits", *ALL)
            os.kill(pids[victim], signal.SIGKILL)
            self.end(job, 137)
            self.assertEqual(list(pathlib.Path(self.dir / "tmp").iterdir()), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
