"""The environment and arguments of processes, and what happens when one of them fails."""
import os
import pathlib
import re
import stat
import sys
import unittest

from launcher import ROOT, LauncherTest

sys.path.insert(0, str(ROOT / "launch"))
from satrap_run.job import BackOff  # noqa: E402

RANK_WAITS = "wait_for_signal()"
STORE = ["embedding.store=ps"]  # which --ps sets, before what the user sets


class Variables(LauncherTest):
    def test_shards_get_their_number_the_settings_and_the_way_to_the_store(self):
        self.run_job("--ps", 2, "job.yaml", "seed=3")
        for shard in [0, 1]:
            start, = self.diary(f"shard-{shard}", "started")
            self.assertEqual(start["argv"], ["job.yaml", "--shard", str(shard), "--shards", "2", *STORE, "seed=3"])
            self.assertRegex(start["env"]["SATRAP_STORE"], "^file:///")
            self.assertGreaterEqual(len(start["env"]["SATRAP_TOKEN"]), 32)
            self.assertEqual(start["env"]["SATRAP_ATTEMPT"], "0")

    def test_workers_of_a_shard(self):
        self.run_job("--ps", 1, "--ps-workers", 3, "job.yaml")
        self.assertEqual(self.diary("shard-0", "started")[0]["argv"],
                         ["job.yaml", "--shard", "0", "--shards", "1", "--workers", "3", *STORE])

    def test_ranks_get_the_variables_of_torchrun_and_ours(self):
        self.run_job("--ps", 3, "--nproc-per-node", 2, "job.yaml", "seed=3", "--max-restarts", 4)
        starts = [self.diary(f"rank-{rank}", "started")[0] for rank in range(2)]
        for rank, start in enumerate(starts):
            self.assertEqual(start["argv"], ["train", "job.yaml", *STORE, "seed=3"])
            self.assertEqual(start["stdin"], "")
            expected = {
                "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": 0,
                "GROUP_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": 0,
                "TORCHELASTIC_MAX_RESTARTS": 4, "SATRAP_ATTEMPT": 0, "SATRAP_SHARDS": 3}
            self.assertEqual({name: start["env"][name] for name in expected},
                             {name: str(value) for name, value in expected.items()})
            self.assertGreater(int(start["env"]["MASTER_PORT"]), 0)
        shard, = self.diary("shard-0", "started")
        for name in ["SATRAP_STORE", "SATRAP_TOKEN"]:
            self.assertEqual({s["env"][name] for s in [*starts, shard]}, {shard["env"][name]})
        self.assertEqual(starts[0]["env"]["MASTER_PORT"], starts[1]["env"]["MASTER_PORT"])
        self.assertEqual(starts[0]["env"]["TORCHELASTIC_RUN_ID"], starts[1]["env"]["TORCHELASTIC_RUN_ID"])

    def test_nccl_listens_to_this_machine_alone_unless_told_otherwise(self):
        for given, expected in ({}, "lo"), ({"NCCL_SOCKET_IFNAME": "eth7"}, "eth7"):
            self.run_job("job.yaml", env=self.env | given)
            self.assertEqual(self.diary("rank-0", "started")[-1]["env"]["NCCL_SOCKET_IFNAME"], expected)

    def test_omp_num_threads_is_left_alone(self):
        self.run_job("job.yaml", env=self.env | {"OMP_NUM_THREADS": "5"})
        self.assertEqual(self.diary("rank-0", "started")[0]["env"]["OMP_NUM_THREADS"], "5")

    def test_the_token_is_a_new_one_for_every_job_and_on_no_command_line(self):
        self.script("rank-0", RANK_WAITS)
        tokens = set()
        for _ in range(2):
            (self.dir / "diary").unlink(missing_ok=True)
            job = self.start_job("--ps", 1, "job.yaml")
            self.wait_for("waits", "rank-0", "shard-0")
            token = self.diary("rank-0", "started")[0]["env"]["SATRAP_TOKEN"]
            tokens.add(token)
            for pid in [*self.survivors(), job.pid]:
                self.assertNotIn(token, pathlib.Path(f"/proc/{pid}/cmdline").read_text())
            job.terminate()
            _, err = self.end(job, 143)
            self.assertNotIn(token, err + self.log("rank-0") + self.log("shard-0"))
        self.assertEqual(len(tokens), 2)

    def test_the_store_is_a_private_folder_that_goes_with_the_job(self):
        self.script("rank-0", RANK_WAITS)
        job = self.start_job("--ps", 1, "job.yaml")
        self.wait_for("waits", "rank-0", "shard-0")
        store = pathlib.Path(self.diary("rank-0", "started")[0]["env"]["SATRAP_STORE"].removeprefix("file://"))
        self.assertEqual(stat.S_IMODE(store.stat().st_mode), 0o700)
        self.assertEqual(list(store.iterdir()), [])
        job.terminate()
        self.end(job, 143)
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])

    def test_flags_behind_two_dashes_go_to_the_ranks(self):
        self.run_job("--ps", 1, "job.yaml", "seed=3", "--", "--overwrite", "--ps", "7")
        self.assertEqual(self.diary("rank-0", "started")[0]["argv"],
                         ["train", "job.yaml", *STORE, "seed=3", "--overwrite", "--ps", "7"])


