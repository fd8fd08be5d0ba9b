"""Inputs made from times: their parts and ages by Python's zoneinfo, and the same in every format, in predictions and
in satrap.Scorer; what is refused before a run, and on --resume."""
import datetime
import json
import os
import pathlib
import sys
import unittest
import zoneinfo

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
UTC = datetime.timezone.utc
# South of the equator, half hours, summer time that is standard, Ramadan, a day left out, none, many in the past
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Europe/Dublin", "Africa/Casablanca", "Asia/Shanghai",
         "Pacific/Apia", "Asia/Kathmandu", "America/Sao_Paulo", "UTC")
YEARS = (1968, 2011, 2026, 2040)
FAR = ("0001-01-01T00:00:00", "0001-01-02T12:00:00", "1582-10-15T00:00:00", "1850-06-01T05:06:07", "1900-01-01T00:00:00",
       "1901-12-13T20:45:51", "1901-12-13T20:45:53", "1969-12-31T23:59:59", "2037-12-31T23:00:00", "2038-01-19T03:14:08",
       "2400-02-29T23:30:00", "2437-07-01T12:00:00", "2438-07-01T12:00:00", "5000-07-01T12:00:00", "9999-07-01T00:00:00",
       "9999-12-31T23:59:59")
JOB = """
run_dir: run
device: cpu
data:
  train: {path}
  batch_size: 4
  on_bad_row: stop
  schema:
    label: click
    numeric: [{numbers}]
    features: [{features}]
tables: {{default: {{dim: 2, init: {{type: normal, scale: 1}}, optimizer: {{type: sgd, lr: 0.5}}}}}}
model: {{type: ffnn, top: [4]}}
train: {{mode: sync, deterministic: true, threads: 1, epochs: 2, precision: fp32}}
"""


def parts_of(utc, zone):
    """(hour, weekday, day of the month) by zoneinfo. Next to the years 0 and 10000 it has none: there by the offset."""
    near = min(max(utc, datetime.datetime(1, 1, 2)), datetime.datetime(9999, 12, 30)).replace(tzinfo=UTC)
    offset = near.astimezone(zone).utcoffset() if str(zone) != "UTC" else datetime.timedelta()
    try:
        local = utc + offset
    except OverflowError:
        return None
    return local.hour, local.weekday(), local.day


def hours_of_years():
    for year in YEARS:
        time = datetime.datetime(year, 1, 1)
        while time.year == year:
            yield time
            time += datetime.timedelta(hours=1)


class Zones(CliTest):
    def test_parts_are_those_of_zoneinfo(self):
        times = [*hours_of_years(), *map(datetime.datetime.fromisoformat, FAR)]
        names = [f"{part}_{i}" for i in range(len(ZONES)) for part in ("hour", "weekday", "month_day")]
        features = [f"{{name: {name}, column: ts, part: {name.rsplit('_', 1)[0]}, zone: {ZONES[int(name.split('_')[-1])]}}}"
                    for name in names]
        self.write("job.yaml", JOB.format(path="rows.csv", numbers="", features=", ".join(features)))
        self.write("rows.csv", "click,ts\n" + "".join(f"1,{time.isoformat()}\n" for time in times))
        head = self.succeed("data", "head", "job.yaml", "--rows", len(times), cwd=self.dir).stdout
        zones = [zoneinfo.ZoneInfo(name) for name in ZONES]
        rows = head.split("\nrow ")
        self.assertEqual(len(rows), len(times))
        for time, row in zip(times, rows):
            shown = dict(line.split() for line in row.splitlines()[1:])
            for i, zone in enumerate(zones):
                expected = parts_of(time, zone)
                found = tuple(int(shown[f"{part}_{i}"]) for part in ("hour", "weekday", "month_day"))
                if expected is not None:
                    self.assertEqual(found, expected, f"{time} in {zone}")


NUMBERS = ("{name: age, column: ts, since: created, unit: h, transform: log1p_zscore, clip: [-500, 5000], "
           "missing_indicator: true}, {name: seconds, column: ts, since: created, unit: s}")
FEATURES = ("site, {name: tags, separator: '|'}, {name: hour, column: ts, part: hour, zone: America/New_York}, "
            "{name: day, column: created, part: month_day, missing: own_id}, {name: weekday, column: ts, part: weekday}, "
            "{name: site_x_hour, cross: [site, hour]}, {name: tags_x_day, cross: [tags, day], missing: own_id}")
