"""bench/gpu.sh with programs that stand in for those of a bundle: what fails or hangs does not stop the rest, a second
start does what the first has not, and there are at most eight files.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).parents[2]
OPERATIONS = ["plan", "resolve", "pool_forward", "backward", "export"]
FILES = {"state.tsv", "checks.txt", "reference.jsonl", "ncu.txt", "variants.jsonl", "sweeps.jsonl", "pytorch.json",
         "table.md"}
REFERENCE = "op/dim:64/w:0/opt:1/zipf:0/pool:5/hit:100/load:90/cache:0/fetch:0/graph:0/iterations:9/manual_time"

# Notes each start in ../started, except those that only list, and does first what ../<its name> says.
STAND_IN = f"""#!/bin/bash
here=$(dirname "$0")/..
for argument; do
  case $argument in
    --benchmark_list_tests) printf '%s\\n' {REFERENCE} op/dim:8/iterations:9 op/dim:16/iterations:9; exit ;;
    --benchmark_out=*) json=${{argument#*=}} ;;
    --benchmark_filter=*) filter=${{argument#*=}} ;;
  esac
done
echo "${{0##*/}} $filter" >> "$here/started"
echo "Running 3 tests"
if [[ -f $here/${{0##*/}}.sh ]]; then source "$here/${{0##*/}}.sh"; fi
[[ -z $json ]] || cat > "$json" << END
{{"context": {{"variant": "new"}},
"benchmarks": [{{"run_name": "op/$filter", "median_us": 2, "p10_us": 1, "p90_us": 3, "host_us": 1, "set_up_s": 1,
"compulsory_GBps": 1, "compulsory_share": 1, "algorithmic_GBps": 1, "algorithmic_share": 1}}]}}
END
"""
# Runs the program among its arguments.
TOOL = '#!/bin/bash\nwhile [[ $1 != env ]]; do shift; done\nexec "$@"\n'
PYTHON = """#!/bin/bash
case $1 in
  -c) ;;
  */gpu_trainer.py) echo "as on the CPU" ;;
  */pytorch_reference.py) echo '{"torch": "2", "device": "d", "forward": {"median_us": 1},
    "forward_backward_adagrad": {"median_us": 1}}' > "$2" ;;
  *) exec python3 "$@" ;;
esac
"""


class GpuScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle, self.out = pathlib.Path(folder.name, "bundle"), pathlib.Path(folder.name, "out")
        for name in ["bench/gpu.sh", "bench/gpu_trainer.py", "bench/backend/table.py"]:
            (self.bundle / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.bundle / name)
        (self.bundle / "kind").write_text("gpu\n")
        (self.bundle / "commit").write_text("abc\n")
        programs = [f"backend_{operation}_bench" for operation in OPERATIONS]
        for program in programs + ["backend_tests", "embedding_tests", "dense_tests", "collective_tests"]:
            self.write(f"bin/{program}", STAND_IN)

    def write(self, name, text):
        path = self.bundle / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def command(self, *parts):
        return ["bash", self.bundle / "bench/gpu.sh", self.out, *parts]

    def environment(self, seconds=480):
        # Tools of this machine are not found: it may have some.
        return {"PATH": f"{self.bundle}/tools:/usr/bin:/bin", "SATRAP_GPU_SECONDS": str(seconds)}

    def start(self, *parts, seconds=480):
        return subprocess.run(self.command(*parts), env=self.environment(seconds), capture_output=True, text=True,
                              check=False, timeout=120)

    def state(self):
        return dict(line.split("\t") for line in (self.out / "state.tsv").read_text().splitlines())

    def started(self):
        return (self.bundle / "started").read_text().splitlines()

    def test_with_every_tool_there_are_the_eight_files(self):
        for tool in ["compute-sanitizer", "ncu"]:
            self.write(f"tools/{tool}", TOOL)
        self.write("tools/python3.sh", PYTHON)
        for operation in OPERATIONS:
            self.write(f"variants/old/backend_{operation}_bench", STAND_IN)
        environment = self.environment() | {"SATRAP_PYTHON": str(self.bundle / "tools/python3.sh")}
        subprocess.run(self.command(), env=environment, check=True, capture_output=True)
        self.assertEqual(FILES, {path.name for path in self.out.iterdir()})
        self.assertEqual({"ok"}, set(self.state().values()))

    def test_missing_tools_are_recorded(self):
        self.assertEqual(0, self.start("memcheck", "ncu", "variants").returncode)
        self.assertIn("NOT RUN: compute-sanitizer is not installed", self.state().values())
        self.assertIn("NOT RUN: ncu is not installed", self.state().values())
        self.assertEqual("NOT RUN: the bundle has no variants", self.state()["variants"])
        self.assertIn("| ncu | NOT RUN: ncu is not installed |", (self.out / "table.md").read_text())

    def test_failures_do_not_stop_the_rest(self):
        self.write("backend_tests.sh", "exit 1")
        self.write("backend_plan_bench.sh", "echo '{' > $json; kill -SEGV $$")
        self.assertEqual(1, self.start().returncode)
        self.assertEqual("failed: exit status 1", self.state()["tests:backend"])
        self.assertEqual("failed: exit status 139", self.state()["reference:plan"])
        for step in ["tests:embedding", "reference:resolve", "sweep:op/dim:16/iterations:9"]:
            self.assertIn(step, self.state())
        self.assertEqual("ok", self.state()["reference:export"])
        self.assertIn("| reference | failed: exit status 139 | plan |", (self.out / "table.md").read_text())

    def test_tests_that_do_not_exist_have_failed(self):
        self.write("backend_tests.sh", "echo 'Running 0 tests from 0 test suites.'")
        self.assertEqual(1, self.start("tests").returncode)
        self.assertEqual("failed: there is no such test", self.state()["tests:backend"])

    def test_ncu_that_finds_no_kernel_has_failed(self):
        self.write("tools/ncu", "#!/bin/bash\necho '==WARNING== No kernels were profiled.'\n")
        self.assertEqual(1, self.start("ncu").returncode)
        self.assertEqual({"failed: see ncu.txt"}, set(self.state().values()))

    def test_a_benchmark_without_gpu_has_failed_and_one_without_memory_is_skipped(self):
        error = 'printf \'{"context": {}, "benchmarks": [],\\n"error_message": "%s"\\n}\' > $json; exit'
        self.write("backend_plan_bench.sh", error % "no GPU: no driver")
        self.write("backend_resolve_bench.sh", error % "10 bytes; 5 are free")
        self.assertEqual(1, self.start("reference").returncode)
        self.assertEqual("failed: no GPU: no driver", self.state()["reference:plan"])
        self.assertEqual("skipped: 10 bytes; 5 are free", self.state()["reference:resolve"])

    def test_what_a_start_has_no_time_for_is_done_by_the_next(self):
        self.write("backend_pool_forward_bench.sh", "sleep 60")
        first = self.start("reference", seconds=2)
        self.assertEqual(3, first.returncode)
        self.assertEqual({"reference:plan", "reference:resolve"}, set(self.state()))
        (self.bundle / "backend_pool_forward_bench.sh").unlink()
        self.assertEqual(0, self.start("reference").returncode)
        self.assertEqual({f"reference:{operation}" for operation in OPERATIONS}, set(self.state()))
        programs = [line.split()[0] for line in self.started()]
        self.assertEqual(1, programs.count("backend_plan_bench"))
        self.assertEqual(2, programs.count("backend_pool_forward_bench"))

    def test_a_start_that_is_killed_is_resumed(self):
        self.write("backend_resolve_bench.sh", "sleep 2; echo ended >> $here/started")
        with subprocess.Popen(self.command("reference"), env=self.environment(), start_new_session=True,
                              stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not (self.bundle / "started").exists() or len(self.started()) < 2:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGKILL)
        (self.bundle / "backend_resolve_bench.sh").unlink()
        self.assertEqual(0, self.start("reference").returncode)
        self.assertEqual({"ok"}, set(self.state().values()))
        programs = [line.split()[0] for line in self.started()]
        waited_for = ["backend_plan_bench", "backend_resolve_bench", "ended", "backend_resolve_bench"]
        self.assertEqual(waited_for, programs[:4])

    def test_wrong_usage(self):
        self.assertEqual(2, self.start("no_such_part").returncode)
        self.assertFalse(self.out.exists())
        (self.bundle / "kind").unlink()
        self.assertIn("is no bundle", self.start().stderr)

    def test_named_tests_and_kernels_exist(self):
        script = (ROOT / "bench/gpu.sh").read_text()
        sources = "".join(path.read_text() for path in (ROOT / "tests/backend").glob("*_test.cpp"))
        tests = re.findall(r"\b(Device[A-Za-z]+)\.(\w+)(\*?)", script)
        self.assertGreater(len(tests), 5)
        for suite, name, star in tests:
            self.assertRegex(sources, rf"TEST\({suite}, {name}{'' if star else '[)]'}")
        kernels = (ROOT / "cuda/backend/registers.txt").read_text()
        pairs = re.findall(rf"\b(?:{'|'.join(OPERATIONS)}):(\w+)", script)
        self.assertEqual(6, len(pairs))
        for kernel in pairs:
            self.assertRegex(kernels, rf"(?m)^{kernel}\b")


if __name__ == "__main__":
    if os.environ.get("SATRAP_SANITIZE"):
        print("skipped: once per machine is enough")
        sys.exit(77)
    unittest.main()
