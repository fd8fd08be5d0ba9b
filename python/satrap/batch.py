"""A batch whose rows have been looked up, as tensors over the engine's memory."""
import warnings

import torch

from .errors import Error

# The gradient of a leaf lies as the leaf does, in columns of the engine's matrix: that is meant.
warnings.filterwarnings("ignore", "grad and param do not obey the gradient layout contract")


class Lease:
    """What every tensor over the memory of a batch refers to: it lives for as long as any of them, and so does `owner`."""

    def __init__(self, owner):
        self.owner = owner


def check_logits(job, scores, num_examples, name):
    """Logits are [n, outputs], or [n] with one output. `name`: what has made them."""
    shape = list(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
    if shape != [num_examples, job.num_outputs] and not (job.num_outputs == 1 and shape == [num_examples]):
        what = "classes" if job.losses == ["softmax"] else "labels"
        raise Error(f"{name}: has the shape {shape}, and must be the logits of the batch, [examples, {what}] = "
                    f"[{num_examples}, {job.num_outputs}]")


class Batch:
    """The inputs of a network for n examples, until the step of the batch is done.

    Nothing is copied: the tensors are over the memory of the engine, which uses it again. What is to be kept must be
    copied (`tensor.detach().clone()`). In a training loop `pooled` and each `batch[feature]` are leaves, whose `.grad`
    is the memory from which rows are updated.

    step             number of the step, from 1; of an evaluation 0
    numeric          [n, job.numeric_width] float32, transformed
    pooled           [n, job.pooled_width] all features side by side; a sequence with all of its vectors
    batch["item"]    [n, width] one feature; [n, length, width] a sequence, padded with zeros
    mask("history")  [n, length] bool, True where the sequence has an element
    jagged("history")   (values, offsets): [total, width] float32, the elements of all sequences without padding, and
                     [n + 1] int64, where those of each example begin, and their end
    labels           [n, labels] 0 or 1; where it is missing 0, and `weight` is 0
    weight           [n, labels] factor of each example's loss: weight of the example times that of the label
    """

    def __init__(self, job, run, call):
        self._job, self._call = job, call
        self.step = call.step
        self._lease = Lease(run)
        self._made = {}
        self._leaves = []  # of them: leaf, the memory of its gradient
        self._num_examples, self._trains, self._has_weights = call.num_examples, call.trains, call.has_weights

    def __len__(self):
        return self._num_examples

    @property
    def numeric(self):
        return self._make("numeric", lambda: self._given("numeric")[:, :self._job.numeric_width])

    @property
    def pooled(self):
        return self._make("pooled", lambda: self._leaf(slice(0, self._job.pooled_width), 0))

    def __getitem__(self, feature):
        place = self._place(feature)
        return self._make(("feature", feature), lambda: self._leaf(place.columns, place.length))

    def mask(self, feature):
        place = self._place(feature)
        if not place.length:
            raise Error(f"mask('{feature}'), jagged('{feature}'): are for a feature with pooling: sequence, and '{feature}' has "
                        "another")
        return self._make(("mask", feature), lambda: self._given("numeric")[:, place.mask_columns] > 0.5)

    def jagged(self, feature):
        """A sequence without its padding. Its values are gathered, and their gradient reaches batch[feature]."""
        mask = self.mask(feature)
        offsets = torch.zeros(len(self) + 1, dtype=torch.int64)
        torch.cumsum(mask.sum(1), 0, out=offsets[1:])
        return self[feature][mask], offsets

    @property
    def labels(self):
        self._require_labels("labels")
        if not self._has_weights:
            return self._given("labels")
        return self._make("labels", lambda: self._given("labels").nan_to_num(0.0))

    @property
    def weight(self):
        self._require_labels("weight")
        if self._has_weights:
            return self._given("weights")
        weights = torch.tensor(self._job._engine.label_weights)
        return self._make("weight", lambda: weights.expand(len(self), len(weights)))

    def _open(self):
        if self._call is None:
            raise Error(f"the batch of step {self.step} is used after its step: its memory is the engine's, which uses it "
                        "again; what is to be kept must be copied before trainer.step: tensor.detach().clone()")
        return self._call

    def _require_labels(self, name):
        self._open()
        if not self._trains:
            raise Error(f"batch.{name}: an evaluation asks for predictions, which are made without labels")

    def _place(self, feature):
        self._open()
        if feature not in self._job._places:
            raise Error(f"batch['{feature}']: there is no such feature; there are {', '.join(self._job.features)}")
        return self._job._places[feature]

    def _make_all(self):
        """Makes each tensor before it is asked for: torch.compile traces what is there, but not how it is made."""
        for feature, place in self._job._places.items():
            self[feature]
            if place.length:
                self.mask(feature)
        self.numeric, self.pooled
        if self._trains:
            self.labels, self.weight

    def _make(self, key, make):
        self._open()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _given(self, name):
        """A tensor over a matrix of the call."""
        return self._make(("given", name), lambda: getattr(self._open(), name)(self._lease))

    def _leaf(self, columns, length):
        def part(name):
            matrix = self._given(name)[:, columns]
            return matrix.unflatten(1, (length, -1)) if length else matrix

        leaf = part("pooled")
        if self._trains:
            leaf.requires_grad_()
            leaf.grad = part("gradient")
            self._leaves.append((leaf, leaf.grad))
        return leaf

    def _collect_gradients(self):
        """Those of leaves whose `.grad` was taken away, as by an optimizer's zero_grad."""
        for leaf, gradient in self._leaves:
            if leaf.grad is not gradient and leaf.grad is not None:
                gradient.add_(leaf.grad)

    def _write_predictions(self, scores, name):
        """From logits, [n, outputs], or [n] with one output."""
        n, outputs = len(self), self._job.num_outputs
        check_logits(self._job, scores, n, name)
        with torch.no_grad():
            to = self._open().probabilities(self._lease)
            to.copy_(scores.detach().reshape(n, outputs))
            if self._job.losses == ["softmax"]:
                to.copy_(torch.softmax(to, 1))
                return
            for column, loss in enumerate(self._job.losses):
                if loss == "bce":
                    to[:, column].sigmoid_()

    def _close(self):
        """No tensor is made any more. Returns what all that were made refer to, or nothing else does."""
        lease, self._lease, self._call = self._lease, None, None
        self._made, self._leaves = {}, []
        return lease
