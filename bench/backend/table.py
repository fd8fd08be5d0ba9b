"""Tables of the results of bench/gpu.sh, as Markdown on stdout: table.py OUT. Missing results are left out."""

import json
import pathlib
import re
import statistics
import sys

# Published figures for comparison, as shares of the memory bandwidth of the GPU they were measured
# on (specified bandwidth, not a measured copy): FBGEMM TBE on H100, dim 128, fp32, 1.05 M ids
# without bags, and HKV on A100 and H100, from the tables in their repositories and papers.
PUBLISHED = [
    ("FBGEMM TBE forward, H100, dim 128", "93 % algorithmic, 62 % compulsory"),
    ("FBGEMM TBE backward SGD / Adam, H100, dim 128", "44 % / 48 % compulsory"),
    ("HKV find, A100, dim 64", "57 % of bytes touched, 35 % of bytes asked for"),
    ("HKV insert_and_evict, A100, dim 64", "0.48 to 0.81 G keys/s"),
]


def runs_of(path):
    """(variant, benchmark) of every case, in order; the results of a program that died are no JSON."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            document = json.loads(line)
        except json.JSONDecodeError:
            continue
        for run in document["benchmarks"]:
            yield document["context"].get("variant", "new"), run


def case_of(run):
    return run["run_name"].split("/iterations")[0]


def why_no_times(run):
    """Why a case has no times, or None."""
    if run.get("error_occurred"):
        return "skipped: " + run.get("error_message", "")
    return None if "median_us" in run else run.get("label", "no times")


def row_of(run):
    why = why_no_times(run)
    if why:
        return f"| {case_of(run)} | {why} | | | | | | |"
    return (f"| {case_of(run)} | {run['median_us']:.1f} ({run['p10_us']:.1f} - {run['p90_us']:.1f}) | "
            f"{run['host_us']:.1f} | {run['compulsory_GBps']:.0f} | {run['compulsory_share']:.0%} | "
            f"{run['algorithmic_GBps']:.0f} | {run['algorithmic_share']:.0%} | {run['set_up_s']:.1f} |")


def operations(out):
    """One table per operation: the reference point first, then the sweep."""
    by_operation = {}
    for name in ["reference.jsonl", "sweeps.jsonl"]:
        for _, run in runs_of(out / name):
            case = case_of(run)
            by_operation.setdefault(case.split("/")[0], {})[case] = run  # the last attempt counts
    for operation, runs in by_operation.items():
        print(f"\n### {operation}\n\n| case | median µs (10 % - 90 %) | host µs | compulsory GB/s | share of copy "
              "| algorithmic GB/s | share of copy | set-up s |\n|---|---|---|---|---|---|---|---|")
        for run in runs.values():
            print(row_of(run))


def variants(out):
    """Medians of the rounds, and their ratio to those of the new programs."""
    times, reasons = {}, {}
    for variant, run in runs_of(out / "variants.jsonl"):
        operation = case_of(run).split("/")[0]
        why = why_no_times(run)
        if why:
            reasons[operation, variant] = why
        else:
            times.setdefault((operation, variant), []).append(run["median_us"])
    if times or reasons:
        print("\n### Variants, back to back at the reference point\n\n"
              "| operation | variant | median µs of the rounds (min - max) | relative to new |\n|---|---|---|---|")
    for (operation, variant), why in reasons.items():
        print(f"| {operation} | {variant} | {why} | |")
    for (operation, variant), values in times.items():
        median, new = statistics.median(values), times.get((operation, "new"))
        ratio = f"{median / statistics.median(new):.3f}" if new else ""
        print(f"| {operation} | {variant} | {median:.1f} ({min(values):.1f} - {max(values):.1f}) | {ratio} |")


def pytorch(out):
    path = out / "pytorch.json"
    if path.exists():
        results = json.loads(path.read_text(encoding="utf-8"))
        print(f"\n### PyTorch {results['torch']}, {results['device']}\n\n| case | median µs |\n|---|---|")
        for name in ["forward", "forward_backward_adagrad"]:
            print(f"| {name} | {results[name]['median_us']:.1f} |")


def jobs(checks):
    """What gpu_trainer.py printed: whole jobs beside those of the CPU, their rates, and those of PyTorch and FBGEMM."""
    programs, rates, ranks = {}, [], []
    for line in checks.splitlines():
        if line.startswith('{"'):
            found = json.loads(line)
            if "program" in found:
                programs.setdefault(found["program"], []).append(found)
            elif "ranks" in found:
                ranks.append(found)
            elif "examples_per_second" in found:
                rates.append(found)
    same = re.findall(r"^(train\.mode=.*?), cache of (\S+), hits \S+: digest \S+, auc (\S+): (.*)$", checks, re.MULTILINE)
    if same:
        print("\n### Jobs on the GPU beside the same on the CPU\n\n| job | cache | auc | |\n|---|---|---|---|")
    for job, cache, auc, verdict in same:
        print(f"| {job} | {cache} | {auc} | {verdict} |")
    if rates:
        print("\n### New rows all the time: from the generator, rows in the host's tables\n\n"
              "| device | engine | cache, of the rows | hits | examples/s |\n|---|---|---|---|---|")
    for found in rates:
        cache = f"{found['cache_percent']} %" if "cache_percent" in found else ""
        cache += ", registered" if found.get("host_rows") == "registered" else ""
        hits = f"{found['hit_rate']:.1%}" if "hit_rate" in found else ""
        print(f"| {found['device']} | {found.get('engine', 'native')} | {cache} | {hits} | "
              f"{found['examples_per_second']:,.0f} |")
    if ranks:
        print("\n### The same over a shard, by ranks that share one GPU\n\n"
              "| ranks | hits | examples/s | GPU's share |\n|---|---|---|---|")
    for found in ranks:
        print(f"| {found['ranks']} | {found['hit_rate']:.1%} | {found['examples_per_second']:,.0f} | {busy([found])} |")
    if programs:
        print("\n### DLRM from the same TSV in memory, in turn\n\n"
              "| program | rounds | examples/s, median (min - max) | relative to PyTorch's first, round by round | hits "
              "| GPU's share |\n|---|---|---|---|---|---|")
    first = next(iter(programs.values()), [])
    for name, turns in programs.items():
        speeds = [turn["ex_s"] for turn in turns]
        ratios = ", ".join(f"{turn['ex_s'] / base['ex_s']:.2f}" for turn, base in zip(turns, first))
        hits = f"{turns[-1]['cache']['hit_rate']:.1%}" if "cache" in turns[-1] else ""
        print(f"| {name} | {len(turns)} | {statistics.median(speeds):,.0f} ({min(speeds):,.0f} - {max(speeds):,.0f}) | "
              f"{ratios} | {hits} | {busy(turns)} |")


def busy(turns):
    """The share of the stages' time in which work of a step was on the GPU, of the last turn."""
    device, stages = turns[-1].get("device_seconds"), turns[-1].get("stage_seconds")
    if not device:
        return ""
    return f"{sum(device.values()) / (stages['dense'] + stages['wait']):.0%}"


