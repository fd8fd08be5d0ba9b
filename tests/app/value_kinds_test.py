"""One value is one id and one number, whatever format it is written in: some sixty kinds of values, in text as pandas
writes it, JSON lines, Parquet, Arrow, libsvm as far as it can, and as Python's values in satrap.Scorer."""
import json
import math
import os
import pathlib
import sys
import unittest

from cli import CliTest, satrap

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: needs pyarrow (launch/setup.sh test)")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR") or ".").resolve()
HAS_PARQUET = "\nparquet    Arrow" in satrap("doctor").stdout
F32 = np.float32
BIG = 2**53

# (values of three rows, Arrow's type); None is missing. As texts, as integers and as numbers where they can be.
KINDS = {
    "bool": ([True, False, True], pa.bool_()), "bool_gap": ([True, None, False], pa.bool_()),
    "int8": ([1, -1, 127], pa.int8()), "int16": ([300, -300, 0], pa.int16()), "int32": ([70000, -5, 9], pa.int32()),
    "int64": ([5_000_000_000, -1, 0], pa.int64()), "int_gap": ([17, None, 3], pa.int64()),
    "int_limits": ([2**63 - 1, -2**63, 1], pa.int64()), "uint8": ([255, 0, 1], pa.uint8()),
    "uint32": ([2**32 - 1, 0, 1], pa.uint32()), "uint64": ([2**64 - 1, 2**63, 1], pa.uint64()),
    "time_s": ([1764316800, 1764316801, 1764316802], pa.int64()),
    "time_ms": ([1764316800000, 1764316800001, 1], pa.int64()), "day": ([20180130, 20180131, 20180201], pa.int64()),
    "whole": ([17.0, 3.0, -4.0], pa.float64()), "whole_gap": ([17.0, None, 933820.0], pa.float64()),
    "whole_zero": ([0.0, -0.0, 1.0], pa.float64()), "whole_large": ([1e15, 123456789012.0, BIG - 1.0], pa.float64()),
    "whole_round": ([1e5, 1e7, 1e10], pa.float64()), "whole_f32": ([F32(17), F32(100000), F32(-2)], pa.float32()),
    "tenths": ([0.1, 0.7, 2.5], pa.float64()), "tenths_f32": ([F32(0.1), F32(0.7), F32(2.5)], pa.float32()),
    "cents": ([19.99, 0.01, -3.05], pa.float64()), "cents_f32": ([F32(19.99), F32(0.01), F32(-3.05)], pa.float32()),
    "small": ([1e-4, 1e-5, 1.5e-9], pa.float64()), "tiny": ([1e-300, 4.9e-324, -1e-50], pa.float64()),
    "large": ([1e16, 1.5e20, -1e30], pa.float64()), "third": ([1 / 3, 2 / 3, math.pi], pa.float64()),
    "real_gap": ([0.5, None, 1.25], pa.float64()), "real_nan": ([0.5, math.nan, 1.25], pa.float64()),
    "score": ([0.95, 0.9, 0.70], pa.float64()), "negative": ([-0.5, -1e-3, -7.25], pa.float64()),
    "f32_large": ([F32(2**24), F32(1 << 20), F32(3e9)], pa.float32()),
}
TEXTS = {  # texts in every format: no type says what they are
    "word": ["red", "Green", "blue sky"], "utf8": ["größe", "日本", "emoji 🎉"], "long": ["x" * 300, "y", "z"],
    "digits": ["17", "007", "18446744073709551616"], "point": ["17.0", "1.0", "2.00"], "version": ["1.10", "1.1", "2.0.1"],
    "hex": ["1e5", "12345e10", "68fd1e64"], "java": ["1.0E7", "1.5E-3", "2.5E1"], "truth": ["True", "false", "TRUE"],
    "truthy": ["yes", "truth", "t"], "plus": ["+17", "+1.0", "-1.0"], "date": ["2026-11-28", "2026-11-28T10:00:00", "10:30"],
    "ip": ["10.0.0.1", "1.2", "::1"], "money": ["$5", "5 %", "1 000"], "spaces_inside": ["a b", "a  b", "c"],
    "comma": ["a,b", "c;d", "e|f"], "quote": ['say "hi"', "it's", "`x`"], "backslash": ["a\\b", "\\n", "c:\\d"],
    "nan_word": ["nan1", "nonee", "nulls"], "empty": ["", "x", ""], "dash": ["-", "--", "—"], "zero": ["0", "00", "0.0"],
    "exponent": ["1e400", "1e-400", "1E5"], "json": ["[1]", "{}", "null1"], "tab_free": ["a\u00a0b", "c", "d"],
    "case": ["Abc", "abc", "ABC"], "control": ["a\u0001b", "c", "d"], "leading": ["0x10", "0b1", "1_000"],
}
NUMBERS = [name for name, (values, _) in KINDS.items()]
INTEGERS = [name for name, (values, kind) in KINDS.items()
            if all(v is None or float(v).is_integer() and abs(v) < 2**64 for v in values)
            and not (pa.types.is_floating(kind) and any(v is not None and abs(v) > BIG for v in values))]
ROWS = 3
JOB = """
run_dir: run
device: cpu
data:
  train: {path}
  max_bad_rows: 0
  batch_size: 3
  on_bad_row: stop
  schema:
    label: click
    numeric: [{numbers}]
    features: [{features}]
tables: {{default: {{dim: 2, init: {{type: normal, scale: 1}}, optimizer: {{type: sgd, lr: 0.5}}}}}}
model: {{type: ffnn, top: [4]}}
train: {{mode: sync, deterministic: true, threads: 1, epochs: 20, precision: fp32}}
"""


