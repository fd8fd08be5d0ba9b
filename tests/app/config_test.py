"""`satrap config check | dump | explain`, and the messages for wrong configurations."""
import re
import unittest

from cli import JOB, CliTest, click_log, satrap


class ConfigTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = JOB.format(run_dir=self.dir / "run", train=self.dir / "t.tsv",
                               eval=self.dir / "e.tsv")
        self.config = self.write("job.yaml", self.text)

    def write_data(self):
        for name in ["t.tsv", "e.tsv"]:
            self.write(name, "".join(click_log()[:200]))

    def line_of(self, text):
        return next(i for i, line in enumerate(self.text.splitlines(), 1) if text in line)

    def broken(self, old, new):
        """The error of `config check` for the job with `old` replaced."""
        self.assertIn(old, self.text)
        self.text = self.text.replace(old, new)
        self.config = self.write("job.yaml", self.text)
        return self.fail_with(2, "config", "check", self.config)


class Check(ConfigTest):
    def test_a_valid_job(self):
        done = self.succeed("config", "check", self.config)
        self.assertEqual(done.stdout, f"{self.config}: ok (--data also checks the files and their columns)\n")
        self.assertFalse((self.dir / "run").exists())

    def test_unknown_key_with_the_nearest_and_its_line(self):
        error = self.broken("batch_size: 100", "batchsize: 100")
        self.assert_words(error, f"job.yaml:{self.line_of('batchsize')}", "batchsize",
                          "data.batch_size")

    def test_every_command_says_the_same_and_nothing_is_started(self):
        error = self.broken("batch_size: 100", "batchsize: 100")
        for command in [("train", self.config), ("config", "dump", self.config),
                        ("data", "head", self.config), ("data", "stats", self.config),
                        ("eval", self.config, "--checkpoint", self.dir)]:
            self.assertEqual(self.fail_with(2, *command), error)
        self.assertFalse((self.dir / "run").exists())

    def test_unknown_section(self):
        error = self.broken("dense_optimizer:", "dense_optimiser:")
        self.assert_words(error, f"job.yaml:{self.line_of('dense_optimiser')}", "dense_optimizer")

    def test_unknown_key_of_a_named_table(self):
        error = self.broken("default: {dim: 4,", "default: {dmi: 4,")
        self.assert_words(error, f"job.yaml:{self.line_of('dmi: 4')}", "dmi", "dim")

    def test_a_key_of_another_section(self):
        error = self.broken("device: cpu", "device: cpu\nbatch_size: 5")
        self.assert_words(error, f"job.yaml:{self.line_of('batch_size: 5')}", "data.batch_size")

    def test_wrong_types(self):
        for old, new in [("batch_size: 100", "batch_size: many"),
                         ("batch_size: 100", "batch_size: 1.5"),
                         ("batch_size: 100", "batch_size: {rows: 100}"),
                         ("deterministic: true", "deterministic: 2"),
                         ("lr: 0.005", "lr: fast"),
                         ("bottom: [16, 4]", "bottom: [16, four]")]:
            with self.subTest(new=new):
                before = self.text
                error = self.broken(old, new)
                self.assert_words(error, f"job.yaml:{self.line_of(new)}", new.split(":")[0])
                self.text = before

    def test_values_out_of_range(self):
        for old, new in [("batch_size: 100", "batch_size: 0"), ("lr: 0.005", "lr: -1"),
                         ("keep: 3", "keep: 0"), ("staleness: 2", "staleness: -1"),
                         ("dim: 4", "dim: 0")]:
            with self.subTest(new=new):
                before = self.text
                error = self.broken(old, new)
                self.assert_words(error, f"job.yaml:{self.line_of(new)}", new.split(" ")[1])
                self.text = before

    def test_a_choice_that_is_none(self):
        error = self.broken("type: dlrm", "type: dlmr")
        self.assert_words(error, f"job.yaml:{self.line_of('dlmr')}", "dlmr", "did you mean dlrm",
                          "deepfm", "dcn_v2")

    def test_an_attention_to_features_that_cannot_be(self):
        text = f"""\
run_dir: {self.dir / "run"}
data:
  schema:
    features:
      - {{name: item, type: int}}
      - {{name: user, type: int}}
      - {{name: history, type: int, separator: " ", max_length: 5}}
  train: {{path: t.csv}}
tables: {{user: {{dim: 8}}}}
features:
  item: {{table: items}}
  history: {{table: items, pooling: sequence}}
model:
  type: din
  attend:
    - sequence: SEQUENCE
      query: QUERY
"""
        def check(sequence, query):
            self.text = text.replace("SEQUENCE", sequence).replace("QUERY", query)
            return "config", "check", self.write("din.yaml", self.text)
        self.succeed(*check("history", "item"))
        for sequence, query, place, words in [
                ("histroy", "item", "sequence", ["'histroy'", "did you mean 'history'"]),
                ("user", "item", "sequence", ["features.user.pooling"]),
                ("history", "history", "query", ["is a sequence"]),
                ("history", "user", "query", ["8 wide", "16"])]:
            with self.subTest(sequence=sequence, query=query):
                error = self.fail_with(2, *check(sequence, query))
                self.assert_words(error, f"din.yaml:{self.line_of(place + ': ')}",
                                  f"model.attend.0.{place}", *words)

    def test_a_duplicate_key(self):
        error = self.broken("seed: 7", "seed: 7\nseed: 8")
        self.assert_words(error, f"job.yaml:{self.line_of('seed: 8')}", "seed")

    def test_text_that_is_not_yaml(self):
        error = self.broken("data:\n", "data: {\n")
        self.assert_words(error, "job.yaml:")

    def test_run_dir_has_the_name_of_the_file(self):
        self.config.write_text(self.text.replace(f"run_dir: {self.dir / 'run'}\n", ""))
        self.assertIn(f"run_dir: runs/job\nfolder: {self.dir}\n", self.succeed("config", "dump", self.config).stdout)

    def test_plain_values_stand_for_sections(self):
        long = self.write("long.yaml", """\
run_dir: run
data:
  train: {path: [a.csv, b.csv]}
  eval: {path: c.csv}
  schema: {label: {column: y}, numeric: [{name: n}, {name: m, transform: log1p}], features: [{name: f}, {name: C1..C3}]}
tables: {default: {dim: 8, optimizer: {type: adam}}}
model: {type: deepfm}
dense_optimizer: {type: adagrad}
""")
        short = self.write("short.yaml", """\
run_dir: run
data:
  train: [a.csv, b.csv]
  eval: c.csv
  schema: {label: y, numeric: [n, {name: m, transform: log1p}], features: [f, C1..C3]}
tables: {default: {dim: 8, optimizer: adam}}
model: deepfm
dense_optimizer: adagrad
""")
        dumped = self.succeed("config", "dump", long).stdout
        self.assertEqual(self.succeed("config", "dump", short).stdout, dumped)
        more = self.succeed("config", "dump", short, "model.hidden=[8]", "data.train=d.csv").stdout
        self.assertEqual(self.succeed("config", "dump", long, "model.hidden=[8]", "data.train={path: d.csv}").stdout, more)
        self.assertNotEqual(more, dumped)

    def test_another_model_from_the_command_line(self):
        self.assert_words(self.fail_with(2, "config", "check", self.config, "model.type=deepfm"), "model.bottom")
        for arguments in (["model=deepfm"], ["model={type: deepfm}"], ["model.type=deepfm", "~model.bottom", "~model.top"]):
            page = self.succeed("config", "dump", self.config, *arguments).stdout
            self.assertIn("type: deepfm", page)

    def test_intervals(self):
        for text in ["10 stones", "-5 steps", "0 steps", "often"]:
            with self.subTest(text=text):
                before = self.text
                error = self.broken("every: 10 steps, keep", f"every: {text}, keep")
                self.assert_words(error, "checkpoint.every", text)
                self.text = before

    def test_staleness_of_sync(self):
        error = self.broken("mode: hybrid", "mode: sync")
        self.assert_words(error, f"job.yaml:{self.line_of('mode: sync')}", "staleness", "sync")

    def test_the_default_bound_is_that_of_the_mode(self):
        self.config.write_text(self.text.replace("staleness: 2, staleness_schedule: constant, ", ""))
        for overrides, bound, schedule in [([], 1, "sqrt"), (["train.deterministic=false"], 4, "sqrt"),
                                           (["train.mode=sync"], 0, "constant"),
                                           (["train.staleness=3"], 3, "sqrt")]:
            with self.subTest(overrides=overrides):
                dump = self.succeed("config", "dump", self.config, *overrides).stdout
                self.assertIn(f"  staleness: {bound}\n", dump)
                self.assertIn(f"  staleness_schedule: {schedule}\n", dump)

    def test_what_only_goes_with_shards(self):
        for overrides, words in [
                (["embedding.wire=bf16"], ["embedding.wire", "store: ps", "bf16"]),
                (["train.mode=async", "train.staleness=0"], ["train.mode", "embedding.store: ps"])]:
            with self.subTest(overrides=overrides):
                self.assert_words(self.fail_with(2, "config", "check", self.config, *overrides), *words)
        self.succeed("config", "check", self.config, "embedding.store=ps", "embedding.wire=bf16")

    def test_async_has_no_state_in_between_and_no_order(self):
        job = ["train.mode=async", "embedding.store=ps", "train.deterministic=false",
               "checkpoint.every=never", "train.eval_every=never"]
        self.succeed("config", "check", self.config, *job)
        for override in ["train.deterministic=true", "checkpoint.every=10 steps", "train.eval_every=10 steps"]:
            with self.subTest(override=override):
                error = self.fail_with(2, "config", "check", self.config, *job, override)
                self.assert_words(error, override.split("=")[0], "async")

    def test_times_of_the_cluster(self):
        for override in ["cluster.timeout=0s", "cluster.heartbeat=0ms", "cluster.timeout=soon"]:
            with self.subTest(override=override):
                error = self.fail_with(2, "config", "check", self.config, override)
                self.assert_words(error, *override.split("="))

    def test_fields_that_the_model_or_optimizer_does_not_use(self):
        for override, words in [("model.hidden=[8]", ["model.hidden", "dlrm"]),
                                ("dense_optimizer.momentum=0.9", ["momentum", "adam"]),
                                ("tables.default.optimizer.l1=0.5", ["l1", "adagrad"])]:
            with self.subTest(override=override):
                error = self.fail_with(2, "config", "check", self.config, override)
                self.assert_words(error, *words)

    def test_tables_that_do_not_fit_the_model(self):
        text = self.text.replace("{type: dlrm, bottom: [16, 4], top: [16]}", "{type: logistic}")
        config = self.write("logistic.yaml", text)
        self.assert_words(self.fail_with(2, "config", "check", config), "logistic", "dim", "1", "4")
        self.succeed("config", "check", config, "tables.default.dim=1")
        self.assert_words(self.fail_with(2, "config", "check", self.config, "tables.C3.dim=8"),
                          "C3", "dlrm", "dim", "8", "4")

    def test_features_and_tables_that_do_not_exist(self):
        for override in ["features.C27.pooling=sum", "tables.C27.dim=4"]:
            self.assert_words(self.fail_with(2, "config", "check", self.config, override), "C27")

    def test_a_job_that_cannot_start_leaves_nothing(self):
        self.write_data()
        self.fail_with(2, "train", self.config, "tables.C27.dim=4")
        self.succeed("train", self.config)  # without --overwrite

    def test_evaluation_at_intervals_needs_evaluation_data(self):
        text = "\n".join(line for line in self.text.splitlines() if "eval:" not in line)
        self.config = self.write("job.yaml", text + "\n")
        self.succeed("config", "check", self.config)
        self.assert_words(
            self.fail_with(2, "config", "check", self.config, "train.eval_every=5 steps"),
            "train.eval_every", "data.eval")

    def test_devices(self):
        self.assert_words(self.broken("device: cpu", "device: tpu"), "device", "cpu", "cuda")

    def test_what_does_not_go_with_a_gpu(self):
        for settings, words in [(["embedding.cache.memory=1MiB", "tables.default.ttl_steps=10"],
                                 ["embedding.cache.memory", "ttl_steps", "write 0"]),
                                (["embedding.cache.memory=0", "model.engine=native"],
                                 ["device", "nothing would be on the GPU", "model.engine: graph", "cpu"]),
                                (["embedding.store=ps", "train.mode=async", "train.deterministic=false",
                                  "checkpoint.every=never"], ["device", "async", "write cpu"])]:
            self.assert_words(self.fail_with(2, "config", "check", self.config, "device=cuda", *settings), *words)

    def test_a_gpu_that_is_not_there(self):
        """Tests run without one."""
        for memory in ([], ["embedding.cache.memory=auto"]):
            config = self.succeed("config", "dump", self.config, "device=cuda", *memory).stdout
            self.assertIn("memory: auto", config)
        self.assert_words(self.fail_with(1, "train", self.config, "device=cuda"), "device", "no GPU", "cpu")

    def test_every_problem_is_told_at_once(self):
        self.text = self.text.replace("seed: 7", "sede: 7").replace("keep: 3", "keep: x")
        self.config = self.write("job.yaml", self.text)
        done = satrap("config", "check", self.config)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        for line, word in zip(done.stderr.splitlines(), ["sede", "keep"]):
            self.assertTrue(line.startswith("error: "))
            self.assert_words(line, word, "job.yaml:")

    def test_files_that_cannot_be_read(self):
        self.assert_words(self.fail_with(2, "config", "check", self.dir / "none.yaml"), "none.yaml",
                          "no such file")
        self.fail_with(2, "config", "check", self.dir)
        self.assert_words(self.fail_with(2, "config", "check", self.write("empty.yaml", "")),
                          "data.train.path: is not set")


