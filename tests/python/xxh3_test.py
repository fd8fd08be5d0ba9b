"""The hash of texts is that of libxxhash, which satrap is linked with."""
import ctypes
import os
import pathlib
import random
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
sys.path.insert(0, str(SOURCE / "python"))
from satrap.xxh3 import xxh3  # noqa: E402

LIBRARY = ctypes.CDLL("libxxhash.so.0")
LIBRARY.XXH3_64bits.restype = ctypes.c_uint64
LIBRARY.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


class Xxh3(unittest.TestCase):
    def test_every_length_up_to_three_hundred_and_the_edges_of_blocks(self):
        draw = random.Random(1)
        for length in [*range(300), 511, 512, 513, 1023, 1024, 1025, 1087, 1088, 1089, 2047, 2048, 2049, 5000]:
            data = draw.randbytes(length)
            self.assertEqual(xxh3(data), LIBRARY.XXH3_64bits(data, length), length)


if __name__ == "__main__":
    unittest.main(verbosity=2)
