"""satrap.fit and satrap.Model: the bits of the commands, from files and from rows that a program has."""
import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

from engine_case import PACKAGE, SATRAP, SOURCE, EngineCase, satrap

if not (PACKAGE.parent / "lib/libsatrap_arrow.so").is_file():
    print("skipped: this build is without Arrow, which launch/setup.sh parquet installs")
    sys.exit(77)
try:
    import pyarrow as pa
except ModuleNotFoundError:
    pa = None

OVERRIDES = {"train.epochs": 2, "train.deterministic": True, "train.threads": 2, "seed": 3}
FOR_COMMAND = [f"{key}={json.dumps(value)}" for key, value in OVERRIDES.items()] + ["device=cpu"]
SHORT = {**OVERRIDES, "train.epochs": 1, "train.max_steps": 2}


def columns_of(path):
    """The columns of a CSV, as a program would have them."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    types = {"clicked": np.int64, "price": np.float64, "item": np.int64, "shop": np.int64}
    return {name: np.array([row[name] for row in rows], types.get(name, object)) for name in rows[0]}


class Other:
    """A table that has Arrow's C stream interface and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__()


class Frame:
    """A DataFrame of pandas without pyarrow, as far as it matters here."""
    dtypes = None

    def __init__(self, columns):
        self._columns, self.columns = columns, Names(columns)

    def reset_index(self, drop):
        return self

    def __arrow_c_stream__(self, requested_schema=None):
        raise ImportError("no pyarrow")

    def __getitem__(self, name):
        values = self._columns[name]
        return types.SimpleNamespace(dtype=values.dtype, to_numpy=lambda: values)


class Names(list):
    is_unique = True


class TwoNames(list):
    is_unique = False

    def __getitem__(self, twice):
        return list(twice)

    def duplicated(self):
        return ["a"]


