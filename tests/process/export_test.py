"""A model written by `satrap export` gives the same probabilities as `satrap predict` for the same text.
satrap.Scorer scores it, which knows nothing of satrap but the export's files."""

import csv
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import python_onnx  # noqa: E402
import python_torch  # noqa: E402

# What can be computed here, by the format of the network.
WHY_NOT = {"onnx": python_onnx.WHY_NOT, "torchscript": python_torch.WHY_NOT}
FORMATS = [name for name, why_not in WHY_NOT.items() if not why_not]
if not FORMATS:
    print(f"skipped: {WHY_NOT}")
    sys.exit(77)
try:
    import onnx
except ImportError:
    onnx = None  # the checker of the format is not asked

SATRAP = os.environ["SATRAP_BIN"]
SOURCE = pathlib.Path(os.environ["SATRAP_SOURCE_DIR"])
TOLERANCE = 1e-6
FILES = {"onnx": "dense.onnx", "torchscript": "dense.pt"}

sys.path.insert(0, str(SOURCE / "python"))
from satrap import Scorer  # noqa: E402
from satrap.network import load_network  # noqa: E402
from satrap.tables import Table  # noqa: E402

CRITEO = """\
run_dir: {dir}/run
device: cpu
data:
  schema: criteo
  train: {{path: "{dir}/train.tsv"}}
  eval: {{path: "{dir}/eval.tsv"}}
  batch_size: 100
tables:
  default: {{dim: {dim}, optimizer: {{type: adagrad, lr: 0.1}}, init: {init}}}
model: {model}
dense_optimizer: {{type: adam, lr: 0.005}}
train: {{mode: sync, precision: fp32, threads: 1}}
"""
# Every model must be listed: its network as it is exported is compared with its own forward pass.
MODELS = {
    "logistic": (1, "{type: logistic}"),
    "fm": (4, "{type: fm}"),
    "wide_deep": (4, "{type: wide_deep, hidden: [16, 8]}"),
    "deepfm": (4, "{type: deepfm, hidden: [16, 8], dropout: 0.1}"),
    "dcn_v2": (4, "{type: dcn_v2, hidden: [16], cross_layers: 2}"),
    "dlrm": (4, "{type: dlrm, bottom: [16, 4], top: [16]}"),
    "ffnn": (4, "{type: ffnn, bottom: [8], sparse: [16], top: [12, 8]}"),
    "ffnn_batch_norm": (4, "{type: ffnn, bottom: [8], sparse: [16], top: [12], activation: none, "
                           "batch_norm: true}"),
}

# Without numbers, and without features: inputs of no columns.
NO_NUMBERS = {"logistic": 1, "fm": 3, "wide_deep": 3, "deepfm": 3, "dcn_v2": 3, "dlrm": 3, "ffnn": 3}
NO_FEATURES = ["logistic", "dcn_v2", "ffnn"]
SMALL = """\
run_dir: {dir}/run
device: cpu
data: {{schema: {{label: y, {inputs}}}, train: {{path: "{dir}/small.csv"}}, batch_size: 20}}
tables: {{default: {{dim: {dim}, optimizer: {{type: adagrad, lr: 0.1}}}}}}
model: {{type: {model}}}
train: {{mode: sync, precision: fp32, threads: 1}}
"""

DIN = "{type: din, attention: [8], top: [16], attend: [{sequence: history, query: seen}]}"

# One of each setting that a schema can have.
CSV = """\
run_dir: {dir}/run
seed: 11
device: cpu
data:
  schema:
    label: {{column: clicked, positive: ["yes"]}}
    missing: ["NA"]
    numeric:
      - {{name: price, transform: log1p_zscore, missing_indicator: true, fill: -0.5}}
      - {{name: age, transform: zscore, clip: [10, 60]}}
    features:
      - {{name: user, type: int, missing: own_id}}
      - {{name: shop name}}
      - {{name: tags, separator: "|", weight_separator: ":"}}
      - {{name: words, separator: " ", max_length: 3, keep: last}}
      - {{name: seen, separator: " ", weight_separator: ":", type: hex}}
      - {{name: history, type: int, separator: " ", max_length: 4, keep: last}}
      - {{name: age_group, column: age, buckets: {{quantiles: 5}}, missing: own_id}}
  train: {{path: "{dir}/train.csv"}}
  eval: {{path: "{dir}/eval.csv"}}
  batch_size: 64
  group_by: session
tables:
  default: {{dim: 6, init: {{type: normal, scale: 0.3}}}}
  items: {{dim: 3, weights: bf16, init: {{type: uniform, scale: 0.5}}}}
  user: {{dim: 2, init: {{type: constant, scale: 0.25}}}}
  words: {{dim: 5, weights: fp16, admit_after: 3, ttl_steps: 100000, init: {{type: uniform, scale: 0.5}}}}
features:
  tags: {{pooling: mean}}
  words: {{pooling: sum}}
  seen: {{table: items, pooling: sqrtn}}
  history: {{table: items, pooling: sequence}}
model: {model}
train: {{mode: hybrid, epochs: 2, precision: fp32, threads: 2}}
"""


