"""Several labels per row, through the whole program."""
import json
import math
import random
import unittest

from cli import CliTest

JOB = """\
run_dir: {run}
seed: 3
data:
  schema:
    delimiter: \\t
    {labels}
    numeric: [{{name: n}}]
    features: [{{name: f, type: int}}, {{name: g, type: int}}]
  train: {{path: {train}}}
  eval: {{path: {train}}}
  batch_size: 100
tables:
  default: {{dim: 4, optimizer: {{type: adagrad, lr: 0.1}}}}
model: {model}
dense_optimizer: {{type: adam, lr: 0.01}}
train: {{epochs: 3, mode: sync, threads: 1, precision: fp32, report_every: 10 steps}}
device: cpu
"""
TWO = "labels: [{column: click}, {name: purchase, column: buy, weight: 0.5}]"
HEADS = "{type: ffnn, bottom: [], top: [16], head: [8]}"
ROWS = 1500


def rows():
    """`click` is determined by f, `buy` by g."""
    draw = random.Random(5)
    for _ in range(ROWS):
        f, g = draw.randrange(20), draw.randrange(20)
        yield f % 2, int(g % 3 == 0), draw.randrange(9), f, g


class Warnings(CliTest):
    """What a newcomer's file may have wrong."""

    def job_of(self, label, texts):
        lines = ["y\tn\tf\tg", *(f"{texts[i % len(texts)]}\t{i % 9}\t{i % 20}\t{i % 7}" for i in range(400))]
        train = self.write("train.tsv", "\n".join(lines) + "\n")
        return self.write("job.yaml", JOB.format(run=self.dir / "run", train=train, labels=label,
                                                 model="{type: dlrm, bottom: [4], top: [8]}"))

    def log_of(self, label, texts):
        return self.succeed("train", self.job_of(label, texts), "--overwrite", "data.max_bad_rows=0").stderr

    def test_a_run_does_not_end_well_with_most_of_its_rows_skipped(self):
        job = self.job_of("label: {column: y}", ["-1", "1", "-1"])
        self.assert_words(self.fail_with(1, "train", job), "267 of 400 rows (66.8 %) cannot be read",
                          "data.max_bad_rows = 10%", "train.tsv:2", "column 'y': expected 0 or 1")
        self.assertFalse((self.dir / "run" / "summary.json").exists())
        error = self.fail_with(2, "train", job, "data.max_bad_rows=ten")
        self.assert_words(error, "data.max_bad_rows", 'expected a number of rows or a share such as 10%, got "ten"')

    def test_labels_of_minus_one_are_bad_rows_and_what_is_left_is_named(self):
        log = self.log_of("label: {column: y}", ["-1", "1", "-1"])
        self.assertIn('column \'y\': expected 0 or 1 (`positive` or `threshold` say what else means 1), got "-1"', log)
        self.assertIn("warning label 'y' is 1 in all of the first 399 examples, so nothing can be learned from it; "
                      "rows with other labels, such as -1, are bad rows", log)
        self.assertNotIn("warning label", self.log_of("label: {column: y, threshold: [0]}", ["-1", "1", "-1"]))

    def test_a_text_of_positive_that_never_occurs_is_named(self):
        log = self.log_of('label: {column: y, positive: ["yes"]}', ["Yes", "No"])
        self.assertIn("warning label 'y' is 0 in all of the first 1200 examples, so nothing can be learned from it: "
                      'no row has the text of `positive`, "yes"', log)
        self.assertNotIn("warning label", self.log_of('label: {column: y, positive: ["Yes"]}', ["Yes", "No"]))


