"""bench/gpu_bundle.sh and bench/gpu.sh from the unpacked bundle, without a GPU: on the executor every part, on the
interpreter of PTX, which takes a minute for all, the first."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("SATRAP_BUILD_DIR", ROOT / "build/release"))
OPERATIONS = ["build_plan", "resolve", "pool_forward", "backward_update", "backward_gradients", "export_dirty"]


class GpuBundleTest(unittest.TestCase):
    def results(self, kind, *parts):
        """The table of gpu.sh in a bundle of this kind, run in an empty environment."""
        with tempfile.TemporaryDirectory() as folder:
            bundle, out = pathlib.Path(folder, "bundle"), pathlib.Path(folder, "out")
            subprocess.run([ROOT / "bench/gpu_bundle.sh", kind, "--build", BUILD, "--variant", f"old={BUILD}",
                            f"{folder}/bundle.tar.gz"], check=True)
            bundle.mkdir()
            subprocess.run(["tar", "-C", bundle, "-xzf", f"{folder}/bundle.tar.gz"], check=True)
            subprocess.run(["bench/gpu.sh", out, *parts], cwd=bundle, env={"PATH": "/usr/bin:/bin"}, check=True,
                           stdout=subprocess.DEVNULL)
            self.assertLessEqual(len(list(out.iterdir())), 8)
            table = (out / "table.md").read_text()
        self.assertIn(" 0 failed, 0 cut off.", table)
        self.assertIsNone(re.search(r"\| \d+\.\d \(", table), "a time")
        for operation in OPERATIONS:
            self.assertRegex(table, rf"\| {operation}/dim:64\S*graph:0 \| not on a GPU: no times \|")
        return table

    def test_every_part_runs_on_the_executor(self):
        table = self.results("--executor")
        for operation in OPERATIONS:
            self.assertRegex(table, rf"\| {operation} \| old \| not on a GPU: no times \|")
        self.assertRegex(table, r"cache:100/\S* \| skipped: a cache of .* bytes; SIMT executor has")

    @unittest.skipUnless((BUILD / "tests/backend_ptx_tests").exists(), "this build has no PTX")
    def test_tests_and_benchmarks_run_on_the_interpreter(self):
        self.results("--interpreter", "facts", "tests", "reference")


if __name__ == "__main__":
    if not (BUILD / "bench/backend_plan_bench_executor").exists():
        print("skipped: this build has no benchmarks without a GPU")
        sys.exit(77)
    unittest.main()
