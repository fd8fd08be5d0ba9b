#!/usr/bin/env python3
"""What hours and weekdays of a data set's times add to the job that `satrap init` writes.

Trains two jobs per seed: the one of `init`, and the same with a feature for each part of each time that `init` leaves
out. AUC and logloss are of the part that `init` keeps for evaluation, with the checkpoint that early stopping chose by
it. Means with 95 % intervals over the seeds; differences are paired by seed. A weekday is added only where the times
are of more than one day.

    bench/date_parts.py --data ../shared/data [--sets talkingdata,flights_times] [--seeds 10] [--parts hour]

`flights_times` are the flights of own_data.py, with the scheduled departure as one time in place of its month, day and
time of day; `flights` have both. Packages and data sets are those of own_data.py.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import tempfile

import own_data
from own_data_sets import PACKAGED, SAMPLES, flights

METRICS = ("auc", "logloss")


def flights_and_times(folder):
    """The flights with the time at which each was to depart, as the clocks of New York showed it."""
    import pandas as pd
    table = flights(folder)
    time_of_day = table["sched_dep_time"]
    departure = pd.to_datetime({"year": 2013, "month": table["month"], "day": table["day"],
                                "hour": time_of_day // 100, "minute": time_of_day % 100})
    return table.assign(departure=departure)


def flights_by_times(folder):
    return flights_and_times(folder).drop(columns=["month", "day", "sched_dep_time"])


SETS = {
    **{name: SAMPLES[name] for name in ("talkingdata", "movielens")},
    **{name: PACKAGED[name] for name in ("open_bandit", "movielens_100k")},
    "flights_times": dataclasses.replace(PACKAGED["flights"], make=flights_by_times),
    "flights": dataclasses.replace(PACKAGED["flights"], make=flights_and_times),
}


def times_of(config):
    """The columns that `init` left out as times."""
    return re.findall(r"^    #   (\S+): a time, which does not come back", config, re.MULTILINE)


def parts_of(column, path, delimiter, parts):
    """Without the weekday where all times are of one day."""
    import pandas as pd
    times = pd.read_csv(path, sep=delimiter, usecols=[column])[column]
    is_number = pd.api.types.is_numeric_dtype(times)
    seen = pd.to_datetime(times, unit="s") if is_number else pd.to_datetime(times, format="ISO8601")
    return [part for part in parts if part == "hour" or seen.dt.date.nunique() > 1]


def with_parts(config, parts):
    """`parts`: column -> its parts."""
    lines = "".join(f"      - {{name: {column}_{part}, column: {column}, part: {part}}}\n"
                    for column, names in parts.items() for part in names)
    before, features, after = config.partition("    features:\n")
    assert features, "the job has no features"
    return before + features + lines + after


def interval(values):
    """Mean and half of its 95 % interval."""
    import scipy.stats
    return sum(values) / len(values), scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)


def measure(name, path, label, satrap, parts):
    """The row of the table, and None; or None, and why there is none."""
    job = satrap.init(path.resolve(), name, label)
    config = (satrap.folder / f"{name}.yaml").read_text()
    columns = times_of(config)
    if not columns:
        return None, "init leaves out no time"
    added = {column: parts_of(column, path, job.schema["delimiter"], parts) for column in columns}
    (satrap.folder / f"{name}_parts.yaml").write_text(with_parts(config, added))
    plain, _ = satrap.scores(name)
    dated, _ = satrap.scores(f"{name}_parts")
    cells = []
    for metric in METRICS:
        before, after = ([getattr(scores, metric) for scores in of_job] for of_job in (plain, dated))
        digits = 4 if metric == "auc" else 5
        cells += ["{:.{}f} ± {:.{}f}".format(mean, digits, half, digits)
                  for mean, half in map(interval, (before, after))]
        if metric == "auc":
            cells.append("{:+.4f} ± {:.4f}".format(*interval([b - a for a, b in zip(before, after)])))
        else:
            cells.append("{:+.2f} ± {:.2f} %".format(*interval([100 * (b / a - 1) for a, b in zip(before, after)])))
    inputs = ", ".join(f"{column}: {' and '.join(names)}" for column, names in added.items())
    rows = len(job.read(path))
    return f"| {name} | {rows:,} | {job.data['eval']['by']} | {inputs} | {' | '.join(cells)} |", None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=own_data.ROOT.parent / "shared/data",
                        help="folder of the samples")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS), help=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=10, help="how many, at least 2; the first is 1")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["hour", "weekday"],
                        help="hour,weekday,month_day")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="override for `satrap train` and `satrap eval`")
    parser.add_argument("--satrap", type=pathlib.Path, default=own_data.ROOT / "build/release/bin/satrap")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "satrap-own-data")
    arguments = parser.parse_args()
    if "SATRAP_OWN_DATA" not in os.environ:
        own_data.enter_environment(arguments.venv)

    print("| data | rows | split by | parts | AUC: init | with parts | difference | logloss: init | with parts "
          "| difference |\n" + "|---" * 10 + "|", flush=True)
    for name in arguments.sets:
        with tempfile.TemporaryDirectory(prefix="satrap-date-parts-") as folder:
            satrap = own_data.Satrap(arguments.satrap.resolve(), pathlib.Path(folder), arguments.seeds,
                                     arguments.overrides)
            data_set = SETS[name]
            path, reason = own_data.file_of(name, data_set, arguments.data, satrap.folder)
            row = None
            if path is not None:
                row, reason = measure(name, path, data_set.label, satrap, arguments.parts)
            print(row or f"SKIP {name}: {reason}", flush=True)


if __name__ == "__main__":
    main()
