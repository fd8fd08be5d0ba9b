"""`report.html` and `satrap report`: their contents, and what a browser shows of them."""
import html
import json
import unittest

from report_case import BROWSER, ReportTest

CHARTS = ["Loss (logloss)", "AUC", "Normalised entropy", "Calibration (mean p / mean label)", "Average precision",
          "Brier score", "Reliability",
          "Throughput, examples/s", "Dense stage waiting for its input, share of time", "Work of the stages per step",
          "Staleness of lookups so far, steps", "Staleness of lookups, share of all", "Memory", "Rows in the tables"]
HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"alert(1)\">&'"


@unittest.skipUnless(BROWSER, "no chromium here")
class InABrowser(ReportTest):
    def test_every_chart_of_a_run_is_drawn(self):
        self.succeed("train", self.job())
        page = self.render(self.dir / "run" / "report.html")
        self.assertEqual(list(page.charts), CHARTS)
        for name, shapes in page.charts.items():
            self.assertGreater(shapes, 0, name)
        self.assertEqual(page.charts["AUC"], 2, "training and evaluation")
        self.assertGreaterEqual(page.charts["Work of the stages per step"], 5)
        self.assertEqual(page.charts["Staleness of lookups, share of all"], 3, "bound 2")
        self.assertEqual(page.heading, "dlrm on train.tsv")
        self.assertRegex(page.about, r"^run · finished · 30 steps · [\d.]+ s · \d{4}-\d\d-\d\d \d\d:\d\d UTC$")
        self.assertEqual(page.value_of("Run directory"), str(self.dir / "run"))
        self.assertEqual(page.folded[:2], ["Speed, staleness and memory", "All numbers of the run"])
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        self.assertEqual(page.value_of("State"), "finished")
        self.assertEqual(page.value_of("Steps"), "30")
        self.assertEqual(page.value_of("satrap"), summary["version"])
        self.assertRegex(page.value_of("Machine"), r"\d CPUs, \d.* GiB")
        self.assertAlmostEqual(float(page.value_of("AUC, last evaluation")), summary["eval"]["auc"], places=4)

    def test_over_time_and_under_a_pointer(self):
        self.succeed("train", self.job())
        page = self.render(self.dir / "run" / "report.html", """
            document.querySelector('input[value=time]').click();
            for (const chart of document.querySelectorAll('figure > svg')) {
              chart.dispatchEvent(new PointerEvent('pointermove', {clientX: 100, clientY: 10}));
            }
            document.getElementById('title').textContent =
              [...document.querySelectorAll('.readout')].map((line) => line.textContent).join('|');""")
        self.assertEqual(list(page.charts), CHARTS)
        readouts = page.heading.split("|")
        self.assertEqual(len(readouts), 12, "all but bars and areas")
        self.assertRegex(readouts.pop(6), r"^predicted [\d.]+%, observed [\d.]+% \(\d+ of \d+\)$")
        for readout in readouts:
            self.assertRegex(readout, r"^training time [\d.]+ \w+ · .*\d")

    def test_runs_are_compared_in_the_same_charts(self):
        job = self.job(rows=1000)
        self.succeed("train", job, f"run_dir={self.dir / 'a'}")
        self.succeed("train", job, f"run_dir={self.dir / 'b'}", "seed=8", "train.staleness=0")
        out = self.dir / "both.html"
        self.assertEqual(self.succeed("report", self.dir / "a", self.dir / "b", "--out", out).stdout, f"{out}\n")
        page = self.render(out)
        self.assertEqual(page.charts["AUC"], 4)
        self.assertEqual(page.charts["Memory"], 4)
        self.assertIn("Work of the stages per step, b", page.charts)
        self.assertIn("a\nb\n", page.legend)
        at = page.cells.index("seed")
        self.assertEqual(page.cells[at:at + 3], ["seed", "7", "8"])
        at = page.cells.index("train.staleness")
        self.assertEqual(page.cells[at:at + 3], ["train.staleness", "2", "0"])
        self.assertNotIn("run_dir", page.cells)
        self.assertNotIn("train.mode", page.cells)

    def test_strings_of_a_run_are_shown_and_not_obeyed(self):
        run = self.run_directory(
            HOSTILE, config=f"run_dir: {json.dumps(HOSTILE)}\n",
            metrics=[{"step": 0, "start": {"version": HOSTILE, "machine": HOSTILE, "time": HOSTILE}},
                     {"step": 1, "seconds": 1, "train": {HOSTILE: 0.5}, "stage_seconds": {HOSTILE: 1}},
                     {"step": 1, "seconds": 1, "eval": {"labels": {HOSTILE: {"auc": 0.5}}}, "reliability": [
                         None, 1, {"label": "odd", "examples": [HOSTILE], "predicted": 3, "positives": None},
                         {"label": HOSTILE, "examples": [200], "predicted": [100.0], "positives": [90]}]}])
        (run / "summary.json").write_text(json.dumps({"step": 1, "mode": HOSTILE, "finished": True}))
        self.succeed("report", run, run, "--out", self.dir / "hostile.html")
        for path in [self.dir / "hostile.html", self.report(run)]:
            page = self.render(path)
            self.assertTrue(page.title.endswith("satrap"), page.title)
            self.assertEqual(page.images, 0)
            self.assertEqual(page.cells[page.cells.index("Machine") + 1], HOSTILE)
            self.assertIn(HOSTILE, page.charts)
            self.assertIn(f"AUC of {HOSTILE}", page.charts)
            self.assertIn(f"Reliability of {HOSTILE}", page.charts)

    def report(self, run):
        self.succeed("report", run)
        return run / "report.html"

    def test_a_run_that_has_reported_nothing(self):
        page = self.render(self.report(self.run_directory()))
        self.assertEqual(page.charts, {})
        self.assertEqual(page.value_of("State"), "in progress, or ended by an error")

    def test_one_report_with_undefined_metrics(self):
        run = self.run_directory(metrics=[
            {"step": 5, "seconds": 1, "examples_per_second": 10,
             "train": {"loss": 0.5, "auc": None}, "staleness": None, "stage_seconds": {"dense": 0.5}}])
        page = self.render(self.report(run))
        self.assertEqual(page.charts, {"Loss (logloss)": 1, "Throughput, examples/s": 1,
                                       "Work of the stages per step": 1})
        self.assertEqual(page.value_of("Steps"), "5")

    def test_a_metric_that_it_does_not_know_has_a_chart(self):
        run = self.run_directory(metrics=[{"step": 5, "seconds": 1, "eval": {"recall": 0.6, "examples": 9}},
                                          {"step": 9, "seconds": 2, "eval": {"recall": 0.7, "examples": 9},
                                           "reliability": {"odd": 1}}])
        page = self.render(self.report(run))
        self.assertEqual(page.charts, {"recall": 1})
        self.assertEqual(page.value_of("recall, last evaluation"), "0.7")
        self.assertEqual(page.terms[:2], ["recall", "0.70000"])

    def test_of_several_labels_each_has_its_charts(self):
        metrics = lambda loss, auc: {loss: 0.5, "auc": auc}
        run = self.run_directory(metrics=[
            {"step": 5, "seconds": 1, "train": {**metrics("loss", 0.6), "labels": {
                "click": metrics("loss", 0.6), "buy.it": metrics("loss", 0.7)}}},
            {"step": 5, "seconds": 1, "eval": {"examples": 9, **metrics("logloss", 0.8), "labels": {
                "click": {"examples": 9, **metrics("logloss", 0.8)},
                "buy.it": {"examples": 9, **metrics("logloss", 0.9)}}}}])
        page = self.render(self.report(run))
        of_all = ["Loss (logloss)", "AUC"]
        self.assertEqual(page.charts, {name + of: 2 for of in [" of click", " of buy.it"] for name in of_all})
        self.assertNotIn("AUC, last evaluation", page.cells, "which is that of click")
        self.assertEqual(page.value_of("AUC of buy.it, last evaluation"), "0.9")
        self.assertEqual([value for value in page.terms if value.startswith("0.")],
                         ["0.80000", "0.50000", "0.90000", "0.50000"], "AUC and logloss of each")
        self.assertEqual(page.value_of("AUC of buy.it, last training window"), "0.7")

    def early_stopped(self):
        """A run whose best evaluation is the second of three."""
        aucs = {5: 0.6, 10: 0.9, 15: 0.8}
        return self.run_directory(
            config="run_dir: x\ntrain: {early_stopping: {metric: auc}}\n",
            metrics=[line for step, auc in aucs.items() for line in (
                {"step": step, "seconds": step, "train": {"auc": auc - 0.1}},
                {"step": step, "seconds": step + 1, "eval": {"auc": auc}})])

    def test_the_best_evaluation_is_named_and_marked(self):
        path = self.report(self.early_stopped())
        page = self.render(path, """
            const rings = [...document.querySelectorAll('figure > svg .best-dot')];
            const dots = [...document.querySelectorAll('figure > svg .eval-dot')];
            const ring = rings[0].getAttribute('cx');
            document.getElementById('title').textContent =
              [rings.length, dots.length, dots.findIndex((dot) => dot.getAttribute('cx') === ring)].join();""")
        self.assertEqual(page.value_of("Best evaluation"), "auc 0.9 at step 10")
        self.assertEqual(page.heading, "1,3,1", "one ring, around the second of the hollow dots of the evaluations")
        self.assertIn("best evaluation", page.legend)

    def test_first_stands_the_evaluation_of_the_checkpoint_that_is_used(self):
        run = self.early_stopped()
        (run / "summary.json").write_text(json.dumps({
            "step": 15, "finished": True, "mode": "sync", "eval": {"auc": 0.8},
            "early_stopping": {"metric": "auc", "best_step": 10, "best_value": 0.9}}))
        page = self.render(self.report(run))
        self.assertEqual(page.terms, ["AUC", "0.90000", "training 0.70000", "last evaluation 0.80000",
                                      "1 is perfect, 0.5 chance"])
        self.assertEqual(page.said, "Evaluated at step 10, the best by auc: the checkpoint that eval, predict and "
                                    "export use.\n")
        self.assertLess(page.order.index("0.90000"), page.order.index("State"))

    def test_steps_are_marked_at_round_numbers(self):
        for steps, marks in [(1125, ["0", "200", "400", "600", "800", "1000"]), (3, ["0", "1", "2", "3"]),
                             (25_000, ["0", "5k", "10k", "15k", "20k", "25k"])]:
            run = self.run_directory(f"of-{steps}", metrics=[
                {"step": step, "seconds": 1, "train": {"auc": 0.5}} for step in (1, steps)])
            page = self.render(self.report(run), """document.getElementById('title').textContent =
                [...document.querySelectorAll('figure text[text-anchor=middle]')].map((mark) => mark.textContent)""")
            self.assertEqual(page.heading.split(","), [*marks, "step"])

    def test_without_evaluation_the_training_window_stands_first(self):
        page = self.render(self.report(self.run_directory(metrics=[
            {"step": 5, "seconds": 1, "train": {"loss": 0.5, "auc": 0.75}}])))
        self.assertEqual([value for value in page.terms if value.startswith("0.")], ["0.75000", "0.50000"])
        self.assertIn("there is no evaluation", page.said)

    def test_reliability_is_that_of_the_checkpoint_that_is_used(self):
        bins = lambda positives: [{"label": "y", "examples": [200, 30, 30, 0], "predicted": [20.0, 9, 12, 0],
                                   "positives": [positives, 10, 14, 0]}]
        run = self.run_directory(metrics=[
            {"step": step, "seconds": step, "eval": {"auc": 0.7}, "reliability": bins(step)} for step in (15, 25)])
        (run / "summary.json").write_text('{"step": 25, "finished": true, "early_stopping": {"best_step": 15}}')
        page = self.render(self.report(run), """
            const chart = [...document.querySelectorAll('figure')].find((one) => one.textContent.includes('Reliab'));
            const [low, high] = chart.querySelectorAll('svg[role=img] .eval-dot');
            document.getElementById('title').textContent = [low, high].map((dot) => {
              const box = dot.getBoundingClientRect();
              chart.querySelector('svg[role=img]').dispatchEvent(
                new PointerEvent('pointermove', {clientX: box.x + box.width / 2, clientY: box.y}));
              return chart.querySelector('.readout').textContent;
            }).join('|');""")
        self.assertEqual(page.heading, "predicted 10%, observed 7.5% (15 of 200)|"
                                       "predicted 35%, observed 40% (24 of 60)", "two small bins are one")

    def test_slices_are_tables(self):
        slices = [{"value": "DE", "examples": 1200, "auc": 0.75, "logloss": 0.5, "ne": None, "calibration": 1.25},
                  {"value": "", "examples": 3}, {"value": None, "examples": 4, "auc": 0.5}]
        run = self.run_directory(metrics=[{"step": 5, "seconds": 1, "eval": {"auc": 0.7, "slices": {
            HOSTILE: slices, "odd": [None, 3, {}], "none": 1}}}])
        page = self.render(self.report(run), """
            const [first] = document.querySelectorAll('table.slices');
            document.getElementById('title').textContent =
              [...first.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(',')).join('|');""")
        self.assertEqual(page.heading, f"{HOSTILE},Examples,AUC,Logloss,Normalised entropy,Calibration"
                                       "|DE,1,200,0.75000,0.50000,–,1.25000|(empty),3,–,–,–,–|all others,4,0.50000,–,–,–")

    def test_importance_is_a_table(self):
        run = self.run_directory(metrics=[{"step": 5, "seconds": 1, "eval": {"auc": 0.7}}])
        (run / "importance.json").write_text(json.dumps({"checkpoint": "step-5", "inputs": [
            {"input": HOSTILE, "logloss_rise": 0.5, "logloss_rise_interval": 0.25, "auc_fall": None}, None]}))
        page = self.render(self.report(run), """
            const [first] = document.querySelectorAll('table.importance');
            document.getElementById('title').textContent =
              [...first.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(',')).join('|');""")
        self.assertEqual(page.heading, f"Input,Logloss rises by,AUC falls by|{HOSTILE},0.50000 ± 0.25000,–")
        (run / "importance.json").write_text("[1]")
        self.assertEqual(self.render(self.report(run)).error, "")

    def test_reliability_with_weights_is_of_weights(self):
        run = self.run_directory(metrics=[{"step": 5, "seconds": 1, "eval": {"auc": 0.7}, "reliability": [
            {"label": "y", "examples": [200], "predicted": [50.0], "positives": [37.5], "weight": [500.0]}]}])
        page = self.render(self.report(run), """
            const chart = [...document.querySelectorAll('figure')].find((one) => one.textContent.includes('Reliab'));
            chart.querySelector('svg[role=img]').dispatchEvent(new PointerEvent('pointermove'));
            document.getElementById('title').textContent = chart.querySelector('.readout').textContent;""")
        self.assertEqual(page.heading, "predicted 10%, observed 7.5% (37.5 of 500)")

    def test_the_best_run_is_marked_among_runs_over_the_same_data(self):
        config = "data: {{eval: {{path: [{}]}}}}\n"
        metrics = lambda auc, loss: [
            {"step": 5, "seconds": 1, "eval": {"examples": 50, "auc": auc, "logloss": loss, "calibration": auc}}]
        made = [("a", "v.csv", 0.7, 0.4), ("b", "v.csv", 0.8, 0.5), ("c", "w.csv", 0.9, 0.1)]
        runs = [self.run_directory(name, config=config.format(file), metrics=metrics(auc, loss))
                for name, file, auc, loss in made]
        out = self.dir / "all.html"
        self.succeed("report", *runs, "--out", out)
        page = self.render(out)
        self.assertEqual(page.marked, ["0.80000", "0.40000", "0.80000"], "AUC, logloss and calibration, none of c")
        self.assertIn("Not all runs are ranked together: they were evaluated on other data than a, b", page.said)
        self.assertIn("c: data.eval.path is [w.csv], not [v.csv]", page.said)

    def test_of_the_summary_are_the_time_and_the_reasons_of_bad_rows(self):
        run = self.early_stopped()
        (run / "summary.json").write_text(json.dumps({
            "step": 15, "finished": True, "mode": "sync", "seconds": 14.5, "bad_rows": 1200,
            "bad_row_reasons": {"expected 5 columns": 200, "column 'n': expected a number": 1000}}))
        page = self.render(self.report(run))
        self.assertEqual(page.value_of("Training time"), "14.5 s")
        self.assertEqual(page.value_of("Bad rows"), "1,200, most: column 'n': expected a number (1,000)")

    def narrowest_value(self, page, width=420):
        """Of a page in a narrow window: its own width, and that of its narrowest value in a table."""
        text = page.read_text()
        page = self.dump(f"""<iframe width="{width}" height="900" srcdoc="{html.escape(text)}"></iframe><script>
            const frame = document.querySelector('iframe');
            frame.onload = () => {{
              const page = frame.contentDocument;
              page.querySelectorAll('details').forEach((one) => {{ one.open = true; }});
              const widths = [...page.querySelectorAll('td')].map((cell) => cell.getBoundingClientRect().width);
              document.title = [page.documentElement.scrollWidth, Math.min(...widths)].join();
            }};</script>""")
        return map(float, page.split("<title>")[1].split("</title>")[0].split(","))

    def test_a_narrow_window_has_room_for_the_values(self):
        width, narrowest = self.narrowest_value(self.report(self.early_stopped()))
        self.assertLessEqual(width, 420)
        self.assertGreater(narrowest, 300)

    def test_a_comparison_in_a_narrow_window_has_a_line_for_each_run(self):
        config = "run_dir: x\nmodel: {{type: {0}, hidden: [{0}]}}\n"
        runs = [self.run_directory(f"a-run-with-a-long-name-{i}", config=config.format("deepfm" * 9 + str(i)), metrics=[
            {"step": 5, "seconds": 1, "eval": {"auc": i / 10, "logloss": 0.5}}]) for i in range(5)]
        out = self.dir / "all.html"
        self.succeed("report", *runs, "--out", out)
        width, narrowest = self.narrowest_value(out)
        self.assertLessEqual(width, 420)
        self.assertGreater(narrowest, 300)

    def test_a_killed_run_while_it_is_resumed(self):
        run = self.run_directory(metrics=[
            {"step": 0, "start": {"time": "then"}},
            {"step": 5, "seconds": 1, "train": {"loss": 0.5}, "stage_seconds": {"dense": 1}},
            {"step": 9, "seconds": 2, "train": {"loss": 0.4}, "stage_seconds": {"dense": 2}},
            {"step": 5, "start": {"time": "now"}},
            {"step": 7, "seconds": 1, "train": {"loss": 0.3}, "stage_seconds": {"dense": 1}}])
        with open(run / "metrics.jsonl", "a") as file:
            file.write('{"step": 9, "train": {"lo')
        (run / "summary.json").write_text('{"step": 5, "finished": false, "mode": "sync"}')
        page = self.render(self.report(run))
        self.assertEqual(page.value_of("State"), "in progress, or ended by an error")
        self.assertEqual(page.value_of("Resumed"), "at step 5")
        self.assertEqual(page.value_of("Steps"), "7")
        self.assertEqual(page.value_of("Loss (logloss), last training window"), "0.3")
        self.assertEqual(page.charts, {"Loss (logloss)": 1, "Work of the stages per step": 1})


