#!/usr/bin/env python3
"""Several labels: a shared bottom, MMoE and PLE (`model.heads`), over seeds.

    bench/towers.py generated [--seeds 8]              # rows whose labels conflict, and their best AUC
    bench/towers.py adult --data DIR [--seeds 8]       # DIR/adult; income and never married, beside PyTorch

generated: a row has 8 numbers and one of 4 segments. A label's logit is one of 4 functions of the numbers, sums of
sines in random directions; the segment says which, and to each label another one. The network with a shared bottom
has 9,866 parameters, with MMoE 8,338, with PLE 8,286. Each seed makes rows of its own, and starts all networks. The
best AUC is that of the probabilities that the labels were drawn with.

adult: the marital status is a label (never married) and no input. sync and hybrid(4) of satrap, and the program that a
PyTorch user would write: the same network, rows, order, batches and optimizers, its own random start; then also with
logits that start as satrap's do, at the average label and with larger weights ("same start").

Prints Markdown: AUC by label, and differences paired by seed, with 95 % intervals. Needs the Python of .venv (torch,
numpy).
"""
import argparse
import csv
import dataclasses
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

from auc import auc, mlp
from quality_report import interval

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIM, HEAD, BATCH = 8, 16, 256
NAMES = ["shared_bottom", "mmoe", "ple"]


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("part", choices=["generated", "adult"])
    p.add_argument("--data", type=pathlib.Path, help="folder of the data sets")
    p.add_argument("--seeds", type=int, default=8)
    p.add_argument("--satrap", type=pathlib.Path, default=ROOT / "build/release/bin/satrap")
    args = p.parse_args()
    if args.part == "adult" and args.data is None:
        p.error("adult needs --data")
    return args


@dataclasses.dataclass
class Rows:
    numbers: np.ndarray  # [rows, numbers]
    ids: np.ndarray      # [rows, features], from 0 over all features
    labels: np.ndarray   # [rows, 2]

    def part(self, which):
        return Rows(self.numbers[which], self.ids[which], self.labels[which])

    def write(self, path):
        columns = [*self.labels.T.astype(int), *self.ids.T, *self.numbers.T]
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in zip(*columns)))


@dataclasses.dataclass
class Job:
    train: Rows
    held_out: Rows
    names: list    # of the labels
    epochs: int
    rate: float    # of Adam
    models: dict   # of satrap's configuration, by name


def towers(top, **heads):
    """Experts read the input itself, as in the papers."""
    return {"type": "ffnn", "bottom": [], "sparse": [], "top": top, "head": [HEAD], "heads": heads or "shared_bottom"}


# Data

