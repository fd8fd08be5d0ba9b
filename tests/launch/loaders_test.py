"""Loaders that satrap-run starts beside the ranks."""
import unittest

from launcher import LauncherTest, NodesTest

# A rank that ends once this many starts of loaders are in the diary.
AFTER_STARTS = """
import json
def starts():
    text = (FOLDER / "diary").read_text()
    entries = [json.loads(line) for line in text[:text.rfind("\\n") + 1].splitlines()]
    return [e for e in entries if e["who"] == "loader" and e["event"] == "started" and e["attempt"] == ATTEMPT]
deadline = time.monotonic() + 60
while len(starts()) < {count}:
    if time.monotonic() > deadline:
        sys.exit("no loader")
    time.sleep(0.005)
"""


class Loaders(LauncherTest):
    def test_they_get_the_store_and_end_after_the_ranks(self):
        self.script("rank-0", AFTER_STARTS.format(count=2))
        self.run_job("--loaders", 2, "job.yaml", "seed=3")
        starts = self.diary("loader", "started")
        rank, = self.diary("rank-0", "started")
        self.assertEqual([start["argv"] for start in starts], [["loader"]] * 2)
        self.assertEqual(rank["argv"], ["train", "job.yaml", "data.loaders.store=job", "seed=3"])
        for name in ["SATRAP_STORE", "SATRAP_TOKEN", "SATRAP_ATTEMPT"]:
            self.assertEqual({start["env"][name] for start in starts}, {rank["env"][name]})
        for name in ["loader-0", "loader-1"]:
            self.assertIn(f"{self.bin}/satrap loader\n", self.log(name))
        self.assertEqual(self.order("ends"), ["loader ends"] * 2)

    def test_their_threads(self):
        self.script("rank-0", AFTER_STARTS.format(count=1))
        self.run_job("--loaders", 1, "--loader-threads", 3, "job.yaml")
        self.assertEqual(self.diary("loader", "started")[0]["argv"], ["loader", "--threads", "3"])

    def test_threads_without_loaders_are_refused(self):
        done = self.run_job("--loader-threads", 3, "job.yaml", status=2)
        self.assertIn("--loader-threads 3: there are no loaders; --loaders N starts some", done.stderr)

    def test_without_them_ranks_read(self):
        self.run_job("job.yaml")
        self.assertEqual(self.diary("loader"), [])
        self.assertEqual(self.diary("rank-0", "started")[0]["argv"], ["train", "job.yaml"])

    def test_one_that_ends_is_started_again_and_no_failure(self):
        self.script("rank-0", AFTER_STARTS.format(count=2))
        self.script("loader", """
if not (FOLDER / "died").exists():
    touch("died")
    os.kill(os.getpid(), signal.SIGKILL)
wait_for_signal(lambda number: 0)
""")
        done = self.run_job("--loaders", 1, "job.yaml")
        self.assertRegex(done.stderr, r"loader 0 \(pid \d+\) was killed by SIGKILL; it is started again")
        self.assertEqual(len(self.diary("loader", "started")), 2)

    def test_another_attempt_has_loaders_of_its_own(self):
        self.script("rank-0", AFTER_STARTS.format(count=1) + "\nsys.exit(3 if ATTEMPT == 0 else 0)")
        self.run_job("--loaders", 1, "--max-restarts", 1, "job.yaml")
        self.assertEqual([start["attempt"] for start in self.diary("loader", "started")], [0, 1])

    def test_a_job_without_ranks_has_none(self):
        done = self.run_job("--ps-only", "--ps", 1, "--loaders", 1, "job.yaml", status=2)
        self.assertIn("--loaders read for the ranks", done.stderr)


class OfSeveralNodes(NodesTest):
    def test_nodes_start_them_in_turn(self):
        for rank in range(2):
            self.script(f"rank-{rank}", AFTER_STARTS.format(count=3))
        jobs = self.nodes("--loaders", 3)
        self.end_all(jobs, 0)
        self.assertEqual(len(self.diary("loader", "started")), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
