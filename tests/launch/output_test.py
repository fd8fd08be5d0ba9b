"""Log files, the merged stream, rank 0's standard output; a slow reader stops nothing else."""
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import unittest

from launcher import LauncherTest


class Lines(LauncherTest):
    def test_lines_are_prefixed_and_each_process_has_a_log_file(self):
        self.script("rank-0", "meet_shards(); say('one\\ntwo\\n')")
        self.script("rank-1", "meet_shards(); say('three\\n', sys.stdout)")
        self.script("shard-0", "say('four\\n'); wait_for_signal(lambda number: 0)")
        done = self.run_job("--ps", 1, "--nproc-per-node", 2, "job.yaml")
        lines = done.stderr.splitlines()
        self.assertEqual(sorted(lines), ["[rank 0] one", "[rank 0] two", "[rank 1] three", "[shard 0] four"])
        self.assertLess(lines.index("[rank 0] one"), lines.index("[rank 0] two"))
        header = r"# \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+"
        self.assertRegex(self.log("rank-0"), rf"^{header}/satrap train job.yaml embedding.store=ps\none\ntwo\n$")
        self.assertRegex(self.log("rank-1"), rf"^{header}/satrap train job.yaml embedding.store=ps\nthree\n$")
        self.assertRegex(self.log("shard-0"), rf"^{header}/satrap-ps job.yaml --shard 0 --shards 1 embedding.store=ps\nfour\n$")

    def test_standard_output_of_rank_0_passes_through(self):
        self.script("rank-0", "sys.stdout.write('auc 0.75\\nno end')")
        done = self.run_job("job.yaml")
        self.assertEqual((done.stdout, done.stderr), ("auc 0.75\nno end", ""))
        self.assertTrue(self.log("rank-0").endswith("\nauc 0.75\nno end"))

    def test_output_without_a_last_newline(self):
        self.script("rank-0", "say('half'); sys.exit(3)")
        done = self.run_job("job.yaml", status=3)
        self.assertEqual(done.stderr.splitlines()[0], "[rank 0] half")
        self.assertIn("[satrap-run] rank 0", done.stderr.splitlines()[1])
        self.assertTrue(self.log("rank-0").endswith("\nhalf"))

    def test_lines_of_several_processes_do_not_mix(self):
        for rank in range(3):
            self.script(f"rank-{rank}", f"""\
for i in range(300):
    say('{rank}' * 10); say('{rank}' * 10 + '\\n')""")
        done = self.run_job("--nproc-per-node", 3, "job.yaml")
        self.assertEqual(sorted(done.stderr.splitlines()),
                         sorted(f"[rank {r}] " + str(r) * 20 for r in range(3) for _ in range(300)))

    def test_what_a_line_rewrites_is_gone(self):
        self.script("rank-0", "say('10%\\r20%\\r30%\\r\\ndone\\r\\n')")
        self.assertEqual(self.run_job("job.yaml").stderr, "[rank 0] 30%\n[rank 0] done\n")

    def test_an_endless_line_comes_in_pieces(self):
        self.script("rank-0", "say('x' * 200_000)")
        done = self.run_job("job.yaml")
        self.assertEqual(done.stderr.replace("[rank 0] ", "").replace("\n", ""), "x" * 200_000)
        self.assertGreater(len(done.stderr.splitlines()), 2)
        self.assertTrue(self.log("rank-0").endswith("\n" + "x" * 200_000))

    def test_ten_megabytes_from_everybody(self):
        text = "line = 'y' * 99 + '\\n'\nfor _ in range(100_000): sys.{}.write(line)\nsys.{}.flush()\n"
        self.script("rank-0", text.format("stdout", "stdout"))
        self.script("rank-1", text.format("stderr", "stderr"))
        done = self.run_job("--nproc-per-node", 2, "job.yaml")
        self.assertEqual(len(done.stdout), 10_000_000)
        self.assertEqual(len(done.stderr), 100_000 * (100 + len("[rank 1] ")))
        self.assertGreater(len(self.log("rank-1")), 10_000_000)

    def test_files_as_standard_streams(self):
        self.script("rank-0", "say('to err\\n'); say('to out\\n', sys.stdout)")
        with open(self.dir / "out", "w") as out:
            out.write("kept\n")
            out.flush()
            job = self.start_job("job.yaml", stdout=out, stderr=out)
            self.assertEqual(job.wait(60), 0)
        self.assertEqual(sorted((self.dir / "out").read_text().splitlines()),
                         ["[rank 0] to err", "kept", "to out"])

    def test_a_reader_that_leaves_does_not_end_the_job(self):
        self.script("rank-0", "wait_for_file('go')\nfor _ in range(20_000): say('z' * 99 + '\\n')")
        job = self.start_job("job.yaml")
        self.wait_for("started", "rank-0")
        job.stderr.close()
        (self.dir / "go").touch()
        self.assertEqual(job.wait(60), 0)
        self.assertGreater(len(self.log("rank-0")), 2_000_000)

    def test_a_reader_that_does_not_read_makes_processes_wait_but_can_be_stopped(self):
        self.script("rank-0", """\
ignore(signal.SIGTERM)
note('waits')
while True: say('z' * 99 + '\\n')""")
        job = self.start_job("job.yaml")
        self.wait_for("waits", "rank-0")
        pid = self.diary("rank-0", "waits")[0]["pid"]

        def blocked():
            with open(f"/proc/{pid}/wchan") as file:
                return "pipe" in file.read()
        if os.path.exists(f"/proc/{pid}/wchan") and os.access(f"/proc/{pid}/wchan", os.R_OK):
            self.wait_until(blocked, "a full pipe")
        self.assertLess(len(self.log("rank-0")), 16 << 20)  # what fits: nothing is hoarded
        job.terminate()
        job.send_signal(signal.SIGINT)  # two of the same kind might arrive as one
        self.assertIn(job.wait(60), [130, 143])
        self.assert_no_orphans()

    def test_logs_of_an_earlier_job_are_kept(self):
        self.script("rank-0", "say('hello\\n')")
        self.run_job("job.yaml")
        self.run_job("job.yaml", "--", "--resume")
        self.assertEqual(self.log("rank-0").count("hello\n"), 2)
        self.assertEqual(self.log("rank-0").count("# "), 2)

    def test_log_files_that_cannot_be_written_do_not_end_the_job(self):
        self.script("rank-0", "say('hello\\n')")
        (self.dir / "file").touch()
        done = self.run_job("--log-dir", self.dir / "file" / "logs", "job.yaml")
        self.assertIn("continuing without this log file", done.stderr)
        self.assertIn("[rank 0] hello\n", done.stderr)


