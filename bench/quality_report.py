"""The results of bench/quality.py: their identity, intervals, table and plot."""
import collections
import dataclasses
import json
import math
import statistics
from xml.sax.saxutils import escape

from quality_models import MODELS, RATES
from quality_sets import SETS

VARIANTS = ["sync", "hybrid", "async", "pytorch"]
SCHEDULES = ["constant", "sqrt"]
T_QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
               2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
               2.045, 2.042]  # 97.5 %, for 1, 2, ... degrees of freedom


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str  # of VARIANTS
    bound: int | None = None  # hybrid: train.staleness and its schedule
    schedule: str | None = None

    def __str__(self):
        if self.name != "hybrid":
            return self.name
        return f"hybrid({self.bound})" + (", sqrt" if self.schedule == "sqrt" else "")

    def order(self):
        return VARIANTS.index(self.name), self.bound or 0, self.schedule or ""


@dataclasses.dataclass(frozen=True)
class Job:
    """What the variants and seeds of a comparison share."""
    set: str
    rows: int
    epochs: int
    batch: int
    model: str
    optimizer: str
    rate: float

    def order(self):
        return (list(SETS).index(self.set), self.rows, self.epochs, self.batch, list(MODELS).index(self.model),
                list(RATES).index(self.optimizer), self.rate)

    def data(self):
        """The rows of a report that belong together."""
        return f"{self.set}, {self.epochs * math.ceil(self.rows / self.batch):,} steps"


