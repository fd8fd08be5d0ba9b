"""`device: auto` takes a GPU where there is one and the job can run on it: whole programs, whose GPUs are the executor's
(tests/support/simt), beside the program for CPUs. Both compute the network by libtorch here (model.engine: graph), so
that the bits are the same."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["SATRAP_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["SATRAP_SOURCE_DIR"])
ON_GPU, ON_CPU = BUILD / "simt" / "satrap", BUILD / "bin" / "satrap"
TIMEOUT_S = 1500 if os.environ.get("SATRAP_SANITIZE") else 300
JOB = """
seed: 7
data: {format: synthetic, batch_size: 64,
       synthetic: {rows: 2000, eval_rows: 300, cardinalities: [50, 60], min_ids: [1], max_ids: [1], num_numeric: 2}}
tables: {default: {dim: 8, optimizer: {type: adagrad, lr: 0.02}}}
model: {type: ffnn, top: [8], engine: graph}
train: {mode: sync, deterministic: true, threads: 1, precision: fp32, max_steps: 12}
checkpoint: {every: never}
"""
TO_THE_END = "train.max_steps=24"

if not ON_GPU.exists():
    print("skipped: this build has no program on the executor")
    sys.exit(77)


class Programs(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-auto-device-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.job = self.dir / "job.yaml"
        self.job.write_text(JOB)

    def run_program(self, program, *args, status=0, **env):
        done = subprocess.run([str(word) for word in (program, *args)], cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S, env=os.environ | env)
        self.assertEqual(done.returncode, status, f"{args}: {done.stdout}{done.stderr}")
        return done

    def train(self, program, run, *settings, **env):
        """What the job says on its way."""
        return self.run_program(program, "train", self.job, f"run_dir={run}", *settings, **env).stderr

    def devices(self, run):
        """The device of the job, by its configuration and by its summary, and whether it had a cache."""
        config = re.search(r"^device: (.*)$", (self.dir / run / "config.yaml").read_text(), re.M).group(1)
        summary = json.loads((self.dir / run / "summary.json").read_text())
        return config, summary["device"], "cache" in summary

    def digest(self, run):
        newest = max((self.dir / run / "checkpoints").glob("step-*"))
        return self.run_program(ON_CPU, "checkpoint", "verify", newest).stdout.split("digest ")[1]


class AutoDevice(Programs):
    def test_it_is_the_gpu_where_there_is_one_and_gives_the_bits_of_the_cpu(self):
        said = self.train(ON_GPU, "gpu", "train.mode=hybrid", "train.staleness=2")
        self.assertEqual(self.devices("gpu"), ("cuda", "cuda", True))
        self.assertIn("device: cuda, GPU 0: SIMT executor", said)
        for program, run, env in ((ON_CPU, "cpu", {}), (ON_GPU, "none", {"SIMT_DEVICES": "0"})):
            said = self.train(program, run, "train.mode=hybrid", "train.staleness=2", **env)
            self.assertEqual(self.devices(run), ("cpu", "cpu", False))
            self.assertNotIn("device", said)
            self.assertEqual(self.digest(run), self.digest("gpu"))

    def test_a_device_that_is_named_stays(self):
        self.train(ON_GPU, "cpu", "device=cpu")
        self.assertEqual(self.devices("cpu"), ("cpu", "cpu", False))

    def test_a_job_whose_network_alone_could_be_on_the_gpu(self):
        for setting, why in (("tables.default.ttl_steps=10", "table 'default' has capacity_rows, ttl_steps"),
                             ("embedding.cache.memory=0", "embedding.cache.memory is 0")):
            with self.subTest(setting):
                said = self.train(ON_GPU, "narrow", setting, "model.bottom=[8]", "--overwrite")
                self.assertEqual(self.devices("narrow"), ("cpu", "cpu", False))
                lines = [line for line in said.splitlines() if "device: auto is cpu" in line]
                self.assertEqual(len(lines), 1, said)
                self.assertIn(why, lines[0])
                said = self.train(ON_GPU, "wide", setting, "model.top=[256]", "--overwrite")
                self.assertEqual(self.devices("wide"), ("cuda", "cuda", False))
                lines = [line for line in said.splitlines() if "the GPU computes the network alone" in line]
                self.assertEqual(len(lines), 1, said)
                self.assertIn(why, lines[0])
                self.train(ON_CPU, "same", setting, "model.top=[256]", "--overwrite")
                self.assertEqual(self.digest("same"), self.digest("wide"))

    def test_a_job_goes_on_where_it_is_resumed(self):
        for program in (ON_CPU, ON_GPU):
            self.train(program, program.parent.name, TO_THE_END)
        expected = self.digest("bin")
        self.assertEqual(self.digest("simt"), expected)
        for first, then, change in ((ON_GPU, ON_CPU, "cuda -> cpu"), (ON_CPU, ON_GPU, "cpu -> cuda")):
            with self.subTest(change):
                self.train(first, "run", "--overwrite")
                said = self.train(then, "run", TO_THE_END, "--resume")
                self.assertIn(f"changed: device: {change}", said)
                self.assertEqual(self.digest("run"), expected)

    def test_the_resolved_configuration_names_the_gpu_and_can_be_told_otherwise(self):
        self.train(ON_GPU, "run")
        resumed = ("train", "run/config.yaml", "--resume", TO_THE_END)
        said = self.run_program(ON_CPU, *resumed, status=1).stderr
        self.assertRegex(said, "error: device: there is no GPU for cuda: .*; write cpu")
        self.run_program(ON_CPU, *resumed, "device=cpu")
        self.assertEqual(self.devices("run"), ("cpu", "cpu", False))

    def test_its_checkpoints_are_used_without_a_gpu(self):
        results = []
        for program in (ON_GPU, ON_CPU):
            run = program.parent.name
            self.train(program, run)
            scores = self.dir / f"{run}.tsv"
            self.run_program(ON_CPU, "predict", "--checkpoint", run, "--out", scores)
            self.run_program(ON_CPU, "export", "--checkpoint", run, "--out", f"{run}-model")
            shown = self.run_program(ON_CPU, "eval", "--checkpoint", run).stdout.splitlines()[1:]
            weights = [file.read_bytes() for file in sorted((self.dir / f"{run}-model").glob("*.npy"))]
            results.append((scores.read_text(), shown, weights))
        self.assertGreater(len(results[0][2]), 0)
        self.assertEqual(results[0], results[1])
        shown = self.run_program(ON_CPU, "eval", "--checkpoint", "simt", "device=cuda", "train.precision=tf32").stdout
        self.assertEqual(shown.splitlines()[1:], results[0][1])  # tf32 is for training on a GPU

    def test_the_example_in_criteos_format_runs_as_it_stands(self):
        text = (SOURCE / "docs/data.md").read_text()
        (self.dir / "criteo.yaml").write_text(re.search(r"<< 'YAML'\n(.*?)^YAML$", text, re.S | re.M).group(1))
        self.run_program(ON_GPU, "data", "generate", "--rows", 3000, "--scale", 0.0001, "--out", "train.tsv",
                         "--eval-rows", 300, "--eval-out", "eval.tsv")
        self.run_program(ON_GPU, "train", "criteo.yaml")
        self.assertEqual(self.devices("runs/criteo"), ("cuda", "cuda", True))
        self.run_program(ON_GPU, "eval", "criteo.yaml", "--checkpoint", "runs/criteo")

    def test_the_job_of_the_page_of_gpus_runs_as_it_stands(self):
        text = (SOURCE / "docs/gpus.md").read_text()
        (self.dir / "gpu.yaml").write_text(re.search(r"```yaml\n(# gpu.yaml\n.*?)```", text, re.S).group(1))
        rows = (f"{i * 7 % 5 // 4},{i % 41}.5,u{i % 97},{i % 31},{i % 3}\n" for i in range(6000))
        (self.dir / "clicks.csv").write_text("clicked,price,user,item,country\n" + "".join(rows))
        self.run_program(ON_GPU, "train", "gpu.yaml")
        self.assertEqual(self.devices("runs/gpu"), ("cuda", "cuda", True))

    def test_the_launcher_alone_uses_every_gpu(self):
        (self.dir / "programs").mkdir()
        for name, program in (("satrap", ON_GPU), ("satrap-ps", BUILD / "bin" / "satrap-ps")):
            (self.dir / "programs" / name).symlink_to(program)
        launcher = [sys.executable, SOURCE / "launch/satrap-run", "--bin-dir", "programs"]
        self.run_program(*launcher, self.job, "run_dir=run", SIMT_DEVICES="2")
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual([summary[name] for name in ("device", "ranks", "shards")], ["cuda", 2, 1])
        said = self.run_program(*launcher, "--nproc-per-node", 3, "--ps", 1, self.job, "run_dir=more", SIMT_DEVICES="2",
                                status=1).stderr
        self.assertIn("device: this node has 2 GPUs for 3 ranks; start at most 2", said)
        said = self.run_program(*launcher, "--nproc-per-node", "gpu", self.job, "run_dir=none", SIMT_DEVICES="0",
                                status=1).stderr
        self.assertRegex(said, r"^error: --nproc-per-node gpu: .*the NVIDIA driver shows no GPU.*\n$")


class Doctor(Programs):
    def page(self, **env):
        """The lines of `satrap doctor`, by name."""
        lines = self.run_program(ON_GPU, "doctor", **env).stdout.splitlines()
        for line in lines:
            self.assertLess(len(line), 200)
        return {line[:10].strip(): line[11:] for line in lines}

    def test_every_gpu_has_a_line(self):
        page = self.page(SIMT_DEVICES="2")
        self.assertRegex(page["device"], "^auto is cuda")
        self.assertEqual(page["cuda"], "13.0, the driver is for 13.0")
        for number in (0, 1):
            self.assertRegex(page[f"gpu {number}"], "^SIMT executor, compute capability 9.0, [0-9.]+.iB of 1.00GiB free$")
        self.assertNotIn("gpu 2", page)
        self.assertEqual(page["peers"], "every GPU reads the memory of every other")
        self.assertRegex(page["nccl"], r"^2\.\d+\.\d+$")
        self.assertRegex(page["gpu torch"], "2\\.11")
        self.assertNotIn("peers", self.page(SIMT_DEVICES="1"))

    def test_gpus_that_do_not_reach_each_other(self):
        self.assertRegex(self.page(SIMT_DEVICES="3", SIMT_PEERS="0")["peers"], "^3 of 3 pairs, the first GPU 0 and GPU 1, do not")

    def test_what_does_not_fit_and_what_to_do(self):
        for env, why in (({"SIMT_DRIVER": "12040"}, "driver is for CUDA 12.4, too old .* CUDA 13.0; install .* 580 or newer"),
                         ({"SIMT_DRIVER": "0"}, "no NVIDIA driver.*; install one for CUDA 13, 580 or newer"),
                         ({"SIMT_DEVICES": "0"}, "shows no GPU .*CUDA_VISIBLE_DEVICES"),
                         ({"SIMT_CAPABILITY": "75"}, "compute capability 7.5, too low .* need 8.0")):
            with self.subTest(env):
                page = self.page(**env)
                self.assertEqual(page["device"], "auto is cpu")
                self.assertRegex(page["cuda"], f"^off: .*{why}")
                error = self.run_program(ON_GPU, "doctor", "--num-gpus", status=1, **env).stderr
                self.assertRegex(error, f"^error: .*{why}")
                error = self.run_program(ON_GPU, "train", self.job, "device=cuda", status=1, **env).stderr
                self.assertRegex(error, f"error: device: there is no GPU for cuda: .*{why}.*; write cpu")

    def test_programs_are_told_the_number_alone(self):
        self.assertEqual(self.run_program(ON_GPU, "doctor", "--num-gpus", SIMT_DEVICES="3").stdout, "3\n")
        self.assertRegex(self.run_program(ON_CPU, "doctor", "--num-gpus", status=1).stderr, "^error: .*no GPU.*\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