class LogDir(LauncherTest):
    """The folder of the logs without --log-dir: as `satrap config dump` reports it."""

    def run_without_log_dir(self, *args, status=0):
        command = [word for word in self.command("job.yaml", *args)]
        at = command.index("--log-dir")
        del command[at:at + 2]
        self.command = lambda *_: command
        return self.run_job(status=status, cwd=self.dir)

    def test_in_the_run_directory(self):
        self.script("config", "say('seed: 1\\nrun_dir: \"runs/a b\"\\n', sys.stdout)")
        self.run_without_log_dir("seed=3")
        self.assertEqual(self.diary("config", "asked")[0]["argv"], ["config", "dump", "job.yaml", "seed=3"])
        self.assertTrue((self.dir / "runs/a b/logs/attempt-0/rank-0.log").exists())

    def test_of_a_job_in_a_store_on_this_machine(self):
        self.script("config", f"say('run_dir: s3://bucket/runs/x\\nfolder: {self.dir}/deep\\n', sys.stdout)")
        self.run_without_log_dir()
        self.assertTrue((self.dir / "deep" / "runs" / "x" / "logs" / "attempt-0").is_dir())

    def test_in_the_run_directory_of_a_configuration_elsewhere(self):
        self.script("config", f"say('run_dir: runs/x\\nfolder: {self.dir}/deep\\n', sys.stdout)")
        self.run_without_log_dir()
        self.assertTrue((self.dir / "deep/runs/x/logs/attempt-0/rank-0.log").exists())

    def test_beside_if_nobody_can_say(self):
        self.script("config", "sys.exit(1)")
        self.run_without_log_dir()
        self.assertTrue((self.dir / "logs/attempt-0/rank-0.log").exists())

    def test_a_wrong_configuration_starts_nothing(self):
        self.script("config", "say('error: job.yaml:3: no\\n'); sys.exit(2)")
        done = self.run_without_log_dir(status=2)
        self.assertEqual(done.stderr, "error: job.yaml:3: no\n")
        self.assertEqual(self.diary("rank-0"), [])


class Terminal(LauncherTest):
    def run_on_terminal(self, *args, columns=60, until=None):
        """The output on a terminal of 60 columns. Once it contains the text `until`, there is a file 'seen'."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        job = self.start_job(*args, stdout=slave, stderr=slave, env=self.env | {"TERM": "xterm"})
        os.close(slave)
        seen = b""
        try:
            while data := os.read(master, 65536):
                seen += data
                if until is not None and until.encode() in seen:
                    (self.dir / "seen").touch()
        except OSError:
            pass
        os.close(master)
        self.assertEqual(job.wait(60), 0, seen)
        return seen.decode()

    def test_names_are_coloured(self):
        self.script("rank-0", "say('hello\\n')")
        self.assertIn("\x1b[32m[rank 0]\x1b[0m hello", self.run_on_terminal("job.yaml"))

    def test_what_rank_0_prints_commands_no_terminal(self):
        self.script("rank-0", "sys.stdout.write('auc\\t0.75\\x1b[2J\\x07 \\u00df\\n')")
        self.assertIn("auc\t0.75\\x1b[2J\\x07 \u00df\r\n", self.run_on_terminal("job.yaml"))

    def test_no_color(self):
        self.script("rank-0", "say('hello\\n')")
        self.env["NO_COLOR"] = "1"
        self.assertNotIn("\x1b[", self.run_on_terminal("job.yaml"))

    def test_the_progress_line_of_rank_0_stays_below_the_lines_of_others(self):
        self.script("rank-0", """\
say('\\r\\x1b[K 10% step 1')
note('shown', columns=os.get_terminal_size(2).columns, tty=os.isatty(2), out=os.isatty(1))
wait_for_file('said')
say('\\r\\x1b[Ka line of its own\\n 20% step 2')
say('\\r\\x1b[K')""")
        self.script("rank-1", """\
wait_for_file('seen')
say('from rank 1\\n')
touch('said')""")
        self.env["NO_COLOR"] = "1"
        seen = self.run_on_terminal("--nproc-per-node", 2, "job.yaml", until="10% step 1")
        shown = self.diary("rank-0", "shown")[0]
        self.assertEqual((shown["columns"], shown["tty"], shown["out"]), (60 - len("[rank 0] "), True, False))
        self.assertIn("\r\x1b[K[rank 0]  10% step 1", seen)
        self.assertEqual(self.screen(seen), ["[rank 0] a line of its own", "[rank 1] from rank 1"])
        log = self.log("rank-0")
        self.assertTrue(log.endswith("\na line of its own\n"), log)

    def screen(self, seen):
        """The lines that remain, in any order, each without the versions that were erased."""
        return sorted(filter(None, (re.split(r"\r\x1b\[K", line.rstrip("\r"))[-1]
                                    for line in seen.split("\n"))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
