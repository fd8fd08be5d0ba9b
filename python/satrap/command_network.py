"""The network of a command, as this process computes it."""
import torch

from .batch import check_logits
from .exporting import exported
from .job_training import loss_of, optimizer_of, set_learning_rate
from .network_file import make_network
from .trainer import Kind, Trainer, decoded, load_part


class NoOptimizer:
    """Stands for that of a net which is not trained, and may be without parameters."""

    def step(self):
        raise AssertionError("a step of a net that is not trained")

    zero_grad = load_state_dict = step

    def state_dict(self):
        return {}


class CommandNetwork(Trainer):
    """Answers the calls of a command: its steps, by the loss and the optimizer of the job, its evaluations, its
    checkpoints and its export. Without an optimizer it takes no step, and of checkpoints only the net."""

    def __init__(self, run, job, net, optimizer=None, predict=None):
        self._trains = optimizer is not None
        super().__init__(job, net, optimizer or NoOptimizer(), predict=predict)
        self._run = run
        self.num_parameters = sum(map(torch.Tensor.numel, self._trained))

    def serve(self):
        """Until the command has ended."""
        while (call := self._next_step()) is not None:
            self._begin(call)
            self._net.train()
            logits = self._net(self._batch)
            check_logits(self._job, logits, len(self._batch), "net")
            set_learning_rate(self._job, self._optimizer, self._batch.step)
            self.step(loss_of(self._job, logits, self._batch), scores=logits)

    def _require_trained(self):
        if self._trains:
            super()._require_trained()

    def _serve(self, call):
        if call.kind == Kind.EXPORT:
            call.state = exported(self._job, self._net, self._predict, call.format)
        else:
            super()._serve(call)

    def _load(self, data):
        if self._trains:
            super()._load(data)
        else:
            load_part("net", self._net, decoded(data)["net"])


def of_job(run, job, trains):
    """That of the net that the job names. The job's seed gives its initial values."""
    torch.manual_seed(job.seed)
    net = make_network(job, job.model_path)
    return CommandNetwork(run, job, net, optimizer_of(job, net) if trains else None)
