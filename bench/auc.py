#!/usr/bin/env python3
"""AUC of satrap and of PyTorch: the same rows in the same order, one pass, the same model and rates.

    bench/auc.py --train FILE --eval FILE [--seeds 3] [--batch 2048] [--format criteo|avazu] [key.path=value ...]

PyTorch is the plain program a user would write: nn.Embedding(sparse=True) with torch.optim.Adagrad, the
DLRM of bench/auc.yaml with Adam, synchronous, fp32. Rows never seen in training score with their initial
weights on both sides; missing values are 0 and empty bags. Prints the AUC of every seed, the means and
their difference. Needs the Python of .venv (torch, numpy).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIM, BOTTOM, TOP = 16, [512, 256, 16], [512, 256]
AVAZU_SCHEMA = ("{label: {column: click}, features: [{name: hour}, {name: C1}, {name: banner_pos}, {name: site_id}, "
                "{name: site_domain}, {name: site_category}, {name: app_id}, {name: app_domain}, {name: app_category}, "
                "{name: device_id}, {name: device_ip}, {name: device_model}, {name: device_type}, "
                "{name: device_conn_type}, {name: C14..C21}]}")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--train", required=True)
    p.add_argument("--eval", required=True)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch", type=int, default=2048)
    p.add_argument("--format", default="criteo", choices=["criteo", "avazu"])
    p.add_argument("--satrap", default=os.path.join(ROOT, "build/release/bin/satrap"))
    p.add_argument("settings", nargs="*", help="overrides of bench/auc.yaml")
    return p.parse_args()


class Rows:
    """A file as arrays: labels, numbers, and per column the number of its id, 0 if it is missing."""

    def __init__(self, path, form, numbers_of):
        lines = open(path).read().splitlines()
        if form == "avazu":
            fields = [line.split(",") for line in lines[1:]]
            labels, numeric, columns = 1, [], list(range(2, 24))
        else:
            fields = [line.split("\t") for line in lines]
            labels, numeric, columns = 0, list(range(1, 14)), list(range(14, 40))
        self.labels = torch.tensor([float(row[labels]) for row in fields])
        raw = np.array([[float(row[c] or 0) for c in numeric] for row in fields], dtype=np.float32)
        self.numeric = torch.from_numpy(np.copysign(np.log1p(np.abs(raw)), raw))
        while len(numbers_of) < len(columns):
            numbers_of.append({"": 0})
        ids = [[numbers.setdefault(row[c], len(numbers)) for row in fields]
               for c, numbers in zip(columns, numbers_of)]
        self.ids = torch.tensor(ids).T.contiguous()

    def __len__(self):
        return len(self.labels)


def mlp(widths, relu_last):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*(layers if relu_last else layers[:-1]))


class Dlrm(nn.Module):
    def __init__(self, cardinalities, num_numeric):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, DIM, sparse=True, padding_idx=0) for n in cardinalities)
        for table in self.tables:
            nn.init.uniform_(table.weight, -0.01, 0.01)
            table.weight.data[0] = 0
        n = len(cardinalities) + (num_numeric > 0)
        self.bottom = mlp([num_numeric, *BOTTOM], True) if num_numeric else None
        self.top = mlp([(DIM if num_numeric else 0) + n * (n - 1) // 2, *TOP, 1], False)
        self.pairs = torch.tril_indices(n, n, -1)

    def dense_parameters(self):
        return [p for name, p in self.named_parameters() if not name.startswith("tables.")]

    def forward(self, numeric, ids):
        vectors = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        bottom = [self.bottom(numeric)] if self.bottom else []
        z = torch.stack(bottom + vectors, 1)
        products = torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat(bottom + [products], 1))[:, 0]


def auc(labels, scores):
    """Exact: ties count half."""
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    first = np.searchsorted(sorted_scores, sorted_scores, "left")
    last = np.searchsorted(sorted_scores, sorted_scores, "right")
    ranks = np.empty(len(scores))
    ranks[order] = (first + last + 1) / 2
    positives = labels.sum()
    return (ranks[labels == 1].sum() - positives * (positives + 1) / 2) / positives / (len(labels) - positives)


def train_pytorch(args, train, evaluation, cardinalities, seed):
    torch.manual_seed(seed)
    model = Dlrm(cardinalities, train.numeric.shape[1])
    rows = torch.optim.Adagrad([t.weight for t in model.tables], lr=0.02, eps=1e-8)
    dense = torch.optim.Adam(model.dense_parameters(), lr=0.001)
    for _ in range(args.epochs):
        for i in range(0, len(train), args.batch):
            part = slice(i, i + args.batch)
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(train.numeric[part], train.ids[part]), train.labels[part])
            rows.zero_grad()
            dense.zero_grad()
            loss.backward()
            rows.step()
            dense.step()
    with torch.no_grad():
        scores = torch.cat([model(evaluation.numeric[i:i + 8192], evaluation.ids[i:i + 8192])
                            for i in range(0, len(evaluation), 8192)])
    return auc(evaluation.labels.numpy(), scores.double().numpy())


def train_satrap(args, seed):
    with tempfile.TemporaryDirectory() as directory:
        settings = [f"data.train.path={args.train}", f"data.eval.path={args.eval}", f"data.batch_size={args.batch}",
                    f"train.epochs={args.epochs}", f"seed={seed}", f"run_dir={directory}/run"]
        if args.format == "avazu":
            settings += [f"data.schema={AVAZU_SCHEMA}"]
        subprocess.run([args.satrap, "train", os.path.join(ROOT, "bench/auc.yaml"), *settings, *args.settings],
                       check=True, capture_output=True, text=True)
        with open(f"{directory}/run/summary.json") as f:
            return json.load(f)["eval"]["auc"]


def main():
    args = parse()
    ours = [train_satrap(args, seed) for seed in range(1, args.seeds + 1)]
    numbers_of = []
    train, evaluation = (Rows(path, args.format, numbers_of) for path in (args.train, args.eval))
    cardinalities = [len(numbers) for numbers in numbers_of]
    theirs = [train_pytorch(args, train, evaluation, cardinalities, seed) for seed in range(1, args.seeds + 1)]
    print(f"{len(train):,} rows, {len(evaluation):,} held out, batch {args.batch}, {args.epochs} epoch(s)")
    for name, values in (("satrap", ours), ("PyTorch", theirs)):
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        print(f"  {name:8} mean AUC {statistics.mean(values):.5f} +- {error:.5f}   "
              + " ".join(f"{v:.5f}" for v in values))
    print(f"  satrap - PyTorch {statistics.mean(ours) - statistics.mean(theirs):+.5f}")


if __name__ == "__main__":
    sys.exit(main())
