"""satrap-run with a program in Python in place of a configuration."""
import unittest

from launcher import FAKE, LauncherTest

PROGRAM = f"import sys\nsys.argv.insert(1, 'train')\nexec(open({str(FAKE)!r}).read())\n"


class Programs(LauncherTest):
    def setUp(self):
        super().setUp()
        self.program = self.dir / "train.py"
        self.program.write_text(PROGRAM)

    def started(self, name, attempt=0):
        return next(e for e in self.diary(name, "started") if e["attempt"] == attempt)

    def refuse(self, *args, says):
        done = self.run_job(*args, status=2)
        self.assertIn(says, done.stderr)
        self.assertEqual(self.diary(event="started"), [])

    def test_each_rank_runs_it_with_its_arguments_and_shards_wait_for_its_job(self):
        self.run_job("--ps", 2, "--nproc-per-node", 2, self.program, "--lr", "0.1", "--", "--ps", "x=1")
        for rank in range(2):
            entry = self.started(f"rank-{rank}")
            self.assertEqual(entry["argv"], ["train", "--lr", "0.1", "--", "--ps", "x=1"])
            self.assertEqual([entry["env"][key] for key in ("RANK", "WORLD_SIZE", "SATRAP_SHARDS")], [str(rank), "2", "2"])
        self.assertEqual(self.started("shard-1")["argv"], ["--shard", "1", "--shards", "2"])
        self.assertEqual(self.diary(event="asked"), [])  # nobody knows its job yet

    def test_it_knows_that_loaders_read_for_it(self):
        self.run_job("--loaders", 1, self.program)
        self.assertEqual(self.started("rank-0")["env"]["SATRAP_LOADERS"], "1")

    def test_by_default_it_is_one_rank_without_shards(self):
        self.run_job(self.program)
        self.assertEqual({e["who"] for e in self.diary(event="started")}, {"rank-0"})

    def test_it_starts_again_with_the_same_arguments_and_knows_the_attempt(self):
        self.script("rank-0", "sys.exit(0 if ATTEMPT else 1)")
        self.run_job("--max-restarts", 1, self.program, "a")
        self.assertEqual(self.started("rank-0", attempt=1)["argv"], ["train", "a"])

    def test_shards_alone_need_no_configuration(self):
        job = self.start_job("--ps-only", "--ps", 1)
        self.wait_for("waits", "shard-0")
        self.assertEqual(self.started("shard-0")["argv"], ["--shard", "0", "--shards", "1"])
        job.terminate()
        self.end(job, 0)

    def test_wrong_usage(self):
        self.refuse("job.yaml", self.program, says="stands in place of a configuration, and after all options")
        self.refuse("--ps-only", "--ps", 1, self.program, says="starts no ranks, and")
        self.refuse("--ps", 1, says="required: CONFIG")


if __name__ == "__main__":
    unittest.main(verbosity=2)