def generated(seed, train=200_000, held_out=100_000, numbers=8, segments=4):
    """The job, and the best AUC of each label."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((train + held_out, numbers)).astype(np.float32)
    segment = draw.integers(0, segments, len(x))
    directions = draw.standard_normal((segments, numbers, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    functions = np.stack([np.sin(2 * x @ of_function).sum(1) for of_function in directions], 1)
    functions /= functions.std()
    chosen = np.stack([segment, (1 - segment) % segments], 1)  # by label
    p = 1 / (1 + np.exp(-3 * np.take_along_axis(functions, chosen, 1)))
    labels = (draw.random(p.shape) < p).astype(np.float32)
    rows = Rows(np.concatenate([x, np.eye(segments, dtype=np.float32)[segment]], 1), np.zeros((len(x), 0), int), labels)
    models = {"shared_bottom": towers([160, 40]),
              "mmoe": towers([], type="mmoe", experts=8, layers=[32, 16]),
              "ple": towers([], type="ple", experts=4, experts_per_label=2, layers=[32, 16])}
    job = Job(rows.part(slice(train)), rows.part(slice(train, None)), ["a", "b"], 5, 0.004, models)
    return job, [auc(labels[train:, l], p[train:, l]) for l in range(2)]


def adult(data):
    rows, ends = [], []
    for name in ["adult.data", "adult.test"]:
        with open(data / "adult" / name, newline="") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
        ends.append(len(rows))
    labels = np.array([[row[14].startswith(">"), row[5] == "Never-married"] for row in rows], np.float32)
    numbers = np.array([[float(row[c]) for c in (0, 4, 10, 11, 12)] for row in rows])
    numbers[:, 2:4] = np.log1p(numbers[:, 2:4])
    numbers = (numbers - numbers[:ends[0]].mean(0)) / numbers[:ends[0]].std(0)
    number_of = {}
    ids = np.array([[number_of.setdefault((c, row[c]), len(number_of)) for c in (1, 3, 6, 7, 8, 9, 13)]
                    for row in rows])
    all_rows = Rows(numbers.astype(np.float32), ids, labels)
    models = {"shared_bottom": towers([128, 64]), "mmoe": towers([], type="mmoe", experts=4, layers=[64, 32]),
              "ple": towers([], type="ple", experts=2, experts_per_label=1, layers=[64, 32], levels=2)}
    train, held_out = all_rows.part(slice(ends[0])), all_rows.part(slice(*ends))
    return Job(train, held_out, ["income", "never married"], 3, 0.001, models)


# Programs

def train_satrap(args, job, model, seed, folder, **train):
    """The AUC of each label."""
    features = [f"f{i}" for i in range(job.train.ids.shape[1])]
    numbers = [f"n{i}" for i in range(job.train.numbers.shape[1])]
    config = {"run_dir": str(folder / "run"), "seed": seed, "device": "cpu",
              "data": {"schema": {"delimiter": "\t", "header": False, "columns": ["a", "b", *features, *numbers],
                                  "labels": [{"column": "a"}, {"column": "b"}],
                                  "numeric": [{"name": name} for name in numbers],
                                  "features": [{"name": name, "type": "int"} for name in features]},
                       "train": {"path": str(folder / "train.tsv")}, "eval": {"path": str(folder / "held_out.tsv")},
                       "batch_size": BATCH},
              "tables": {"default": {"dim": DIM, "optimizer": {"type": "adagrad", "lr": 0.02, "eps": 1e-8}}},
              "model": job.models[model], "dense_optimizer": {"type": "adam", "lr": job.rate},
              "train": {"epochs": job.epochs, "precision": "fp32", "report_every": "never", **train},
              "checkpoint": {"every": "never"}}
    (folder / "job.yaml").write_text(json.dumps(config))  # YAML holds JSON
    subprocess.run([args.satrap, "train", folder / "job.yaml", "--overwrite"], check=True, capture_output=True)
    labels = json.loads((folder / "run/summary.json").read_text())["eval"]["labels"]
    return [labels[name]["auc"] for name in "ab"]


class Level(nn.Module):
    """A level of PLE; one without own experts is MMoE. Its input and output: a vector of each label, and one of the
    shared experts."""

    def __init__(self, inputs, heads, is_last):
        super().__init__()
        num_own = heads.get("experts_per_label", 0)
        experts = lambda count: nn.ModuleList(mlp([inputs, *heads["layers"]], True) for _ in range(count))
        self.shared, self.own = experts(heads["experts"]), nn.ModuleList(experts(num_own) for _ in range(2))
        weighed = [heads["experts"] + num_own] * 2 + [heads["experts"] + 2 * num_own] * (not is_last)
        self.gates = nn.ModuleList(nn.Linear(inputs, n) for n in weighed)

    def forward(self, inputs):
        shared = [expert(inputs[2]) for expert in self.shared]
        own = [[expert(x) for expert in experts] for x, experts in zip(inputs, self.own)]
        weighed = [shared + own[0], shared + own[1], shared + own[0] + own[1]]
        return [(torch.softmax(gate(x), 1)[:, :, None] * torch.stack(vectors, 1)).sum(1)
                for gate, x, vectors in zip(self.gates, inputs, weighed)]


class Towers(nn.Module):
    def __init__(self, inputs, model):
        super().__init__()
        width = [inputs, *model["top"]][-1]
        self.top, self.levels = mlp([inputs, *model["top"]], True), nn.ModuleList()
        if isinstance(heads := model["heads"], dict):
            for level in range(num_levels := heads.get("levels", 1)):
                self.levels.append(Level(width, heads, level + 1 == num_levels))
                width = heads["layers"][-1]
        self.heads = nn.ModuleList(mlp([width, HEAD, 1], False) for _ in range(2))

    def forward(self, x):
        vectors = [self.top(x)] * 3
        for level in self.levels:
            vectors = level(vectors)
        return torch.cat([head(vector) for head, vector in zip(self.heads, vectors)], 1)


def train_pytorch(job, model, seed, same_start=False):
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()  # as by default, but without a warning
    torch.manual_seed(seed)
    parts = {part: [torch.from_numpy(values) for values in (rows.numbers, rows.ids, rows.labels)]
             for part, rows in (("train", job.train), ("held_out", job.held_out))}
    numbers, ids, labels = parts["train"]
    table = nn.Embedding(1 + max(int(part[1].max()) for part in parts.values()), DIM, sparse=True)
    nn.init.uniform_(table.weight, -0.01, 0.01)
    network = Towers(numbers.shape[1] + ids.shape[1] * DIM, job.models[model])
    for l, head in enumerate(network.heads if same_start else []):
        nn.init.xavier_uniform_(head[-1].weight)
        nn.init.constant_(head[-1].bias, torch.logit(labels[:BATCH, l].mean()))
    optimizers = [torch.optim.Adagrad([table.weight], lr=0.02, eps=1e-8),
                  torch.optim.Adam(network.parameters(), job.rate)]
    logits_of = lambda numbers, ids: network(torch.cat([numbers, table(ids).flatten(1)], 1))
    for _ in range(job.epochs):
        for at in range(0, len(labels), BATCH):
            part = slice(at, at + BATCH)
            losses = nn.functional.binary_cross_entropy_with_logits(
                logits_of(numbers[part], ids[part]), labels[part], reduction="none").mean(0)
            for optimizer in optimizers:
                optimizer.zero_grad()
            losses.sum().backward()
            for optimizer in optimizers:
                optimizer.step()
    with torch.no_grad():
        scores = logits_of(*parts["held_out"][:2]).double().numpy()
    return [auc(job.held_out.labels[:, l], scores[:, l]) for l in range(2)]


# Report

def shown(values, form):
    mean, half = interval([float(value) for value in values])
    return f"{mean:{form}} ± {half:.5f}"


def table(names, results, pairs):
    """results: {variant: [AUC of each label, by seed]}; pairs: variants whose difference is shown."""
    print(f"| AUC | {' | '.join(results)} | {' | '.join(f'{a} - {b}' for a, b in pairs)} |")
    print("|---" * (1 + len(results) + len(pairs)) + "|")
    arrays = {variant: np.array(values) for variant, values in results.items()}
    for l, name in enumerate([*names, "mean"]):
        of_label = {variant: values.mean(1) if l == len(names) else values[:, l] for variant, values in arrays.items()}
        cells = [shown(values, ".5f") for values in of_label.values()]
        cells += [shown(of_label[a] - of_label[b], "+.5f") for a, b in pairs]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    args = parse()
    seeds = range(1, args.seeds + 1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)

        def write(job):
            job.train.write(folder / "train.tsv")
            job.held_out.write(folder / "held_out.tsv")
        if args.part == "generated":
            results = {name: [] for name in ["best", *NAMES]}
            for seed in seeds:
                job, best = generated(seed)
                write(job)
                results["best"].append(best)
                for name in NAMES:
                    results[name].append(train_satrap(args, job, name, seed, folder, mode="sync"))
            table(job.names, results, [("mmoe", "shared_bottom"), ("ple", "shared_bottom")])
            return
        job = adult(args.data)
        write(job)
        for name in NAMES:
            print(f"\n{name}:\n")
            hybrid = {"mode": "hybrid", "staleness": 4}
            results = {"sync": [train_satrap(args, job, name, seed, folder, mode="sync") for seed in seeds],
                       "hybrid": [train_satrap(args, job, name, seed, folder, **hybrid) for seed in seeds],
                       "PyTorch": [train_pytorch(job, name, seed) for seed in seeds],
                       "same start": [train_pytorch(job, name, seed, same_start=True) for seed in seeds]}
            table(job.names, results, [("sync", "PyTorch"), ("sync", "same start"), ("hybrid", "sync")])


if __name__ == "__main__":
    main()