ROWS = 40


def value_rows():
    """(click, ts, created, site, tags): times in milliseconds, None for a missing one."""
    rows = []
    for i in range(ROWS):
        ts = 1_772_000_000_000 + i * 7_654_321 + i % 3
        created = None if i % 7 == 3 else ts - 86_400_000 * (i - 5) - 125
        rows.append((i % 2, None if i % 11 == 5 else ts, created, None if i % 5 == 4 else f"s{i % 6}",
                     "|".join(f"t{k}" for k in range(i % 4))))
    return rows


def iso(ms, ending="Z"):
    time = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    return time.isoformat(timespec="milliseconds") + ending


def ns(ms):
    return ms * 1_000_000


# How programs write a time in text, and in JSON.
TEXTS = {"iso": iso, "space": lambda ms: iso(ms, " +0000").replace("T", " "),
         "ahead": lambda ms: iso(ms + 8 * 3_600_000, "+08:00"), "ms": str, "us": lambda ms: str(ms * 1000),
         "ns": lambda ms: str(ns(ms)), "seconds": lambda ms: f"{ms // 1000}.{ms % 1000:03}"}


class Formats(CliTest):
    """One set of rows in every format, and all ways of writing times."""

    def setUp(self):
        super().setUp()
        self.rows = value_rows()
        columns = dict(zip(("click", "ts", "created", "site", "tags"), map(list, zip(*self.rows))))
        self.files = []
        for name, text in TEXTS.items():
            self.write_text(f"{name}.csv", text)
        self.write("iso.jsonl", "".join(self.json_line(row, iso) for row in self.rows))
        self.write("ms.jsonl", "".join(self.json_line(row, int) for row in self.rows))
        self.write("seconds.jsonl", "".join(self.json_line(row, lambda ms: ms / 1000) for row in self.rows))
        self.files += ["iso.jsonl", "ms.jsonl", "seconds.jsonl"]
        if HAS_PARQUET:
            kinds = {"time_ms": pa.timestamp("ms"), "time_us": pa.timestamp("us", tz="Asia/Tokyo"), "int": pa.int64(),
                     "time_ns": pa.timestamp("ns")}
            for name, kind in kinds.items():
                times = {c: pa.array(columns[c], pa.int64()) for c in ("ts", "created")}
                scale = {"time_us": 1000, "time_ns": 1_000_000}.get(name, 1)
                times = {c: pa.array([None if v is None else v * scale for v in columns[c]], pa.int64()).cast(kind)
                         for c in times}
                table = pa.table({**columns, **times})
                pq.write_table(table, self.dir / f"{name}.parquet", row_group_size=15)
                feather.write_feather(table, self.dir / f"{name}.arrow", compression="uncompressed")
                self.files += [f"{name}.parquet", f"{name}.arrow"]
        self.write("job.yaml", JOB.format(path="iso.csv", numbers=NUMBERS, features=FEATURES))

    def write_text(self, name, text):
        lines = [",".join("" if v is None else v for v in
                          (str(click), ts and text(ts), created and text(created), site, tags))
                 for click, ts, created, site, tags in self.rows]
        self.write(name, "click,ts,created,site,tags\n" + "\n".join(lines) + "\n")
        self.files.append(name)

    @staticmethod
    def json_line(row, write):
        click, ts, created, site, tags = row
        return json.dumps({"click": click, "ts": ts and write(ts), "created": created and write(created), "site": site,
                           "tags": tags.split("|") if tags else []}) + "\n"

    def head(self, file, *overrides):
        return self.succeed("data", "head", "job.yaml", f"data.train={file}", *overrides, "--rows", ROWS,
                            cwd=self.dir).stdout

    def digest(self, run, *overrides):
        self.succeed("train", "job.yaml", f"run_dir={run}", *overrides, cwd=self.dir)
        newest = sorted((self.dir / run / "checkpoints").glob("step-*"))[-1]
        return self.succeed("checkpoint", "verify", newest).stdout.split("digest ")[1]

    def test_every_format_has_the_same_inputs_models_and_predictions(self):
        expected = self.head("iso.csv")
        self.assertIn("hour         ", expected)
        model = self.digest("run")
        scores = None
        for file in self.files:
            with self.subTest(file=file):
                self.assertEqual(self.head(file), expected)
                if not file.startswith(("iso", "seconds", "time_us")):
                    continue
                self.assertEqual(self.digest(f"run-{file}", f"data.train={file}"), model)
                found = self.succeed("predict", "--checkpoint", "run", "--data", file, cwd=self.dir).stdout
                scores = scores or found
                self.assertEqual(found, scores)
        self.check_scorer([float(line) for line in scores.split()[1:]])

    def test_the_cache_and_an_evaluation_part_have_them_too(self):
        part = "data.eval={fraction: 0.2, by: hash}"
        model = self.digest("run", part)
        for run in ("first", "second"):
            self.assertEqual(self.digest(run, part, "data.cache=cache"), model)
        before = len(list((self.dir / "cache").iterdir()))
        other = [FEATURES.replace("zone: America/New_York", "zone: Asia/Tokyo")]  # the cache has the times
        self.digest("third", part, "data.cache=cache", f"data.schema.features=[{other[0]}]")
        self.assertEqual(len(list((self.dir / "cache").iterdir())), before)
        metrics = [self.succeed("eval", "--checkpoint", "run", "--data", file, cwd=self.dir).stdout
                   for file in ("iso.csv", "ms.jsonl")]
        self.assertEqual(*(text.split("auc")[1].split()[0] for text in map(str.lower, metrics)))

    def check_scorer(self, scores):
        sys.path[:0] = [str(SOURCE / "python")]
        try:
            import torch  # noqa: F401
        except ImportError:
            return  # tests/python names it
        import satrap as package
        done = satrap("export", "--checkpoint", "run", "--out", "model", cwd=self.dir)
        if done.returncode != 0:
            self.assertIn("libtorch", done.stderr)
            return
        about = json.loads((self.dir / "model" / "export.json").read_text())
        self.assertEqual(about["format"], 3)
        scorer = package.Scorer(self.dir / "model")
        self.assertEqual(scorer.columns, ["ts", "created", "site", "tags"])
        names = ("click", "ts", "created", "site", "tags")
        for write in (*TEXTS.values(), int, lambda ms: datetime.datetime.fromisoformat(iso(ms, "+00:00")),
                      lambda ms: np.datetime64(ms, "ms")):
            rows = [dict(zip(names, (click, ts and write(ts), created and write(created), site, tags)))
                    for click, ts, created, site, tags in self.rows]
            np.testing.assert_allclose(scorer.score(rows), scores, atol=2e-6)


