"""The wheel, made of this build without compiling again, installed in a Python environment of its own: its commands
train in an empty folder and environment, also where another pyarrow is."""
import importlib.util
import json
import pathlib
import shutil
import sys
import tarfile
import tempfile
import unittest
import zipfile

from installed import BUILD, LIBRARIES, MADE, SOURCE, InstalledTest, run, skip_unless, skip_unless_packages_are_made

skip_unless_packages_are_made()
skip_unless(importlib.util.find_spec("scikit_build_core"), "scikit-build-core (launch/setup.sh test) is not here")


def build_wheel(folder):
    """As `pip wheel .`, but what it installs was built before."""
    settings = {"build-dir": folder / "build", "cmake.define.SATRAP_BUILD": BUILD}
    run(sys.executable, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder,
        *(word for name, value in settings.items() for word in ["-C", f"{name}={value}"]))
    wheel, = folder.glob("satrap-*.whl")
    return wheel


class WheelTest(InstalledTest):
    INSTALLED = ["--no-deps", "--no-index"]  # beside the wheel, or options of pip

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="satrap-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.wheel, = MADE.glob("satrap-*.whl") if MADE else [build_wheel(cls.scratch)]
        run(sys.executable, "-m", "venv", cls.scratch / "venv")
        cls.BIN = cls.scratch / "venv/bin"
        run(cls.BIN / "pip", "install", cls.wheel, *cls.INSTALLED)
        cls.packages, = (cls.scratch / "venv/lib").glob("python3*/site-packages")


