"""DLRM (Naumov et al. 2019) in PyTorch, with satrap's tables: python dlrm.py job.yaml [key.path=value ...] [--resume]"""
import sys

import torch

import satrap


def mlp(widths, last_activation):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*(layers if last_activation else layers[:-1]))


class Dlrm(torch.nn.Module):
    """An MLP of the numbers, as wide as an embedding; the products of every two vectors; an MLP of both."""

    def __init__(self, job, bottom=(512, 256, 64), top=(512, 256)):
        super().__init__()
        self.width, *others = set(job.widths.values())
        if others or job.lengths:
            raise ValueError(f"DLRM needs tables of one dim and features without sequences, got {job.widths}")
        vectors = 1 + len(job.features)
        self.bottom = mlp([job.numeric_width, *bottom, self.width], last_activation=True)
        self.top = mlp([self.width + vectors * (vectors - 1) // 2, *top, len(job.labels)], last_activation=False)
        self.register_buffer("below", torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, batch):
        numbers = self.bottom(batch.numeric)
        vectors = torch.cat([numbers, batch.pooled], 1).unflatten(1, (-1, self.width))
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.below[0], self.below[1]]
        return self.top(torch.cat([numbers, products], 1))


def main(arguments):
    overrides = dict(word.split("=", 1) for word in arguments[1:] if "=" in word)
    job = satrap.Job(arguments[0], overrides)
    torch.manual_seed(1)
    net = Dlrm(job)
    trainer = satrap.Trainer(job, net, torch.optim.Adam(net.parameters(), lr=0.001), resume="--resume" in arguments)
    for batch in trainer:
        logits = net(batch)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, batch.weight, reduction="sum")
        trainer.step(losses / len(batch), scores=logits)


if __name__ == "__main__":
    main(sys.argv[1:])
