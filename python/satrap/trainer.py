"""Trains a PyTorch network with the tables of a job."""
import gc
import json
import math
import os
import pathlib
import sys
import weakref

import torch

from . import _engine
from .accumulator import Accumulator
from .batch import Batch
from .errors import ConfigError, Error
from .job import Job
from .ranks import Sums, is_restarted, norm_of, seed_step
from .signals import StopSignals
from .state import BadState, decode, encode

Kind = _engine.Kind


class Trainer:
    """A run of `job`, whose network is `net`, trained by `optimizer`: a torch.nn.Module and a torch.optim.Optimizer.

        for batch in trainer:                       # its rows are looked up, within the staleness bound
            logits = net(batch)
            trainer.step(loss_of(logits, batch.labels), scores=logits)

    The run is that of the command `satrap train`: its folder, checkpoints, metrics, evaluations, early stopping and
    progress line are the same. Leaving the loop ends the run with a checkpoint, by `break` or an exception too; so does
    Ctrl-C, which then raises KeyboardInterrupt. A trainer trains once.

    predict     for evaluations: a function of a Batch that returns its logits; default: `net`. It is called with the net
                in evaluation mode, without gradients
    accumulate  batches for one step of the optimizer, which uses the mean of their gradients; rows are updated by each
                batch. Default: 1
    state       what else a checkpoint keeps, by name: objects with state_dict and load_state_dict, such as a scheduler
    resume, resume_from, overwrite, accept_changed_data   as the options of the command

    A checkpoint holds net, optimizer, `state`, and the state of torch's generator on the CPU.
    """

    def __init__(self, job, net, optimizer, *, predict=None, accumulate=1, state=None, resume=False, resume_from="",
                 overwrite=False, accept_changed_data=False):
        check_parts(job, net, optimizer, state or {})
        if not isinstance(accumulate, int) or accumulate < 1:
            raise ConfigError(f"accumulate: must be a number of batches, from 1, got {accumulate!r}")
        if accept_changed_data and not (resume or resume_from):
            raise ConfigError("accept_changed_data: is for a run that continues: with resume or resume_from")
        if bool(resume) + bool(resume_from) + bool(overwrite) > 1:
            raise ConfigError("resume, resume_from, overwrite: exclude each other; give one of them")
        self._job, self._net, self._optimizer = job, getattr(net, "_orig_mod", net), optimizer
        self._predict = predict or net
        self._is_compiled = net is not self._net
        self._state = dict(state or {})
        self._options = (bool(resume), os.fspath(resume_from), bool(overwrite), bool(accept_changed_data))
        if is_restarted():
            self._options = (True, "", False, bool(accept_changed_data))
        self._sums = Sums(net, job.num_ranks) if job.num_ranks > 1 else None
        self._trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
        self._accumulates, self._accumulator = accumulate > 1, Accumulator(self._trained, accumulate)
        self._require_trained()
        self._buffers = list(net.buffers())
        self._run = self._batch = self._call = self._kept = None
        self._failure = ""  # why the state is not to be saved
        self._pid = os.getpid()
        self.finished = False       # nothing is left to train on
        self.last_checkpoint = ""   # the newest one, once the run has ended

    def _require_trained(self):
        if not self._trained:
            raise ConfigError("net: must be a module with parameters to train, got none")

    @property
    def run_dir(self):
        """The folder of the run."""
        return self._run.run_dir if self._run else self._job.run_dir

    @property
    def summary(self):
        """The content of summary.json, which a run writes at its end."""
        return json.loads(pathlib.Path(self.run_dir, "summary.json").read_text(encoding="utf-8"))

    def __iter__(self):
        if self._run is not None:
            raise Error("this trainer has been used, and a trainer trains once; make another one, with resume=True to "
                        "continue from its checkpoint")
        self._run = _engine.Run(self._job._engine, sum(map(torch.Tensor.numel, self._trained)),
                                self._sums.size if self._sums else 0, *self._options)
        if self._sums:
            self._sums.open(self._run)
        weakref.finalize(self, close_run, self._run, self._pid)  # at the latest when the program ends
        return self._batches()

    def _batches(self):
        with StopSignals(self._run.stop) as signals:
            try:
                while (call := self._next_step()) is not None:
                    self._begin(call)
                    yield self._batch
                    if self._batch._call is not None:
                        raise Error(f"the batch of step {self._batch.step} was not trained on: call trainer.step(loss) "
                                    "once for each batch")
            except GeneratorExit:
                raise
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                self._end()
        signals.pass_on()

    def _begin(self, call):
        self._before = [buffer.clone() for buffer in self._buffers]
        if self._sums:
            seed_step(self._job._engine.seed, call.step, self._job.rank)
        self._generator = torch.get_rng_state()
        self._batch = self._batch_of(call)

    def _batch_of(self, call):
        batch = Batch(self._job, self._run, call)
        if self._is_compiled:
            batch._make_all()
        return batch

    def step(self, loss, scores=None):
        """Trains on the batch: the backward pass of `loss`, a tensor of one number, the optimizer's step and the update
        of the rows.

        scores   the logits, [n, Job.num_outputs], or [n] with one, of which metrics are made; without them the run has no
                 train.auc, train.ne, train.calibration, train.ap and train.brier

        A step whose loss or gradient is not finite changes neither network nor rows. Returns whether the optimizer has
        taken its step: not after such a step, nor before the last of `accumulate` batches.
        """
        batch = self._batch
        if batch is None or batch._call is None:
            raise Error("trainer.step: there is no batch to train on; call it once for each batch of the loop, inside it")
        self._check_process()
        if len(batch):
            check_loss(loss, batch)
        if scores is not None:
            batch._write_predictions(scores, "scores")
        self._check_released()
        if self._sums:
            self._sums.check(self._optimizer)
        self._optimizer.zero_grad(set_to_none=True)
        for parameter in self._trained:  # also those that the optimizer does not have
            parameter.grad = None
        loss_value, norm = self._backward(loss, batch) if len(batch) else (0.0, 0.0)
        if self._sums:
            self._sums.write(self._before) if len(batch) else self._sums.write_nothing()
        call = batch._call
        self._kept = (batch.step, weakref.ref(batch._close()))
        try:
            call.set_result(loss_value, norm, math.isfinite(loss_value) and math.isfinite(norm))
            self._run.answer()
            self._call = self._run.next_call()
            if self._call is not None and self._call.kind == Kind.APPLY:
                if self._sums:
                    self._call.set_result(loss_value, self._sums.read(self._before), True)
                is_whole = self._accumulator.add()
                if is_whole:
                    self._optimizer.step()
                self._answer()
                return is_whole
            self._restore_buffers()
            if self._call is not None and self._call.kind == Kind.FORGET:
                self._next_step()  # to the end, before the program goes on as if the step had been taken
            return False
        except BaseException as error:
            self._fail(error)
            raise

    def _backward(self, loss, batch):
        """Returns the loss and the norm of the gradient, which is this rank's share in that of the mean over all ranks."""
        if self._sums:
            loss.backward(torch.full_like(loss, batch._call.share))
        else:
            loss.backward()
        batch._collect_gradients()
        return float(loss.detach()), norm_of(self._trained)

    def _check_released(self):
        """The memory of the batch before is used again once this step is done."""
        if self._kept is None:
            return
        step, lease = self._kept
        if lease() is not None:
            gc.collect()
        if lease() is not None:
            raise Error(f"the batch of step {step} is still referred to: by one of its tensors, a part of one, or a loss or "
                        "output whose graph has it. Its memory is the engine's, which uses it again; keep copies, such as "
                        "loss.item() or tensor.detach().clone()")

    def _next_step(self):
        """Answers calls until that of a step; None: the run has ended."""
        self._check_process()
        while (call := self._call or self._run.next_call()) is not None and call.kind != Kind.STEP:
            self._call = call
            self._serve(call)
            self._answer()
        self._call = None
        return call

    def _answer(self):
        self._call = None
        self._run.answer()

    def _serve(self, call):
        if call.kind == Kind.PREDICT:
            self._evaluate(call)
        elif call.kind == Kind.SAVE:
            call.state = self._encoded()
        elif call.kind == Kind.LOAD:
            self._load(call.state)
        elif call.kind == Kind.FORGET:
            pass  # another rank has left its loop
        else:
            raise Error(f"a call of kind {call.kind} out of its turn")

    def _evaluate(self, call):
        batch = self._batch_of(call)
        modes = [(module, module.training) for module in self._net.modules()]
        self._net.eval()
        try:
            with torch.no_grad():
                batch._write_predictions(self._predict(batch), "predict" if self._predict is not self._net else "net")
        finally:
            for module, mode in modes:
                module.training = mode
            lease = weakref.ref(batch._close())
        if lease() is not None:
            gc.collect()
        if lease() is not None:
            raise Error("predict: keeps a tensor of its batch, whose memory is the engine's, which uses it again; copy it: "
                        "tensor.detach().clone()")

    def _encoded(self):
        try:
            accumulated = {"accumulated": self._accumulator.state_dict()} if self._accumulates else {}
            return encode({"net": self._net.state_dict(), "optimizer": self._optimizer.state_dict(),
                           "generator": torch.get_rng_state(),
                           "state": {name: part.state_dict() for name, part in self._state.items()}, **accumulated})
        except BadState as error:
            raise Error(f"checkpoint: {error}") from None

    def _load(self, data):
        saved = decoded(data)
        whose = "checkpoint" if self._job.rank == 0 else f"rank {self._job.rank} takes over what rank 0 has"
        if set(saved["state"]) != set(self._state):
            raise Error(f"{whose}: there are the states {sorted(saved['state'])}, and the trainer was given "
                        f"{sorted(self._state)}; give it the same")
        parts = {"net": self._net, "optimizer": self._optimizer, **{f"state '{name}'": part for name, part in self._state.items()}}
        for name, part in parts.items():
            load_part(name, part, saved[name] if name in saved else saved["state"][name[7:-1]], whose)
        self._accumulator.load_state_dict(saved.get("accumulated"))
        torch.set_rng_state(saved["generator"])

    def _restore_buffers(self):
        with torch.no_grad():
            for buffer, value in zip(self._buffers, self._before):
                buffer.copy_(value)

    def _fail(self, error):
        self._call = None
        self._failure = self._failure or f"{type(error).__name__}: {error}"

    def _end(self):
        """Ends the run in order, before the batch that was not trained on, and waits until it has ended."""
        batch = self._batch
        if batch is not None and batch._call is not None:
            batch._close()
            self._restore_buffers()
            torch.set_rng_state(self._generator)
        if self._call is not None and self._call.kind == Kind.STEP:
            self._call = None
        had_failed = bool(self._failure)
        try:
            if had_failed:
                self._run.fail(self._failure)
            else:
                self._run.decline_steps()
            if self._next_step() is not None:
                raise Error("a step was declined and came")
        except BaseException as error:
            self._fail(error)
            self._run.fail(self._failure)
            while self._run.next_call() is not None:
                pass
            raise
        if had_failed:
            return  # its error is on its way
        self.finished, self.last_checkpoint = self._run.result()
        if self.finished:
            print(self._run.words, end="", flush=True)
        elif self.last_checkpoint:
            print(f"satrap: stopped before its end; Trainer(..., resume=True) continues from {self.last_checkpoint}",
                  file=sys.stderr)

    def _check_process(self):
        if os.getpid() != self._pid:
            raise Error("this process is a copy (fork) of the one that trains, and has none of its threads; start processes "
                        "before the trainer, or by the method spawn")

    def __reduce__(self):
        raise TypeError("a Trainer cannot be pickled: it has threads and tables; its checkpoints are in run_dir")