class Wheel(WheelTest):
    def test_trains_where_nothing_else_is(self):
        self.check_programs(self.packages / "satrap/share/satrap/datasets/adult/quickstart.yaml")
        self.check_torch()

    def test_finds_the_pytorch_that_is_installed_beside_it(self):
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        (self.packages / "torch").symlink_to(torch)
        self.addCleanup((self.packages / "torch").unlink)
        self.assertRegex(self.satrap("satrap", "doctor"), r"torch +libtorch .*, in /.*/torch/lib\n")

    def python(self, program, **variables):
        """Runs it by the Python that has the wheel, with the NumPy of this one."""
        numpy = pathlib.Path(importlib.util.find_spec("numpy").origin).parent
        beside = self.dir / "numpy"
        beside.mkdir(exist_ok=True)
        for folder in (numpy, numpy.with_name("numpy.libs")):
            if folder.is_dir() and not (beside / folder.name).exists():
                (beside / folder.name).symlink_to(folder)
        return run(self.BIN / "python", "-c", program, cwd=self.dir, env={**self.env, "PYTHONPATH": str(beside), **variables})

    def test_python_has_its_engine_and_says_what_pytorch_would_add(self):
        said = self.python("""
import sys
import satrap
print(not {"numpy", "torch", "pyarrow", "onnxruntime"} & set(sys.modules), satrap.__file__)
job = satrap.Job({"run_dir": "run", "data": {"schema": "criteo", "train": {"path": "rows.tsv"}}})
print(job.numeric_width, len(job.features))
try:
    satrap.Trainer
except ImportError as error:
    print(error)
""")
        is_light, counts, message = said.splitlines()
        self.assertEqual(is_light, f"True {self.packages}/satrap/__init__.py")
        self.assertEqual(counts, "13 26")
        self.assertRegex(message, r"^satrap\.Trainer trains networks of PyTorch, .*pip install 'torch>=2\.11'")

    def test_python_trains_a_network(self):
        here = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]  # with what PyTorch needs
        adult = self.packages / "satrap/share/satrap/datasets/adult/quickstart.yaml"
        said = self.python(f"""
import satrap, torch
job = satrap.Job({str(adult)!r}, {{"run_dir": "run", "train.max_steps": 5}})
net = torch.nn.Linear(job.pooled_width, 1)
trainer = satrap.Trainer(job, net, torch.optim.SGD(net.parameters(), lr=0.1), predict=lambda batch: net(batch.pooled))
for batch in trainer:
    trainer.step(torch.nn.functional.binary_cross_entropy_with_logits(net(batch.pooled), batch.labels))
print("steps", trainer.summary["step"])
""", PYTHONPATH=str(here))
        self.assertEqual(said.splitlines()[-1], "steps 5")

    def test_is_for_its_python_and_brings_its_libraries(self):
        python = "cp312-abi3" if sys.version_info >= (3, 12) else "cp311-cp311"
        self.assertRegex(self.wheel.name, rf"^satrap-[0-9.]+-{python}-(many)?linux_\w+\.whl$")
        names = zipfile.ZipFile(self.wheel).namelist()
        for name in ["satrap/__init__.py", "satrap/py.typed", "satrap/_engine.pyi", "satrap_run/main.py", "satrap/bin/satrap", "satrap/bin/satrap-ps",
                     "satrap/lib/satrap/libsatrap_libtorch.so",
                     *(f"satrap/lib/satrap/libsatrap_{name}.so" for name in LIBRARIES)]:
            self.assertIn(name, names)
        self.assertEqual(sum(name.startswith("satrap/_engine.") and name.endswith(".so") for name in names), 1)
        for library in ["gloo", "curl", "rdkafka", "parquet-satrap"]:  # once each, though others link to it by a link
            self.assertEqual(sum(f"lib/satrap/lib{library}.so" in name for name in names), 1, library)

    @unittest.skipUnless(MADE, "this test has no archive: tests/wide/packages.sh")
    def test_is_of_the_same_build_as_the_archive(self):
        archive, = MADE.glob("*.tar.gz")
        with tarfile.open(archive) as packed, zipfile.ZipFile(self.wheel) as wheel:
            top = packed.next().name.split("/")[0]
            for name in ["bin/satrap", "bin/satrap-ps", *(f"lib/satrap/libsatrap_{name}.so" for name in LIBRARIES)]:
                self.assertEqual(packed.extractfile(f"{top}/{name}").read(), wheel.read(f"satrap/{name}"), name)

    def test_wants_pytorch_only_as_an_extra(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            metadata, = (name for name in wheel.namelist() if name.endswith("/METADATA"))
            wants = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist: ")]
        self.assertIn("Requires-Dist: numpy", wants)
        torch, = (line for line in wants if "torch" in line)
        self.assertRegex(torch, r"torch>=2\.11 ?; extra == .torch.$")


@unittest.skipUnless(MADE, "downloads another pyarrow: tests/wide/packages.sh")
class BesideAnotherPyarrow(WheelTest):
    INSTALLED = ["pyarrow==19.0.1"]  # whose libraries are libarrow.so.1900; and what the wheel depends on

    def python(self, program, *arguments):
        return run(self.BIN / "python", "-c", program, *arguments, cwd=self.dir)

    def test_trains_from_what_it_has_written(self):
        self.check_parquet(self.BIN / "python")
        self.check_parquet(self.BIN / "python", LD_LIBRARY_PATH=str(self.packages / "pyarrow"))
        self.assertIn("parquet    Arrow ", self.satrap("satrap", "doctor"))
        self.assertNotIn("Arrow 19.", self.satrap("satrap", "doctor"))

    def test_python_imports_both_without_pytorch(self):
        self.assertFalse((self.packages / "torch").exists())
        self.check_parquet(self.BIN / "python")
        self.satrap("satrap", "export", "--checkpoint", "parquet", "--out", "model")
        said = self.python("""
import pyarrow.parquet, satrap
print(pyarrow.__version__, pyarrow.parquet.read_table("rows.parquet").num_rows)
print(satrap.read_metrics("parquet")["train.loss"].size > 0)
try:
    satrap.Scorer("model")
except ImportError as error:
    print(error)
""")
        self.assertRegex(said, r"^19\.0\.1 2000\nTrue\nsatrap\.Scorer needs onnxruntime .*: pip install onnxruntime\n")

    def test_one_process_has_the_libraries_of_both(self):
        self.check_parquet(self.BIN / "python")
        said = self.python("""
import ctypes, pathlib, sys, pyarrow.parquet, satrap
libraries = pathlib.Path(satrap.__file__).parent / "lib/satrap"
for name in ["arrow", "s3"]:
    ctypes.CDLL(str(libraries / f"libsatrap_{name}.so"))
print(pyarrow.parquet.read_table("rows.parquet").num_rows)
maps = pathlib.Path("/proc/self/maps").read_text()
print(sorted({line.rsplit("/", 1)[1] for line in maps.splitlines() if "/libarrow" in line}))
""")
        self.assertIn("2000\n", said)
        for name in ["libarrow.so.1900", "libarrow-satrap.so.", "libarrow_s3-satrap.so."]:
            self.assertIn(name, said)

    def test_auditwheel_confirms_the_tag(self):
        tag = self.wheel.stem.rsplit("-", 1)[1]
        self.assertRegex(tag, r"^manylinux_2_\d+_")
        audit = [sys.executable, "-m", "auditwheel"]
        shown = json.loads(run(*audit, "show", "--json", "--disable-isa-ext-check", self.wheel))
        self.assertEqual(shown["sym_tag"], tag)
        self.assertEqual({name.split(".")[0] for name in shown["external_libs"]}, {"libc10", "libgomp", "libtorch_cpu"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
