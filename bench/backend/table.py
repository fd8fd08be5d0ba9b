"""Tables of one run of bench/backend/gpu.sh, as Markdown: table.py OUT."""

import json
import pathlib
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
    return json.loads(path.read_text())["benchmarks"]


def main():
    out = pathlib.Path(sys.argv[1])
    for operation in ["plan", "resolve", "pool_forward", "backward", "export"]:
        path = out / f"{operation}.json"
        if not path.exists():
            continue
        print(f"\n### {operation}\n\n| case | median µs (10 % - 90 %) | host µs | compulsory GB/s | share of copy "
              "| algorithmic GB/s | share of copy |\n|---|---|---|---|---|---|---|")
        for run in runs_of(path):
            case = run["run_name"].split("/iterations")[0]
            print(f"| {case} | {run['median_us']:.1f} ({run['p10_us']:.1f} - {run['p90_us']:.1f}) | "
                  f"{run['host_us']:.1f} | {run['compulsory_GBps']:.0f} | {run['compulsory_share']:.0%} | "
                  f"{run['algorithmic_GBps']:.0f} | {run['algorithmic_share']:.0%} |")
    reference = out / "pytorch.json"
    if reference.exists():
        results = json.loads(reference.read_text())
        print(f"\n### PyTorch {results['torch']}, {results['device']}\n\n| case | median µs |\n|---|---|")
        for name in ["forward", "forward_backward_adagrad"]:
            print(f"| {name} | {results[name]['median_us']:.1f} |")
    print("\n### Published, elsewhere\n\n| case | share of bandwidth |\n|---|---|")
    for name, share in PUBLISHED:
        print(f"| {name} | {share} |")


if __name__ == "__main__":
    main()