class Report(ReportTest):
    def test_the_page_needs_nothing_else(self):
        self.succeed("train", self.job(rows=500))
        page = (self.dir / "run" / "report.html").read_text()
        for outside in ["src=", "href=", "@import", "url(", "import(", "fetch("]:
            self.assertNotIn(outside, page)
        self.assertIn("default-src 'none'", page)

    def test_the_command_writes_the_page_of_the_run_anew(self):
        self.succeed("train", self.job(rows=500))
        page = self.dir / "run" / "report.html"
        first = page.read_text()
        page.unlink()
        self.assertEqual(self.succeed("report", f"{self.dir}/run/").stdout, f"{page}\n")
        self.assertEqual(page.read_text().replace("run/", "run"), first)

    def test_a_page_that_cannot_be_written_does_not_fail_the_job(self):
        job = self.job(rows=500)
        (self.dir / "run" / "report.html" / "x").mkdir(parents=True)
        done = self.succeed("train", job, "--resume")
        self.assertRegex(done.stderr, r"no report: .*report\.html")
        self.assert_words(self.fail_with(1, "report", self.dir / "run"), "report.html")

    def test_what_is_no_run(self):
        self.assert_words(self.fail_with(1, "report", self.dir / "none"), f"{self.dir}/none: no such directory")
        self.assert_words(self.fail_with(1, "report", self.dir), str(self.dir), "not a run directory")
        run = self.run_directory()
        (run / "summary.json").write_text("{")
        self.assert_words(self.fail_with(1, "report", run), "summary.json")

    def test_several_runs_are_a_table_with_the_best_first(self):
        runs = []
        for number, (auc, lr) in enumerate([(0.7, 0.1), (0.8, 0.2), (None, 0.3)]):
            run = self.dir / f"run-{number}"
            run.mkdir()
            (run / "config.yaml").write_text(f"run_dir: x{number}\ndense_optimizer: {{lr: {lr}}}\nseed: 1\n")
            lines = [{"step": 50, "eval": {"auc": auc, "logloss": 0.4, "ne": 0.9}},
                     {"step": 60, "eval": {"auc": auc and auc - 0.1, "logloss": 0.5, "ne": 1.0}}]
            (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            runs.append(run)
        lines = self.succeed("report", *runs).stdout.splitlines()
        self.assertRegex(lines[0], r"^run +best evaluation +at step +logloss +ne +differences$")
        self.assertRegex(lines[1], r"run-1 +auc 0\.80000 +50 +0\.40000 +0\.9000  dense_optimizer\.lr=0\.2$")
        self.assertRegex(lines[2], r"run-0 +auc 0\.70000 +50 .* dense_optimizer\.lr=0\.1$")
        self.assertRegex(lines[3], r"run-2 +- +- ")

    def evaluated(self, name, config, auc, examples=100, logloss=0.5):
        return self.run_directory(name, config=config, metrics=[
            {"step": 10, "seconds": 1, "eval": {"examples": examples, "auc": auc, "logloss": logloss}}])

    def test_runs_over_other_data_are_not_ranked_together(self):
        part = "data: {{train: {{path: [{}]}}, eval: {{fraction: 0.2, by: hash}}}}\n"
        of_a, of_b = part.format("a.csv"), part.format("b.csv")
        runs = [self.evaluated("low", of_a, 0.6), self.evaluated("other", of_b, 0.9),
                self.evaluated("high", of_a, 0.7), self.evaluated("grown", of_a, 0.8, examples=120)]
        lines = self.succeed("report", *runs).stdout.splitlines()
        self.assertEqual([line.split("  ")[0].split("/")[-1] for line in lines if "auc" in line],
                         ["high", "low", "other", "grown"])
        self.assertEqual(lines[3:5], ["", f"not ranked with {runs[0]}, since the evaluation data differ: "
                                          "data.train.path is [b.csv], not [a.csv]"])
        self.assertTrue(lines[7].endswith("differ: 120 evaluation examples, not 100"), lines[7])

    def test_runs_with_two_metrics_of_early_stopping_are_ranked_by_the_logloss(self):
        config = "train: {{early_stopping: {{metric: {}}}}}\n"
        runs = [self.evaluated("a", config.format("auc"), 0.9, logloss=0.6),
                self.evaluated("b", config.format("logloss"), 0.8, logloss=0.5)]
        lines = self.succeed("report", *runs).stdout.splitlines()
        self.assertIn("logloss 0.50000", lines[1])
        self.assertIn("auc 0.90000", lines[2])

    def test_features_are_compared_by_name(self):
        features = lambda *names: "data: {schema: {features: [%s]}}\n" % ", ".join(
            f"{{name: {name}, type: int, separator: '|'}}" for name in names)
        runs = [self.evaluated("all", features("user", "city", "item", "hour"), 0.7),
                self.evaluated("less", features("user", "item", "hour"), 0.6)]
        lines = self.succeed("report", *runs).stdout.splitlines()
        self.assertTrue(lines[1].endswith("  data.schema.features +city"), lines[1])
        self.assertTrue(lines[2].endswith("  data.schema.features -city"), lines[2])

    def test_a_table_shows_control_characters_and_does_not_send_them(self):
        runs = [self.evaluated(name, f'model: {{path: "{name}\\e[2J"}}\n', 0.5) for name in "ab"]
        table = self.succeed("report", *runs).stdout
        self.assertIn("model.path=a\\x1b[2J", table)
        self.assertNotIn("\x1b", table)

    def test_a_page_needs_a_place_that_is_there(self):
        run = self.run_directory()
        self.assert_words(self.fail_with(1, "report", run, "--out", self.dir / "none" / "x.html"), "none/x.html")


if __name__ == "__main__":
    unittest.main(verbosity=2)
