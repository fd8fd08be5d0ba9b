"""HSTU's attention over jagged sequences (Zhai et al. 2024), with satrap's tables:
python hstu.py job.yaml [key.path=value ...] [--resume], such as the din.yaml of `satrap data prepare movielens` with
'tables.default.init={type: normal, scale: 0.5}': layer normalisation wants rows that are not tiny."""
import sys

import torch
from torch.nn.functional import silu

import satrap


class Layer(torch.nn.Module):
    """Attention by SiLU without a softmax, to what is before in the sequence, gated by the element itself."""

    def __init__(self, width, length):
        super().__init__()
        self.inputs, self.outputs = torch.nn.Linear(width, 4 * width), torch.nn.Linear(width, width)
        self.before, self.after = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.distances = torch.nn.Parameter(torch.zeros(length))

    def forward(self, x, starts):  # x: [elements, width] of all sequences; starts: where the sequence of each begins
        gate, value, query, key = silu(self.inputs(self.before(x))).chunk(4, 1)
        counts = torch.arange(1, len(x) + 1) - starts                        # elements that each one sees
        seeing = torch.repeat_interleave(torch.arange(len(x)), counts)       # all pairs, without padding
        seen = torch.arange(len(seeing)) - (counts.cumsum(0) - counts)[seeing] + starts[seeing]
        scores = silu((query[seeing] * key[seen]).sum(1) + self.distances[seeing - seen]) / counts[seeing]
        attended = torch.zeros_like(x).index_add(0, seeing, scores[:, None] * value[seen])
        return x + self.outputs(self.after(attended) * gate)


class Hstu(torch.nn.Module):
    """The item in question ends the history; what the last layer makes of it, with all bags, gives the logits."""

    def __init__(self, job, item="movie", history="history", layers=2):
        super().__init__()
        width, self.item, self.history = job.widths[item], item, history
        self.layers = torch.nn.ModuleList(Layer(width, job.lengths[history] + 1) for _ in range(layers))
        self.bags = [name for name in job.features if name not in job.lengths]
        self.top = torch.nn.Linear(width + sum(job.widths[name] for name in self.bags), job.num_outputs)

    def forward(self, batch):
        values, offsets = batch.jagged(self.history)
        rows = torch.arange(len(batch))
        row_of = torch.cat([torch.repeat_interleave(rows, offsets.diff()), rows])
        order = torch.argsort(row_of, stable=True)                           # each item behind its history
        x, starts = torch.cat([values, batch[self.item]])[order], (offsets[:-1] + rows)[row_of[order]]
        for layer in self.layers:
            x = layer(x, starts)
        return self.top(torch.cat([x[offsets[1:] + rows], *(batch[name] for name in self.bags)], 1))


if __name__ == "__main__":
    job = satrap.Job(sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word))
    net = Hstu(job)
    trainer = satrap.Trainer(job, net, torch.optim.Adam(net.parameters(), lr=0.001), resume="--resume" in sys.argv)
    for batch in trainer:
        logits = net(batch)
        trainer.step(torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels), scores=logits)
