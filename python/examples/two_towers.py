"""Two towers for retrieval (Yi et al. 2019), with satrap's tables: python two_towers.py job.yaml [key.path=value ...]
[--resume]. The job has the items' ids also as a number, the first one, below 2^24: {name: id, column: movie}.
Writes item_ids.npy and items.npy, the vectors of the evaluation's items, to the run's folder: they are for an index."""
import pathlib
import sys

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

import satrap


class TwoTowers(torch.nn.Module):
    """An MLP of the user's features, and one of the item's; their product is the logit of "this user likes it"."""

    def __init__(self, job, item="movie", items=200_000, width=32, temperature=0.1):
        super().__init__()
        self.item, self.temperature, self.vectors = item, temperature, {}
        others = job.pooled_width - job.widths[item]
        self.user_tower, self.item_tower = (
            torch.nn.Sequential(torch.nn.Linear(inputs, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width))
            for inputs in (others, job.widths[item]))
        self.others = [name for name in job.features if name != item]
        self.register_buffer("counts", torch.zeros(items))  # of each item, in the batches so far

    def forward(self, batch):
        user = torch.cat([batch[name].flatten(1) for name in self.others], 1)
        return normalize(self.user_tower(user)), normalize(self.item_tower(batch[self.item]))

    def loss(self, batch):
        """Each user's item among all items of the batch. Frequent ones are there more often: their logQ is taken off."""
        users, items = self(batch)
        ids = batch.numeric[:, 0].long()
        self.counts.index_add_(0, ids, torch.ones(len(batch)))
        log_q = torch.log(self.counts[ids] / self.counts.sum())
        logits = users @ items.T / self.temperature - log_q
        is_same = (ids == ids[:, None]).fill_diagonal_(False)
        losses = cross_entropy(logits.masked_fill(is_same, -torch.inf), torch.arange(len(batch)), reduction="none")
        return (losses * batch.labels[:, 0]).sum() / batch.labels.sum().clamp(min=1)  # rows with 0 are others' negatives

    def predict(self, batch):
        users, items = self(batch)
        self.vectors.update(zip(batch.numeric[:, 0].long().tolist(), items.clone().numpy()))
        return (users * items).sum(1) / self.temperature


if __name__ == "__main__":
    job = satrap.Job(sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word))
    net = TwoTowers(job)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    trainer = satrap.Trainer(job, net, optimizer, predict=net.predict, resume="--resume" in sys.argv)
    for batch in trainer:
        trainer.step(net.loss(batch))
    folder = pathlib.Path(trainer.run_dir)
    np.save(folder / "item_ids.npy", np.array(sorted(net.vectors)))
    np.save(folder / "items.npy", np.stack([net.vectors[item] for item in sorted(net.vectors)]))
