"""Packages by cpack from this build: the archive, unpacked in an empty folder, and the .deb train in an empty environment;
the .deb names the libraries that it needs. Builds that are none of a package are refused."""
import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from installed import BUILD, LIBRARIES, MADE, SOURCE, InstalledTest, run, skip_unless_packages_are_made

skip_unless_packages_are_made()
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="satrap-package-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


@functools.cache
def package(generator, suffix):
    if MADE:
        made, = MADE.glob(f"*{suffix}")
        return made
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", generator, "-B", SCRATCH / generator)
    found, = (SCRATCH / generator).glob(f"*{suffix}")
    return found


@functools.cache
def unpacked():
    run("tar", "xf", package("TGZ", ".tar.gz"), "-C", SCRATCH)
    folder, = SCRATCH.glob("satrap-*")
    return folder


@functools.cache
def unpacked_deb():
    run("dpkg-deb", "--extract", package("DEB", ".deb"), SCRATCH / "root")
    return SCRATCH / "root/usr"


def needed_by(library):
    """What an ELF file needs, its own name first."""
    return re.findall(r"\((?:SONAME|NEEDED)\).*\[(.*)\]", run("readelf", "--dynamic", library))


class Refusal(unittest.TestCase):
    """Of what is no package's build; nothing is compiled."""

    def configure(self, preset, *options):
        folder = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
        return folder, subprocess.run(["cmake", "--preset", preset, "-B", folder, *options], cwd=SOURCE,
                                      capture_output=True, text=True)

    def assert_words(self, words, text):
        self.assertIn(words, " ".join(text.split()))

    def test_what_is_missing_is_named_with_what_brings_it(self):
        _, done = self.configure("package", "-DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON", "-DRDKAFKA_LIBRARY=",
                                 "-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assert_words("A package has every reader, and this build is without: S3 (libcurl 7.88 or newer and pyarrow",
                          done.stderr)
        self.assert_words("ONNX (protobuf 3.21 or newer: ./launch/setup.sh run)", done.stderr)
        for command in ["s3", "hdfs", "kafka"]:
            self.assert_words(f": ./launch/setup.sh {command})", done.stderr)
        self.assertNotIn("Parquet", done.stderr)

    def test_without_patchelf_there_is_no_package(self):
        _, done = self.configure("package", "-DSATRAP_PATCHELF=")
        self.assertNotEqual(done.returncode, 0)
        self.assert_words("without: names of its own for Arrow's libraries (patchelf: ./launch/setup.sh package).",
                          done.stderr)

    def test_cpack_refuses_a_build_without_a_reader(self):
        folder, done = self.configure("release", "-DRDKAFKA_LIBRARY=")
        self.assertEqual(done.returncode, 0, done.stderr)
        packed = subprocess.run(["cpack", "-G", "TGZ", "-B", folder / "made"], cwd=folder, capture_output=True, text=True)
        self.assertNotEqual(packed.returncode, 0)
        self.assert_words("without: Kafka (librdkafka", packed.stderr)
        self.assertFalse(list(folder.glob("made/*.tar.gz")))


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

    def test_brings_the_libraries_of_readers(self):
        folder = unpacked() / "lib/satrap"
        for name in LIBRARIES:
            used = run("ldd", folder / f"libsatrap_{name}.so")
            for library, path in re.findall(r"(\S+) => (.*) \(", used):
                if not re.match(r"lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)\.so", library):
                    self.assertEqual(pathlib.Path(os.path.normpath(path)).parent, folder, f"{name}: {library}")

    def test_arrows_libraries_have_names_of_their_own(self):
        folder = unpacked() / "lib/satrap"
        files = sorted(file.name for file in folder.glob("lib*") if re.match("lib(arrow|parquet)", file.name))
        self.assertEqual([re.sub(r"\.so\.\d+$", "", name) for name in files],
                         ["libarrow-satrap", "libarrow_s3-satrap", "libparquet-satrap"])
        for name in [*files, "libsatrap_arrow.so", "libsatrap_s3.so"]:
            needed = needed_by(folder / name)
            if name in files:
                self.assertIn(name, needed)
            self.assertLessEqual({file for file in needed if re.match("lib(arrow|parquet)", file)}, set(files))

    def test_knows_no_folder_of_this_machine(self):
        for file in [*self.BIN.glob("satrap*"), *(unpacked() / "lib/satrap").glob("lib*")]:
            if "satrap-run" in file.name:
                continue
            dynamic = run("readelf", "-d", file)
            for path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
                self.assertTrue(all(part.startswith("$ORIGIN") for part in path.split(":")), f"{file.name}: {path}")

    def test_has_the_pages_that_its_readme_names(self):
        folder = unpacked() / "share/satrap"
        named = set(re.findall(r"\]\((docs/[^)#]+)", (folder / "README.md").read_text()))
        self.assertGreater(len(named), 10)
        self.assertEqual([], sorted(name for name in named if not (folder / name).is_file()))

    def test_has_licences(self):
        licences = {file.name for file in (unpacked() / "share/satrap").rglob("*") if file.is_file()}
        self.assertLessEqual({"LICENSE", "README.md"}, licences)
        self.assertIn("arrow.txt", licences)
        if shutil.which("dpkg-query"):
            for package in ["libgloo", "libprotobuf-lite", "librdkafka", "libcurl"]:
                self.assertTrue(any(name.startswith(package) for name in licences), package)


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "dpkg-shlibdeps, of Debian, is not here")
class DebianPackage(InstalledTest):
    def setUp(self):
        self.BIN = unpacked_deb() / "bin"
        super().setUp()

    def test_trains_where_nothing_else_is(self):
        self.check_programs(unpacked_deb() / "share/satrap/datasets/adult/quickstart.yaml")

    def test_is_of_the_same_build_as_the_archive(self):
        for name in ["bin/satrap", "bin/satrap-ps", *(f"lib/satrap/libsatrap_{name}.so" for name in LIBRARIES)]:
            self.assertEqual((unpacked_deb() / name).read_bytes(), (unpacked() / name).read_bytes(), name)

    @unittest.skipUnless(MADE, "the sources of packages may not be here: tests/wide/packages.sh")
    def test_apt_would_install_it(self):
        self.assertIn("Inst satrap (", run("apt-get", "install", "--simulate", package("DEB", ".deb")))

    def test_depends_on_libraries_and_brings_none(self):
        fields = run("dpkg-deb", "--field", package("DEB", ".deb"))
        depends = re.search(r"^Depends: (.*)$", fields, re.M).group(1)
        for name in ["libc6", "libcurl4", "libfmt", "libgloo", "libprotobuf-lite32", "librdkafka1", "libspdlog", "libssl3",
                     "libyaml-cpp", "python3 (>= 3.11)"]:
            self.assertIn(name, depends)
        self.assertNotIn("cuda", depends)
        files = run("dpkg-deb", "--contents", package("DEB", ".deb"))
        for name in ["/usr/bin/satrap", "/usr/bin/satrap-ps", "/usr/lib/satrap/libsatrap_libtorch.so"]:
            self.assertRegex(files, rf"\.{name}\n")
        self.assertRegex(files, r"\./usr/bin/satrap-run -> \.\./share/satrap/launch/satrap-run")
        self.assertNotIn("libgloo.so", files)


if __name__ == "__main__":
    unittest.main(verbosity=2)
