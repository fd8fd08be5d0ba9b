"""Several ranks of a run: what they sum in each step, and the random numbers of each."""
import hashlib
import os

import torch

from .errors import ConfigError, Error


class Sums:
    """Gradients of the parameters and changes of the buffers, which ranks sum in each step, in memory of the engine.

    A parameter of which no rank has a gradient keeps None. Buffers of floats, such as the statistics of BatchNorm, change
    by the mean of their changes; so they are the same on all ranks.
    """

    def __init__(self, net, num_ranks):
        self._num_ranks = num_ranks
        self._parameters = {name: p for name, p in net.named_parameters() if p.requires_grad}
        self._buffers = [buffer for buffer in net.buffers() if buffer.is_floating_point()]
        for name, parameter in self._parameters.items():
            if not parameter.is_floating_point():
                raise ConfigError(f"net: parameter '{name}': ranks sum gradients of real numbers, and it has {parameter.dtype}")
        summed = [*self._parameters.values(), *self._buffers]
        self._sizes = [len(self._parameters), *(tensor.numel() for tensor in summed)]
        self.size = sum(self._sizes)

    def open(self, run):
        """Before the first step."""
        counts, *parts = run.summed(run).split(self._sizes)
        self._counts = counts  # for each parameter, the ranks that have a gradient of it
        self._gradients = [part.view_as(p) for part, p in zip(parts, self._parameters.values())]
        self._changes = [part.view_as(b) for part, b in zip(parts[len(self._gradients):], self._buffers)]

    def check(self, optimizer):
        """Refuses what it would train apart on each rank."""
        summed = {id(parameter) for parameter in self._parameters.values()}
        for group in getattr(optimizer, "param_groups", []):
            if any(parameter.requires_grad and id(parameter) not in summed for parameter in group["params"]):
                raise ConfigError("optimizer: has parameters that net did not train when the trainer was made, and ranks do "
                                  "not sum their gradients: make them part of net, and unfreeze them before")

    def write(self, before):
        """This rank's share: what its backward pass has left, and how buffers differ from `before`."""
        has_gradient = [parameter.grad is not None for parameter in self._parameters.values()]
        self._counts.copy_(torch.tensor(has_gradient))
        for (name, parameter), gradient in zip(self._parameters.items(), self._gradients):
            if parameter.grad is None:
                gradient.zero_()
            elif parameter.grad.layout != torch.strided:
                raise Error(f"net: parameter '{name}' has a sparse gradient, which ranks cannot sum; make its module with "
                            "sparse=False")
            else:
                gradient.copy_(parameter.grad)
        with torch.no_grad():
            for buffer, old, change in zip(self._buffers, self._floats(before), self._changes):
                change.copy_(torch.where(buffer == old, 0.0, (buffer - old) / self._num_ranks))  # also of infinities

    def write_nothing(self):
        """The share of a rank without examples."""
        for part in (self._counts, *self._gradients, *self._changes):
            part.zero_()

    def read(self, before):
        """Gives parameters and buffers the sums. Returns the norm of the gradient."""
        for parameter, gradient, count in zip(self._parameters.values(), self._gradients, self._counts.tolist()):
            parameter.grad = gradient.to(parameter.dtype, copy=True) if count else None
        with torch.no_grad():
            for buffer, old, change in zip(self._buffers, self._floats(before), self._changes):
                buffer.copy_(old + change)
        return norm_of(self._parameters.values())

    @staticmethod
    def _floats(buffers):
        return [buffer for buffer in buffers if buffer.is_floating_point()]


def norm_of(parameters):
    """The L2 norm of all gradients."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients)) if gradients else 0.0


def seed_step(seed, step, rank):
    """Begins the random numbers of a step: each rank has its own, and a resumed run the same."""
    digest = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=8).digest()
    torch.default_generator.manual_seed(int.from_bytes(digest, "little") >> 1)


def is_restarted():
    """Whether a launcher has started this process again, after a failure of the run."""
    count = os.environ.get("SATRAP_ATTEMPT") or os.environ.get("TORCHELASTIC_RESTART_COUNT") or "0"
    return count.isdecimal() and int(count) > 0
