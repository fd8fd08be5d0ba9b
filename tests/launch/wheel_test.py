"""The wheel, made of this build without compiling again, installed in a Python environment of its own: its commands
train in an empty folder and environment."""
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import zipfile

from installed import BUILD, SOURCE, InstalledTest, run, skip_unless

skip_unless(not os.environ.get("SATRAP_SANITIZE"), "packages are made of builds without sanitizers")
skip_unless(importlib.util.find_spec("scikit_build_core"), "scikit-build-core (launch/setup.sh test) is not here")


def build_wheel(folder):
    """As `pip wheel .`, but what it installs was built before."""
    settings = {"build-dir": folder / "build", "cmake.source-dir": "tests/launch/prebuilt", "cmake.args": "",
                "build.targets": "all", "cmake.define.SATRAP_BUILD": BUILD}
    run(sys.executable, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder,
        *(word for name, value in settings.items() for word in ["-C", f"{name}={value}"]))
    wheel, = folder.glob("satrap-*.whl")
    return wheel


class Wheel(InstalledTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.wheel = build_wheel(cls.scratch)
        run(sys.executable, "-m", "venv", cls.scratch / "venv")
        cls.BIN = cls.scratch / "venv/bin"
        run(cls.BIN / "pip", "install", "--no-deps", "--no-index", cls.wheel)
        cls.packages, = (cls.scratch / "venv/lib").glob("python3*/site-packages")

    def test_trains_where_nothing_else_is(self):
        self.check_programs(self.packages / "satrap/share/satrap/datasets/adult/quickstart.yaml")
        self.check_torch()

    def test_finds_the_pytorch_that_is_installed_beside_it(self):
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        (self.packages / "torch").symlink_to(torch)
        self.addCleanup((self.packages / "torch").unlink)
        self.assertRegex(self.satrap("satrap", "doctor"), r"torch +libtorch .*, in /.*/torch/lib\n")

    def test_is_for_every_python_and_brings_its_libraries(self):
        self.assertRegex(self.wheel.name, r"^satrap-[0-9.]+-py3-none-linux_\w+\.whl$")
        names = zipfile.ZipFile(self.wheel).namelist()
        for name in ["satrap/__init__.py", "satrap_run/main.py", "satrap/bin/satrap", "satrap/bin/satrap-ps",
                     "satrap/lib/satrap/libsatrap_libtorch.so"]:
            self.assertIn(name, names)
        self.assertTrue(any("lib/satrap/libgloo.so" in name for name in names))
        metadata = next(name for name in names if name.endswith("/METADATA"))
        self.assertIn("Requires-Dist: torch==", zipfile.ZipFile(self.wheel).read(metadata).decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