class Refusals(CliTest):
    def setUp(self):
        super().setUp()
        self.write("rows.csv", "click,ts,created,site\n" + "1,2026-11-20 10:00,2026-11-01,a\n0,2026-11-21 11:00,,b\n" * 8)
        self.job("{name: hour, column: ts, part: hour}, site, {name: x, cross: [site, hour]}")

    def job(self, features, numbers="{name: age, column: ts, since: created}"):
        self.write("job.yaml", JOB.format(path="rows.csv", numbers=numbers, features=features))

    def refuse(self, features, *words, numbers=""):
        self.job(features, numbers)
        done = satrap("train", "job.yaml", cwd=self.dir)
        self.assertNotEqual(done.returncode, 0)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.dir / "run").exists())

    def test_before_the_start(self):
        self.refuse("{name: hour, column: ts, part: hour, zone: Asia/Shangai}", "job.yaml:11: data.schema.features.0.zone",
                    "time zone 'Asia/Shangai' is unknown; did you mean 'Asia/Shanghai'?")
        self.refuse("{name: hour, column: ts, part: hours}", "hours", "hour")
        self.refuse("{name: hour, column: ts, zone: Asia/Tokyo}", "zone", "has no effect without part")
        self.refuse("{name: hour, column: ts, part: hour, type: int}", "part", "has no type")
        self.refuse("{name: hour, column: when, part: hour}", "there is no column 'when', which a time reads")
        self.refuse("{name: hour, column: click, part: hour}", "column 'click' is the label's")
        self.refuse("{name: x, cross: [site, hour]}, site", "cross 'x' needs the feature 'site', and there is none before it")
        self.refuse("site, {name: x, cross: [site, sitee]}", "cross 'x' needs the feature 'sitee'", "did you mean 'site'?")
        self.refuse("site, {name: x, cross: [site]}", "features.1.cross: must be the names of two features")
        self.refuse("site, {name: x, column: ts, cross: [site, site]}", "must be the names of two features")
        self.refuse("site, {name: y, column: ts}, {name: x, column: ts, cross: [site, y]}", "has no column")
        self.refuse("site, {name: y, column: ts}, {cross: [site, y]}", "features.2", "name")
        self.refuse("site", "numeric.0.since: is the column itself", numbers="{name: ts, since: ts}")
        self.refuse("site", "numeric.0.unit: has no effect without since", numbers="{name: ts, unit: h}")
        self.refuse("site", "numeric.0.since: column 'click' is the label's", numbers="{name: ts, since: click}")

    def test_a_row_whose_time_cannot_be_read_is_bad(self):
        self.write("rows.csv", "click,ts,created,site\n1,2026-11-20,2026-11-01,a\n0,11/20/2026,,b\n")
        done = satrap("train", "job.yaml", cwd=self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("rows.csv:3: column 'ts': expected a time such as 2026-11-20", done.stderr)
        self.assertIn('got "11/20/2026"', done.stderr)

    def test_a_row_with_too_many_pairs_is_bad_in_every_format(self):
        long = "|".join(map(str, range(300)))
        rows = [(1, "1|2", "3"), (0, long, long), (0, long, "1|2")] * 4
        self.write("rows.csv", "click,a,b\n" + "".join(f"{click},{a},{b}\n" for click, a, b in rows))
        self.write("rows.jsonl", "".join(json.dumps({"click": click, "a": a.split("|"), "b": b.split("|")}) + "\n"
                                         for click, a, b in rows))
        files = {"rows.csv": "rows.csv:3", "rows.jsonl": "rows.jsonl:2"}
        if HAS_PARQUET:
            table = {"click": [row[0] for row in rows], "a": [row[1].split("|") for row in rows],
                     "b": [row[2].split("|") for row in rows]}
            pq.write_table(pa.table(table), self.dir / "rows.parquet")
            files["rows.parquet"] = "rows.parquet: row 2"
        bags = ", ".join(f"{{name: {name}, type: int, separator: '|'}}" for name in "ab")
        self.job(bags, "")
        self.succeed("train", "job.yaml", "run_dir=before", "data.cache=cache", cwd=self.dir)  # no cross: all are good
        self.job(bags + ", {name: x, cross: [a, b]}", "")
        scores = set()
        for file, place in files.items():
            done = satrap("train", "job.yaml", f"data.train={file}", "data.cache=cache", "--overwrite", cwd=self.dir)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{place}: cross 'x': more than 65536 pairs of ids in a row; give its features a max_length, got "
                          '"300 x 300"', done.stderr)
            settings = [f"run_dir={file}.run", f"data.train={file}", "data.on_bad_row=skip", "data.max_bad_rows=50%"]
            self.succeed("train", "job.yaml", *settings, cwd=self.dir)
            scores.add(self.succeed("predict", "--checkpoint", f"{file}.run", "--data", file, cwd=self.dir).stdout)
        self.assertEqual(len(scores), 1)
        self.assertEqual([line == "nan" for line in scores.pop().splitlines()[1:]], [False, True, False] * 4)

    def test_another_meaning_of_ids_is_no_resumption(self):
        self.succeed("train", "job.yaml", cwd=self.dir)
        hour = "{name: hour, column: ts, part: hour}, site, "
        for features, key in ((hour.replace("hour}", "weekday}") + "{name: x, cross: [site, hour]}", "hour.part"),
                              (hour.replace("hour}", "hour, zone: Asia/Tokyo}") + "{name: x, cross: [site, hour]}",
                               "hour.zone"),
                              (hour + "{name: x, cross: [hour, site]}", "x.cross")):
            self.job(features)
            done = satrap("train", "job.yaml", "train.epochs=3", "--resume", cwd=self.dir)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"data.schema.features.{key}", done.stderr)
            self.assertIn("ids would mean other rows", done.stderr)
        self.job(hour + "{name: x, cross: [site, hour]}", "{name: age, column: ts, since: created, unit: h}")
        done = satrap("train", "job.yaml", "train.epochs=3", "--resume", cwd=self.dir)
        self.assertIn("data.schema.numeric.age.unit", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.job(hour + "{name: x, cross: [site, hour]}")
        self.succeed("train", "job.yaml", "train.epochs=3", "--resume", cwd=self.dir)


if __name__ == "__main__":
    unittest.main()
