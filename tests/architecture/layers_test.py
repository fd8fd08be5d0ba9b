"""Checks every include against the layers of the project, and vendor headers against their folders.

A module includes only modules of lower layers, and of those the public headers. Headers of CUDA and NCCL are included only in cuda/, in the executor
that stands in for the device, and in one file of the benchmarks (graphs, which backend::Device does not have); those of
libtorch only in src/dense/libtorch/ and cuda/dense/libtorch/, those of Arrow only in src/data/arrow/, src/data/s3/ and
in the tests and benchmarks of Parquet, which write files with it, those of libcurl only in src/data/http/, those of
protobuf only in src/dense/onnx/, those of
librdkafka only in src/data/kafka/ and in the tests and benchmarks of Kafka, those of nanobind only in src/engine/, those of simdjson only where JSON lines are
read and in the benchmarks of readers, those of OpenSSL only in src/net/ and for MD5, those of Gloo only in src/net/,
and in the tests and benchmarks of net, which compare our transport with Gloo itself.
"""

import os
import pathlib
import re
import unittest

from trees import TreeTest

LAYERS = [
    {"core"},
    {"kernels", "net"},
    {"table", "backend"},
    {"collective"},
    {"data", "ps"},
    {"job", "loader", "prepare"},
    {"embedding", "dense", "cli"},
    {"pipeline"},
    {"checkpoint"},
    {"trainer"},
    {"app"},
    {"engine"},
    {"launch"},
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}

# Names of the vendors' headers, and the folders that may include them.
VENDORS = [
    ("CUDA", re.compile(r"(cuda|cub/|thrust/|cooperative_groups|nccl|cublas|nv|driver_types)"), ["cuda/", "tests/support/simt/", "tests/support/ptx/", "bench/backend/cuda_hooks.cpp"]),
    ("libtorch", re.compile(r"(torch|ATen|c10|caffe2)/"), ["src/dense/libtorch/", "cuda/dense/libtorch/"]),
    ("Arrow", re.compile(r"(arrow|parquet)/"), ["src/data/arrow/", "src/data/s3/", "tests/data_parquet/", "bench/data_parquet/"]),
    ("simdjson", re.compile(r"simdjson"), ["src/data/text/json_fields.cpp", "bench/data/"]),
    ("librdkafka", re.compile(r"librdkafka/"), ["src/data/kafka/", "tests/data_kafka/", "bench/data_kafka/"]),
    ("protobuf", re.compile(r"google/protobuf/|onnx\.pb\.h"), ["src/dense/onnx/"]),
    ("libcurl", re.compile(r"curl/"), ["src/data/http/"]),
    ("nanobind", re.compile(r"nanobind/|Python\.h"), ["src/engine/"]),
    ("OpenSSL", re.compile(r"openssl/"), ["src/net/", "src/prepare/md5.cpp"]),
    ("Gloo", re.compile(r"gloo/"), ["src/net/", "tests/net/", "bench/net/"]),
]

# Includes of another module's private header that are known: file, header, and why it is not public.
PRIVATE = {
    ("cuda/collective/nccl_communicator.cpp", "cuda/backend/check.h"): "it has CUDA's types, which no public header has",
    ("tests/pipeline/partitioned_training.h", "src/embedding/divide_cache.h"): "tests alone count the memory of a window",
}

