"""The reference load of bench/backend in PyTorch, on the same GPU: embedding_bag with sparse gradients,
then sparse Adagrad. Writes microseconds (median and quartiles of 50) as JSON.

8192 rows of 40 features with 5 ids from 590 000, dim 64, fp32 weights, bf16 nowhere: PyTorch's sparse
path has fp32 gradients. One table holds the rows of all features, as the cache does.
"""

import json
import statistics
import sys

import torch

ROWS, FEATURES, POOLING, DISTINCT, DIM, BATCHES, REPEAT = 8192, 40, 5, 590_000, 64, 4, 50


def timed(work):
    """Microseconds of work(i), timed by events; the batches take turns."""
    times = []
    for i in range(REPEAT + 5):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work(i % BATCHES)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000)
    quartiles = statistics.quantiles(times[5:], n=4)
    return {"median_us": quartiles[1], "quartile1_us": quartiles[0], "quartile3_us": quartiles[2]}


def main():
    torch.manual_seed(1)
    device = torch.device("cuda")
    # Four times the rows that a batch draws from, like the cache.
    bag = torch.nn.EmbeddingBag(4 * DISTINCT, DIM, mode="sum", sparse=True, device=device)
    optimizer = torch.optim.Adagrad(bag.parameters(), lr=0.02)
    ids = [torch.randint(DISTINCT, (ROWS * FEATURES * POOLING,), device=device) for _ in range(BATCHES)]
    offsets = torch.arange(0, ROWS * FEATURES * POOLING, POOLING, device=device)
    grad = torch.randn(ROWS * FEATURES, DIM, device=device)

    def train(i):
        optimizer.zero_grad()
        bag(ids[i], offsets).backward(grad)
        optimizer.step()

    def forward(i):
        with torch.no_grad():
            bag(ids[i], offsets)

    results = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "forward": timed(forward),
        "forward_backward_adagrad": timed(train),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