class Failures(LauncherTest):
    def test_ranks_that_finish_end_the_job_and_the_shards(self):
        done = self.run_job("--ps", 2, "--nproc-per-node", 2, "job.yaml")
        self.assertEqual(sorted(self.order("ends")), ["shard-0 ends", "shard-1 ends"])
        self.assertEqual(done.stderr, "")

    def test_a_rank_that_finishes_early_does_not_end_the_others(self):
        self.script("rank-0", "")
        self.script("rank-1", "wait_for_file('go'); note('ends')")
        job = self.start_job("--ps", 1, "--nproc-per-node", 2, "job.yaml")
        self.wait_for("started", "rank-0", "rank-1")
        self.wait_for("waits", "shard-0")
        pid = self.diary("rank-0", "started")[0]["pid"]
        self.wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
        self.assertEqual(self.order("ends"), [])
        (self.dir / "go").touch()
        self.end(job, 0)
        self.assertEqual(self.order("ends"), ["rank-1 ends", "shard-0 ends"])

    def test_a_rank_that_hangs_after_the_chief_has_finished_does_not_keep_the_job(self):
        self.script("rank-0", "wait_for_file('go')")
        self.script("rank-1", "ignore(signal.SIGTERM); touch('go')\nwhile True: time.sleep(1)")
        done = self.run_job("--ps", 1, "--nproc-per-node", 2, "--grace", 0.2, "job.yaml")
        self.assertRegex(done.stderr, r"rank 1 \(pid \d+\) has not ended 0.2 s after rank 0 had finished and is killed")
        self.assertEqual(self.order("ends"), ["shard-0 ends"])

    def test_the_status_of_the_process_that_failed_first_is_that_of_the_job(self):
        self.script("rank-0", "wait_for_signal(lambda number: 9)")
        self.script("rank-1", "wait_for_file('go'); sys.exit(5)")
        job = self.start_job("--ps", 1, "--nproc-per-node", 2, "job.yaml")
        self.wait_for("waits", "rank-0", "shard-0")
        (self.dir / "go").touch()
        _, err = self.end(job, 5)
        self.assertRegex(err, r"(?m)^\[satrap-run\] rank 1 \(pid \d+\) ended with status 5; the job ends; "
                              r"its log: .*/attempt-0/rank-1.log$")
        self.assertEqual({e["signal"] for e in self.diary(event="got")}, {15})

    def kill_and_restart(self, victim):
        self.script("rank-0", RANK_WAITS + "if ATTEMPT == 0 else meet_shards()")
        self.script("rank-1", RANK_WAITS + "if ATTEMPT == 0 else meet_shards()")
        job = self.start_job("--ps", 2, "--nproc-per-node", 2, "--max-restarts", 3, "job.yaml", "--",
                             "--overwrite", "--resume-from", "old", "--quiet")
        names = ["rank-0", "rank-1", "shard-0", "shard-1"]
        pids = self.wait_for("waits", *names)
        os.kill(pids[victim], 9)
        _, err = self.end(job, 0)
        self.assertIn(f"[satrap-run] {victim.replace('-', ' ')} (pid {pids[victim]}) was killed by SIGKILL; "
                      "attempt 1 of 3 starts from the last checkpoint", err)
        firsts = {e["who"]: e for e in self.diary(event="started") if e["attempt"] == 0}
        seconds = {e["who"]: e for e in self.diary(event="started") if e["attempt"] == 1}
        self.assertEqual(set(seconds), set(names))
        self.assertEqual(firsts["rank-0"]["argv"],
                         ["train", "job.yaml", *STORE, "--overwrite", "--resume-from", "old", "--quiet"])
        self.assertEqual(seconds["rank-0"]["argv"], ["train", "job.yaml", *STORE, "--quiet", "--resume"])
        self.assertEqual(seconds["rank-0"]["env"]["TORCHELASTIC_RESTART_COUNT"], "1")
        stores = [{e[name]["env"]["SATRAP_STORE"] for name in names} for e in (firsts, seconds)]
        self.assertEqual([len(store) for store in stores], [1, 1])
        self.assertNotEqual(*stores)  # no process finds the address of a dead shard
        for name in names:
            self.assertEqual(seconds[name]["env"]["SATRAP_ATTEMPT"], "1")
        self.assertIn("--resume", self.log("rank-0", attempt=1))

    def test_a_killed_shard_restarts_the_job(self):
        self.kill_and_restart("shard-1")

    def test_a_killed_rank_restarts_the_job(self):
        self.kill_and_restart("rank-0")

    def test_no_process_of_an_attempt_meets_the_next(self):
        self.script("rank-0", RANK_WAITS + "if ATTEMPT == 0 else meet_shards()")
        self.script("shard-0", """\
if ATTEMPT == 0:
    ignore(signal.SIGTERM)
    note('waits')
    while True: time.sleep(1)
wait_for_signal(lambda number: 0)""")
        job = self.start_job("--ps", 1, "--max-restarts", 1, "job.yaml")
        pids = self.wait_for("waits", "rank-0", "shard-0")
        os.kill(pids["rank-0"], 9)
        _, err = self.end(job, 0)
        self.assertIn(f"shard 0 (pid {pids['shard-0']}) has not ended 3 s after SIGTERM and is killed", err)

    def test_max_restarts_is_the_end(self):
        self.script("rank-0", "sys.exit(4)")
        done = self.run_job("--max-restarts", 2, "job.yaml", status=4)
        self.assertEqual([e["attempt"] for e in self.diary("rank-0", "started")], [0, 1, 2])
        self.assertIn("ended with status 4; the job ends: --max-restarts 2 reached", done.stderr)

    def test_the_wait_before_an_attempt_is_said_and_doubles(self):
        self.script("rank-0", "sys.exit(4)")
        done = self.run_job("--max-restarts", 3, "--restart-delay", 0.05, "job.yaml", status=4)
        self.assertEqual(re.findall(r"; attempt (\d) of 3 starts in (\S+) s, from the last checkpoint; its log", done.stderr),
                         [("1", "0.05"), ("2", "0.1"), ("3", "0.2")])
        self.assertEqual([e["attempt"] for e in self.diary("rank-0", "started")], [0, 1, 2, 3])

    def test_the_wait_is_at_most_half_a_minute_and_short_again_after_a_long_attempt(self):
        back_off = BackOff(1)
        self.assertEqual([back_off.after(ran_s=5) for _ in range(7)], [1, 2, 4, 8, 16, 30, 30])
        self.assertEqual([back_off.after(ran_s) for ran_s in [61, 5, 60, 59]], [1, 2, 1, 2])
        self.assertEqual([BackOff(100).after(5), BackOff(0).after(5)], [30, 0])

    def test_resume_is_said_once(self):
        self.script("rank-0", "sys.exit(4 if ATTEMPT < 2 else 0)")
        self.run_job("--max-restarts", 2, "job.yaml", "--", "--resume")
        self.assertEqual([e["argv"][2:] for e in self.diary("rank-0", "started")], [["--resume"]] * 3)

    def test_a_wrong_configuration_is_not_tried_again(self):
        self.script("rank-0", "say('error: x\\n'); sys.exit(2)")
        self.script("rank-1", RANK_WAITS)
        done = self.run_job("--ps", 1, "--nproc-per-node", 2, "--max-restarts", 3, "job.yaml", status=2)
        self.assertEqual({e["attempt"] for e in self.diary()}, {0})
        self.assertIn("its configuration is wrong", done.stderr)

    def test_a_shard_that_ends_while_ranks_run_is_a_failure_even_with_status_0(self):
        self.script("rank-0", RANK_WAITS)
        self.script("shard-0", "wait_for_file('go')")
        job = self.start_job("--ps", 1, "job.yaml")
        self.wait_for("waits", "rank-0")
        (self.dir / "go").touch()
        _, err = self.end(job, 1)
        self.assertIn("ended with status 0; the job ends", err)

    def test_the_death_of_a_shard_is_the_cause_of_the_errors_of_ranks(self):
        self.script("rank-0", "note('waits'); wait_for_file('gone'); sys.exit(1)")
        self.script("shard-0", "wait_for_file('go'); touch('gone'); os.kill(os.getpid(), 9)")
        job = self.start_job("--ps", 1, "job.yaml")
        self.wait_for("waits", "rank-0")
        (self.dir / "go").touch()
        _, err = self.end(job, 137)
        self.assertIn("shard 0", re.search(r"\[satrap-run\] (.*)", err).group(1))

    def test_a_program_that_cannot_be_started(self):
        (self.bin / "satrap-ps").write_text("#!/no/such/interpreter\n")
        done = self.run_job("--ps", 1, "--max-restarts", 3, "job.yaml", status=126)
        self.assertIn("cannot be started", done.stderr)