def csv_rows(count, num_ids, seed):
    """Rows of generated text; ids are drawn from a range, so a larger range has ids never seen before."""
    draw = random.Random(seed)
    pick = lambda: draw.randrange(num_ids)
    several = lambda item, most: [item() for _ in range(draw.randrange(most + 1))]
    rows = ['clicked,session,price,age,user,"shop name",tags,words,seen,history,stars']
    for _ in range(count):
        user = draw.choice(["NA", "", pick(), -pick() - 1, 2**60 + pick()])
        price = draw.choice(["", "NA", draw.randrange(1000), f"{draw.random():.5f}", "1e3"])
        age = draw.choice(["NA", draw.randrange(5, 80)])
        shop = draw.choice([f"shop {pick()}", f'"a, ""quoted"" {pick()}"', ""])
        tags = "|".join(several(lambda: f"t{pick()}" + draw.choice(["", ":0.5", ":2"]), 3))
        words = " ".join(several(lambda: f"word{pick()}", 5))
        seen = " ".join(several(lambda: f"{pick():x}:{draw.random():.3f}", 4))
        history = " ".join(several(lambda: str(pick()), 6))
        stars = draw.choice(["NA", 1, 2, 3, 4, 5])
        label = "yes" if draw.random() < 0.3 else "no"
        rows.append(f"{label},s{pick()},{price},{age},{user},{shop},{tags},{words},{seen},{history},{stars}")
    return "\n".join(rows) + "\n"


def rows_of(path, about):
    """The rows of a text file, dicts of texts by column, as export.json says that files are."""
    text = about["text"]
    quotes = {"quotechar": text["quote"]} if text["quote"] else {"quoting": csv.QUOTE_NONE}
    with path.open(newline="") as file:
        lines = list(csv.reader(file, delimiter=text["delimiter"], skipinitialspace=text["trim"], **quotes))
    columns = lines.pop(0) if text["header"] else text["columns"]
    if lines and len(lines[0]) < len(columns):
        labels = {label["column"] for label in about["labels"]}
        columns = [column for column in columns if column not in labels]
    return [dict(zip(columns or map(str, range(len(line))), line, strict=True)) for line in lines]


