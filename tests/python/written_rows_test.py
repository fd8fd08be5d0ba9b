"""Rows of programs: what is written to Parquet is what was given."""
import gc
import random
import sys
import unittest
import weakref

import numpy as np

from engine_case import PACKAGE, EngineCase, satrap

if not (PACKAGE.parent / "lib/libsatrap_arrow.so").is_file():
    print("skipped: this build is without Arrow, which launch/setup.sh parquet installs")
    sys.exit(77)
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError:
    pa = None

from satrap.arrow import Batch
from satrap.job import _engine
from satrap.rows_of_programs import write_rows


@unittest.skipUnless(pa, "pyarrow is not installed")
class Written(EngineCase):
    """What is written is what was given."""

    def written(self, data):
        path = self.dir / "rows.parquet"
        write_rows(data, path)
        self.assertEqual([one.name for one in self.dir.glob("rows*")], ["rows.parquet"])
        return pq.read_table(path)

    def test_every_type_of_arrow(self):
        rng = random.Random(4)
        n = 5000

        def some(make):
            return [None if rng.random() < 0.2 else make() for _ in range(n)]

        texts = ["", "a", "é", "long" * 50]
        table = pa.table({
            "truth": pa.array(some(lambda: rng.random() < 0.5)), "byte": pa.array(some(lambda: rng.randrange(256)), pa.uint8()),
            "id": pa.array(some(lambda: rng.randrange(2**64)), pa.uint64()), "number": pa.array(some(rng.random), pa.float32()),
            "text": pa.array(some(lambda: rng.choice(texts))), "large": pa.array(some(lambda: rng.choice(texts)), pa.large_utf8()),
            "view": pa.array(some(lambda: rng.choice(texts)), pa.string_view()),
            "category": pa.array(some(lambda: rng.choice(texts))).dictionary_encode(),
            "day": pa.array(some(lambda: rng.randrange(20000)), pa.date32()),
            "time": pa.array(some(lambda: rng.randrange(2**50) * 1000), pa.timestamp("ns", "UTC")),
            "ids": pa.array(some(lambda: [rng.randrange(9) for _ in range(rng.randrange(4))]), pa.list_(pa.int64())),
            "struct": pa.array(some(lambda: {"x": rng.randrange(5)}))})
        views = pa.DictionaryArray.from_arrays(pa.array(some(lambda: rng.randrange(4)), pa.int32()),
                                               pa.array(texts, pa.string_view()))
        table = table.append_column("category_of_views", views)
        self.assertEqual(self.written(table).to_pylist(), table.to_pylist())
        many = (batch for _ in range(3) for batch in table.to_batches(1234))
        self.assertEqual(self.written(many).to_pylist(), table.to_pylist() * 3)

    def test_every_type_of_numpy(self):
        day = np.datetime64("2026-11-29", "D")
        columns = {
            "truth": np.array([True, False, True]), "byte": np.array([1, 2, 255], np.uint8), "half": np.array([1, 2, 0.5], "f2"),
            "big": np.array([1, 2, 3], ">i4"), "strided": np.arange(6, dtype=np.float32)[::2], "text": np.array(["a", "é", ""]),
            "day": np.array([day, "NaT", day], "M8[D]"), "time": np.array([day, "NaT", day], "M8[ns]"),
            "objects": np.array(["x", None, "y"], object), "ints": [1, None, 2**63 - 1], "ids": [1, 2, 2**64 - 1],
            "floats": [1, 0.5, float("nan")], "truths": [True, None, False], "nothing": [None, None, None],
            "lists": [[1, 2], None, []], "names": [["a"], ["b", "c"], []], "arrays": [np.array([1]), np.array([2, 3]), None]}
        got = self.written(columns).to_pydict()
        wanted = {name: list(values) if isinstance(values, list) else values.tolist() for name, values in columns.items()}
        wanted["floats"][2] = None
        wanted["arrays"] = [[1], [2, 3], None]
        got["day"] = [None if time is None else time.date() for time in got["day"]]
        wanted["time"], got["time"] = [day, None, day], [None if time is None else np.datetime64(time, "D") for time in got["time"]]
        self.assertEqual(got, wanted)

    def test_masks_and_units_of_numpy(self):
        second = np.datetime64("1970-01-01T00:00:01", "s")
        columns = {"masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "tens": np.array([second, "NaT", second], "M8[10ms]"),
                   "swapped": np.array([second, "NaT", second], ">M8[ms]")}
        got = self.written(columns).to_pydict()
        self.assertEqual(got["masked"], [1, None, 3])
        for name in ("tens", "swapped"):
            self.assertEqual([None if time is None else np.datetime64(time) for time in got[name]], [second, None, second])

    def test_a_file_that_cannot_be_written(self):
        self.assert_refused(satrap.Error, lambda: write_rows({"a": [1]}, self.dir / "nowhere/rows.parquet"), "nowhere",
                            "cannot be written")

    def test_what_is_given_out_is_released(self):
        gone = []
        batch = Batch({"a": np.arange(3)})
        capsule = batch.__arrow_c_stream__()
        self.assertTrue(batch._stream.release)
        writer = _engine.write_parquet(str(self.dir / "rows.parquet"))
        writer.append(capsule)
        writer.finish()
        self.assertFalse(batch._stream.release)
        self.assertEqual(gone, [])
        gc.disable()
        self.addCleanup(gc.enable)
        weakref.finalize(batch, gone.append, "batch")
        del batch
        self.assertEqual(gone, ["batch"], "without a collection of cycles")


if __name__ == "__main__":
    unittest.main()
