"""The stages that are no preset: the format of every source, and clang-tidy."""

import concurrent.futures
import json
import pathlib
import subprocess

import build

SOURCES = ("*.h", "*.cpp", "*.cu", "*.cuh")
# Not by clang-tidy: those with torch's headers, which cost half a minute each, what protoc has made, and what only tests
# are made of.
NOT_TIDIED = ("/satrap_libtorch.dir/", "/protobuf/", "/satrap_simt.dir/", "/satrap_test_support.dir/")


def check_format(jobs, clock, show):
    """(whether it is good, what to do)"""
    del jobs, clock, show
    files = subprocess.run(["git", "ls-files", "-z", *SOURCES], capture_output=True, text=True, check=True)
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files.stdout.strip("\0").split("\0")],
                          capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr[-5000:] + "\nrun clang-format-19 -i on the files above"


def tidied(folder):
    """Sources of modules, programs, tests and benchmarks, several of them as one, since most of the time goes into
    headers that all of them include; and those of modules that are compiled alone, for their flags. The tests that
    compile every source and header alone would add nothing and are left out."""
    entries = json.loads((folder / "compile_commands.json").read_text())
    files = [entry["file"] for entry in entries
             if "/Unity/" in entry["file"] or "-o CMakeFiles/satrap_" in entry["command"]]
    return [file for file in files if not any(part in file for part in NOT_TIDIED)]


def check_tidy(jobs, clock, show):
    """Runs clang-tidy, with the settings of .clang-tidy. Of a compiler's warnings it has those of locks alone."""
    folder = pathlib.Path("build/tidy")
    said = []
    configured = build.Build("release", jobs, clock, show, said.append).configure(
        "-B", str(folder), "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0")
    if not configured:
        return False, "\n".join(said)
    files = tidied(folder)
    findings = []

    def check(file):
        with clock.start(["tests/support/tidy.sh", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace") as process:
            output = process.stdout.read()
        return process.returncode, output

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(check, file): file for file in files}
        try:
            for done, future in enumerate(concurrent.futures.as_completed(running), 1):
                status, output = future.result()
                name = pathlib.Path(running[future]).parts[-3].removesuffix(".dir")
                show(done, len(files), name, status != 0)
                if status != 0:
                    findings.append(output)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            clock.end_all()
            raise
    return not findings and bool(files), "".join(findings) or "no source to check"


CHECKS = {"format": check_format, "tidy": check_tidy}