class Overrides(ConfigTest):
    def test_they_win_over_the_file(self):
        text = self.succeed("config", "dump", self.config, "data.batch_size=64",
                            "tables.default.dim=8", "model.top=[8, 4]").stdout
        self.assertRegex(text, r"batch_size: 64\b")
        self.assertRegex(text, r"dim: 8\b")
        self.assertRegex(text, r"top: \[8, 4\]")

    def test_mistakes_name_the_command_line(self):
        for override, words in [("train.mdoe=sync", ["mdoe", "train.mode"]),
                                ("train.epochs=few", ["train.epochs", "few"]),
                                ("train.epochs=0", ["train.epochs", "0"])]:
            with self.subTest(override=override):
                error = self.fail_with(2, "config", "check", self.config, override)
                self.assert_words(error, "command line", *words)

    def test_a_word_without_an_equals_sign(self):
        self.assert_words(self.fail_with(2, "config", "check", self.config, "train.mode"),
                          "train.mode", "=")


class Dump(ConfigTest):
    def test_a_dump_is_a_config_with_the_same_dump(self):
        first = self.succeed("config", "dump", self.config).stdout
        again = self.succeed("config", "dump", self.write("again.yaml", first)).stdout
        self.assertEqual(first, again)

    def test_odd_strings_survive(self):
        odd = 'no: "quotes", # {comments}'
        path = self.dir / odd
        first = self.succeed("config", "dump", self.config, "run_dir='" + str(path) + "'").stdout
        again = self.succeed("config", "dump", self.write("again.yaml", first)).stdout
        self.assertEqual(first, again)

    def test_defaults_are_written_out(self):
        text = self.succeed("config", "dump", self.config).stdout
        for key in ["epochs", "shuffle_rows", "on_bad_row", "weight_decay"]:
            self.assertRegex(text, rf"(?m)^\s*{key}: ")

    def test_a_schema_file_is_inlined(self):
        schema = self.write("schema.yaml", "label: {column: y}\nfeatures: [{name: a}, {name: b}]\n")
        text = self.succeed("config", "dump", self.config, f"data.schema={schema}",
                            "data.format=csv").stdout
        self.assertIn("column: \"y\"", text.replace("column: y\n", 'column: "y"\n'))
        self.assertNotIn("schema.yaml", text)