def load(path):
    """Lines as (Job, Variant, seed) -> result."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        result = json.loads(line)
        job = Job(**{field.name: result[field.name] for field in dataclasses.fields(Job)})
        results[job, Variant(result["variant"], result["bound"], result["schedule"]), result["seed"]] = result
    return results


@dataclasses.dataclass(frozen=True)
class Metric:
    title: str
    key: str
    limit: float
    forms: tuple[str, str]  # of a value and of a difference
    relative: bool = False

    def difference(self, value, base):
        return 100 * (value / base - 1) if self.relative else value - base


METRICS = [Metric("AUC", "auc", 0.001, (".5f", "+.5f")),
           Metric("logloss, differences in %", "logloss", 0.5, (".5f", "+.2f"), relative=True),
           Metric("calibration", "calibration", math.inf, (".4f", "+.4f"))]
AUC = METRICS[0]


def interval(values):
    """Mean, and half of its 95 % interval."""
    freedom = len(values) - 1
    if freedom < 1:
        return statistics.fmean(values), math.inf
    t = T_QUANTILES[freedom - 1] if freedom <= len(T_QUANTILES) else 1.96 + 2.5 / freedom
    return statistics.fmean(values), t * statistics.stdev(values) / len(values) ** 0.5


class Group:
    """Results of one job: Variant -> seed -> result."""

    def __init__(self, job):
        self.job = job
        self.results = collections.defaultdict(dict)

    def variants(self):
        """Those that can be compared with sync."""
        return [v for v in self.results if v.name != "sync" and self.differences(v, AUC)]

    def sync(self, metric):
        return [result[metric.key] for result in self.results.get(Variant("sync"), {}).values()]

    def differences(self, variant, metric):
        base = self.results.get(Variant("sync"), {})
        return [metric.difference(result[metric.key], base[seed][metric.key])
                for seed, result in sorted(self.results.get(variant, {}).items()) if seed in base]

    def is_marked(self, variant, metric):
        """Is the whole interval of the difference beyond the limit?"""
        differences = self.differences(variant, metric)
        mean, half = interval(differences) if differences else (0.0, 0.0)
        return abs(mean) - half > metric.limit


def grouped(results):
    groups = {}
    for (job, variant, seed), result in results.items():
        groups.setdefault(job, Group(job)).results[variant][seed] = result
    return [groups[job] for job in sorted(groups, key=Job.order)]


def shown(values, form, wanted=None):
    """Mean and interval; the number of values if it is not the wanted one."""
    if not values:
        return "-"
    mean, half = interval(values)
    text = format(mean, form) + (f" ± {format(half, form.strip('+'))}" if half < math.inf else "")
    return text if wanted in (None, len(values)) else f"{text} ({len(values)})"


def table(groups, variants, metric):
    lines = [f"| {' | '.join([metric.title, 'model', 'row optimizer', 'seeds', 'sync', *map(str, variants)])} |",
             "|---" * (5 + len(variants)) + "|"]
    for group in groups:
        sync, job = group.sync(metric), group.job
        cells = [job.data(), job.model, job.optimizer, str(len(sync)), shown(sync, metric.forms[0])]
        for variant in variants:
            cell = shown(group.differences(variant, metric), metric.forms[1], len(sync))
            cells.append(f"**{cell}**" if group.is_marked(variant, metric) else cell)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def summary(groups, variants):
    lines = ["| variant | cases | AUC beyond its limit | logloss beyond its limit | median difference of the AUC "
             "| staleness seen, mean (max) |", "|---" * 6 + "|"]
    for variant in variants:
        compared = [group for group in groups if variant in group.variants()]
        results = [result for group in compared for result in group.results[variant].values()]
        marked = [sum(group.is_marked(variant, metric) for group in compared) for metric in METRICS[:2]]
        median = statistics.median(interval(group.differences(variant, AUC))[0] for group in compared)
        seen = statistics.fmean(result["staleness_mean"] for result in results)
        lines.append(f"| {variant} | {len(compared)} | {marked[0]} | {marked[1]} | {median:+.5f} "
                     f"| {seen:.1f} ({max(result['staleness_max'] for result in results)}) |")
    return "\n".join(lines) + "\n"


def programs(groups):
    """What the results are from."""
    results = [r for group in groups for by_seed in group.results.values() for r in by_seed.values()]
    return "Trained by: " + "; ".join(sorted(
        {r["version"] if r["variant"] == "pytorch" else f"satrap {r['version']}, {r['commit']}, program {r['program']}"
         for r in results})) + "\n"


def report(groups):
    variants = sorted({v for group in groups for v in group.variants()}, key=Variant.order)
    return "\n".join([summary(groups, variants), *(table(groups, variants, metric) for metric in METRICS),
                      programs(groups)])


# Drawing: a panel per data set and model, a line per row optimizer and schedule

LEFT, HEAD, WIDTH, HEIGHT, BELOW, GAP = 64, 64, 220, 130, 40, 14
COLOURS = dict(zip(RATES, ["#1f77b4", "#d62728", "#2ca02c"]))
DASHES = {"sqrt": "", "constant": ' stroke-dasharray="4 3"'}
LEVELS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]  # where an axis may end; every other one is marked


def curve(group, schedule, bounds):
    """(place on the axis, mean difference of the AUC, half of its interval), from sync on."""
    points = [(0, 0.0, 0.0)]
    for place, bound in enumerate(bounds, 1):
        differences = group.differences(Variant("hybrid", bound, schedule), AUC)
        if differences:
            points.append((place, *interval(differences)))
    return points


class Axes:
    """The axes that all panels share. The upright one is linear up to about the limit, logarithmic beyond."""

    def __init__(self, bounds, means):
        ends = [next(level for level in LEVELS if level >= min(value, 1.0)) for value in (-min(means), max(means))]
        below, above = ([level for level in LEVELS[::2] if level < end] + [end] for end in ends)
        self.bounds, self.marks = bounds, [-level for level in reversed(below)] + [0.0] + above

    def x(self, place):
        return WIDTH * (place + 0.5) / (len(self.bounds) + 1)

    def y(self, difference):
        low, high, at = (math.asinh(d / AUC.limit) for d in (self.marks[0], self.marks[-1], difference))
        return HEIGHT * (high - min(max(at, low), high)) / (high - low)


def text(x, y, content, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(content)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def panel(groups, axes):
    """Grey: differences within the limit."""
    top, bottom = axes.y(AUC.limit), axes.y(-AUC.limit)
    shapes = [f'<rect y="{top:.1f}" width="{WIDTH}" height="{bottom - top:.1f}" fill="#eee"/>']
    shapes += [line(0, axes.y(mark), WIDTH, axes.y(mark), 'stroke="#ccc"') for mark in axes.marks]
    shapes += [text(axes.x(place), HEIGHT + 14, str(bound)) for place, bound in enumerate(["sync", *axes.bounds])]
    for number, (group, schedule) in enumerate((g, s) for g in groups for s in SCHEDULES):
        colour, corners = COLOURS[group.job.optimizer], []
        for place, mean, half in curve(group, schedule, axes.bounds):
            x = axes.x(place) + (3 * (number - len(groups) + 0.5) if place else 0)
            corners.append(f"{x:.1f},{axes.y(mean):.1f}")
            if half < math.inf:
                shapes.append(line(x, axes.y(mean - half), x, axes.y(mean + half),
                                   f'stroke="{colour}" stroke-opacity="0.4"'))
        shapes.append(f'<polyline points="{" ".join(corners)}" fill="none" stroke="{colour}" stroke-width="1.5"'
                      f'{DASHES[schedule]}/>')
    return shapes


def legend():
    shapes = [text(LEFT, 18, "AUC of hybrid minus that of sync over the staleness bound, with 95 % intervals", "start")]
    styles = [(name, colour, "") for name, colour in COLOURS.items()]
    styles += [(f"schedule {name}", "#555", dash) for name, dash in DASHES.items()]
    for number, (name, colour, dash) in enumerate(styles):
        x = LEFT + 150 * number
        shapes += [line(x, 32, x + 24, 32, f'stroke="{colour}" stroke-width="2"{dash}'),
                   text(x + 30, 36, name, "start")]
    return shapes


def plot(groups):
    bounds = sorted({v.bound for group in groups for v in group.results if v.name == "hybrid"})
    means = [mean for group in groups for schedule in SCHEDULES for _, mean, _ in curve(group, schedule, bounds)]
    axes = Axes(bounds, [0.0, *means])
    panels = {}
    for group in groups:
        panels.setdefault(group.job.data(), {}).setdefault(group.job.model, []).append(group)
    shapes = legend()
    for row, (data, of_model) in enumerate(panels.items()):
        top = HEAD + row * (HEIGHT + BELOW)
        shapes += [text(LEFT - 6, top + axes.y(mark) + 4, f"{mark:+g}" if mark else "0", "end") for mark in axes.marks]
        for column, (model, of_panel) in enumerate(of_model.items()):
            left = LEFT + column * (WIDTH + GAP)
            shapes += [text(left + WIDTH / 2, top - 6, f"{data}: {model}"),
                       f'<g transform="translate({left},{top})">', *panel(of_panel, axes), "</g>"]
    width = max(LEFT + len(MODELS) * (WIDTH + GAP), LEFT + 5 * 150)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEAD + len(panels) * (HEIGHT + BELOW)}" '
            'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(shapes) + "\n</svg>\n")
