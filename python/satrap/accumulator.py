"""Gradients of several batches for one step of the optimizer."""
from .errors import Error


class Accumulator:
    """The sum of the gradients of up to `count` batches, for parameters whose `.grad` has that of one batch."""

    def __init__(self, parameters, count):
        self._parameters, self._count = parameters, count
        self._begin()

    def _begin(self):
        self._batches, self._sums = 0, [None] * len(self._parameters)

    def add(self):
        """Takes the gradients of a batch. True: it is the last of `count`, and each `.grad` is the mean over them."""
        if self._count == 1:
            return True
        for number, parameter in enumerate(self._parameters):
            gradient, parameter.grad = parameter.grad, None
            if gradient is not None:
                self._sums[number] = gradient if self._sums[number] is None else self._sums[number].add_(gradient)
        self._batches += 1
        if self._batches < self._count:
            return False
        for parameter, total in zip(self._parameters, self._sums):
            parameter.grad = total if total is None else total.div_(self._count)
        self._begin()
        return True

    def state_dict(self):
        return {"count": self._count, "batches": self._batches, "sums": self._sums}

    def load_state_dict(self, state):
        """None: the run began without accumulation."""
        self._begin()
        if state is None or state["batches"] == 0:
            return
        if state["count"] != self._count:
            raise Error(f"checkpoint: has the gradients of {state['batches']} of {state['count']} batches, and the trainer "
                        f"has accumulate={self._count}; give it accumulate={state['count']}")
        shapes = [None if total is None else total.shape for total in state["sums"]]
        if len(shapes) != len(self._parameters) or any(
                shape is not None and shape != parameter.shape for shape, parameter in zip(shapes, self._parameters)):
            raise Error("checkpoint: its accumulated gradients are of other parameters than those that the net trains; "
                        "freeze and unfreeze none between a checkpoint and its resume")
        self._batches, self._sums = state["batches"], state["sums"]
