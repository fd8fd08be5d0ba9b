"""The oracle of satrap's rows: nn.Embedding and torch.optim in lockstep with a run."""
import torch


class PlainTables:
    """One nn.Embedding for each table, whose rows begin as satrap's when they are first looked up.

    features   from feature to its table
    rows       [number of row] a dict from feature to its list of ids, in the order in which the run reads them
    """

    def __init__(self, job, features, rows, make_optimizer):
        self._job, self._features, self._rows = job, features, rows
        self._numbers = {table: {} for table in features.values()}  # from id to row of the table
        for row in rows:
            for feature, table in features.items():
                for id in row[feature]:
                    self._numbers[table].setdefault(id, len(self._numbers[table]))
        widths = {table: job.widths[feature] for feature, table in features.items()}
        self._tables = {table: torch.nn.Embedding(len(numbers), widths[table]) for table, numbers in self._numbers.items()}
        self._known = {table: set() for table in self._tables}
        self._next = 0
        self.optimizer = make_optimizer([table.weight for table in self._tables.values()])

    def batch_like(self, batch):
        """The next batch. Numbers, labels and weights are copies of satrap's, rows are the tables' own."""
        rows = self._rows[self._next:self._next + len(batch)]
        self._next += len(batch)
        return PlainBatch(batch, {feature: self._vectors(feature, [row[feature] for row in rows], batch[feature])
                                  for feature in self._features})

    def _vectors(self, feature, lists, given):
        """(vectors, mask) of a sequence, or of a feature with one id at most."""
        table = self._features[feature]
        length = self._job.lengths.get(feature, 1)
        numbers = torch.zeros(len(lists), length, dtype=torch.int64)
        mask = torch.zeros(len(lists), length, dtype=torch.bool)
        for row, ids in enumerate(lists):
            if len(ids) > length:
                raise ValueError(f"{feature}: {len(ids)} ids, and {length} vectors")
            for place, id in enumerate(ids):
                numbers[row, place], mask[row, place] = self._numbers[table][id], True
                if id not in self._known[table]:
                    self._known[table].add(id)
                    first = given[row, place] if given.ndim == 3 else given[row]
                    with torch.no_grad():
                        self._tables[table].weight[self._numbers[table][id]] = first.detach()
        vectors = torch.where(mask[:, :, None], self._tables[table](numbers), 0.0)
        return (vectors if feature in self._job.lengths else vectors[:, 0]), mask


class PlainBatch:
    """What a network sees of a satrap.Batch."""

    def __init__(self, batch, vectors):
        self.numeric, self.labels, self.weight = batch.numeric.clone(), batch.labels.clone(), batch.weight.clone()
        self._vectors = vectors
        self.pooled = torch.cat([vector.flatten(1) for vector, _ in vectors.values()], 1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, feature):
        return self._vectors[feature][0]

    def mask(self, feature):
        return self._vectors[feature][1]

    def jagged(self, feature):
        vectors, mask = self._vectors[feature]
        return (torch.cat([vectors[row, :int(mask[row].sum())] for row in range(len(self))]),
                torch.tensor([0, *mask.sum(1).tolist()]).cumsum(0))
