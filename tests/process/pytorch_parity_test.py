"""Same results as PyTorch: for every model, dense optimizer and row optimizer, ten training steps from the same weights
give the same losses, probabilities, parameters and embedding rows to 1e-4 relative, in fp32; or, if PyTorch's own fp32
deviates, as its fp64, in which one ReLU whose input is 0 but for rounding may take the other side.

The reference is written here, and in parity_models.py, with nn.Module, autograd and torch.optim alone. Of the row
optimizers, SGD, Adagrad and Adam are torch's for sparse gradients (Adam: SparseAdam); row-wise Adagrad and
FTRL-proximal are written from their papers.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import python_torch  # noqa: E402

python_torch.require()
import torch  # noqa: E402
from torch import nn  # noqa: E402

from parity_models import CLASSES, FEATURES, NUM_NUMERIC, POOLING, SEQUENCE, TABLE, Relu

STEPS, ROWS, NUM_IDS = 10, 600, 40
TOLERANCE = 1e-4

MODELS = {
    "logistic": dict(type="logistic"),
    "fm": dict(type="fm"),
    "wide_deep": dict(type="wide_deep", hidden=[24, 16]),
    "deepfm": dict(type="deepfm", hidden=[24, 16]),
    "dcn_v2": dict(type="dcn_v2", hidden=[24, 16], cross_layers=3),
    "dlrm": dict(type="dlrm", bottom=[24, 16], top=[32, 16]),
    "ffnn": dict(type="ffnn", bottom=[], sparse=[], top=[48, 24, 12]),
    "persia": dict(type="ffnn", bottom=[16], sparse=[32], top=[24, 12], activation="none",
                   batch_norm=True),
    "din": dict(type="din", attention=[20, 10], top=[24, 12],
                attend=[dict(sequence="series", query="bag"), dict(sequence="series", query="mean")]),
    "two_labels": dict(type="dlrm", bottom=[24, 16], top=[32, 16], head=[8]),
    "mmoe": dict(type="dlrm", bottom=[24, 16], top=[32, 16], head=[8], heads=dict(type="mmoe", experts=3, layers=[12])),
    "ple": dict(type="dlrm", bottom=[24, 16], top=[32], head=[],
                heads=dict(type="ple", experts=1, layers=[32], experts_per_label=2, levels=2)),
}
TWO_LABELS = ["two_labels", "mmoe", "ple"]  # else one label
LABEL_WEIGHTS = {model: [1.0, 0.5] for model in TWO_LABELS}
# Otherwise a different one per table.
DIMS = {"logistic": 1, "fm": 6, "wide_deep": 6, "deepfm": 6, "dlrm": 20, "din": 8, **dict.fromkeys(TWO_LABELS, 20)}
MIXED_DIMS = {"bag": 4, "mean": 7, "sqrtn": 16, "series": 3}
DENSE_OPTIMIZERS = {
    "sgd": dict(type="sgd", lr=0.1),
    "momentum": dict(type="sgd", lr=0.05, momentum=0.9, weight_decay=0.01),
    "adagrad": dict(type="adagrad", lr=0.02, initial_accumulator=0.01, eps=1e-6),
    "adam": dict(type="adam", lr=0.005, beta1=0.8, beta2=0.99, eps=1e-4),
    "adamw": dict(type="adamw", lr=0.005, weight_decay=0.1, eps=1e-4),
}
ROW_OPTIMIZERS = {
    "sgd": dict(type="sgd", lr=2.0),
    "adagrad": dict(type="adagrad", lr=0.02, initial_accumulator=1e-6, eps=1e-5),
    "rowwise_adagrad": dict(type="rowwise_adagrad", lr=0.02, initial_accumulator=1e-6, eps=1e-5),
    "adam": dict(type="adam", lr=0.005, beta1=0.8, beta2=0.99, eps=1e-4),
    "ftrl": dict(type="ftrl", lr=0.5, beta=0.5, l1=1e-4, l2=0.01, initial_accumulator=0.01),
}


def cases():
    for model, dense, row in itertools.product(MODELS, DENSE_OPTIMIZERS, ROW_OPTIMIZERS):
        yield f"{model}-{dense}-{row}", model, dict(DENSE_OPTIMIZERS[dense]), ROW_OPTIMIZERS[row]
    for model in MODELS:
        yield (f"{model}-clipped", model, dict(DENSE_OPTIMIZERS["momentum"], clip_norm=0.05),
               ROW_OPTIMIZERS["sgd"])
        yield (f"{model}-scheduled", model,
               dict(DENSE_OPTIMIZERS["adam"], schedule=dict(warmup_steps=4)),
               dict(ROW_OPTIMIZERS["sgd"], schedule=dict(warmup_steps=4)))


def dims_of(model):
    return {t: DIMS.get(model, d) for t, d in MIXED_DIMS.items()}


# -------------------------------------------------------------------------------------- optimizers
class RowwiseAdagrad:
    """One accumulator per row: the mean of the squared gradient (FBGEMM's EXACT_ROWWISE_ADAGRAD)."""

    def __init__(self, tables, lr, initial_accumulator, eps):
        self.tables, self.lr, self.eps = tables, lr, eps
        self.sums = [torch.full((len(t),), initial_accumulator) for t in tables]

    @torch.no_grad()
    def step(self):
        for table, sums in zip(self.tables, self.sums):
            grad = table.grad.coalesce()
            rows, g = grad.indices()[0], grad.values()
            sums[rows] += (g * g).mean(1)
            table[rows] -= self.lr * g / (sums[rows].sqrt() + self.eps)[:, None]


class Ftrl:
    """McMahan et al. 2013, Algorithm 1; z starts so that the weights are the initial ones."""

    def __init__(self, tables, lr, beta, l1, l2, initial_accumulator):
        self.tables, self.alpha, self.beta, self.l1, self.l2 = tables, lr, beta, l1, l2
        self.n = [torch.full_like(t, initial_accumulator) for t in tables]
        self.z = [(-(t * ((beta + n.sqrt()) / lr + l2) + t.sign() * l1)).detach()
                  for t, n in zip(tables, self.n)]

    @torch.no_grad()
    def step(self):
        for table, n, z in zip(self.tables, self.n, self.z):
            grad = table.grad.coalesce()
            rows, g = grad.indices()[0], grad.values()
            sigma = ((n[rows] + g * g).sqrt() - n[rows].sqrt()) / self.alpha
            z[rows] += g - sigma * table[rows]
            n[rows] += g * g
            w = -(z[rows] - z[rows].sign() * self.l1) / (
                (self.beta + n[rows].sqrt()) / self.alpha + self.l2)
            table[rows] = torch.where(z[rows].abs() <= self.l1, torch.zeros_like(w), w)


def row_optimizer(tables, config):
    config = {k: v for k, v in config.items() if k != "schedule"}
    kind, lr = config.pop("type"), config.pop("lr")
    if kind == "sgd":
        return torch.optim.SGD(tables, lr=lr)
    if kind == "adagrad":
        return torch.optim.Adagrad(tables, lr=lr, eps=config["eps"],
                                   initial_accumulator_value=config["initial_accumulator"])
    if kind == "adam":
        return torch.optim.SparseAdam(tables, lr=lr, betas=(config["beta1"], config["beta2"]),
                                      eps=config["eps"])
    return {"rowwise_adagrad": RowwiseAdagrad, "ftrl": Ftrl}[kind](tables, lr=lr, **config)


def dense_optimizer(parameters, config):
    betas = (config.get("beta1", 0.9), config.get("beta2", 0.999))
    common = dict(lr=config["lr"], weight_decay=config.get("weight_decay", 0.0))
    if config["type"] == "sgd":
        return torch.optim.SGD(parameters, momentum=config.get("momentum", 0.0), **common)
    if config["type"] == "adagrad":
        return torch.optim.Adagrad(parameters, eps=config["eps"],
                                   initial_accumulator_value=config["initial_accumulator"], **common)
    kind = dict(adam=torch.optim.Adam, adamw=torch.optim.AdamW)[config["type"]]
    return kind(parameters, betas=betas, eps=config["eps"], **common)


def warmup(optimizer, config):
    steps = config.get("schedule", {}).get("warmup_steps", 0)
    if steps:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / steps))
    return None