@contextlib.contextmanager
def logged():
    """What comes to the process's standard error while it is entered: a function that reads it."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.pread(file.fileno(), 10**6, 0).decode()
        finally:
            os.dup2(before, 2)
            os.close(before)


class FitCase(EngineCase):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "train.csv"

    def fit(self, data, run="fitted", **options):
        with contextlib.redirect_stdout(io.StringIO()) as self.said:
            return satrap.fit(data, **{"label": "clicked", "run_dir": self.dir / run, "overrides": OVERRIDES, **options})

    def command(self, *arguments):
        done = subprocess.run([SATRAP, *arguments], capture_output=True, text=True, timeout=120, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Fits(FitCase):
    def test_a_file_is_trained_and_used_as_by_the_commands(self):
        self.command("init", "train.csv", "--label", "clicked")
        self.command("train", "train.yaml", "run_dir=command", *FOR_COMMAND)
        model = self.fit(self.data)
        self.assertEqual(self.digest("fitted"), self.digest("command"))
        summary = json.loads((self.dir / "command/summary.json").read_text())
        for part in ("step", "examples", "train", "eval", "early_stopping"):
            self.assertEqual(model.summary[part], summary[part])
        self.assertIn("next        satrap predict", self.said.getvalue())
        self.assertEqual((model.run_dir, model.labels), (str(self.dir / "fitted"), ["clicked"]))

        of_command = self.command("predict", "--checkpoint", "command", "--data", "eval.csv").split()
        self.assertEqual(of_command[0], "probability")
        predicted = model.predict(self.dir / "eval.csv")
        self.assertEqual((predicted.shape, predicted.dtype), ((500,), np.float32))
        np.testing.assert_array_equal(predicted, np.array(of_command[1:], np.float32))

        self.assertEqual(model.evaluate(), summary["early_stopping"]["eval"])
        said = dict(line.split()[:2] for line in
                    self.command("eval", "--checkpoint", "command", "--data", "eval.csv").splitlines() if len(line.split()) == 2)
        evaluated = model.evaluate([self.dir / "eval.csv"])
        self.assertEqual(evaluated["examples"], 500)
        for name in ("auc", "logloss", "ne"):
            self.assertEqual(f"{evaluated[name]:.6f}", said[name])
        self.assertIn("predicts</th><td>clicked", model._repr_html_())

        model.save(self.dir / "saved")
        scores = satrap.Scorer(self.dir / "saved").score(columns_of(self.dir / "eval.csv"))
        np.testing.assert_allclose(scores, predicted, atol=1e-6)
        self.assert_refused(satrap.ConfigError, lambda: model.save(self.dir / "saved"), "saved")
        model.save(self.dir / "saved", overwrite=True)
        np.testing.assert_array_equal(satrap.load(self.dir / "fitted").predict(columns_of(self.dir / "eval.csv")), predicted)

    def test_rows_of_a_program_are_those_of_the_file(self):
        wanted = self.fit(self.data).summary
        columns = columns_of(self.data)
        parts = [{name: values[i:i + 700] for name, values in columns.items()} for i in range(0, 3000, 700)]
        forms = {"dict": columns, "parts": parts, "frame": Frame(columns), "generator": (part for part in parts)}
        if pa:
            table = pa.table(columns)
            forms |= {"table": table, "other": Other(table), "batches": iter(table.to_batches(999)),
                      "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(500)),
                      "dictionary": table.set_column(5, "history", table["history"].dictionary_encode())}
        for form, data in forms.items():
            with self.subTest(form):
                model = self.fit(data, run=form)
                for part in ("step", "examples", "train", "eval"):
                    self.assertEqual(model.summary[part], wanted[part])
        np.testing.assert_array_equal(model.predict(columns), model.predict(self.data))
        self.assertEqual(os.listdir(self.dir / "dict").count("data.parquet"), 1)

    def test_the_census_data_are_the_same_as_columns(self):
        path = SOURCE / "datasets/adult/adult.data"
        rows = [[value.strip() for value in row] for row in csv.reader(path.read_text().splitlines()) if row]
        columns = {f"c{i}": np.array(values, np.int64 if values[0].isdigit() else object) for i, values in enumerate(zip(*rows))}
        overrides = {**OVERRIDES, "train.max_steps": 100}
        of_file, of_columns = (self.fit(data, run=run, label="c14", overrides=overrides).summary
                               for run, data in (("file", path), ("columns", columns)))
        self.assertGreater(of_file["eval"]["auc"], 0.85)
        for part in ("step", "examples", "train", "eval"):
            self.assertEqual(of_columns[part], of_file[part])

    def test_no_torch_is_loaded(self):
        program = f"""if True:
            import sys
            sys.path.insert(0, {str(PACKAGE)!r})
            import satrap
            satrap.fit({str(self.data)!r}, run_dir={str(self.dir / 'run')!r}, overrides={SHORT!r}).predict({str(self.data)!r})
            assert not {{"torch", "pyarrow"}} & set(sys.modules), set(sys.modules)"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_has_a_folder_of_its_own(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.dir)
        folders = [self.fit(data, run_dir=None, overrides=SHORT).run_dir for data in ("train.csv", "train.csv",
                                                                                    columns_of(self.data))]
        self.assertEqual(folders, ["runs/train", "runs/train-2", "runs/model"])
        self.assert_refused(satrap.ConfigError, lambda: self.fit(self.data, run_dir="runs/train"), "runs/train", "not empty")
        self.assert_refused(satrap.ConfigError, lambda: self.fit(self.data, overrides={"run_dir": "x"}), "run_dir")
        self.assert_refused(satrap.ConfigError, lambda: self.fit(self.data, run_dir="s3://bucket/run"), "s3://bucket/run")

    def test_several_outputs(self):
        rng = np.random.default_rng(3)
        columns = {"kind": np.array(["a", "b", "c"] * 100, object), "x": rng.integers(0, 9, 300),
                   "clicked": rng.integers(0, 2, 300)}
        model = self.fit(columns, overrides={
            **SHORT, "model": "ffnn", "data.schema.features": [{"name": "x", "type": "int"}], "data.schema.numeric": [],
            "data.schema.label": {"column": "kind", "classes": 3, "values": ["a", "b", "c"]}})
        predicted = model.predict(columns)
        self.assertEqual((predicted.shape, model.labels), ((300, 3), ["a", "b", "c"]))
        np.testing.assert_allclose(predicted.sum(1), 1, atol=1e-5)

    def test_ctrl_c_leaves_a_model(self):
        run = self.dir / "stopped"
        program = subprocess.Popen(
            [sys.executable, "-c", f"""if True:
                import sys
                sys.path.insert(0, {str(PACKAGE)!r})
                import satrap
                satrap.fit({str(self.data)!r}, run_dir={str(run)!r}, overrides={{
                    "train.epochs": 1000000, "train.early_stopping.patience": 1000, "train.eval_every": "1000000 steps",
                    "checkpoint.every": "5 steps"}})"""],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        for line in program.stderr:
            if "checkpoint: step" in line:
                break
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=60)
        self.assertEqual(program.returncode, -signal.SIGINT, errors)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertIn("--resume` continues from", errors)
        model = satrap.load(run)
        self.assertEqual(len(model.predict(self.data)), 3000)
        self.assertFalse(model.summary["finished"])
        (run / "summary.json").unlink()
        self.assert_refused(satrap.Error, lambda: model.summary, "no summary.json")

    def test_progress_in_a_notebook(self):
        kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
        shown = []

        class Bar:
            n = 0

            def __init__(self, total, **_):
                shown.append(total)

            def update(self, n):
                self.n += n

            def set_postfix_str(self, text, refresh):
                shown.append(text)

            def set_description(self, phase, refresh):
                shown.append(phase)

            def refresh(self):
                pass

            def close(self):
                shown.append(self.n)

        often = mock.patch.object(sys.modules[satrap.fit.__module__], "BETWEEN_LOOKS_MS", 2)
        modules = {"IPython": kernel, "tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=Bar)}
        with mock.patch.dict(sys.modules, modules), often, logged() as log:
            self.fit(self.data, overrides={**OVERRIDES, "train.epochs": 6, "train.early_stopping.patience": 1000})
            self.assertNotIn("eval at step", log())
        self.assertEqual((shown[0], shown[-1]), (100, 100))
        phases = {"starting", "fitting transforms", "loading", "reading", "training", "evaluating", "saving"}
        self.assertLessEqual(set(shown[1:-1:2]), phases)
        self.assertTrue(shown[2:-1:2])
        for text in shown[2:-1:2]:
            self.assertRegex(text, r"^step \d+, \d+ examples(, loss [0-9.]+, auc ([0-9.]+|nan))?$")
        with mock.patch.dict(sys.modules, {"IPython": kernel, "tqdm": None, "tqdm.auto": None}), often, \
                contextlib.redirect_stderr(io.StringIO()) as lines:
            self.fit(self.data, run="line", overrides={**OVERRIDES, "train.epochs": 6, "train.early_stopping.patience": 1000})
        with logged() as log:
            self.fit(self.data, run="no notebook", overrides=SHORT)
            self.assertIn("eval at step", log())
        self.assertRegex(lines.getvalue(), r"\r *\d+ %  [a-z ]+  step \d+, \d+ examples.*\n$")

    def test_the_figure(self):
        model = self.fit(self.data, overrides=OVERRIDES)
        with mock.patch.dict(sys.modules, {"matplotlib": None}):
            self.assert_refused(ImportError, model.plot, "pip install matplotlib")
        try:
            import matplotlib
        except ModuleNotFoundError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("agg")
        self.assertEqual([axis.get_title() for axis in model.plot().axes], ["loss", "auc"])


class Refusals(FitCase):
    def refused(self, data, *words, kind=satrap.DataError, **options):
        error = self.assert_refused(kind, lambda: self.fit(data, run="refused", **options), *words)
        self.assertFalse((self.dir / "refused").exists())
        return error

    def test_what_is_no_table(self):
        for data in (5, None, b"rows"):
            self.refused(data, "a path or glob", "DataFrame", type(data).__name__)
        self.refused([{"a": [1]}, 3], "batch 1", "int")
        self.refused("-", "standard input")
        self.refused([], "there are no rows")
        self.refused({}, "no columns")
        self.refused("nothing.csv", "nothing.csv", kind=satrap.Error)

    def test_columns(self):
        frame = Frame({"a": np.zeros(1)})
        frame.columns = TwoNames(["a", "a"])
        self.refused(frame, "two columns", "'a'")
        for error in (ValueError("column 'a' is odd"), TypeError("column 'a' is odd")):
            with mock.patch.object(Frame, "__arrow_c_stream__", side_effect=error):
                self.refused(Frame({"a": np.zeros(1)}), "column 'a' is odd")
        self.refused({"a": np.zeros(0), "clicked": np.zeros(0)}, "there are no rows")
        self.refused({"a": np.zeros(3), "b": np.zeros(2)}, "differ in length", "'a' 3", "'b' 2")
        self.refused({"a": np.zeros((3, 2))}, "'a'", "[3, 2]")
        for value in (0.5, "text", (number for number in range(3))):
            self.refused({"a": value}, "'a'", "must be an array or a list")
        self.refused({1: [1], "1": [2]}, "same name")
        self.refused({"a": [1, "x"]}, "'a'", "several types", "int, text")
        self.refused({"a": [2**70]}, "'a'", "64 bits")
        self.refused({"a": [{}]}, "'a'", "dict")
        self.refused({"a": np.array([1], "m8[s]")}, "'a'", "timedelta")
        self.refused([{"a": [1]}, {"b": [1]}], "no column 'a'")
        self.refused([{"a": [1]}, {"a": [1], "b": [1]}], "'b'", "the first has none")
        self.refused([{"a": [1]}, {"a": [0.5]}], "'a'", "int64", "double")
        self.refused([{"a": [1], "b": [1]}, {"b": [1], "a": [1]}], "another order")

    @unittest.skipUnless(pa, "pyarrow is not installed")
    def test_columns_of_arrow(self):
        self.refused(pa.table([[1], [2]], names=["a", "a"]), "two columns", "'a'")
        self.refused(pa.table({"a": [[[1]]]}), "'a'", "list<")
        self.refused(pa.table({"s": [{"x": [[1]]}]}), "'s.x'")
        self.refused(pa.table({"s": pa.array([{}])}), "'s'", "struct<>")
        self.refused(pa.chunked_array([[1]]), "no table")

        def broken():
            yield pa.record_batch({"a": [1]})
            raise ValueError("the source is gone")

        schema = pa.schema([("a", pa.int64())])
        self.refused(pa.RecordBatchReader.from_batches(schema, broken()), "the source is gone")
        self.refused(broken(), "the source is gone", kind=ValueError)

    def test_jobs(self):
        columns = columns_of(self.data)
        error = self.refused(columns, "label: ", "'clicks'", label="clicks", kind=satrap.ConfigError)
        self.assertNotIn("--", str(error))
        self.refused(columns, "trian.epochs", overrides={"trian.epochs": 1}, kind=satrap.ConfigError)
        self.refused(columns, "model.engine: graph", "libtorch", overrides={"model.engine": "graph"}, kind=satrap.ConfigError)
        with mock.patch.dict(os.environ, {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost",
                                          "MASTER_PORT": "1", "SATRAP_STORE": f"file://{self.dir}/store"}):
            self.refused(columns, "one process", "2 ranks", kind=satrap.ConfigError)
        self.assert_refused(satrap.Error, lambda: satrap.load(self.dir / "nothing"), "nothing")

    def test_predictions(self):
        model = self.fit(self.data, overrides=SHORT)
        self.assert_refused(satrap.ConfigError, lambda: model.predict({"price": [0.5]}), "item")
        self.assert_refused(satrap.DataError, lambda: model.predict(3), "data")
        self.assert_refused(satrap.ConfigError, lambda: model.evaluate({"price": [0.5], "item": [1], "shop": [1],
                                                                        "history": [""]}), "clicked")


if __name__ == "__main__":
    unittest.main()
