"""What a job says about the training of a network: its loss, and the optimizer and learning rate of dense_optimizer."""
import torch

from .errors import ConfigError

functional = torch.nn.functional


def loss_of(job, logits, batch):
    """The loss of the job's labels, that of satrap's own networks: a sum over rows and labels of weighted losses, by the
    number of rows. The logits are [n, Job.num_outputs], or [n] with one."""
    logits = logits.reshape(len(batch), job.num_outputs)
    labels, weight = batch.labels, batch.weight
    if job.losses == ["softmax"]:
        losses = functional.cross_entropy(logits, labels[:, 0].long(), reduction="none") * weight[:, 0]
        return losses.sum() / len(batch)
    if all(loss == "bce" for loss in job.losses):
        shifted = logits + job.loss_shift if job.loss_shift else logits
        return functional.binary_cross_entropy_with_logits(shifted, labels, weight, reduction="sum") / len(batch)
    total = 0.0
    for column, loss in enumerate(job.losses):
        z, label, factor = logits[:, column], labels[:, column], weight[:, column]
        if loss == "bce":
            total = total + functional.binary_cross_entropy_with_logits(z + job.loss_shift, label, factor, reduction="sum")
        else:
            total = total + (factor * (z - label) ** 2).sum()
    return total / len(batch)


def optimizer_of(job, net):
    """The optimizer of the job's dense_optimizer for what is trained of the net, with its clipping of gradients."""
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    kind, number = job._engine.dense_optimizer
    shared = {"lr": number["lr"], "weight_decay": number["weight_decay"]}
    adam = {"betas": (number["beta1"], number["beta2"]), "eps": number["eps"]}
    makers = {"sgd": lambda: torch.optim.SGD(parameters, momentum=number["momentum"], **shared),
              "adagrad": lambda: torch.optim.Adagrad(parameters, initial_accumulator_value=number["initial_accumulator"],
                                                     eps=number["eps"], **shared),
              "adam": lambda: torch.optim.Adam(parameters, **adam, **shared),
              "adamw": lambda: torch.optim.AdamW(parameters, **adam, **shared)}
    if kind not in makers:
        raise ConfigError(f"dense_optimizer.type: a network in Python has no '{kind}'; write one of {', '.join(makers)}")
    optimizer = makers[kind]()

    def clip(*_):
        torch.nn.utils.clip_grad_norm_(parameters, number["clip_norm"])

    if number["clip_norm"] > 0:
        optimizer.register_step_pre_hook(clip)
    return optimizer


def set_learning_rate(job, optimizer, step):
    """That of the job's schedule at a step, counted from 1."""
    for group in optimizer.param_groups:
        group["lr"] = job._engine.learning_rate(step)