# ------------------------------------------------------------------------------------- input, tables
def make_batch(rng):
    """Bags of 0 to 4 ids (few ids, so many repeat), weights, numbers and labels."""
    lengths = rng.integers(0, 5, (len(FEATURES), ROWS))
    offsets = np.concatenate([[0], np.cumsum(lengths.reshape(-1))]).astype(np.int64)
    # Squared: small ids are frequent, and some of the largest do not occur in every batch.
    ids = (NUM_IDS * rng.random(offsets[-1]) ** 3).astype(np.uint64)
    weights = rng.uniform(0.5, 2.0, len(ids)).astype(np.float32)
    numeric = rng.standard_normal((ROWS, NUM_NUMERIC)).astype(np.float32)
    labels = (rng.random(ROWS) < 0.3).astype(np.float32)
    two_labels = np.stack([labels, numeric[:, 0] + numeric[:, 1] > 0.5], 1).astype(np.float32)
    return dict(labels=labels, two_labels=two_labels, numeric=numeric, offsets=offsets, ids=ids, weights=weights)


def fields_of(batch, tables):
    """One [ROWS, dim] tensor per field, from embedding lookups with sparse gradients; and the mask."""
    fields, mask = [], torch.zeros(ROWS, SEQUENCE)
    for f, name in enumerate(FEATURES):
        offsets = batch["offsets"][f * ROWS:(f + 1) * ROWS + 1]
        ids = torch.from_numpy(batch["ids"][offsets[0]:offsets[-1]].astype(np.int64))
        w = torch.from_numpy(batch["weights"][offsets[0]:offsets[-1]])
        row_of = torch.from_numpy(np.repeat(np.arange(ROWS), np.diff(offsets)))
        table = tables[TABLE[name]]
        if POOLING[name] == "sequence":
            position = torch.arange(len(ids)) - torch.from_numpy(offsets[:-1] - offsets[0])[row_of]
            # Not looked up, else SparseAdam would move rows by a gradient of 0.
            kept = position < SEQUENCE
            ids, w, row_of, position = ids[kept], w[kept], row_of[kept], position[kept]
        vectors = nn.functional.embedding(ids, table, sparse=True) * w[:, None]
        if POOLING[name] == "sequence":
            for i in range(SEQUENCE):
                at = position == i
                fields.append(torch.zeros(ROWS, table.shape[1]).index_add(0, row_of[at], vectors[at]))
                mask[row_of[at], i] = 1.0
            continue
        pooled = torch.zeros(ROWS, table.shape[1]).index_add(0, row_of, vectors)
        if POOLING[name] == "mean":
            total = torch.zeros(ROWS).index_add(0, row_of, w)
            pooled = pooled / torch.where(total == 0, 1.0, total)[:, None]
        elif POOLING[name] == "sqrtn":
            total = torch.zeros(ROWS).index_add(0, row_of, w * w)
            pooled = pooled / torch.where(total == 0, 1.0, total).sqrt()[:, None]
        fields.append(pooled)
    return fields, mask


