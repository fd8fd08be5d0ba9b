"""A checkpoint is only used with a configuration that means what it was trained with."""
import unittest

from cli import CliTest

JOB = """\
run_dir: {run}
seed: 3
device: cpu
data:
  schema:
    label: {{column: y}}
    numeric: [{{name: n, transform: log1p_zscore}}]
    features: [{{name: user}}, {{name: tags, separator: "|"}}]
  train: {{path: {data}}}
  eval: {{path: {data}}}
  batch_size: 50
tables:
  default: {{dim: 4}}
model: {{type: ffnn, bottom: [], top: [8]}}
train: {{threads: 1, mode: sync}}
"""

# What is replaced in the file, and the key that the error names.
CHANGES = {
    "another transform": (("log1p_zscore", "zscore"), "data.schema.numeric.n.transform"),
    "no transform": (("log1p_zscore", "none"), "data.schema.numeric.n.transform"),
    "another type of ids": (("{name: user}", "{name: user, type: int}"),
                            "data.schema.features.user.type"),
    "another column": (("{name: user}", "{name: user, column: other}"),
                       "data.schema.features.user.column"),
    "another column of a number": (("{name: n,", "{name: n, column: other,"),
                                   "data.schema.numeric.n.column"),
    "another separator": (('separator: "|"', 'separator: ";"'),
                          "data.schema.features.tags.separator"),
    "shorter bags": (('separator: "|"', 'separator: "|", max_length: 1'),
                     "data.schema.features.tags.max_length"),
    "other missing texts": (("schema:\n", "schema:\n    missing: [a1]\n"), "data.schema.missing"),
    "spaces kept": (("schema:\n", "schema:\n    trim: false\n"), "data.schema.trim"),
    "no quotes": (("schema:\n", 'schema:\n    quote: ""\n'), "data.schema.quote"),
    "decimal commas": (("schema:\n", 'schema:\n    decimal: ","\n'), "data.schema.decimal"),
    "columns by number": (("schema:\n", "schema:\n    header: false\n"), "data.schema.header"),
    "another pooling": (("tables:\n", "features:\n  default: {pooling: mean}\ntables:\n"),
                        "features.default.pooling"),
    "another seed": (("seed: 3", "seed: 4"), "seed"),
    "other weights of unknown ids": (("dim: 4", "dim: 4, init: {scale: 0.5}"),
                                     "tables.default.init.scale"),
}
WHAT_CANNOT_FIT = {
    "another network": (("top: [8]", "top: [8, 4]"), "model.top"),
    "wider rows": (("dim: 4", "dim: 8"), "tables.default.dim"),
}


class ChangedConfig(CliTest):
    def setUp(self):
        super().setUp()
        rows = [f"{i % 2},{i},{i % 7},{i % 5},a{i % 3}|b{i % 4}" for i in range(200)]
        self.data = self.write("data.csv", "\n".join(["y,n,user,other,tags", *rows]) + "\n")
        self.text = JOB.format(run=self.dir / "run", data=self.data)
        self.trained = self.write("trained.yaml", self.text)
        self.succeed("train", self.trained)

    def use(self, command, job, *options):
        out = ["--out", self.dir / "out"] if command == "export" else []
        return [command, job, "--checkpoint", self.dir / "run", *out, *options]

    def test_each_change_of_the_meaning_is_refused_by_every_command(self):
        for name, ((old, new), key) in (CHANGES | WHAT_CANNOT_FIT).items():
            with self.subTest(name):
                self.assertIn(old, self.text)
                job = self.write("changed.yaml", self.text.replace(old, new))
                for command in ("eval", "predict", "export"):
                    error = self.fail_with(2, *self.use(command, job))
                    self.assert_words(error, "step-", f"another {key}: ", "undo the change")
                    self.assertEqual("--accept-changed-config" in error, name in CHANGES)
                self.assertFalse((self.dir / "out").exists())

    def test_it_can_be_accepted_and_is_told(self):
        job = self.write("changed.yaml", self.text.replace("log1p_zscore", "zscore"))
        same = self.succeed(*self.use("eval", self.trained)).stdout
        done = self.succeed(*self.use("eval", job, "--accept-changed-config"))
        self.assertNotEqual(done.stdout, same)
        self.assert_words(done.stderr, "warning", "data.schema.numeric.n.transform")

    def test_what_cannot_fit_cannot_be_accepted(self):
        for (old, new), key in WHAT_CANNOT_FIT.values():
            job = self.write("changed.yaml", self.text.replace(old, new))
            error = self.fail_with(2, *self.use("eval", job, "--accept-changed-config"))
            self.assert_words(error, f"another {key}: ")

    def test_what_says_nothing_about_the_model_may_change(self):
        text = self.text.replace("batch_size: 50", "batch_size: 70").replace("mode: sync", "mode: hybrid")
        job = self.write("changed.yaml", text)
        self.assertEqual(self.succeed(*self.use("predict", job)).stdout,
                         self.succeed(*self.use("predict", self.trained)).stdout)


if __name__ == "__main__":
    unittest.main()
