"""launch/setup.sh on an unknown system: it says what it needs, and continues if that is installed. Its versions."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or pathlib.Path(__file__).parents[2])
SCRIPT = SOURCE / "launch/setup.sh"
NEEDED = ["bash", "dirname", "cat", "id"]  # by the script itself
WANTED = ["c++", "cmake", "ninja", "git", "python3"]


class OtherSystem(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-setup-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "launch").mkdir()
        shutil.copy(SCRIPT, self.dir / "launch")
        self.tools = self.dir / "tools"
        self.tools.mkdir()
        for name in NEEDED:
            (self.tools / name).symlink_to(shutil.which(name))
        self.write("uname", 'echo riscv64')
        for name in ["apt-get", "sudo", *WANTED]:
            self.write(name, f"echo {name} >> {self.dir}/called")

    def write(self, name, line):
        (self.tools / name).write_text(f"#!{shutil.which('bash')}\n{line}\n")
        (self.tools / name).chmod(0o755)

    def set_up(self, mode="run"):
        return subprocess.run(["bash", self.dir / "launch/setup.sh", mode], env={"PATH": str(self.tools)}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def pretend_wheels(self):
        """Creates what an installation would have."""
        (self.dir / ".venv").mkdir()
        for name in ["run_wheels", "torch_wheels", "cuda_wheels"]:
            done = subprocess.run(["bash", "-c", f"""eval "$(sed -n '/^torch=/p; /wheels=(/,/)/p' {SCRIPT})"
                [ {name} = cuda_wheels -o {name} = run_wheels ] && set -- --no-deps
                echo "$@" "${{{name}[@]}}" """], capture_output=True, text=True, check=True, timeout=60)
            (self.dir / ".venv" / f".satrap-{name.removesuffix('_wheels')}").write_text(done.stdout.strip() + "\n")

    def test_goes_on_where_all_programs_are_there(self):
        self.pretend_wheels()
        done = self.set_up()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on riscv64 is not among the systems satrap is tried on (Debian 12, ", done.stderr)
        self.assertIn("wanted, by their names in Debian: g++ cmake ", done.stderr)
        self.assertFalse((self.dir / "called").exists(), "nothing is installed")

    def test_names_the_programs_that_are_not_there(self):
        (self.tools / "cmake").unlink()
        (self.tools / "ninja").unlink()
        done = self.set_up()
        self.assertEqual(done.returncode, 1)
        self.assertIn("not found: cmake ninja; install them and run this again", done.stderr)
        self.assertNotIn("wheels", done.stderr)

    def test_tests_want_more_and_all_checks_want_most(self):
        for mode, wanted, not_wanted in (("test", "zstd", "clang-format-19"), ("develop", "clang-format-19", "nothing")):
            with self.subTest(mode):
                done = self.set_up(mode)
                self.assertEqual(done.returncode, 1)
                self.assertIn(wanted, done.stderr.splitlines()[-1])
                self.assertNotIn(not_wanted, done.stderr.splitlines()[-1])

    def test_usage(self):
        done = self.set_up("everything")
        self.assertEqual(done.returncode, 1)
        self.assertIn("usage: launch/setup.sh [run|parquet|s3|kafka|hdfs|python|package|cuda|test|develop]", done.stderr)


class Versions(unittest.TestCase):
    def test_the_wheel_and_cmake_want_what_is_installed(self):
        script = SCRIPT.read_text()
        torch = re.search(r"^torch=(\S+)$", script, re.M).group(1)
        builder = re.search(r"scikit-build-core==[0-9.]+", script).group()
        wheel = tomllib.loads((SOURCE / "pyproject.toml").read_text())
        self.assertEqual(wheel["project"]["optional-dependencies"]["torch"], ["torch>=" + torch.rpartition(".")[0]])
        self.assertEqual(wheel["build-system"]["requires"], [builder])
        nanobind = re.search(r"nanobind==([0-9.]+)", script).group(1)
        self.assertIn(f"set(SATRAP_NANOBIND_VERSION {nanobind})", (SOURCE / "cmake/Nanobind.cmake").read_text())
        self.assertIn(f"set(SATRAP_TORCH_VERSION {torch})", (SOURCE / "cmake/TorchWheel.cmake").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
