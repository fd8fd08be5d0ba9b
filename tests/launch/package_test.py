"""Packages by cpack from this build: the archive, unpacked in an empty folder, trains in an empty environment; the .deb
names the libraries that it needs."""
import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from installed import BUILD, InstalledTest, run, skip_unless

skip_unless(not os.environ.get("SATRAP_SANITIZE"), "packages are made of builds without sanitizers")
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="satrap-package-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


@functools.cache
def package(generator, suffix):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", generator, "-B", SCRATCH / generator)
    found, = (SCRATCH / generator).glob(f"*{suffix}")
    return found


@functools.cache
def unpacked():
    run("tar", "xf", package("TGZ", ".tar.gz"), "-C", SCRATCH)
    folder, = SCRATCH.glob("satrap-*")
    return folder


class Archive(InstalledTest):
    def setUp(self):
        self.BIN = unpacked() / "bin"
        super().setUp()

    def test_trains_where_nothing_else_is(self):
        self.check_programs(unpacked() / "share/satrap/datasets/adult/quickstart.yaml")
        self.check_torch()

    def test_brings_its_libraries(self):
        used = subprocess.run(["ldd", self.BIN / "satrap"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("not found", used)
        self.assertNotIn(str(BUILD), used)
        for name in ["gloo", "fmt", "spdlog", "yaml-cpp", "crypto"]:
            path = re.search(rf"lib{name}\.so\S* => (\S+)", used).group(1)
            self.assertEqual(pathlib.Path(os.path.normpath(path)).parent, unpacked() / "lib/satrap")
        self.assertRegex(used, r"libc\.so\.6 => /(usr/)?lib")

    def test_knows_no_folder_of_this_machine(self):
        for file in [*self.BIN.glob("satrap*"), *(unpacked() / "lib/satrap").glob("libsatrap*")]:
            if "satrap-run" in file.name:
                continue
            dynamic = run("readelf", "-d", file)
            for path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
                self.assertTrue(all(part.startswith("$ORIGIN") for part in path.split(":")), f"{file.name}: {path}")

    def test_has_licences(self):
        licences = {file.name for file in (unpacked() / "share/satrap").rglob("*") if file.is_file()}
        self.assertLessEqual({"LICENSE", "README.md"}, licences)
        if pathlib.Path("/usr/share/doc/libgloo-dev/copyright").exists():
            self.assertIn("libgloo.txt", licences)


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "dpkg-shlibdeps, of Debian, is not here")
class DebianPackage(unittest.TestCase):
    def test_depends_on_libraries_and_brings_none(self):
        fields = run("dpkg-deb", "--field", package("DEB", ".deb"))
        depends = re.search(r"^Depends: (.*)$", fields, re.M).group(1)
        for name in ["libc6", "libfmt", "libgloo", "libspdlog", "libssl3", "libyaml-cpp", "python3 (>= 3.11)"]:
            self.assertIn(name, depends)
        self.assertNotIn("cuda", depends)
        files = run("dpkg-deb", "--contents", package("DEB", ".deb"))
        for name in ["/usr/bin/satrap", "/usr/bin/satrap-ps", "/usr/lib/satrap/libsatrap_libtorch.so"]:
            self.assertRegex(files, rf"\.{name}\n")
        self.assertRegex(files, r"\./usr/bin/satrap-run -> \.\./share/satrap/launch/satrap-run")
        self.assertNotIn("libgloo.so", files)


if __name__ == "__main__":
    unittest.main(verbosity=2)
