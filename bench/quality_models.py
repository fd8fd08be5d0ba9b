"""The models and row optimizers of bench/quality.py: as satrap's configuration, and as the programs that a PyTorch
user would write. Rows never seen in training score with their initial weights on both sides."""
import functools

import numpy as np
import torch
from torch import nn

from auc import auc, mlp

DIM, INIT, EPS, DENSE_RATE = 16, 0.01, 1e-8, 0.001
BOTTOM, TOP, CROSS_LAYERS = [64, 32], [64, 32], 2
RATES = {"adagrad": 0.02, "rowwise_adagrad": 0.02, "adam": 0.001}  # of the rows
MODELS = {"dlrm": {"bottom": BOTTOM, "top": TOP}, "deepfm": {"hidden": TOP},
          "dcn_v2": {"cross_layers": CROSS_LAYERS, "hidden": TOP}, "wide_deep": {"hidden": TOP}}


def settings(model, optimizer, rate):
    """Sections of satrap's configuration."""
    return {"tables": {"default": {"dim": DIM, "optimizer": {"type": optimizer, "lr": rate, "eps": EPS},
                                   "init": {"type": "uniform", "scale": INIT}}},
            "model": {"type": model, **MODELS[model]},
            "dense_optimizer": {"type": "adam", "lr": DENSE_RATE}}


class Dlrm(nn.Module):
    def __init__(self, num_numeric, num_features):
        super().__init__()
        n = num_features + (num_numeric > 0)
        self.bottom = mlp([num_numeric, *BOTTOM, DIM], True) if num_numeric else None
        self.top = mlp([(DIM if num_numeric else 0) + n * (n - 1) // 2, *TOP, 1], False)
        self.pairs = torch.tril_indices(n, n, -1)

    def forward(self, numeric, rows):
        bottom = [self.bottom(numeric)] if self.bottom else []
        z = torch.cat([b[:, None] for b in bottom] + [rows], 1)
        products = torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat(bottom + [products], 1))[:, 0]


class DcnV2(nn.Module):
    def __init__(self, num_numeric, num_features):
        super().__init__()
        width = num_numeric + num_features * DIM
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(CROSS_LAYERS))
        self.deep = mlp([width, *TOP], True)
        self.final = nn.Linear(width + TOP[-1], 1)

    def forward(self, numeric, rows):
        x = x0 = torch.cat([numeric, rows.flatten(1)], 1)
        for layer in self.cross:
            x = x0 * layer(x) + x
        return self.final(torch.cat([x, self.deep(x0)], 1))[:, 0]


class Wide(nn.Module):
    """DeepFM with products, else Wide & Deep. A row is [weight, factors ...]."""

    def __init__(self, num_numeric, num_features, products):
        super().__init__()
        self.products = products
        self.linear = nn.Linear(num_numeric, 1) if num_numeric else None
        self.deep = mlp([num_numeric + num_features * DIM, *TOP, 1], False)

    def forward(self, numeric, rows):
        weights, v = rows[:, :, 0], rows[:, :, 1:]
        logit = weights.sum(1) + self.deep(torch.cat([numeric, v.flatten(1)], 1))[:, 0]
        if self.products:
            logit = logit + 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1)
        return logit + self.linear(numeric)[:, 0] if self.linear else logit


NETWORKS = {"dlrm": Dlrm, "dcn_v2": DcnV2, "deepfm": functools.partial(Wide, products=True),
            "wide_deep": functools.partial(Wide, products=False)}


class RowwiseAdagrad:
    """n += mean(g^2), w -= lr * g / (sqrt(n) + eps), with one n per row (satrap/kernels/row_optimizer.h)."""

    def __init__(self, parameters, lr):
        [self.weight] = parameters
        self.lr, self.squares = lr, torch.zeros(len(self.weight), 1)

    @torch.no_grad()
    def step(self):
        gradient = self.weight.grad.coalesce()
        at, g = gradient.indices()[0], gradient.values()
        self.squares[at] += g.square().mean(1, keepdim=True)
        self.weight[at] -= self.lr * g / (self.squares[at].sqrt() + EPS)


ROW_OPTIMIZERS = {"adagrad": functools.partial(torch.optim.Adagrad, eps=EPS), "rowwise_adagrad": RowwiseAdagrad,
                  "adam": functools.partial(torch.optim.SparseAdam, eps=EPS)}


def train_pytorch(job, seed, prepared):
    """One thread: in steps this small a second one costs more than it gives."""
    train, held_out, num_rows = prepared.arrays
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()  # as by default, but without a warning
    torch.manual_seed(seed)
    table = nn.Embedding(num_rows, DIM + (job.model in ("deepfm", "wide_deep")), sparse=True, padding_idx=0)
    nn.init.uniform_(table.weight, -INIT, INIT)
    table.weight.data[0] = 0
    network = NETWORKS[job.model](train.numeric.shape[1], train.ids.shape[1])
    rows = ROW_OPTIMIZERS[job.optimizer]([table.weight], lr=job.rate)
    dense = torch.optim.Adam(network.parameters(), lr=DENSE_RATE)
    steps = 0
    for _ in range(job.epochs):
        for i in range(0, len(train.labels), job.batch):
            part = slice(i, i + job.batch)
            loss = nn.functional.binary_cross_entropy_with_logits(
                network(train.numeric[part], table(train.ids[part].long())), train.labels[part])
            table.zero_grad()
            network.zero_grad()
            loss.backward()
            rows.step()
            dense.step()
            steps += 1
    with torch.no_grad():
        parts = [slice(i, i + 8192) for i in range(0, len(held_out.labels), 8192)]
        p = torch.cat([torch.sigmoid(network(held_out.numeric[s], table(held_out.ids[s].long()))) for s in parts])
    return metrics(held_out.labels.numpy(), p.numpy()) | {
        "steps": steps, "staleness_mean": 0, "staleness_max": 0, "version": f"torch {torch.__version__}"}


def metrics(labels, p):
    """As include/satrap/trainer/metrics.h defines them; p in fp32."""
    clipped = np.clip(p, np.float32(2**-23), np.float32(1 - 2**-23)).astype(np.float64)
    return {"auc": float(auc(labels, p)),
            "logloss": float(-np.log(np.where(labels == 1, clipped, 1 - clipped)).mean()),
            "calibration": float(p.sum(dtype=np.float64) / labels.sum(dtype=np.float64))}