# ---------------------------------------------------------------------------------------- comparison
def read_dump(stem):
    values, at, tensors = np.fromfile(stem + ".f32", np.float32), 0, {}
    with open(stem + ".json") as file:
        for entry in json.load(file):
            size = int(np.prod(entry["shape"]))
            tensors[entry["name"]] = torch.from_numpy(
                values[at:at + size].reshape(entry["shape"]).copy())
            at += size
    assert at == len(values), stem
    return tensors


def load_initial(module, dump):
    """Copies the dumped weights into the module; asserts that every dumped one is used."""
    left = {n[len("initial/"):] for n in dump if n.startswith("initial/")}
    left = {n for n in left if not n.startswith(("table/", "sgd.", "adagrad.", "adam.", "adamw."))}
    for name, layer in module.named.items():
        for key, value in layer.state_dict(keep_vars=True).items():
            if key == "num_batches_tracked":
                continue
            value.data.copy_(dump[f"initial/{name}.{key}"])
            left.remove(f"{name}.{key}")
    assert not left, f"no counterpart in PyTorch: {left}"


def error_of(ours, theirs):
    """Largest difference relative to the value, or to the tensor's root mean square if larger."""
    theirs = theirs.detach().reshape(ours.shape)
    scale = torch.maximum(theirs.abs(), theirs.square().mean().sqrt())
    return ((ours - theirs).abs() / scale.clamp_min(1e-30)).nan_to_num(nan=torch.inf).max().item()


