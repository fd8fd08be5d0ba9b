"""satrap.Scorer: the forms of rows and values, and its errors. tests/process/export_test.py has whole models."""
import contextlib
import datetime
import json
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

from small_export import SOURCE, feature, number, write_export

import satrap


def logits(probabilities):
    return np.log(probabilities / (1 - probabilities.astype(np.float64)))


class ScorerTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-scorer-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def scorer(self, numeric=(), features=(), name="model", **more):
        return satrap.Scorer(write_export(self.dir / name, list(numeric), list(features), **more))

    def assert_refused(self, scorer, rows, *words):
        with self.assertRaises(satrap.InputError) as refused:
            scorer.score(rows)
        for word in words:
            self.assertIn(word, str(refused.exception))


class Rows(ScorerTest):
    def setUp(self):
        super().setUp()
        self.model = self.scorer([number("price", 0)], [feature("user", "users", 0)])
        self.expected = [12.5, 0.25, 3.0]

    def inputs(self, rows):
        numeric, pooled = self.model.inputs(rows)
        return (numeric.sum(1) + pooled.sum(1)).tolist()

    def test_every_form_of_the_same_rows(self):
        class Frame:  # what a pandas DataFrame has of a mapping
            columns = {"user": np.array([1.0, np.nan, np.nan]), "price": np.array([2.5, 0.25, 3], np.float32)}
            keys = columns.keys
            __getitem__ = columns.__getitem__

        forms = [
            {"price": ["2.5", "0.25", "3"], "user": ["1", "", "?"], "clicked": [1, 0, 0]},
            {"price": [2.5, 0.25, 3], "user": [1, None, float("nan")]},
            {"price": np.array([2.5, 0.25, 3]), "user": np.array(["1", "", "77"])},
            [{"price": " 2.5 ", "user": 1}, {"price": "+.25", "user": "77"}, {"price": "3e0", "user": None}],
            ({"price": p, "user": u} for p, u in [(np.float64(2.5), np.int64(1)), (0.25, 99), (3, "nan")]),
            Frame()]
        for rows in forms:
            with self.subTest(rows=rows):
                self.assertEqual(self.inputs(rows), self.expected)

    def test_columns_of_a_file_without_a_header_are_numbers(self):
        model = satrap.Scorer(write_export(self.dir / "numbered", [], [feature("1", "users", 0)]))
        for rows in [{1: [2]}, {"1": [2]}, [{0: "x", 1: 2}]]:
            self.assertEqual(model.inputs(rows)[1].tolist(), [[20]])

    def test_the_score_is_the_probability(self):
        scores = self.model.score({"price": [0.5, -1], "user": [0, 0]})
        self.assertEqual((scores.shape, scores.dtype), ((2,), np.float32))
        np.testing.assert_allclose(logits(scores), [0.5, -1], atol=1e-5)

    def test_no_rows(self):
        for rows in [[], {"price": [], "user": []}]:
            self.assertEqual(self.model.score(rows).shape, (0,))

    def test_columns_and_labels_are_told(self):
        self.assertEqual(self.model.columns, ["price", "user"])
        self.assertEqual(self.model.labels, ["clicked"])

    def test_threads_share_a_scorer(self):
        rows = {"price": [1.0] * 50, "user": [2] * 50}
        scores = {}
        threads = [threading.Thread(target=lambda n=n: scores.update({n: self.model.score(rows)})) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({score.tobytes() for score in scores.values()}, {self.model.score(rows).tobytes()})
        self.assertEqual(len(scores), 4)

    def test_a_missing_column_is_named_with_those_that_are_there(self):
        self.assert_refused(self.model, {"price": [1], "usr": [2]}, "no column 'user'", "there are 'price', 'usr'")
        self.assert_refused(self.model, [{"price": 1, "user": 2}, {"user": 2}], "row 1", "no column 'price'")
        self.assert_refused(self.model, {}, "no columns 'price', 'user'", "none")

    def test_what_is_no_rows(self):
        self.assert_refused(self.model, 3, "a mapping of columns or an iterable of rows, got int")
        self.assert_refused(self.model, "new.csv", "read the file first")
        self.assert_refused(self.model, [[1, 2]], "row 0", "got list")
        self.assert_refused(self.model, {"price": 1, "user": 2}, "column 'price'", "a list of values")
        self.assert_refused(self.model, {"price": [1, 2], "user": [2]}, "'price' 2", "'user' 1")

    def test_values_that_cannot_be_read(self):
        for value in ["1,5", "1_000", "inf", float("inf"), "0x10", True, [1], 1e300]:
            self.assert_refused(self.model, {"price": [1, value], "user": [1, 1]}, "column 'price', row 1", repr(value))
        for value in ["x", "1.5", 1.5, "18446744073709551616", "+1", True, {}, ["x"]]:
            self.assert_refused(self.model, {"price": [1], "user": [value]}, "column 'user', row 0", repr(value))


class Values(ScorerTest):
    def inputs(self, config, values, **more):
        is_number = "transform" in config
        model = self.scorer([config] if is_number else [], [] if is_number else [config], **more)
        numeric, pooled = model.inputs({config["name"]: values})
        return np.concatenate([numeric, pooled], 1).tolist()

    def test_a_number_with_every_transform(self):
        config = number("x", 0, transform="log1p_zscore", clip=[-10, 6], mean=1, stddev=0.5, fill=-7,
                        missing_indicator=True)
        log2 = np.float32(np.log(2))
        rows = self.inputs(config, [1, -1, 0, 100, None, "?"])
        np.testing.assert_allclose(
            rows, [[2 * (log2 - 1), 0], [2 * (-log2 - 1), 0], [-2, 0], [2 * (np.log(7) - 1), 0], [-7, 1], [-7, 1]],
            rtol=1e-6)

    def test_a_number_that_a_missing_text_stands_for(self):
        config = number("x", 0, fill=5)
        self.assertEqual(self.inputs(config, ["-99.9", -99.9, np.float32(-99.9), "-99", -99, 99], missing=["-99.9"]),
                         [[5], [5], [5], [-99], [-99], [99]])

    def test_numbers_with_a_decimal_comma(self):
        bag = feature("w", "words", 0, type="string", separator="|", weight_separator=":")
        model = self.scorer([number("x", 0)], [bag], decimal=",")
        numeric, pooled = model.inputs({"x": ["1,5", "-0,25", "7", 1.5, 2],
                                        "w": ["red:0,5|round", "", "", "", ["red"]]})
        self.assertEqual(numeric.tolist(), [[1.5], [-0.25], [7], [1.5], [2]])
        self.assertEqual(pooled.tolist(), [[1050], [0], [0], [0], [100]])
        self.assert_refused(model, {"x": ["1.5"], "w": ["red"]}, "column 'x', row 0", "'1.5'")
        self.assert_refused(model, {"x": ["1"], "w": ["red:0.5"]}, "column 'w', row 0", "number as the weight")

    def test_buckets(self):
        config = {**feature("x", "users", 0, missing="own_id"), "boundaries": [0.0, 1.0, 2.0]}
        del config["type"]
        self.assertEqual(self.inputs(config, [-5, 0, 1.5, "2", None]), [[0], [10], [20], [30], [7]])

    def test_parts_of_times(self):
        config = {**feature("x", "users", 0, missing="own_id"), "part": "weekday", "zone": "Asia/Shanghai"}
        del config["type"]
        model = self.scorer([], [config])
        monday_evening = datetime.datetime(2026, 11, 23, 16, 30)  # in UTC: a Tuesday in Shanghai, id 1
        for value in (monday_evening, monday_evening.replace(tzinfo=datetime.timezone.utc), "2026-11-24T00:30+08:00",
                      "24.11.2026 00:30 +0800", 1795451400, "1795451400.0", 1795451400000, np.int64(1795451400000),
                      np.datetime64("2026-11-23T16:30"), np.datetime64("2026-11-23T16:30", "ns"), "20261123163000",
                      datetime.date(2026, 11, 24), np.array("2026-11-24", "datetime64[D]")):
            with self.subTest(value=value):
                self.assertEqual(model.inputs({"x": [value]})[1].tolist(), [[10]])
        missing = [None, "", "nan", "0000-00-00", np.datetime64("NaT")]
        self.assertEqual(model.inputs({"x": missing})[1].tolist(), [[7]] * 5)
        for value in ("11/23/2026", "later", "true", [1], 1e30, "2026-02-30", "0001-01-01T00:00+01:00"):
            self.assert_refused(model, {"x": [value]}, "column 'x', row 0", "expected a time")

    def test_times_of_a_column_of_an_array(self):
        config = {**feature("x", "users", 0), "part": "hour", "zone": "UTC"}
        model = self.scorer([], [config])
        times = np.array(["2026-11-23T01:00", "NaT", "2026-11-23T03:59:59.999"], "datetime64[ns]")
        self.assertEqual(model.inputs({"x": times})[1].tolist(), [[10], [0], [30]])
        for unit in ["s", "D"]:  # a year of five digits is no time
            late = np.array(["2026-11-23", "10000-01-01"], f"datetime64[{unit}]")
            for rows in [{"x": late}, [{"x": late[1]}]]:
                with self.assertRaisesRegex(satrap.InputError, "column 'x'.*expected a time of the years 1 to 9999"):
                    model.inputs(rows)

    def test_ages(self):
        model = self.scorer([number("age", 0, column="x", since="born", unit="h", fill=-5)])
        self.assertEqual(model.columns, ["x", "born"])
        rows = {"x": ["2026-11-20 12:00", "2026-11-20", None, "0"], "born": ["2026-11-20", "2026-11-21", "1", ""]}
        self.assertEqual(model.inputs(rows)[0].tolist(), [[12], [-24], [-5], [-5]])
        self.assert_refused(model, {"x": [1], "born": ["?!"]}, "columns 'x', 'born', row 0", "expected a time")

    def test_crosses(self):
        bag = feature("w", "words", 0, type="string", separator="|", weight_separator=":")
        cross = {"name": "both", "table": "users", "cross": ["w", "u"], "missing": "own_id", "max_length": 0,
                 "pooling": "sum", "position": 1, "width": 1}
        model = self.scorer([], [bag, feature("u", "users", 2), cross], pooled_width=3)
        self.assertEqual(model.columns, ["w", "u"])
        pooled = model.inputs({"w": ["red:2|round", "red", ""], "u": [1, None, 2]})[1]
        self.assertEqual(pooled.tolist(), [[1200, 0, 10], [100, 7, 0], [0, 7, 20]])
        self.assertEqual(satrap.fields.cross(cross, ([1, 2], [0.5, 2]), ([8], [3])),
                         ([satrap.fields.hash64(1, 8), satrap.fields.hash64(2, 8)], [1.5, 6]))
        self.assertEqual(satrap.fields.hash64(1, 2), 0x063bd8f17e95ce77)
        long = {"w": ["red", "|".join(["red"] * 65_537)], "u": [1, 2]}
        self.assert_refused(model, long, "cross 'both', row 1: more than 65536 pairs of ids in a row; give its features",
                            'a max_length, got "65537 x 1"')
        self.assertEqual(model.inputs({"w": ["|".join(["round"] * 65_536)], "u": [1]})[1].shape, (1, 3))

    def test_texts_are_hashed_as_they_are_in_the_data(self):
        config = feature("x", "words", 0, type="string")
        self.assertEqual(self.inputs(config, ["red", " red ", "Red", "round"]), [[100], [100], [0], [1000]])

    def test_by_rule_2_one_value_is_one_id(self):
        config = feature("x", "words", 0, type="string")
        model = self.scorer([], [config], value_rule=2)
        for values in [(True, "True", "true", np.bool_(True)), (17, 17.0, "17", "17.0", np.float32(17), np.int64(17)),
                       (0.1, "0.1", np.float32(0.1), np.float64(0.1)), (1e5, 100000, "100000.0", "1.0E5"),
                       (1e16, "1e+16"), (-0.0, 0, "0", "-0.0"), (1e-4, "0.0001"), ("1.10",), ("1e5",), ("2.5", 2.5)]:
            reader = satrap.fields.FieldReader({"trim": True, "missing": [], "value_rule": 2})
            ids = {reader.bag(config, [value])[0][0] for value in values}
            self.assertEqual(len(ids), 1, values)
        numbers = satrap.fields.FieldReader({"trim": True, "missing": [], "value_rule": 2})
        whole = {**config, "type": "int"}
        self.assertEqual([numbers.bag(whole, [value])[0] for value in (True, "False", 17.0, "17.0", "1.7E1", "-3.0")],
                         [[1], [0], [17], [17], [17], [2**64 - 3]])
        self.assertEqual([numbers.number(value) for value in (True, "false", "1.5")], [1, 0, 1.5])
        self.assert_refused(self.scorer([], [whole], value_rule=2, name="whole"), {"x": [1.5]}, "integer of 64 bits")
        self.assertEqual(model.inputs({"x": ["red", True]})[1].tolist(), [[100], [0]])

    def test_by_rule_2_numbers_are_float64_until_they_are_inputs(self):
        config = number("x", 0, transform="zscore", mean=1.76e9, stddev=20.0)
        seconds = [1.76e9 + i for i in range(60)]
        for rule, kinds in ((2, 60), (1, 2)):
            model = self.scorer([config], [], value_rule=rule, name=f"rule-{rule}")
            self.assertEqual(len(set(model.inputs({"x": seconds})[0].ravel().tolist())) > 2, kinds > 2)
            self.assertLessEqual(len(set(model.inputs({"x": seconds})[0].ravel().tolist())), kinds)

    def test_bags_as_texts_and_as_lists(self):
        config = feature("x", "words", 0, type="string", separator="|", weight_separator=":")
        self.assertEqual(
            self.inputs(config, ["red|round", ["red", "round:0.5"], "red:2||red", [], "", ("red",), np.array(["red"])]),
            [[1100], [600], [300], [0], [0], [100], [100]])

    def test_a_list_needs_no_separator_in_texts(self):  # arrays of JSON lines, lists of Parquet
        self.assertEqual(self.inputs(feature("x", "words", 0, type="string"), [["red", "round"], "red", []]),
                         [[1100], [100], [0]])

    def test_a_list_within_a_list_is_refused(self):
        model = self.scorer([], [feature("x", "users", 0, separator=" ")])
        self.assert_refused(model, {"x": [[1], [[1, 2], 3]]}, "column 'x', row 1", "a list of texts and integers")

    def test_poolings(self):
        for pooling, expected in [("sum", 70), ("mean", 70 / 3), ("sqrtn", 70 / 5**0.5)]:
            with self.subTest(pooling):
                shutil.rmtree(self.dir / "model", ignore_errors=True)
                config = feature("x", "users", 0, separator=" ", weight_separator=":", pooling=pooling)
                rows = self.inputs(config, ["1 3:2", "", "1:0"])
                np.testing.assert_allclose(rows, [[expected], [0], [0]], rtol=1e-6)

    def test_a_sequence_keeps_its_last_ids_and_has_a_mask(self):
        config = feature("x", "users", 0, separator=" ", keep="last", max_length=2, pooling="sequence", width=2,
                         mask_position=0)
        self.assertEqual(self.inputs(config, ["1", "1 2 3", "", [3, 1]], mask_width=2, pooled_width=2),
                         [[1, 0, 10, 0], [1, 1, 20, 30], [0, 0, 0, 0], [1, 1, 30, 10]])

    def test_several_columns_make_one_bag(self):
        config = feature("x", "users", 0, max_length=2, columns=["a", "b", "c"])
        model = self.scorer([], [config])
        _, pooled = model.inputs({"a": [1, None, "", 3], "b": [2, 2, None, 3], "c": [3, 3, None, 3]})
        self.assertEqual(pooled.tolist(), [[30], [50], [0], [60]])
        self.assert_refused(model, {"a": [1], "b": ["x"], "c": [1]}, "columns 'a', 'b', 'c', row 0")

    def test_hexadecimal_ids_are_texts(self):
        model = self.scorer([], [feature("x", "users", 0, type="hex")])
        self.assertEqual(model.inputs({"x": ["0x2", "00000003", "A"]})[1].tolist(), [[20], [30], [0]])
        self.assert_refused(model, {"x": ["g"]}, "hex digits")
        self.assert_refused(model, {"x": [2]}, "hex digits", "got 2")
        self.assert_refused(model, {"x": [2.0]}, "hex digits", "got 2.0")

    def test_a_missing_id_may_be_an_id_of_its_own(self):
        config = feature("x", "users", 0, separator=" ", missing="own_id")
        self.assertEqual(self.inputs(config, [None, "?", "nan", [], 1, "0"]), [[7], [7], [7], [7], [10], [0]])


class Page(ScorerTest):
    def test_its_lines_run(self):
        write_export(self.dir / "model", [], [feature("user", "users", 0), feature("shop", "words", 1, type="string")])
        (self.dir / "runs/clicks").mkdir(parents=True)
        (self.dir / "runs/clicks/metrics.jsonl").write_text('{"step": 1, "eval": {"auc": 0.75}}\n')
        block, = (text for text in re.findall(r"```python\n(.*?)```", (SOURCE / "docs/serving.md").read_text(), re.S)
                  if "import satrap" in text)
        with contextlib.chdir(self.dir):
            exec(block, {})


class Folders(ScorerTest):
    def test_without_its_library_it_names_what_to_install(self):
        folder = write_export(self.dir / "model", [], [feature("x", "users", 0)])
        about = json.loads((folder / "export.json").read_text())
        with mock.patch.dict(sys.modules, {"torch": None, "onnxruntime": None}):  # as if they were not installed
            with self.assertRaisesRegex(ModuleNotFoundError, r"Scorer needs torch .*: pip install 'satrap\[torch\]'"):
                satrap.Scorer(folder)
            about["model"]["format"] = "onnx"
            (folder / "export.json").write_text(json.dumps(about))
            with self.assertRaisesRegex(ModuleNotFoundError, "Scorer needs onnxruntime .*: pip install onnxruntime"):
                satrap.Scorer(folder)

    def test_what_is_no_export(self):
        with self.assertRaisesRegex(FileNotFoundError, "no export.json"):
            satrap.Scorer(self.dir)

    def test_another_format_names_both(self):
        folder = write_export(self.dir / "model", [], [feature("x", "users", 0)])
        about = json.loads((folder / "export.json").read_text())
        (folder / "export.json").write_text(json.dumps({**about, "format": 9, "version": "7.0"}))
        with self.assertRaisesRegex(ValueError, "format 9.*reads formats 1 to 4.*7.0"):
            satrap.Scorer(folder)

    def test_a_file_that_is_short_or_gone(self):
        folder = write_export(self.dir / "model", [], [feature("x", "users", 0)])
        weights = folder / "users.weights.npy"
        weights.write_bytes(weights.read_bytes()[:-1])
        with self.assertRaisesRegex(ValueError, "users.weights.npy has 143 bytes, not 144"):
            satrap.Scorer(folder)
        weights.unlink()
        with self.assertRaisesRegex(ValueError, "users.weights.npy is not there"):
            satrap.Scorer(folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
