#!/bin/bash
# From a fresh checkout to a trained model: installs what is missing, builds satrap, trains it on the
# Adult census data in datasets/adult, and shows the metrics on the test set.
# Needs a system that launch/setup.sh knows, root or sudo, and a network the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

run_dir=runs/adult
./launch/setup.sh run
[ -f build/release/build.ninja ] || cmake --preset release
cmake --build --preset release --target satrap
rm -rf "$run_dir"  # left by an earlier run of this script
build/release/bin/satrap train datasets/adult/quickstart.yaml "run_dir=$run_dir"

python3 - "$run_dir" << 'PYTHON'
import json, os, sys
run_dir = sys.argv[1]
with open(os.path.join(run_dir, "summary.json")) as file:
    summary = json.load(file)
print(f"\ntrained on {summary['examples']} examples in {summary['seconds']:.1f} s; on the test set:")
for name, value in summary["eval"].items():
    if isinstance(value, float):
        print(f"  {name:12} {value:.4f}")
print(f"result: {run_dir}/summary.json, curves: {run_dir}/report.html")
print("next, with your data: build/release/bin/satrap init FILE --label COLUMN")
PYTHON