def loss_of(logits, batch, label_weights):
    bce = nn.functional.binary_cross_entropy_with_logits
    if label_weights is None:
        return bce(logits, torch.from_numpy(batch["labels"]))
    labels = torch.from_numpy(batch["two_labels"])
    return sum(w * bce(logits[:, l], labels[:, l]) for l, w in enumerate(label_weights))


def run_case(name, model, dense, row, batches, dump, other_side=None):
    """Returns the error of each tensor, and the inputs near the kink of a ReLU, the nearest first, as (distance, number
    of the ReLU, call, element). `other_side` is one of these, which is taken from the other side of the kink."""
    config = MODELS[model]
    module = CLASSES[model if model in CLASSES else config["type"]](config, dims_of(model))
    load_initial(module, dump)
    relus = [m for m in module.modules() if isinstance(m, Relu)]
    if other_side:
        relus[other_side[1]].from_other_side = other_side[2:]
    tables = {t: dump[f"initial/table/{t}"].clone().requires_grad_() for t in MIXED_DIMS}
    parameters = list(module.parameters())
    dense_opt = dense_optimizer(parameters, dense)
    row_opt = row_optimizer(list(tables.values()), row)
    schedules = [s for s in (warmup(dense_opt, dense), warmup(row_opt, row)) if s]
    losses, norms = [], []
    for batch in batches:
        for tensor in [*parameters, *tables.values()]:
            tensor.grad = None
        fields, mask = fields_of(batch, tables)
        logits = module(torch.cat([torch.from_numpy(batch["numeric"]), mask], 1), fields)
        loss = loss_of(logits, batch, LABEL_WEIGHTS.get(model))
        loss.backward()
        limit = dense.get("clip_norm", float("inf"))
        norms.append(nn.utils.clip_grad_norm_(parameters, limit))
        dense_opt.step()
        row_opt.step()
        for schedule in schedules:
            schedule.step()
        losses.append(loss.detach())

    errors = {"losses": error_of(dump["losses"], torch.stack(losses)),
              "norms": error_of(dump["norms"], torch.stack(norms)),
              "probabilities": error_of(dump["probabilities"], torch.sigmoid(logits))}
    moved = 0.0
    for layer_name, layer in module.named.items():
        for key, value in layer.state_dict().items():
            if key == "num_batches_tracked":
                continue
            ours = dump[f"final/{layer_name}.{key}"]
            errors[f"{layer_name}.{key}"] = error_of(ours, value)
            moved = max(moved, error_of(ours, dump[f"initial/{layer_name}.{key}"]))
    for table, value in tables.items():
        errors[f"table/{table}"] = error_of(dump[f"final/table/{table}"], value)
        change = error_of(dump[f"final/table/{table}"], dump[f"initial/table/{table}"])
        assert change > 20 * TOLERANCE, f"{name}: table {table} has hardly moved ({change}): nothing is tested"
    assert moved > 20 * TOLERANCE, f"{name}: the network has hardly moved ({moved}): nothing is tested"
    return errors, sorted((at[0], i, *at[1:]) for i, relu in enumerate(relus) for at in relu.near)


