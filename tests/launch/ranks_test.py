"""How many ranks a node has, by what the program satrap says of the job and of its GPUs."""
import unittest

from launcher import LauncherTest, NodesTest

CUDA = "say('device: cuda\\nrun_dir: runs/x\\n', sys.stdout)"
CPU = CUDA.replace("cuda", "cpu")
NO_GPU = "say('error: there is no GPU that a job could use: no driver; install one\\n'); sys.exit(1)"


def gpus(number):
    return f"say('{number}\\n', sys.stdout)"


class Ranks(LauncherTest):
    def started(self, *args):
        """The environments of the ranks, and the number of shards."""
        self.run_job(*args, "job.yaml")
        names = [e["who"] for e in self.diary(event="started")]
        num_ranks = sum(name.startswith("rank-") for name in names)
        envs = [self.diary(f"rank-{rank}", "started")[0]["env"] for rank in range(num_ranks)]
        return envs, sum(name.startswith("shard-") for name in names)

    def check(self, num_ranks, num_shards, *args):
        envs, shards = self.started(*args)
        self.assertEqual((len(envs), shards), (num_ranks, num_shards))
        for rank, env in enumerate(envs):
            self.assertEqual([env[name] for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "SATRAP_SHARDS")],
                             [str(number) for number in (rank, num_ranks, num_ranks, num_shards)])

    def refuse(self, *args, status, says):
        done = self.run_job(*args, status=status)
        self.assertRegex(done.stderr, rf"^error: {says}\n$")
        self.assertEqual(self.diary(event="started"), [])

    def test_a_job_on_gpus_has_one_rank_for_each_and_a_shard(self):
        self.script("config", CUDA)
        self.script("doctor", gpus(3))
        self.check(3, 1)
        self.assertEqual(self.diary("rank-2", "started")[0]["argv"], ["train", "job.yaml", "embedding.store=ps"])
        self.assertEqual(self.diary("doctor", "asked")[0]["argv"], ["doctor", "--num-gpus"])

    def test_on_one_gpu_it_needs_no_shard(self):
        self.script("config", CUDA)
        self.script("doctor", gpus(1))
        self.check(1, 0)
        self.assertEqual(self.diary("rank-0", "started")[0]["argv"], ["train", "job.yaml"])

    def test_a_job_on_the_cpu_has_one_rank(self):
        self.script("config", CPU)
        self.script("doctor", gpus(3))
        self.check(1, 0)
        self.assertEqual(self.diary("doctor", "asked"), [])

    def test_gpu_counts_them_for_any_job(self):
        self.script("config", CPU)
        self.script("doctor", gpus(2))
        self.check(2, 1, "--nproc-per-node", "gpu")

    def test_shards_that_are_asked_for_count(self):
        self.script("config", CUDA)
        self.script("doctor", gpus(2))
        self.check(2, 3, "--ps", 3)

    def test_a_number_asks_nobody(self):
        self.script("config", CUDA)
        self.script("doctor", gpus(4))
        self.check(2, 0, "--nproc-per-node", 2)
        self.assertEqual(self.diary("doctor", "asked"), [])

    def test_without_a_gpu_the_reason_is_told_once_and_nothing_starts(self):
        self.script("config", CUDA)
        self.script("doctor", NO_GPU)
        why = "there is no GPU that a job could use: no driver; install one; or write"
        self.refuse("--nproc-per-node", "gpu", "job.yaml", status=1,
                    says=rf"--nproc-per-node gpu: {why} --nproc-per-node with a number")
        self.refuse("job.yaml", status=1, says=rf"--nproc-per-node auto: {why} device=cpu")

    def test_a_program_that_cannot_count_is_named(self):
        self.script("config", CUDA)
        self.script("doctor", "say('cpu Zen\\n', sys.stdout)")
        self.refuse("job.yaml", status=1, says="--nproc-per-node auto: `.*satrap doctor --num-gpus` .*")

    def test_other_words_are_refused(self):
        for word in ("cpu", "GPU", "two", "1.5"):
            self.refuse("--nproc-per-node", word, "job.yaml", status=2,
                        says=f".*--nproc-per-node: must be a number, auto or gpu, got '{word}'.*")
        self.refuse("--nproc-per-node", 0, "job.yaml", status=2, says=".*must be at least 1, got 0.*")

    def test_a_wrong_configuration_is_told_once_for_all(self):
        self.script("config", "say('error: job.yaml:3: no\\n'); sys.exit(2)")
        self.refuse("--ps", 1, "--nproc-per-node", 2, "job.yaml", status=2, says="job.yaml:3: no")


class Nodes(NodesTest):
    def on_nodes(self, *num_gpus):
        self.script("config", CUDA)
        self.script("doctor", "say(os.environ['GPUS'] + '\\n', sys.stdout)")
        return [self.node(node, env=self.env | {"GPUS": str(count)}) for node, count in enumerate(num_gpus)]

    def test_every_node_has_a_shard(self):
        self.end_all(self.on_nodes(2, 2), 0)
        names = sorted(e["who"] for e in self.diary(event="started") if e["who"] != "store")
        self.assertEqual(names, ["rank-0", "rank-1", "rank-2", "rank-3", "shard-0", "shard-1"])

    def test_nodes_with_other_numbers_of_gpus_are_refused(self):
        first, second = self.on_nodes(2, 1)
        said = second.communicate(timeout=60)[1]
        self.assertEqual(second.returncode, 1)
        self.assertIn("node 1 has --nproc-per-node 1, node 0 has --nproc-per-node 2", said)
        first.terminate()
        first.wait(60)
        self.assertEqual(self.diary(event="started"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
