"""The library of a build with CUDA that computes dense networks on a GPU has all it needs: it opens, also without a
driver, and has its entry. Skipped in a build without CUDA."""
import ctypes
import os
import pathlib
import sys
import unittest

LIBRARY = pathlib.Path(os.environ["SATRAP_BUILD_DIR"], "lib", "libsatrap_libtorch_cuda.so")


class LibtorchForCuda(unittest.TestCase):
    def test_opens_and_has_its_entry(self):
        library = ctypes.CDLL(str(LIBRARY), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        library.satrap_libtorch.restype = ctypes.c_void_p
        self.assertIsNotNone(library.satrap_libtorch())


if __name__ == "__main__":
    if not LIBRARY.exists():
        print("skipped: a build without CUDA")
        sys.exit(77)
    unittest.main(verbosity=2)