FOLDERS = ["include/satrap", "src", "cuda", "launch", "tests", "bench"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "samples" not in path.parts:
                yield path


def module_of(relative):
    """The module of a file, or None if it belongs to no layer (tests/process, tests/support)."""
    parts = pathlib.PurePosixPath(relative).parts
    if parts[0] == "launch":
        return "launch"
    module = parts[2 if parts[0] == "include" else 1]
    if parts[0] in ("tests", "bench") and module not in LEVEL:
        return None
    return module


def included_module(name):
    match = re.match(r"(?:satrap|src|cuda)/(\w+)/", name)
    return match and match.group(1)


def complaint(root, path, kind, name):
    """Why this include is forbidden, or None."""
    relative = path.relative_to(root).as_posix()
    module = module_of(relative)
    if module is not None and module not in LEVEL:
        return f"'{module}' is not a module: the layers are {' → '.join(' | '.join(sorted(l)) for l in LAYERS)}"
    if name.startswith("../") or "/../" in name:
        return "leaves its folder; name the header from the top"
    target = included_module(name)
    if target is not None:
        if target not in LEVEL:
            return f"'{target}' is not a module"
        if relative.startswith("include/") and not name.startswith("satrap/"):
            return "a public header includes a private one"
        if module is not None and target != module and LEVEL[target] >= LEVEL[module]:
            return f"{module} may include only modules of lower layers, not {target}"
        if not name.startswith("satrap/") and module not in (None, target) and (relative, name) not in PRIVATE:
            return f"a private header of {target}; {module} may include those of include/satrap/{target}/"
        return None
    if kind == '"' and not (root / name).exists():
        return "no header of satrap; name it from the top, and vendor headers in <>"
    for vendor, pattern, rooms in VENDORS:
        if pattern.match(name) and not relative.startswith(tuple(rooms)):
            return f"headers of {vendor} only in {', '.join(rooms)}"
    return None


def violations(root):
    root = pathlib.Path(root)
    found = []
    for path in sources(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            reason = match and complaint(root, path, *match.groups())
            if reason:
                found.append(f"{path.relative_to(root)}:{number}: {match.group(2)}: {reason}")
    return found


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def assert_refused(self, name, line, reason):
        found = self.check({name: f"\n{line}\n"})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{name}:2: "), found)
        self.assertIn(reason, found[0])

    def test_lower_layers_and_vendors_in_their_rooms_pass(self):
        self.assertEqual([], self.check({
            "src/ps/shard.cpp": '#include "satrap/ps/shard.h"\n#include "satrap/core/error.h"\n#include <vector>\n',
            "src/dense/libtorch/module.cpp": "#include <torch/torch.h>\n#include <ATen/ATen.h>\n",
            "src/net/endpoint.cpp": "#include <gloo/context.h>\n",
            "cuda/kernels/pool.cu": "#include <cub/cub.cuh>\n#include <cuda_runtime.h>\n",
            "src/app/main.cpp": '#include "src/app/row.h"\n',
            "src/app/row.h": "",
            "launch/satrap.cpp": '#include "satrap/app/run.h"\n',
            "tests/process/kill_test.cpp": '#include "satrap/trainer/step.h"\n',
        }))

    def test_upward_include_is_refused(self):
        self.assert_refused("src/core/log.cpp", '#include "satrap/ps/shard.h"', "core may include only")

    def test_include_of_the_same_layer_is_refused(self):
        self.assert_refused("include/satrap/data/batch.h", '#include "satrap/ps/shard.h"', "data may include only")

    def test_upward_include_of_a_test_is_refused(self):
        self.assert_refused("tests/data/csv_test.cpp", '#include "satrap/trainer/step.h"', "data may include only")

    def test_private_header_of_an_upper_layer_is_refused(self):
        self.assert_refused("src/ps/shard.cpp", '#include "src/trainer/step.h"', "ps may include only")

    def test_private_header_of_another_module_is_refused(self):
        for name in ("src/trainer/step.cpp", "cuda/dense/step.cu", "tests/trainer/step_test.cpp"):
            for header in ("src/net/link.h", "cuda/backend/check.h"):
                self.assert_refused(name, f'#include "{header}"', "a private header of")

    def test_private_headers_are_open_to_tests_of_no_module_and_where_they_are_known(self):
        self.assertEqual([], self.check({"tests/fuzz/net_fuzz.cpp": '#include "src/net/link.h"\n',
                                         **{name: f'#include "{header}"\n' for name, header in PRIVATE}}))

    def test_private_header_in_a_public_one_is_refused(self):
        self.assert_refused("include/satrap/app/run.h", '#include "src/app/row.h"', "public header")

    def test_torch_outside_dense_is_refused(self):
        self.assert_refused("src/trainer/step.cpp", "#include <ATen/core/Tensor.h>", "libtorch only in src/dense/libtorch/")
        self.assert_refused("include/satrap/dense/model.h", "#include <torch/torch.h>", "libtorch only in src/dense/libtorch/")

    def test_cuda_outside_its_folder_is_refused(self):
        self.assert_refused("src/backend/cpu.cpp", "#include <cuda_runtime.h>", "CUDA only in cuda/")
        self.assert_refused("src/collective/all.cpp", "#include <nccl.h>", "CUDA only in cuda/")

    def test_gloo_outside_its_folders_is_refused(self):
        for name in ("src/ps/server.cpp", "src/collective/sum.cpp"):
            self.assert_refused(name, "#include <gloo/context.h>", "Gloo only in src/net/")

    def test_unknown_module_is_refused(self):
        self.assert_refused("src/utils/misc.cpp", "#include <vector>", "'utils' is not a module")

    def test_relative_path_is_refused(self):
        self.assert_refused("src/ps/shard.cpp", '#include "../core/error.h"', "leaves its folder")

    def test_vendor_header_in_quotes_is_refused(self):
        self.assert_refused("src/ps/shard.cpp", '#include "zstd.h"', "vendor headers in <>")
        self.assertIn("name it from the top", self.check({"src/ps/shard.h": "", "src/ps/a.cpp": '#include "shard.h"\n'})[0])


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_every_include_follows_the_layers(self):
        self.assertEqual([], violations(self.root))

    def test_every_known_include_of_a_private_header_is_there(self):
        for name, header in PRIVATE:
            self.assertIn(f'#include "{header}"', (self.root / name).read_text(encoding="utf-8"), name)

    def test_the_check_sees_the_sources(self):
        modules = {module_of(path.relative_to(self.root).as_posix()) for path in sources(self.root)}
        self.assertIn("core", modules)


if __name__ == "__main__":
    unittest.main()
