#!/usr/bin/env python3
"""The network of an export as ONNX and as TorchScript: time of scoring candidates on one core, and the files' sizes.

    bench/export_formats.py [--rows 1000] [--rounds 30] [--build build/release]

Trains a few steps of each model on generated clicks in Criteo's format, and exports it both ways. The two networks take
turns on the same inputs, computed by the classes that satrap.Scorer uses: what text becomes before is left out. Needs
onnxruntime and PyTorch for Python.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {  # and the dim of its tables
    "logistic": ("{type: logistic}", 1),
    "fm": ("{type: fm}", 16),
    "deepfm": ("{type: deepfm, hidden: [400, 400, 400]}", 16),
    "dcn_v2": ("{type: dcn_v2, hidden: [512, 256], cross_layers: 3}", 16),
    "dlrm": ("{type: dlrm, bottom: [512, 256, 64, 16], top: [512, 256]}", 16),
    "ffnn": ("{type: ffnn, bottom: [64], sparse: [256], top: [256, 128]}", 16),
}
JOB = """\
run_dir: {dir}/run
device: cpu
data: {{schema: criteo, train: {dir}/train.tsv, batch_size: 500}}
tables: {{default: {{dim: {dim}}}}}
model: {model}
train: {{mode: sync, precision: fp32, max_steps: 5}}
"""


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--rows", type=int, default=1000, help="candidates in one call")
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    return p.parse_args()


def exported(satrap, folder, model, dim):
    """The folders of both exports."""
    job = folder / "job.yaml"
    job.write_text(JOB.format(dir=folder, model=model, dim=dim))
    satrap("train", job, "--overwrite")
    for format in ("onnx", "torchscript"):
        satrap("export", "--checkpoint", folder / "run", "--out", folder / format, "--network", format, "--overwrite")
    return folder / "onnx", folder / "torchscript"


def measure(folders, rows, rounds):
    """(milliseconds of each round, bytes) by format."""
    import numpy as np
    from satrap.network import load_network
    from satrap.scorer import read_description
    models = [read_description(folder)["model"] for folder in folders]
    networks = [load_network(folder, model) for folder, model in zip(folders, models)]
    draw = np.random.default_rng(1)
    inputs = [draw.standard_normal((rows, models[0][f"{input}_width"]), np.float32) for input in ("numeric", "pooled")]
    results = [network.logits(*inputs) for network in networks for _ in range(5)]  # warms up
    assert np.abs(results[0] - results[-1]).max() < 1e-4, "the two do not agree"
    times = [[], []]
    for _ in range(rounds):
        for network, spent in zip(networks, times):
            start = time.perf_counter()
            network.logits(*inputs)
            spent.append((time.perf_counter() - start) * 1e3)
    return times, [(folder / model["file"]).stat().st_size for folder, model in zip(folders, models)]


def main():
    args = parse()
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])  # before any library counts the cores
    sys.path.insert(0, str(ROOT / "python"))

    def satrap(*words):
        subprocess.run([args.build / "bin/satrap", *map(str, words)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    print(f"| model | onnx ms | torchscript ms | ratio | onnx KB | torchscript KB |\n{'|---' * 6}|")
    with tempfile.TemporaryDirectory(prefix="satrap-formats-") as name:
        folder = pathlib.Path(name)
        satrap("data", "generate", "--rows", 3000, "--scale", "0.0001", "--out", folder / "train.tsv")
        for model, (text, dim) in MODELS.items():
            times, sizes = measure(exported(satrap, folder, text, dim), args.rows, args.rounds)
            ratio = statistics.median(onnx / torch for onnx, torch in zip(*times))
            cells = [f"{statistics.median(spent):.2f} ({min(spent):.2f}–{max(spent):.2f})" for spent in times]
            print("|", " | ".join([model, *cells, f"{ratio:.2f}", *(f"{size / 1e3:.1f}" for size in sizes)]), "|",
                  flush=True)


if __name__ == "__main__":
    main()