def run_case_in_fp64(name, model, dense, row, batches, dump, other_side=None):
    torch.set_default_dtype(torch.float64)
    batches = [{k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in b.items()}
               for b in batches]
    dump = {name: tensor.double() for name, tensor in dump.items()}
    try:
        return run_case(name, model, dense, row, batches, dump, other_side)
    finally:
        torch.set_default_dtype(torch.float32)


def least_errors(*case):
    """The errors relative to PyTorch's fp32, or its fp64 if they are larger than the tolerance.

    An input within rounding of the kink of a ReLU is above 0 in one fp32 program and below in another, and their
    gradients differ by an example. If it is PyTorch's fp32 that has the wrong side, its fp64 agrees with satrap; if it
    is satrap, fp64 agrees once this one input takes the other side."""
    errors, _ = run_case(*case)
    if max(errors.values()) <= TOLERANCE:
        return errors
    errors, near = run_case_in_fp64(*case)
    for other_side in near:
        if max(errors.values()) <= TOLERANCE:
            break
        others, _ = run_case_in_fp64(*case, other_side)
        errors = min(errors, others, key=lambda e: max(e.values()))
    return errors


def write_job(folder, batches):
    job = dict(steps=STEPS, rows=ROWS, num_numeric=NUM_NUMERIC, num_ids=NUM_IDS, threads=2,
               features=[dict(name=f, max_length=SEQUENCE if f == "series" else 0)
                         for f in FEATURES], cases=[])
    for name, model, dense, row in cases():
        tables = {t: dict(dim=d, optimizer=row, init=dict(type="uniform", scale=0.3))
                  for t, d in dims_of(model).items()}
        features = {f: dict(table=TABLE[f], pooling=POOLING[f]) for f in FEATURES}
        job["cases"].append(dict(name=name, tables=tables, features=features,
                                 model=MODELS[model], dense_optimizer=dense,
                                 label_weights=LABEL_WEIGHTS.get(model, [1.0])))
    with open(f"{folder}/job.yaml", "w") as file:
        json.dump(job, file)  # JSON is YAML
    for step, batch in enumerate(batches, 1):
        for part, values in batch.items():
            values.tofile(f"{folder}/batch{step}.{part}")


def main():
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()  # the default, made explicit
    program = os.path.join(os.environ["SATRAP_BUILD_DIR"], "tests", "parity_dump")
    rng = np.random.default_rng(20)
    batches = [make_batch(rng) for _ in range(STEPS)]
    worst, failures, count = (0.0, ""), [], 0
    with tempfile.TemporaryDirectory() as folder:
        write_job(folder, batches)
        subprocess.run([program, f"{folder}/job.yaml"], check=True)
        for name, model, dense, row in cases():
            case = (name, model, dense, row, batches, read_dump(f"{folder}/{name}"))
            errors = least_errors(*case)
            tensor = max(errors, key=errors.get)
            worst = max(worst, (errors[tensor], f"{name}: {tensor}"))
            count += 1
            if not errors[tensor] <= TOLERANCE:
                failures.append(f"{name}: " + ", ".join(
                    f"{t} {e:.1e}" for t, e in errors.items() if not e <= TOLERANCE))
    print(f"{count} cases of {STEPS} steps, largest relative error {worst[0]:.1e} ({worst[1]})")
    if failures:
        print(f"{len(failures)} differ by more than {TOLERANCE}:", *failures, sep="\n  ")
        sys.exit(1)


if __name__ == "__main__":
    main()