class Labels(CliTest):
    def job(self, labels=TWO, model=HEADS):
        self.run_dir = self.dir / "run"
        lines = ["click\tbuy\tn\tf\tg", *("\t".join(map(str, row)) for row in rows())]
        self.train = self.write("train.tsv", "\n".join(lines) + "\n")
        return self.write("job.yaml", JOB.format(run=self.run_dir, train=self.train, labels=labels,
                                                 model=model))

    def trained(self, **kwargs):
        job = self.job(**kwargs)
        self.log = self.succeed("train", job)
        return job

    def predict(self, job, *args):
        text = self.succeed("predict", job, "--checkpoint", self.run_dir, *args).stdout
        header, *lines = text.splitlines()
        return header, [[float(p) for p in line.split("\t")] for line in lines]

    def test_both_are_learned_and_reported_by_name(self):
        self.trained()
        summary = json.loads((self.run_dir / "summary.json").read_text())
        evaluation = summary["eval"]
        self.assertEqual(list(evaluation["labels"]), ["click", "purchase"])
        for label in evaluation["labels"].values():
            self.assertGreater(label["auc"], 0.9)
        self.assertEqual(evaluation["auc"], evaluation["labels"]["click"]["auc"])
        lines = [json.loads(line) for line in (self.run_dir / "metrics.jsonl").read_text().splitlines()]
        reports = [line for line in lines if "train" in line]
        self.assertEqual(list(reports[-1]["train"]["labels"]), ["click", "purchase"])
        self.assertEqual([line["eval"] for line in lines if "eval" in line], [evaluation])
        for name in evaluation["labels"]:
            self.assertIn(f": {name} auc ", self.log.stderr)
            self.assertIn(f"{name}: auc ", self.log.stdout)

    def test_the_bins_of_each_add_up_to_its_evaluation(self):
        self.trained()
        [line] = [line for line in map(json.loads, (self.run_dir / "metrics.jsonl").read_text().splitlines())
                  if "eval" in line]
        for bins, (name, metrics), truth in zip(line["reliability"], line["eval"]["labels"].items(), zip(*rows())):
            self.assertEqual(bins["label"], name)
            self.assertEqual(sum(bins["examples"]), ROWS)
            self.assertEqual(sum(bins["positives"]), sum(truth))
            self.assertAlmostEqual(sum(bins["predicted"]) / sum(bins["positives"]), metrics["calibration"], places=9)
            means = [p / n for p, n in zip(bins["predicted"], bins["examples"])]
            self.assertEqual(means, sorted(means))
            self.assertGreater(len(means), 10)

    def test_experts_learn_both_and_go_on_with_the_same_bits(self):
        for heads in ["{type: mmoe, layers: [12]}", "{type: ple, experts: 2, layers: [12], levels: 2}"]:
            with self.subTest(heads=heads):
                job = self.job(model=HEADS.replace("head:", f"heads: {heads}, dropout: 0.1, head:"))
                digests = []
                for parts in [["threads=1"]], [["threads=2"]], [["threads=1", "max_steps=20"], ["threads=2"]]:
                    for i, settings in enumerate(parts):
                        self.succeed("train", job, "--resume" if i else "--overwrite",
                                     *(f"train.{setting}" for setting in settings))
                    digests.append(self.digest(self.run_dir / "checkpoints" / self.checkpoints()[-1]))
                self.assertEqual(digests, digests[:1] * 3)
                for name, metrics in json.loads((self.run_dir / "summary.json").read_text())["eval"]["labels"].items():
                    self.assertGreater(metrics["auc"], 0.9, name)
                error = self.fail_with(2, "train", job, "--resume", "model.heads.experts=3", "train.epochs=4")
                self.assert_words(error, "model.heads.experts")

    def test_eval_prints_what_training_found(self):
        job = self.trained()
        page = self.succeed("eval", job, "--checkpoint", self.run_dir).stdout
        labels = json.loads((self.run_dir / "summary.json").read_text())["eval"]["labels"]
        blocks = page.split("label        ")[1:]
        self.assertEqual([block.split("\n")[0] for block in blocks], list(labels))
        for block, metrics in zip(blocks, labels.values()):
            self.assertIn(f"auc          {metrics['auc']:.6f}\n", block)
            self.assertIn(f"logloss      {metrics['logloss']:.6f}\n", block)

    def test_predict_writes_a_column_of_each(self):
        job = self.trained()
        header, predicted = self.predict(job)
        self.assertEqual(header, "click\tpurchase")
        labels = json.loads((self.run_dir / "summary.json").read_text())["eval"]["labels"]
        truth = list(rows())
        self.assertEqual(len(predicted), len(truth))
        for i, metrics in enumerate(labels.values()):
            loss = -sum(math.log(p[i] if row[i] else 1 - p[i]) for p, row in zip(predicted, truth))
            self.assertAlmostEqual(loss / ROWS, metrics["logloss"], places=4)

    def test_predict_needs_no_label_and_keeps_the_place_of_a_bad_row(self):
        job = self.trained()
        data = self.write("new.tsv", "n\tf\tg\n1\t2\t3\n1\tx\t3\n1\t2\t3\n")
        _, predicted = self.predict(job, "--data", data)
        self.assertEqual([len(row) for row in predicted], [2, 2, 2])
        self.assertTrue(all(map(math.isnan, predicted[1])))
        self.assertEqual(predicted[0], predicted[2])
        self.assertFalse(any(map(math.isnan, predicted[0])))

    def test_an_export_names_them_in_their_order(self):
        job = self.trained()
        out = self.dir / "export"
        self.succeed("export", job, "--checkpoint", self.run_dir, "--out", out)
        about = json.loads((out / "export.json").read_text())
        self.assertEqual(about["labels"], [{"name": "click", "column": "click"},
                                           {"name": "purchase", "column": "buy"}])

    def test_a_list_of_one_trains_the_same_model(self):
        digests = []
        for labels in ["label: {column: click}", "labels: [{column: click}]"]:
            job = self.job(labels=labels, model="{type: fm}")
            self.succeed("train", job, "--overwrite")
            header, _ = self.predict(job)
            self.assertEqual(header, "probability")
            summary = json.loads((self.run_dir / "summary.json").read_text())
            self.assertNotIn("labels", summary["eval"])
            digests.append(self.digest(self.run_dir / "checkpoints" / self.checkpoints()[-1]))
        self.assertEqual(digests[0], digests[1])

    def test_a_run_goes_on_with_its_own_configuration(self):
        self.trained()
        job = self.write("again.yaml", (self.run_dir / "config.yaml").read_text())
        self.succeed("train", job, "--resume", "train.epochs=4")
        error = self.fail_with(2, "train", self.job(TWO.replace("purchase", "sale")), "--resume",
                               "train.epochs=5")
        self.assert_words(error, "data.schema.labels", "[click, purchase]", "[click, sale]")

    def test_a_checkpoint_is_used_under_its_own_names(self):
        self.trained()
        other = self.job("labels: [{name: purchase, column: buy}, {column: click}]")
        for command in [["eval"], ["predict"], ["export", "--out", self.dir / "export"]]:
            with self.subTest(command=command[0]):
                error = self.fail_with(2, command[0], other, "--checkpoint", self.run_dir, *command[1:])
                self.assert_words(error, "data.schema.labels", "[click, purchase]", "[purchase, click]")

    def test_a_look_at_the_data(self):
        job = self.job()
        self.assertIn("row 0: click ", self.succeed("data", "head", job, "--rows", 1).stdout)
        clicks = sum(row[0] for row in rows()) / ROWS
        self.assertIn(f"{ROWS} rows, click {100 * clicks:.4f}%, purchase ",
                      self.succeed("data", "stats", job).stdout)

    def test_what_cannot_be_is_refused_with_its_place(self):
        for labels, model, words in [
                ("label: {column: click}\n    " + TWO, HEADS, ["job.yaml:7", "data.schema.labels", "label"]),
                (TWO, "{type: deepfm, hidden: [8]}", ["job.yaml:6", "data.schema.labels", "deepfm"]),
                ("labels: [{column: click}, {column: click}]", HEADS, ["two labels", "'click'"]),
                (TWO.replace("0.5", "0"), HEADS, ["job.yaml:6", "weight"]),
                ("label: {column: click}", "{type: fm, head: [8]}", ["model.head", "'fm'"]),
                ("label: {column: click}", "{type: dcn_v2, heads: mmoe}",
                 ["job.yaml:14", "model.heads", "several labels"]),
                (TWO, "{type: dcn_v2, heads: {type: mmoe, levels: 2}}", ["model.heads.levels", "only by ple"]),
                (TWO, "{type: dcn_v2, heads: {type: ple, experts: 1024}}",
                 ["job.yaml:14", "at most 1024 experts", "got 1026"])]:
            with self.subTest(labels=labels, model=model):
                self.assert_words(self.fail_with(2, "train", self.job(labels, model)), *words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