def steps(out):
    """How many steps ended in what way, and the parts with steps that did not succeed."""
    path = out / "state.tsv"
    results = dict(line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
    count = {kind: sum(result.startswith(kind) for result in results.values())
             for kind in ["ok", "skipped", "NOT RUN", "failed", "cut off"]}
    print(f"### Steps\n\n{', '.join(f'{number} {kind}' for kind, number in count.items())}.")
    others = {}
    for step, result in results.items():
        if not result.startswith(("ok", "skipped")):  # the tables below say why a case was skipped
            others.setdefault((step.split(":")[0], result), []).append(step.partition(":")[2])
    if others:
        print("\n| part | result | steps |\n|---|---|---|")
    for (part, result), names in others.items():
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        print(f"| {part} | {result} | {', '.join(names[:6])}{more} |")


def main():
    out = pathlib.Path(sys.argv[1])
    steps(out)
    checks = out / "checks.txt"
    text = checks.read_text(encoding="utf-8") if checks.exists() else ""
    bundle = re.search(r"^bundle of .*", text, re.MULTILINE)
    if bundle:
        print(f"\nFrom a {bundle.group()}.")
    operations(out)
    variants(out)
    jobs(text)
    pytorch(out)
    print("\n### Published, elsewhere\n\n| case | share of bandwidth |\n|---|---|")
    for name, share in PUBLISHED:
        print(f"| {name} | {share} |")


if __name__ == "__main__":
    main()