class Export(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="satrap-export-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def satrap(self, *args):
        done = subprocess.run([SATRAP, *map(str, args)], cwd=SOURCE, capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout

    def note(self, weights_without_row):
        def noted(table, ids):
            self.tables_with_ids_without_a_row.add(table.name)
            return weights_without_row(table, ids)
        return noted

    def compare(self, job, data, *overrides):
        """Trains, exports, and scores the file `data`, and its first row alone, in all ways."""
        run = self.dir / "run"
        self.satrap("train", job, "--overwrite", *overrides)
        table = self.satrap("predict", job, "--checkpoint", run, "--data", data, *overrides)
        expected = np.array([line.split("\t") for line in table.splitlines()[1:]], np.float32)
        expected = expected[:, 0] if expected.shape[1] == 1 else expected
        self.assertGreater(expected.std(0).min(), 0.001, "a model that says one thing only")
        for format in FORMATS:
            with self.subTest(format=format):
                self.satrap("export", job, "--checkpoint", run, "--out", self.dir / format, "--overwrite",
                            "--network", format, *overrides)
                scorer = self.check_scores(self.dir / format, data, expected)
        return scorer

    def check_scores(self, export, data, expected):
        about = json.loads((export / "export.json").read_text())
        scorer = Scorer(export)
        rows = rows_of(data, about)
        self.tables_with_ids_without_a_row = set()
        with unittest.mock.patch.object(Table, "weights_without_row", self.note(Table.weights_without_row)):
            scores = scorer.score(rows)
        self.assertEqual(scores.shape, expected.shape)
        tolerance = TOLERANCE * max(1, np.abs(expected).max())
        self.assertLess(np.abs(scores - expected).max(), tolerance)
        self.assertLess(np.abs(scorer.score(rows[:1]) - expected[:1]).max(), tolerance)
        if onnx is not None and export.name == "onnx":
            onnx.checker.check_model(export / "dense.onnx", full_check=True)
        return scorer

    def test_onnx_is_computed_here(self):
        if python_onnx.WHY_NOT:
            self.skipTest(python_onnx.WHY_NOT)

    def test_torchscript_is_computed_here(self):
        if python_torch.WHY_NOT:
            self.skipTest(python_torch.WHY_NOT)

    def test_no_model_is_forgotten_here(self):
        explained = self.satrap("config", "explain", "model.type")
        types = re.search(r"one of:? ([\w, |]+)", explained).group(1)
        models = [DIN, *(model for _, model in MODELS.values())]
        written = {re.search(r"type: (\w+)", model).group(1) for model in models}
        self.assertEqual(set(re.findall(r"\w+", types)) - {"torchscript", "python"}, written)

    def test_every_model_scores_click_logs_and_ids_never_seen(self):
        self.satrap("data", "generate", "--rows", 1500, "--scale", "0.001", "--out", self.dir / "train.tsv",
                    "--eval-rows", 4096, "--eval-out", self.dir / "eval.tsv", "new_id_rate=0.1")
        inits = ["{type: uniform, scale: 0.05}", "{type: normal, scale: 0.05}"]
        for i, (name, (dim, model)) in enumerate(MODELS.items()):
            with self.subTest(model=name):
                job = self.dir / "job.yaml"
                job.write_text(CRITEO.format(dir=self.dir, dim=dim, model=model, init=inits[i % 2]))
                self.compare(job, self.dir / "eval.tsv")
                self.assertIn("C3", self.tables_with_ids_without_a_row)

    def test_click_logs_without_labels(self):
        self.satrap("data", "generate", "--rows", 500, "--scale", "0.001", "--out", self.dir / "train.tsv")
        rows = (self.dir / "train.tsv").read_text().splitlines()
        (self.dir / "eval.tsv").write_text("".join(r.split("\t", 1)[1] + "\n" for r in rows[:50]))
        job = self.dir / "job.yaml"
        job.write_text(CRITEO.format(dir=self.dir, dim=4, model=MODELS["dlrm"][1], init="{}"))
        self.compare(job, self.dir / "eval.tsv", "data.eval.path=[]")

    def test_everything_a_schema_can_say(self):
        (self.dir / "train.csv").write_text(csv_rows(3000, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(300, 80, seed=2))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model="{type: ffnn, bottom: [8], top: [16]}"))
        self.compare(job, self.dir / "eval.csv")
        self.assertLessEqual({"items", "user", "shop name", "tags", "words"}, self.tables_with_ids_without_a_row)
        self.assertIn("shop%20name.keys.npy", os.listdir(self.dir / FORMATS[0]))

    def test_decimal_commas(self):
        for name, rows, seed in [("train", 1000, 1), ("eval", 100, 2)]:
            lines = [line.split(",") for line in csv_rows(rows, 20, seed).splitlines() if '"a, ' not in line]
            (self.dir / f"{name}.csv").write_text("".join(
                ";".join(field if field.count(".") == 0 else field.replace(".", ",") for field in line) + "\n"
                for line in lines))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model="{type: ffnn, bottom: [8], top: [16]}"))
        notation = ["data.schema.delimiter=;", "data.schema.decimal=,", "data.on_bad_row=stop"]
        self.compare(job, self.dir / "eval.csv", *notation)

    def test_an_attended_sequence(self):
        (self.dir / "train.csv").write_text(csv_rows(3000, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(4096, 80, seed=2))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model=DIN))
        self.compare(job, self.dir / "eval.csv")

    def test_several_labels(self):
        (self.dir / "train.csv").write_text(csv_rows(3000, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(300, 80, seed=2))
        job = self.dir / "job.yaml"
        one = 'label: {column: clicked, positive: ["yes"]}'
        two = ('labels: [{column: clicked, positive: ["yes"]}, '
               '{name: loved, column: stars, threshold: [4]}]')
        for head in ["[]", "[8]", "[8], heads: {type: mmoe, layers: [12]}",
                     "[], heads: {type: ple, experts: 2, layers: [32], levels: 2}"]:
            with self.subTest(head=head):
                text = CSV.format(dir=self.dir, model=f"{{type: ffnn, bottom: [8], top: [16], head: {head}}}")
                self.assertIn(one, text)
                job.write_text(text.replace(one, two))
                # Stars that are missing make a bad row.
                scorer = self.compare(job, self.dir / "eval.csv", "data.max_bad_rows=0")
                self.assertEqual(scorer.labels, ["clicked", "loved"])

    def test_numbers_and_classes(self):
        (self.dir / "train.csv").write_text(csv_rows(3000, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(300, 80, seed=2))
        job = self.dir / "job.yaml"
        one = 'label: {column: clicked, positive: ["yes"]}'
        stars = '{column: stars, classes: 5, values: ["5", "4", "3", "2", "1"]}'
        # Those that are missing make a bad row of a job that predicts nothing else.
        for label, names, functions in [
                ("label: {column: stars, type: number}", ["stars"], ["identity"]),
                (f"label: {stars}", ["5", "4", "3", "2", "1"], ["softmax"]),
                ('labels: [{column: clicked, positive: ["yes"]}, {column: stars, type: number}]', ["clicked", "stars"],
                 ["sigmoid", "identity"])]:
            with self.subTest(label=label):
                text = CSV.format(dir=self.dir, model="{type: ffnn, bottom: [8], top: [16], head: [8]}")
                job.write_text(text.replace(one, label).replace("  group_by: session\n", ""))
                scorer = self.compare(job, self.dir / "eval.csv", "data.max_bad_rows=0")
                self.assertEqual(scorer.labels, names)
                about = json.loads((self.dir / FORMATS[0] / "export.json").read_text())
                self.assertEqual(about["format"], 4)
                self.assertEqual([label["prediction"] for label in about["labels"]], functions)

    def test_labels_of_0_and_1_are_described_as_before(self):
        (self.dir / "train.csv").write_text(csv_rows(300, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(20, 50, seed=2))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model="{type: ffnn, bottom: [8], top: [16]}"))
        self.compare(job, self.dir / "eval.csv")
        about = json.loads((self.dir / FORMATS[0] / "export.json").read_text())
        self.assertEqual(about["format"], 3)
        self.assertEqual(about["labels"], [{"name": "clicked", "column": "clicked"}])

    def test_adult(self):
        job = SOURCE / "datasets/adult/quickstart.yaml"
        data = self.dir / "adult.csv"
        lines = (SOURCE / "datasets/adult/adult.test").read_text().splitlines(keepends=True)
        data.write_text("".join(lines[:500]))
        self.compare(job, data, f"run_dir={self.dir}/run", "train.max_steps=200",
                     "train.precision=fp32")

    def test_the_network_takes_any_number_of_rows_and_no_training_state(self):
        (self.dir / "train.csv").write_text(csv_rows(300, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(2, 50, seed=2))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model="{type: ffnn, bottom: [8], top: [16]}"))
        self.compare(job, self.dir / "eval.csv")
        for format in FORMATS:
            about = json.loads((self.dir / format / "export.json").read_text())["model"]
            self.assertEqual((about["format"], about["file"]), (format, FILES[format]))
            network = load_network(self.dir / format, about)
            for rows in [0, 1, 5]:
                logits = network.logits(*(np.zeros((rows, about[f"{input}_width"]), np.float32)
                                          for input in ["numeric", "pooled"]))
                self.assertEqual(logits.shape, (rows,))
        if "torchscript" in FORMATS:
            self.assertFalse(python_torch.torch.jit.load(self.dir / "torchscript/dense.pt").training)

    def test_networks_without_numbers_or_without_features(self):
        draw = random.Random(3)
        rows = [(draw.randrange(2), draw.randrange(9), draw.random()) for _ in range(200)]
        (self.dir / "small.csv").write_text("y,a,b,n,m\n" + "".join(
            f"{y},{a + y},{(a * y) % 5},{x + y},{x * x}\n" for y, a, x in rows))
        kinds = [("features: [a, b]", model, dim) for model, dim in NO_NUMBERS.items()]
        kinds += [("numeric: [n, m]", model, 1) for model in NO_FEATURES]
        job = self.dir / "job.yaml"
        for inputs, model, dim in kinds:
            with self.subTest(inputs=inputs, model=model):
                job.write_text(SMALL.format(dir=self.dir, inputs=inputs, model=model, dim=dim))
                self.compare(job, self.dir / "small.csv")

    @unittest.skipUnless("onnx" in FORMATS, WHY_NOT["onnx"])
    def test_what_a_server_reads_of_the_network(self):
        import onnxruntime
        (self.dir / "train.csv").write_text(csv_rows(300, 50, seed=1))
        (self.dir / "eval.csv").write_text(csv_rows(2, 50, seed=2))
        job = self.dir / "job.yaml"
        job.write_text(CSV.format(dir=self.dir, model=DIN))
        self.satrap("train", job)
        self.satrap("export", "--checkpoint", self.dir / "run", "--out", self.dir / "model")
        session = onnxruntime.InferenceSession(self.dir / "model/dense.onnx", providers=["CPUExecutionProvider"])
        about = json.loads((self.dir / "model/export.json").read_text())["model"]
        self.assertEqual({put.name: (put.type, put.shape) for put in [*session.get_inputs(), *session.get_outputs()]},
                         {"numeric": ("tensor(float)", ["rows", about["numeric_width"]]),
                          "pooled": ("tensor(float)", ["rows", about["pooled_width"]]),
                          "logits": ("tensor(float)", ["rows", 1])})
        self.assertEqual(session.get_modelmeta().producer_name, "satrap")


if __name__ == "__main__":
    unittest.main(verbosity=2)
