"""bench/gpu_bundle.sh and bench/gpu.sh from the unpacked bundle, on the executor, from the first part to the last."""

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
    def test_runs_to_its_end_and_shows_no_time_of_the_executor(self):
        with tempfile.TemporaryDirectory() as folder:
            bundle, out = pathlib.Path(folder, "bundle"), pathlib.Path(folder, "out")
            subprocess.run([ROOT / "bench/gpu_bundle.sh", "--interpreter", "--build", BUILD,
                            "--variant", f"old={BUILD}", f"{folder}/bundle.tar.gz"], check=True)
            bundle.mkdir()
            subprocess.run(["tar", "-C", bundle, "-xzf", f"{folder}/bundle.tar.gz"], check=True)
            subprocess.run(["bench/gpu.sh", out], cwd=bundle, env={"PATH": "/usr/bin:/bin"}, check=True,
                           stdout=subprocess.DEVNULL)
            self.assertLessEqual(len(list(out.iterdir())), 8)
            table = (out / "table.md").read_text()
        self.assertIn(" 0 failed, 0 cut off.", table)
        for operation in OPERATIONS:
            self.assertRegex(table, rf"\| {operation}/dim:64\S*graph:0 \| executor: no times \|")
            self.assertRegex(table, rf"\| {operation} \| old \| executor: no times \|")
        self.assertRegex(table, r"cache:100/\S* \| skipped: a cache of .* bytes; SIMT executor has")
        self.assertIsNone(re.search(r"\| \d+\.\d \(", table), "a time")


if __name__ == "__main__":
    if not (BUILD / "bench/backend_plan_bench_executor").exists():
        print("skipped: this build has no benchmarks on the executor")
        sys.exit(77)
    unittest.main()
