"""Shared parts of the tests of packages: the build that they are made of, and programs in an empty environment. Where
SATRAP_PACKAGES names a folder, the packages that launch/package.sh has put there are tested instead (tests/wide/packages.sh).
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["SATRAP_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2]).resolve()
MADE = pathlib.Path(os.environ["SATRAP_PACKAGES"]).resolve() if "SATRAP_PACKAGES" in os.environ else None
TIMEOUT_S = 300  # for a hang
# What `doctor` says of each reader, and of what writes ONNX, and the library that it is in.
READERS = {"onnx": r"protobuf \d", "parquet": r"Arrow \d", "kafka": r"librdkafka \d", "s3": "S3 by libcurl .* and Arrow", "hdfs": "WebHDFS by libcurl"}
LIBRARIES = ["onnx", "arrow", "kafka", "s3", "hdfs"]
WRITE_PARQUET = """
import sys, pyarrow, pyarrow.parquet
rows = range(2000)
pyarrow.parquet.write_table(pyarrow.table({
    "clicked": [row % 3 % 2 for row in rows], "user": [row % 97 for row in rows],
    "shop": [f"shop {row % 3}" for row in rows], "price": [row % 31 / 4 for row in rows]}), sys.argv[1])
"""


def skip_unless(condition, reason):
    if not condition:
        print(f"skipped: {reason}")
        sys.exit(77)


def skip_unless_packages_are_made():
    """Of builds without sanitizers that have every reader; cpack refuses others."""
    skip_unless(not os.environ.get("SATRAP_SANITIZE"), "packages are made of builds without sanitizers")
    refused = "FATAL_ERROR" in (BUILD / "CPackBundled.cmake").read_text()
    skip_unless(not refused, "packages have every reader, which this build has not: launch/setup.sh test installs them")


def run(*command, **kwargs):
    """Runs a tool that must succeed; returns its standard output."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, **kwargs)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


class InstalledTest(unittest.TestCase):
    """Programs of BIN, in an empty folder, whose environment has nothing of this one."""
    BIN = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-installed-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {"PATH": f"{self.BIN}:/usr/bin:/bin", "HOME": str(self.dir), "OMP_NUM_THREADS": "1"}

    def satrap(self, *command, status=0, **variables):
        """Runs a command by its name; returns what it wrote."""
        done = subprocess.run(["/usr/bin/env", *map(str, command)], cwd=self.dir, env=self.env | variables, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr

    def check_programs(self, quickstart):
        """What every package must do. quickstart: the job of that name, where the package has it."""
        version = (SOURCE / "CMakeLists.txt").read_text().split("project(satrap VERSION ")[1].split()[0]
        self.assertEqual(self.satrap("satrap", "--version"), f"satrap {version}\n")
        self.assertIn("--shard", self.satrap("satrap-ps", "--help"))
        small = ["train.epochs=1", "train.max_steps=30", "device=cpu", "train.precision=fp32"]
        self.satrap("satrap", "train", quickstart, "run_dir=one", *small)
        self.satrap("satrap-run", "--ps", 1, "--nproc-per-node", 2, quickstart, "run_dir=two", *small)
        for run_dir in ["one", "two"]:
            self.assertIn('"finished": true', (self.dir / run_dir / "summary.json").read_text())
        self.check_readers()

    def check_readers(self):
        """Every reader can be loaded, and a job is trained from Parquet."""
        said = self.satrap("satrap", "doctor")
        for reader, words in READERS.items():
            self.assertRegex(said, rf"(?m)^{reader} +{words}")
        self.check_parquet(sys.executable)

    def check_parquet(self, python, **variables):
        """A job is trained from what the pyarrow of `python` writes."""
        run(python, "-c", WRITE_PARQUET, self.dir / "rows.parquet")
        self.satrap("satrap", "train", "rows.parquet", "--label", "clicked", "run_dir=parquet", "--overwrite",
                    "train.epochs=1", "train.precision=fp32", "device=cpu", **variables)
        self.assertIn('"finished": true', (self.dir / "parquet/summary.json").read_text())

    def check_torch(self):
        """A package brings no PyTorch, finds the one that is named, and says which."""
        said = self.satrap("satrap", "doctor", SATRAP_TORCH_DIR="/nowhere")
        self.assertIn("off: libsatrap_libtorch.so", said)
        self.assertIn("SATRAP_TORCH_DIR=/nowhere has no lib/libtorch_cpu.so; it names the folder of PyTorch", said)
        as_torchscript = ["satrap", "export", "--checkpoint", "one", "--network", "torchscript", "--out"]
        said = self.satrap(*as_torchscript, "none", status=1, SATRAP_TORCH_DIR="/nowhere")
        self.assertRegex(said, r"(?m)^error: libsatrap_libtorch.so, which is needed for .* has no lib/libtorch_cpu.so")
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        said = self.satrap("satrap", "doctor", SATRAP_TORCH_DIR=str(torch))
        self.assertRegex(said, rf"torch +libtorch .*, in {torch}/lib\n")
        self.satrap(*as_torchscript, "model", SATRAP_TORCH_DIR=str(torch))
        self.assertTrue((self.dir / "model/dense.pt").is_file())
        self.satrap("satrap", "export", "--checkpoint", "one", "--out", "onnx", SATRAP_TORCH_DIR="/nowhere")
        self.assertTrue((self.dir / "onnx/dense.onnx").is_file())
