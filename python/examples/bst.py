"""Behaviour sequence transformer (Chen et al. 2019), with satrap's tables:
python bst.py job.yaml [key.path=value ...] [--resume], such as the din.yaml of `satrap data prepare movielens`."""
import sys

import torch

import satrap


class Bst(torch.nn.Module):
    """A transformer over the items of a history and the item in question; an MLP of its outputs and all other inputs."""

    def __init__(self, job, item="movie", history="history", heads=2, top=(128, 64)):
        super().__init__()
        width, length = job.widths[item], job.lengths[history] + 1
        self.item, self.history = item, history
        self.others = [name for name in job.features if name not in (item, history)]
        self.positions = torch.nn.Parameter(0.01 * torch.randn(length, width))
        self.encoder = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        inputs = job.numeric_width + length * width + sum(
            job.widths[name] * job.lengths.get(name, 1) for name in self.others)
        self.top = torch.nn.Sequential(torch.nn.Linear(inputs, top[0]), torch.nn.LeakyReLU(),
                                       torch.nn.Linear(top[0], top[1]), torch.nn.LeakyReLU(),
                                       torch.nn.Linear(top[1], job.num_outputs))

    def forward(self, batch):
        items = torch.cat([batch[self.item][:, None], batch[self.history]], 1) + self.positions
        mask = torch.nn.functional.pad(batch.mask(self.history), (1, 0), value=True)  # the item itself is always there
        encoded = self.encoder(items, src_key_padding_mask=~mask)
        encoded = torch.where(mask[:, :, None], encoded, 0.0)
        others = [batch[name].flatten(1) for name in self.others]
        return self.top(torch.cat([batch.numeric, encoded.flatten(1), *others], 1))


def loss_of(logits, batch):
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.labels, batch.weight, reduction="sum")
    return losses / len(batch)


def main(arguments):
    job = satrap.Job(arguments[0], dict(word.split("=", 1) for word in arguments[1:] if "=" in word))
    torch.manual_seed(1)
    net = Bst(job)
    trainer = satrap.Trainer(job, net, torch.optim.Adam(net.parameters(), lr=0.001), resume="--resume" in arguments)
    for batch in trainer:
        logits = net(batch)
        trainer.step(loss_of(logits, batch), scores=logits)


if __name__ == "__main__":
    main(sys.argv[1:])