def csv_text(value):
    """As pandas' to_csv writes a value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def json_value(value):
    """As pandas' to_json does, but for the digits of a float."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(str(value)) if isinstance(value, np.floating) else value


class ValueKinds(CliTest):
    def setUp(self):
        super().setUp()
        self.columns = {"click": [1, 0, 1]}
        self.columns |= {name: values for name, (values, _) in KINDS.items()} | TEXTS
        rows = list(zip(*self.columns.values()))
        lines = [",".join(self.columns)] + [",".join(map(csv_text, row)) for row in rows]
        self.write("rows.csv", "\n".join(lines) + "\n")
        self.write("rows.jsonl", "".join(json.dumps(dict(zip(self.columns, map(json_value, row)))) + "\n"
                                         for row in rows))
        self.files = ["rows.csv", "rows.jsonl"]
        if HAS_PARQUET:
            kinds = {name: kind for name, (_, kind) in KINDS.items()}
            table = pa.table({name: pa.array(values, kinds.get(name)) for name, values in self.columns.items()})
            pq.write_table(table, self.dir / "rows.parquet")
            feather.write_feather(table, self.dir / "rows.arrow", compression="uncompressed")
            self.files += ["rows.parquet", "rows.arrow"]
        features = [f"{{name: {name}_id, column: {name}}}" for name in (*KINDS, *TEXTS)]
        features += [f"{{name: {name}_int, column: {name}, type: int}}" for name in INTEGERS]
        features += [f"{{name: {name}_range, column: {name}, buckets: {{boundaries: [0, 0.1, 0.7, 17, 20180131]}}}}"
                     for name in NUMBERS]
        numbers = [f"{{name: {name}_z, column: {name}, transform: zscore}}" for name in NUMBERS]
        numbers += [f"{{name: {name}_log, column: {name}, transform: log1p, clip: [-1e6, 1e6]}}" for name in NUMBERS]
        self.write("job.yaml", JOB.format(path="rows.csv", numbers=", ".join(numbers), features=", ".join(features)))

    def test_every_format_has_the_ids_and_numbers_of_every_other(self):
        shown = {}
        for file in self.files:
            head = self.succeed("data", "head", "job.yaml", f"data.train={file}", "--rows", ROWS, cwd=self.dir).stdout
            shown[file] = head.splitlines()
        for file, lines in shown.items():
            self.assertEqual(len(lines), len(shown["rows.csv"]))
            differences = [(a, b) for a, b in zip(shown["rows.csv"], lines) if a != b]
            self.assertEqual(differences, [], file)

    def test_models_and_predictions_are_the_same(self):
        digests, predictions = {}, {}
        for file in self.files:
            run = f"run-{file}"
            self.succeed("train", "job.yaml", f"data.train={file}", f"run_dir={run}", cwd=self.dir)
            newest = sorted((self.dir / run / "checkpoints").glob("step-*"))[-1]
            digests[file] = self.succeed("checkpoint", "verify", newest).stdout.split("digest ")[1]
            predictions[file] = self.succeed("predict", "--checkpoint", "run-rows.csv", "--data", file,
                                             cwd=self.dir).stdout
        self.assertEqual(len(set(digests.values())), 1, digests)
        self.assertEqual(len(set(predictions.values())), 1, predictions)
        scores = [float(line.split(",")[-1]) for line in predictions["rows.csv"].split() if "." in line]
        self.assertEqual(len(scores), ROWS)
        self.check_scorer(scores)

    def check_scorer(self, scores):
        sys.path[:0] = [str(SOURCE / "python")]
        try:
            import onnxruntime  # noqa: F401
        except ImportError:
            return  # tests/app/export_test.py names it
        import satrap as package
        done = satrap("export", "--checkpoint", "run-rows.csv", "--out", "model", cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        scorer = package.Scorer(self.dir / "model")
        typed = {name: values if name in TEXTS or name == "click" else
                 np.array(values, KINDS[name][1].to_pandas_dtype()) if None not in values else values
                 for name, values in self.columns.items()}
        texts = {name: [csv_text(v) if name not in TEXTS else v for v in values]
                 for name, values in self.columns.items()}
        for rows in (typed, texts):
            np.testing.assert_allclose(scorer.score(rows), scores, atol=2e-6)

    def test_libsvm_has_the_values_of_text(self):
        texts = [("1", "0.7", "17.0"), ("0", "0.95", "3"), ("1", "1e-4", "933820.0")]
        self.write("small.csv", "label,1,2\n" + "".join(",".join(row) + "\n" for row in texts))
        self.write("small.svm", "".join(f"{y} 1:{a} 2:{b}\n" for y, a, b in texts))
        self.write("small.yaml", JOB.format(
            path="small.csv", numbers='{name: a, column: "1", transform: zscore}',
            features='{name: b, column: "2"}, {name: c, column: "1", buckets: {boundaries: [0.7, 0.95]}}')
            .replace("label: click", "label: label"))
        heads = [self.succeed("data", "head", "small.yaml", f"data.train={file}", cwd=self.dir).stdout
                 for file in ("small.csv", "small.svm")]
        self.assertEqual(*heads)


if __name__ == "__main__":
    unittest.main(verbosity=2)
