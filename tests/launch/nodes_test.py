"""Launchers of several nodes, all run on this machine; and shards for ranks that another program starts."""
import argparse
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import unittest.mock

from launcher import ROOT, SATRAP_RUN, TOKEN, NodesTest

RANK_WAITS = "wait_for_signal()"


class Nodes(NodesTest):
    def test_ranks_and_shards_are_spread(self):
        jobs = self.nodes("--ps", 3, "--nproc-per-node", 2)
        self.end_all(jobs, 0)
        ranks = {}
        for rank in range(4):
            env = self.diary(f"rank-{rank}", "started")[0]["env"]
            ranks[rank] = [env[name] for name in ["WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "SATRAP_SHARDS"]]
            self.assertEqual(env["SATRAP_STORE"], "tcp://127.0.0.1:1")
            self.assertEqual(env["SATRAP_TOKEN"], TOKEN)
            self.assertEqual(env["MASTER_ADDR"], "127.0.0.1")
        self.assertEqual(ranks, {0: ["4", "0", "0", "3"], 1: ["4", "1", "0", "3"],
                                 2: ["4", "0", "1", "3"], 3: ["4", "1", "1", "3"]})
        interfaces = {e["env"]["SATRAP_INTERFACE"] for e in self.diary(event="started") if e["who"] != "store"}
        self.assertEqual(interfaces, {"127.0.0.1"})
        parents = {e["who"]: e["parent"] for e in self.diary(event="started")}
        self.assertEqual({who for who, parent in parents.items() if parent == jobs[0].pid},
                         {"store", "rank-0", "rank-1", "shard-0", "shard-2"})
        store, = self.diary("store", "started")
        self.assertEqual(store["argv"], ["store", "--host", "127.0.0.1", "--port", "0"])
        self.assertEqual(len({e["env"]["MASTER_PORT"] for e in self.diary(event="started")
                              if e["who"].startswith("rank")}), 1)

    def test_the_store_ends_after_the_shards(self):
        self.end_all(self.nodes("--ps", 2), 0)
        self.assertEqual(self.order("ends")[-1], "store ends")

    def test_a_failure_anywhere_restarts_everything(self):
        for rank in range(3):
            self.script(f"rank-{rank}", RANK_WAITS + "if ATTEMPT == 0 else meet_shards()")
        jobs = self.nodes("--ps", 2, "--max-restarts", 1, nnodes=3)
        pids = self.wait_for("waits", "rank-0", "rank-1", "rank-2", "shard-0", "shard-1")
        os.kill(pids["rank-2"], signal.SIGKILL)
        said = self.end_all(jobs, 0)
        self.assertIn(f"rank 2 (pid {pids['rank-2']}) was killed by SIGKILL; attempt 1 of 1 starts", said)
        for who in ["rank-0", "rank-1", "rank-2", "shard-0", "shard-1"]:
            self.assertEqual([e["attempt"] for e in self.diary(who, "started")], [0, 1])
        self.assertEqual(len(self.diary("store", "started")), 2, "each attempt has a store of its own")

    def test_the_status_of_the_job_is_that_of_every_launcher(self):
        self.script("rank-0", RANK_WAITS)
        self.script("rank-1", "sys.exit(7)")
        self.end_all(self.nodes(), 7)

    def test_shards_wait_for_the_ranks_of_all_nodes(self):
        self.script("rank-0", "meet_shards()")
        self.script("rank-1", "wait_for_file('go'); note('ends')")
        jobs = self.nodes("--ps", 2)
        self.wait_for("started", "rank-0", "rank-1")
        pid = self.diary("rank-0", "started")[0]["pid"]
        self.wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
        self.assertEqual(self.order("ends"), [])
        (self.dir / "go").touch()
        self.end_all(jobs, 0)
        self.assertEqual(self.order("ends")[0], "rank-1 ends")

    def stop_at(self, which):
        for rank in [0, 1]:
            self.script(f"rank-{rank}", RANK_WAITS)
        jobs = self.nodes("--ps", 2)
        self.wait_for("waits", "rank-0", "rank-1", "shard-0", "shard-1")
        jobs[which].send_signal(signal.SIGINT)
        self.end_all(jobs, 130)
        order = [entry.split("-")[0].split()[0] for entry in self.order("ends")]
        self.assertEqual(order, ["rank", "rank", "shard", "shard", "store"])

    def test_ctrl_c_at_node_0_ends_all_in_order(self):
        self.stop_at(0)

    def test_ctrl_c_at_another_node_ends_all_in_order(self):
        self.stop_at(1)

    def test_a_launcher_that_is_killed_ends_the_job_everywhere(self):
        for rank in [0, 1]:
            self.script(f"rank-{rank}", RANK_WAITS)
        for victim, words in [(0, "node 0 is gone"), (1, "launcher of node 1 is gone")]:
            (self.dir / "diary").unlink(missing_ok=True)
            jobs = self.nodes("--ps", 2, "--max-restarts", 3)
            self.wait_for("waits", "rank-0", "rank-1", "shard-0", "shard-1")
            jobs[victim].kill()
            _, err = self.end(jobs[1 - victim], 1)
            self.assertIn(words, err)

    def test_a_launcher_that_goes_while_the_others_wait_ends_the_job(self):
        self.script("rank-0", "sys.exit(4)")
        leader, member = self.nodes("--max-restarts", 3, "--restart-delay", 30)
        for line in leader.stderr:
            if "attempt 1 of 3 starts in 30 s" in line:
                break
        self.wait_until(lambda: set(self.survivors()) == {leader.pid, member.pid}, "end of the attempt")
        member.kill()
        _, err = self.end(leader, 1)
        self.assertIn("the launcher of node 1 is gone; the job ends", err)

    def test_a_store_that_does_not_start(self):
        self.script("store", "sys.exit(3)")
        said = self.end_all(self.nodes("--max-restarts", 3), 1)
        self.assertIn("no store: store (pid ", said)

    def test_a_store_that_is_killed_before_it_speaks_is_a_failure_of_the_attempt(self):
        self.script("store", "first = not (FOLDER / 'first').exists(); touch('first')\n"
                             "if first: os.kill(os.getpid(), signal.SIGKILL)\n"
                             "say('tcp://127.0.0.1:1\\n', sys.stdout); wait_for_signal(lambda number: 0)")
        said = self.end_all(self.nodes("--max-restarts", 3), 0)
        self.assertRegex(said, r"no store: store \(pid \d+\) was killed by SIGKILL; attempt 1 of 3 starts from")
        self.assertEqual({e["attempt"] for e in self.diary(event="started") if e["who"].startswith("rank")}, {1})

    def test_another_token_is_refused(self):
        leader = self.node(0)
        stranger = self.node(1, env=self.env | {"SATRAP_TOKEN": TOKEN + "!"})
        _, err = stranger.communicate(timeout=60)
        self.assertEqual(stranger.returncode, 1, err)
        self.assertIn("SATRAP_TOKEN", err)
        leader.terminate()
        _, err = self.end(leader, 143)
        self.assertIn("refused 127.0.0.1: it does not know the job's SATRAP_TOKEN", err)
        self.assertNotIn(TOKEN, err)

    def test_another_shape_is_refused(self):
        leader = self.node(0, "--ps", 2)
        other = self.node(1, "--ps", 3)
        _, err = other.communicate(timeout=60)
        self.assertEqual(other.returncode, 1)
        self.assertIn("node 1 has --ps 3, node 0 has --ps 2", err)
        leader.terminate()
        self.end(leader, 143)

    def test_garbage_at_the_meeting_port_is_refused(self):
        leader = self.node(0)
        line = leader.stderr.readline()
        self.assertIn("waiting for 1 more", line)
        for garbage in [b"", b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"node": 1, "proof": 1}\n', b"x" * 200_000]:
            with socket.create_connection(("127.0.0.1", self.port)) as peer:
                try:
                    peer.sendall(garbage)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(65536):
                        pass
                except OSError:  # it has hung up
                    pass
        member = self.node(1)
        self.end_all([leader, member], 0)

    def test_nodes_that_do_not_come(self):
        _, err = self.end(self.node(0, "--join-timeout", 0.2), 1)
        self.assertIn("no launcher of node 1 within 0.2 s", err)
        _, err = self.end(self.node(1, "--join-timeout", 0.2), 1)
        self.assertIn("no launcher of node 0 at 127.0.0.1", err)


class PsOnly(NodesTest):
    VARIABLES = ["SATRAP_STORE", "SATRAP_TOKEN", "SATRAP_SHARDS", "SATRAP_RUN_PID"]

    def test_variables_for_ranks_and_an_end_on_sigterm(self):
        del self.env["SATRAP_TOKEN"]
        job = self.start_job("--ps-only", "--ps", 2, "job.yaml")
        text = job.stdout.read()  # to the end of the pipe: a reader need not wait for the launcher's end
        values = dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines())
        self.assertEqual(list(values), self.VARIABLES)
        self.assertEqual(values["SATRAP_RUN_PID"], str(job.pid))
        self.wait_for("waits", "shard-0", "shard-1")
        shard = self.diary("shard-0", "started")[0]["env"]
        self.assertEqual([shard[name] for name in self.VARIABLES[:2]], [values[n] for n in self.VARIABLES[:2]])
        self.assertEqual(self.diary("rank-0"), [])
        job.terminate()
        self.end(job, 0)
        self.assertEqual(sorted(self.order("ends")), ["shard-0 ends", "shard-1 ends"])

    def test_a_shell_can_evaluate_them(self):
        words = " ".join(map(str, self.command("--ps-only", "--ps", 1, "job.yaml")))
        done = subprocess.run(
            ["bash", "-c", f'eval "$({words} &)"; echo "$SATRAP_SHARDS $SATRAP_STORE"; kill $SATRAP_RUN_PID'],
            env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertRegex(done.stdout, "^1 file:///")
        self.assert_no_orphans()

    def test_a_store_that_other_machines_reach(self):
        job = self.start_job("--ps-only", "--ps", 1, "--master-addr", "127.0.0.1", "job.yaml")
        self.assertIn("export SATRAP_STORE=tcp://127.0.0.1:1\n", job.stdout.read())
        self.wait_for("waits", "shard-0", "store")
        job.terminate()
        self.end(job, 0)

    def test_a_shard_that_dies_ends_it(self):
        job = self.start_job("--ps-only", "--ps", 2, "job.yaml")
        pids = self.wait_for("waits", "shard-0", "shard-1")
        os.kill(pids["shard-1"], signal.SIGKILL)
        self.end(job, 137)

    def test_restarts_are_refused(self):
        done = self.run_job("--ps-only", "--ps", 1, "--max-restarts", 1, "job.yaml", status=2)
        self.assertIn("--max-restarts", done.stderr)


class Torchrun(NodesTest):
    PROGRAM = pathlib.Path(sys.executable).with_name("torchrun")

    def test_ranks_see_the_same_variables_under_both(self):
        if not self.PROGRAM.exists():
            self.skipTest("no torchrun beside this Python")
        import python_torch  # here, since it takes seconds
        if python_torch.WHY_NOT:
            self.skipTest(python_torch.WHY_NOT)
        shards = self.start_job("--ps-only", "--ps", 1, "job.yaml")
        values = dict(line.removeprefix("export ").split("=", 1) for line in shards.stdout.read().splitlines())
        done = subprocess.run(
            # An address: by default torchrun uses that of the machine's own name, which not every machine has.
            [self.PROGRAM, "--standalone", "--local-addr", "127.0.0.1", "--no-python", "--nproc-per-node", "2",
             self.bin / "satrap", "train", "job.yaml"], env=self.env | values, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = [self.diary(f"rank-{rank}", "started")[0]["env"] for rank in [0, 1]]
        shards.terminate()
        self.end(shards, 0)
        (self.dir / "diary").unlink()
        self.run_job("--ps", 1, "--nproc-per-node", 2, "job.yaml")
        for rank, their in enumerate(theirs):
            ours = self.diary(f"rank-{rank}", "started")[0]["env"]
            names = [name for name in their if re.match("SATRAP_|TORCHELASTIC_|MASTER_|[A-Z_]*RANK$|.*WORLD_SIZE", name)]
            names = [name for name in names if name not in ("SATRAP_RUN_PID", "TORCHELASTIC_ERROR_FILE",
                                                           "TORCHELASTIC_SIGNALS_TO_HANDLE")]
            self.assertGreater(len(names), 15)
            self.assertEqual([name for name in names if name not in ours], [])
            for name in [*[n for n in names if re.match("[A-Z_]*RANK$|.*WORLD_SIZE", n)], "ROLE_NAME",
                         "TORCHELASTIC_RESTART_COUNT", "SATRAP_SHARDS"]:
                self.assertEqual(ours[name], their[name], name)

    def test_ranks_that_torchrun_restarts_count_their_attempts_themselves(self):
        job = self.start_job("--ps-only", "--ps", 1, "job.yaml")
        self.assertNotIn("SATRAP_ATTEMPT", job.stdout.read())
        job.terminate()
        self.end(job, 0)


class Names(unittest.IsolatedAsyncioTestCase):
    """A pod has its name only once it runs: the launchers wait for it."""

    def setUp(self):
        self.addCleanup(sys.path.remove, str(ROOT / "launch"))
        sys.path.insert(0, str(ROOT / "launch"))
        from satrap_run import members
        self.members = members
        self.said = []
        self.enterContext(unittest.mock.patch.object(members, "RETRY_S", 0))

    async def ask(self, answers, join_timeout):
        options = argparse.Namespace(master_addr="satrap-0.satrap", master_port=29400, join_timeout=join_timeout)
        with unittest.mock.patch.object(socket, "getaddrinfo", side_effect=answers):
            return await self.members.wait_for_name(options, time.monotonic() + join_timeout, self.said.append)

    async def test_a_name_that_is_known_later(self):
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.assertEqual(await self.ask([unknown, unknown, ["address"]], join_timeout=60), "address")
        self.assertEqual(self.said, ["--master-addr satrap-0.satrap: Name or service not known; waiting for it up to "
                                     "60 s (--join-timeout)"])

    async def test_a_name_that_nobody_knows(self):
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with self.assertRaisesRegex(self.members.JoinError, r"not known, for -1 s \(--join-timeout\)"):
            await self.ask([unknown], join_timeout=-1)


class Slurm(NodesTest):
    """The script for Slurm, with programs that act like srun and scontrol on one machine."""
    SCRIPT = ROOT / "launch" / "slurm" / "satrap.sbatch"
    SRUN = """\
#!/bin/bash
# srun: a task per node, both here; its status is the highest of theirs.
while [[ $1 == --* ]]; do shift; done
pids=()
for node in 0 1; do SLURM_NODEID=$node "$@" & pids+=($!); done
status=0
for pid in "${pids[@]}"; do wait "$pid" || { s=$?; ((s > status)) && status=$s; }; done
exit $status
"""

    def setUp(self):
        super().setUp()
        del self.env["SATRAP_TOKEN"]
        tools = self.dir / "tools"
        tools.mkdir()
        for name, text in [("srun", self.SRUN), ("scontrol", "#!/bin/bash\nprintf '127.0.0.1\\nother\\n'\n")]:
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        # The launcher looks for the fake programs in the folder where it is called, which is on PATH.
        (self.bin / "satrap-run").symlink_to(SATRAP_RUN)
        self.env |= {"PATH": f"{tools}:{self.bin}:{self.env['PATH']}", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2",
                     "SATRAP_PORT": str(self.port)}
        self.script("config", "say('run_dir: runs/x\\n', sys.stdout)")

    def submit(self, *args, **env):
        job = subprocess.Popen(["bash", self.SCRIPT, *args], cwd=self.dir, env=self.env | env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def test_syntax(self):
        subprocess.run(["bash", "-n", self.SCRIPT], check=True)

    def test_a_job_on_two_nodes(self):
        job = self.submit("job.yaml", "seed=3", "--", "--overwrite")
        self.end(job, 0)
        for rank in range(4):
            start, = self.diary(f"rank-{rank}", "started")
            self.assertEqual(start["argv"], ["train", "job.yaml", "embedding.store=ps", "seed=3", "--overwrite"])
            self.assertEqual(start["env"]["WORLD_SIZE"], "4")
        self.assertEqual({e["who"] for e in self.diary(event="started") if e["who"].startswith("shard")},
                         {f"shard-{i}" for i in range(4)})
        self.assertTrue((self.dir / "runs/x/logs/attempt-0/rank-3.log").exists())

    def test_a_requeued_job_resumes(self):
        self.end(self.submit("job.yaml", SLURM_RESTART_COUNT="1"), 0)
        self.assertEqual(self.diary("rank-0", "started")[0]["argv"], ["train", "job.yaml", "embedding.store=ps", "--resume"])

    def test_sigterm_to_the_script_ends_it_with_a_checkpoint(self):
        for rank in range(4):
            self.script(f"rank-{rank}", RANK_WAITS)
        job = self.submit("job.yaml")
        self.wait_for("waits", "rank-0", "rank-1", "rank-2", "rank-3", *[f"shard-{i}" for i in range(4)])
        job.terminate()
        self.end(job, 143)
        self.assertEqual([entry.split("-")[0] for entry in self.order("ends")][:4], ["rank"] * 4)

    def test_usage(self):
        self.assertIn("usage:", self.end(self.submit(), 2)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
