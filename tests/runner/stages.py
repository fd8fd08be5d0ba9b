"""What each stage builds and runs. A stage is a preset of CMake, whose tests ctest runs, or a check of its own."""

import dataclasses
import glob
import os
import pathlib
import re
import shutil
import subprocess

# After release, in this order, turned by the number of commits.
LATER = ["asan", "tsan", "fuzz", "tidy", "cuda"]

NOT_FOR_ASAN = (
    r"^app\.(cache|command_line|config(uration_page)?|early_stopping|formats|init|init_samples|job|kafka(_columns)?"
    r"|labels|network|newcomer|page(s|_jobs)|parquet|prepare(_folder)?|progress|report|store_(owners|runs)|stores"
    r"|tensorboard)_test$"
    r"|^process\.(adult|auto_device|checkpoint_format|cluster_faults|din|export|fp16|kafka|loaders|portable_bits"
    r"|pytorch_parity|store_cluster|stores|strangers|torchscript)_test$")

# Of modules that tsan tests, suites that take long and have one thread, in which it can find nothing.
OF_ONE_THREAD = (r"^table\.(Limits/TableLimits|TableLimitsMemory|StepClock|Sharding|RowIndexTest)$"
                 r"|^backend\.Device(Backward|Plan|PoolForward|Resolve|RoundTrip|Rows|Window)$")


@dataclasses.dataclass(frozen=True)
class Selection:
    """build: arguments of `cmake --build`; select: of ctest; says: what a user should know of it."""
    build: list = dataclasses.field(default_factory=list)
    select: list = dataclasses.field(default_factory=list)
    says: str = ""


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def num_commits():
    return int(output_of("git", "rev-list", "--count", "HEAD") or 0)


def turned(items, number):
    """The same items, beginning with another one for each number."""
    return items[number % len(items):] + items[:number % len(items)] if items else []


def modules():
    """Their names, lowest layer first."""
    return re.findall(r"^satrap_module\(([a-z]*)", pathlib.Path("CMakeLists.txt").read_text(), re.M)


def changed_modules():
    """Those that were changed since the last commit, or by it."""
    files = output_of("git", "diff", "--name-only", "HEAD") + output_of("git", "ls-files", "-o", "--exclude-standard")
    files = files or output_of("git", "diff", "--name-only", "HEAD~1")
    return set(re.findall(r"^(?:(?:include/satrap|src|cuda|tests|bench)/|(?=python/))([a-z]+)/", files, re.M))


def labels_of(module):
    """Programs of tests, and labels of ctest, that a module has beside its own."""
    found = []
    if module == "data" and glob.glob(".venv/lib/python3*/site-packages/pyarrow"):
        found.append("data_parquet")
    if module == "data" and os.path.exists("/usr/include/librdkafka/rdkafka.h"):
        found += ["data_kafka", "loader_kafka"]
    return found


def quick():
    """The C++ tests of the modules that were changed and of those that may depend on them, which are below them in
    CMakeLists.txt; the Python tests of the changed modules alone."""
    changed, labels, others, build = changed_modules(), ["architecture", "runner"], [], ["--target", "satrap"]
    found = False
    for module in [*modules(), "launch", "python"]:
        if module in changed:
            found = True
        else:
            others.append(module)
        if not found:
            continue
        labels += [module, *labels_of(module)]
        if glob.glob(f"tests/{module}/*_test.cpp"):
            build.append(f"{module}_tests")
        build += [f"{label}_tests" for label in labels_of(module)]
        if module in ("backend", "embedding"):
            labels.append("simt")
            build.append(f"{module}_simt_tests")
    left_out = (r"^architecture\.(header|source)_tests|^backend_ptx|^ptx\.|^(" + "|".join(others) +
                r")\.[a-z0-9_]+_test$|mutants")
    return Selection(build, ["-L", f"^({'|'.join(labels)})$", "-E", left_out],
                     f"{' '.join(sorted(changed)) or 'no module'} changed; tests of {' '.join(labels)}")


def selection_of(preset):
    if preset == "release":
        # A sixteenth of the headers and sources is compiled alone, another one after each commit (tests/architecture).
        others = "|".join(str(part) for part in range(16) if part != num_commits() % 16)
        return Selection(select=["-E", rf"^architecture\.(header|source)_tests_({others})$"])
    if preset == "cuda":
        # Only what differs: the kernels, compiled by nvcc, their registers, their tests, libtorch's and NCCL.
        return Selection(["--target", "backend_tests", "satrap_libtorch_cuda", "collective_tests"],
                         ["-L", "^(backend|collective)$", "-E", r"^collective\.(FaultTest|Ranks)"])
    if preset == "asan":
        # All modules, and what whole programs do beyond them: signals, kills, full disks, resumed jobs, exports.
        return Selection(select=["-LE", "^(launch|architecture|job|python|runner)$", "-E", NOT_FOR_ASAN])
    if preset == "tsan":
        threaded = [module for module in modules() if module not in ("app", "cli", "job", "kernels")]
        return Selection(["--target", "sanitizer_canary", *(f"{module}_tests" for module in threaded)],
                         ["-L", f"^(sanitizers|{'|'.join(threaded)})$", "-E", OF_ONE_THREAD])
    return Selection()


def options_of(preset):
    """Of cmake. Clang compiles asan and tsan in three quarters of GCC's time and its programs are faster; without it
    the machine's compiler."""
    if preset in ("asan", "tsan") and not shutil.which("clang++-19"):
        return ["-DCMAKE_CXX_COMPILER=c++"]
    return []


def wrap_of(preset):
    """ThreadSanitizer of GCC 12 and 13 fails if the kernel randomises addresses by more than 28 bits."""
    if preset != "tsan" or not shutil.which("setarch"):
        return []
    can = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode == 0
    return ["setarch", "-R"] if can else []


def can_fuzz():
    """Whether clang and its libraries for fuzzers are here."""
    if not shutil.which("clang++-19"):
        return False
    program = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    return subprocess.run(["clang++-19", "-x", "c++", "-fsanitize=fuzzer,address,undefined", "-o", "/dev/null", "-"],
                          input=program, capture_output=True, text=True, check=False).returncode == 0


def fuzzers():
    return sorted(f"fuzz.{path.name.removesuffix('_fuzz.cpp')}" for path in pathlib.Path("tests/fuzz").glob("*_fuzz.cpp"))
