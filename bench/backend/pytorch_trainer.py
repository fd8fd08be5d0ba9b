"""Trains a DLRM from a Criteo TSV in memory with PyTorch on a GPU, for gpu_trainer.py: pytorch_trainer.py TSV SECONDS
gpu|host|fbgemm|fbgemm_cache. The rows of all features stand in one table, which has only the ids of the TSV: for
embedding_bag with sparse gradients and Adagrad in the GPU's memory or in the host's; for FBGEMM's table-batched embedding
with its fused exact Adagrad in the GPU's memory, or in the host's behind a cache (LFU) of a quarter of the rows, without
Adagrad's state, which stays on the host. Fused Adam for the network, fp32. The first pass is not measured. Prints one JSON
line."""

import json
import sys
import time

import pyarrow.csv
import torch

BATCH, DIM, NUMBERS, FEATURES = 4096, 64, 13, 26


class Dlrm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = torch.nn.Sequential(torch.nn.Linear(NUMBERS, 64), torch.nn.ReLU(),
                                          torch.nn.Linear(64, DIM), torch.nn.ReLU())
        vectors = FEATURES + 1
        self.top = torch.nn.Sequential(torch.nn.Linear(DIM + vectors * (vectors - 1) // 2, 64), torch.nn.ReLU(),
                                       torch.nn.Linear(64, 1))
        pairs = torch.tril_indices(vectors, vectors, -1)
        self.register_buffer("pairs", pairs[0] * vectors + pairs[1])

    def forward(self, numbers, pooled):
        bottom = self.bottom(numbers)
        vectors = torch.cat([bottom.unsqueeze(1), pooled.view(-1, FEATURES, DIM)], 1)
        products = vectors @ vectors.transpose(1, 2)
        pairs = products.flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([bottom, pairs], 1)).squeeze(1)


def batches_of(path):
    """Pinned batches of (labels, numbers, ids), and the number of distinct ids."""
    table = pyarrow.csv.read_csv(
        path, read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=True),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t"),
        convert_options=pyarrow.csv.ConvertOptions(column_types={f"f{1 + NUMBERS + i}": pyarrow.string()
                                                                 for i in range(FEATURES)}))
    column = [table.column(i).combine_chunks() for i in range(1 + NUMBERS + FEATURES)]
    def numbers(array):
        return torch.from_numpy(array.cast("float32").fill_null(0).to_numpy(zero_copy_only=False).copy())
    labels = numbers(column[0])
    dense = torch.stack([torch.log1p(numbers(c).clamp_min(0)) for c in column[1:1 + NUMBERS]], 1)
    ids, total = [], 0
    for c in column[1 + NUMBERS:]:
        encoded = c.fill_null("").dictionary_encode()
        ids.append(torch.from_numpy(encoded.indices.to_numpy().astype("int64")) + total)
        total += len(encoded.dictionary)
    ids = torch.stack(ids, 1)
    return [tuple(t[i:i + BATCH].contiguous().pin_memory() for t in (labels, dense, ids))
            for i in range(0, len(labels) - BATCH + 1, BATCH)], total


class PytorchRows:
    """embedding_bag, whose optimizer takes a step of its own."""

    def __init__(self, total, place):
        self.device = torch.device("cuda" if place == "gpu" else "cpu")
        self.bag = torch.nn.EmbeddingBag(total, DIM, mode="sum", sparse=True, device=self.device)
        torch.nn.init.uniform_(self.bag.weight, -0.01, 0.01)
        self.optimizer = torch.optim.Adagrad(self.bag.parameters(), lr=0.02)
        self.offsets = torch.arange(BATCH * FEATURES, device=self.device)

    def lookup(self, ids):
        self.optimizer.zero_grad()
        return self.bag(ids.view(-1), self.offsets)

    def update(self):
        self.optimizer.step()


class FbgemmRows:
    """FBGEMM updates the rows in its backward pass."""

    def __init__(self, total, place):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import CacheAlgorithm, EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (ComputeDevice,
                                                                            SplitTableBatchedEmbeddingBagsCodegen)
        self.device = torch.device("cuda")
        where = EmbeddingLocation.MANAGED_CACHING if place == "fbgemm_cache" else EmbeddingLocation.DEVICE
        self.bag = SplitTableBatchedEmbeddingBagsCodegen(
            [(total, DIM, where, ComputeDevice.CUDA)], optimizer=EmbOptimType.EXACT_ADAGRAD, learning_rate=0.02,
            eps=1e-10, pooling_mode=PoolingMode.SUM, stochastic_rounding=False, cache_load_factor=0.25,
            cache_algorithm=CacheAlgorithm.LFU, device=self.device)
        self.bag.init_embedding_weights_uniform(-0.01, 0.01)
        self.offsets = torch.arange(BATCH * FEATURES + 1, device=self.device)

    def lookup(self, ids):
        return self.bag(ids.view(-1), self.offsets)

    def update(self):
        pass


def main():
    path, seconds, place = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    torch.manual_seed(1)
    gpu = torch.device("cuda")
    batches, total = batches_of(path)
    rows = FbgemmRows(total, place) if place.startswith("fbgemm") else PytorchRows(total, place)
    network = Dlrm().to(gpu)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001, fused=True)

    def step(batch):
        labels, numbers = (t.to(gpu, non_blocking=True) for t in batch[:2])
        ids = batch[2].to(rows.device, non_blocking=True)
        optimizer.zero_grad()
        pooled = rows.lookup(ids).view(BATCH, FEATURES * DIM).to(gpu)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(numbers, pooled), labels)
        loss.backward()
        rows.update()
        optimizer.step()
        return loss.detach()

    for batch in batches:
        step(batch)
    torch.cuda.synchronize()
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        loss = step(batches[steps % len(batches)])
        steps += 1
        if steps % 50 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    print(json.dumps({"ex_s": steps * BATCH / (time.monotonic() - begin), "loss": loss.item(), "rows": total,
                      "steps": steps}))


if __name__ == "__main__":
    main()