def decoded(data):
    try:
        return decode(data)
    except BadState as error:
        raise Error(f"checkpoint: {error}") from None


def load_part(name, part, saved, whose="checkpoint"):
    try:
        part.load_state_dict(saved)
    except (RuntimeError, ValueError, KeyError) as error:
        raise Error(f"{whose}: {name} does not fit what it was trained with: {error}") from None


def close_run(run, pid):
    if os.getpid() == pid:
        run.close()


def check_parts(job, net, optimizer, state):
    def require(is_right, name, wanted, given):
        if not is_right:
            raise ConfigError(f"{name}: must be {wanted}, got {given}")

    require(isinstance(job, Job), "job", "a satrap.Job", type(job).__name__)
    require(isinstance(net, torch.nn.Module), "net", "a torch.nn.Module", type(net).__name__)
    for method in ("step", "zero_grad", "state_dict", "load_state_dict"):
        require(hasattr(optimizer, method), "optimizer", "a torch.optim.Optimizer", type(optimizer).__name__)
    for name, part in state.items():
        require(hasattr(part, "state_dict") and hasattr(part, "load_state_dict"), f"state['{name}']",
                "an object with state_dict and load_state_dict", type(part).__name__)
    for name, parameter in net.named_parameters():
        require(parameter.device.type == "cpu", f"net: parameter '{name}'", "on the CPU, where nets are trained so far",
                parameter.device)


def check_loss(loss, batch):
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape = list(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise Error(f"loss: must be a tensor of one number, such as losses.mean(), got {shape}")
    if not loss.requires_grad:
        raise Error(f"loss: nothing that is trained has a part in the loss of step {batch.step}: it has no gradient")