class Explain(CliTest):
    def test_a_key(self):
        page = self.succeed("config", "explain", "train.staleness").stdout
        self.assert_words(page, "train.staleness", "integer", "default 4", ">= 0")

    def test_a_section_and_a_named_entry(self):
        page = self.succeed("config", "explain", "checkpoint").stdout
        self.assert_words(page, "checkpoint.every", "checkpoint.keep")
        for key in ["tables.default.dim", "tables.dim", "tables.*.dim", "tables.users.dim"]:
            self.assert_words(self.succeed("config", "explain", key).stdout, "dim", "integer")

    def test_everything(self):
        page = self.succeed("config", "explain").stdout
        for key in ["run_dir", "data.batch_size", "model.type", "train.mode", "checkpoint.keep"]:
            self.assertIn(key, page)

    def test_every_key_has_a_text_and_can_be_asked_for(self):
        page = self.succeed("config", "explain").stdout
        keys = re.findall(r"(?m)^([a-z_]+(?:\.(?:[a-z0-9_]+|\*))*)\b", page)
        self.assertGreater(len(keys), 60)
        for key in keys[:: max(1, len(keys) // 12)]:
            text = self.succeed("config", "explain", key).stdout
            self.assertGreater(len(text.split()), 3, key)

    def test_an_unknown_key_with_the_nearest(self):
        error = self.fail_with(2, "config", "explain", "train.stalenes")
        self.assert_words(error, "train.stalenes", "train.staleness")


if __name__ == "__main__":
    unittest.main(verbosity=2)
