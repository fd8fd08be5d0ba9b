"""Mixture of experts for several labels (Ma et al. 2018), with satrap's tables:
python mmoe.py job.yaml [key.path=value ...] [--resume]. The job has two labels or more."""
import sys

import torch

import satrap


def mlp(*widths):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


class Mmoe(torch.nn.Module):
    """Experts that all labels share; each label weighs them by a gate of its own, and has a tower."""

    def __init__(self, job, experts=4, expert=(64, 32), tower=16):
        super().__init__()
        inputs = job.numeric_width + job.pooled_width
        self.experts = torch.nn.ModuleList(mlp(inputs, *expert) for _ in range(experts))
        self.gates = torch.nn.ModuleList(torch.nn.Linear(inputs, experts) for _ in job.labels)
        self.towers = torch.nn.ModuleList(
            torch.nn.Sequential(*mlp(expert[-1], tower), torch.nn.Linear(tower, 1)) for _ in job.labels)

    def forward(self, batch):
        inputs = torch.cat([batch.numeric, batch.pooled], 1)
        experts = torch.stack([expert(inputs) for expert in self.experts], 1)  # [n, experts, width]
        mixed = [(torch.softmax(gate(inputs), 1)[:, :, None] * experts).sum(1) for gate in self.gates]
        return torch.cat([tower(x) for tower, x in zip(self.towers, mixed)], 1)


def loss_of(logits, batch):
    """The mean over the examples of the sum over the labels. A label that is missing has the weight 0."""
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, batch.weight, reduction="sum")
    return losses / len(batch)


def main(arguments):
    job = satrap.Job(arguments[0], dict(word.split("=", 1) for word in arguments[1:] if "=" in word))
    torch.manual_seed(1)
    net = Mmoe(job)
    trainer = satrap.Trainer(job, net, torch.optim.Adam(net.parameters(), lr=0.001), resume="--resume" in arguments)
    for batch in trainer:
        logits = net(batch)
        trainer.step(loss_of(logits, batch), scores=logits)


if __name__ == "__main__":
    main(sys.argv[1:])