class Usage(LauncherTest):
    def refuse(self, *args, says, env=None):
        done = self.run_job(*args, status=2, env=env or self.env)
        self.assertRegex(done.stderr, rf"^error: .*{says}.*\n$")
        self.assertEqual(self.diary(), [])

    def test_wrong_usage(self):
        token = self.env | {"SATRAP_TOKEN": "0123456789abcdef"}
        self.refuse(says="CONFIG")
        self.refuse("--ps", -1, "job.yaml", says="must be at least 0, got -1")
        self.refuse("--ps", 100_000, "job.yaml", says="must be at most 512, got 100000")
        self.refuse("--loaders", 100_000, "job.yaml", says="must be at most 1024, got 100000")
        self.refuse("--nproc-per-node", 100_000, "job.yaml", says="must be at most 1024, got 100000")
        self.refuse("--ps", "two", "job.yaml", says="two")
        self.refuse("job.yaml", "--resume", says="go after `--`")
        self.refuse("job.yaml", "seed", says="key.path=value")
        self.refuse("--nnodes", 2, "job.yaml", says="--master-addr", env=token)
        self.refuse("--nnodes", 2, "--master-addr", "127.0.0.1", "job.yaml", says="SATRAP_TOKEN")
        self.refuse("--node-rank", 2, "--nnodes", 2, "job.yaml", says="nodes are 0 to 1", env=token)
        self.refuse("job.yaml", says="too easy to guess", env=self.env | {"SATRAP_TOKEN": "abc"})
        self.refuse("--ps-only", "job.yaml", says="at least one shard")
        self.refuse("--bin-dir", self.dir, "job.yaml", says="no program 'satrap'")

    def test_help_names_every_option(self):
        text = self.run_job("--help").stdout
        for word in ["--ps N", "--nproc-per-node", "--max-restarts", "--restart-delay", "--ps-only", "--grace", "SATRAP_TOKEN",
                     "torchrun", "exit status"]:
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
