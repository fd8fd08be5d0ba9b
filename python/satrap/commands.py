"""Commands of satrap that run in this process, where networks of the model `python` are computed."""
import importlib
import json
import os
import signal
import sys
import traceback

from .errors import ConfigError, Error
from .job import Job, _engine

SIGNALS = {signal.SIGINT, signal.SIGTERM}


def main(words):
    """`python -m satrap`: the program `satrap`, with networks in Python. Returns the exit status."""
    for number in SIGNALS:  # those that are ignored stay so
        if signal.getsignal(number) is signal.default_int_handler:
            signal.signal(number, signal.SIG_DFL)
    run = _engine.Run(words, None)
    # As in the program, the thread of the command takes them: this thread and those of PyTorch do not.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        serve(run, lambda run: network_of_job(run, trains=words[0] == "train"))
        return run.status
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except Error as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        for line in filter(None, str(error).split("\n")):
            print(f"error: {_engine.printable(line)}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except Exception:
        traceback.print_exc()
        return 1


def network_of_job(run, trains):
    """What computes the network that the job of a command names."""
    job = Job._of(run.job)
    if not job.model_path:
        raise ConfigError("model: 'python' has no path: it is the network of a program, which alone computes it; run the "
                          "program, or name a class or function, such as model.path=net.py:Net")
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Error("model: 'python' is computed by PyTorch, which is not installed: pip install torch") from None
    return importlib.import_module(".command_network", __package__).of_job(run, job, trains)


def serve(run, make):
    """Computes what the command asks for until it has ended, and raises its error. make(run): a CommandNetwork."""
    pid = os.getpid()
    network = None
    try:
        call = run.next_call()
        if call is not None:
            network = make(run)
            call.num_parameters = network.num_parameters
            run.answer()
            network.serve()
        run.result()
    except BaseException as error:
        if os.getpid() == pid:
            run.fail(f"{type(error).__name__}: {error}")
            run.close()
        raise


def evaluate(job, net, *, checkpoint=None, data=(), predict=None, accept_changed_config=False):
    """The metrics of a checkpoint on rows with labels, a dict as `eval` of summary.json: what `satrap eval` prints.

    job          the satrap.Job that the checkpoint was trained with
    net          a net of the same class, which gets the checkpoint's parameters and buffers
    checkpoint   a checkpoint or the folder of a run, as the option of the command; default: the job's run_dir
    data         files or globs of rows; default: the job's evaluation data
    predict      as that of satrap.Trainer
    accept_changed_config   as the option of the command
    """
    run = use("eval", job, net, checkpoint, predict, accept_changed_config, [f"--data={file}" for file in listed(data)])
    if run.evaluation:
        return json.loads(run.evaluation)
    raise Error("no row of the evaluation data counts in a metric")


def predict(job, net, out, *, checkpoint=None, data=(), keep=(), predict=None, accept_changed_config=False):
    """Writes the predictions of a checkpoint to the file `out`, as `satrap predict` does: a line for each row.

    keep         columns of the data to write before the prediction
    The others are those of satrap.evaluate; rows need no labels.
    """
    options = [*(f"--data={file}" for file in listed(data)), *(f"--keep={column}" for column in listed(keep))]
    use("predict", job, net, checkpoint, predict, accept_changed_config, [f"--out={os.fspath(out)}", *options])


def export(job, net, folder, *, checkpoint=None, network="pt2", rows="npy", overwrite=False, predict=None,
           accept_changed_config=False):
    """Writes a checkpoint to a folder, as `satrap export` does: the net, the rows of the tables, and export.json.

    network      the format of the net: "pt2" of torch.export, or "onnx", for which PyTorch needs the package onnxscript
    rows         that of the rows, "npy" or "safetensors"
    overwrite    replaces an earlier export
    The others are those of satrap.evaluate. satrap.Scorer scores rows with the folder.
    """
    options = [f"--out={os.fspath(folder)}", f"--network={network}", f"--format={rows}"]
    use("export", job, net, checkpoint, predict, accept_changed_config, options + ["--overwrite"] * overwrite)


def use(command, job, net, checkpoint, predict, accept_changed_config, options):
    """Runs a command with a checkpoint of a net. Returns its run."""
    if not isinstance(job, Job):
        raise ConfigError(f"job: must be a satrap.Job, got {type(job).__name__}")
    torch = importlib.import_module("torch")
    if not isinstance(net, torch.nn.Module):
        raise ConfigError(f"net: must be a torch.nn.Module, got {net if isinstance(net, type) else type(net).__name__}")
    words = [command, f"--checkpoint={os.fspath(checkpoint or job.run_dir)}", *options]
    run = _engine.Run(words + ["--accept-changed-config"] * bool(accept_changed_config), job._engine)
    network = importlib.import_module(".command_network", __package__)
    serve(run, lambda run: network.CommandNetwork(run, job, net, predict=predict))
    if run.status != 0:
        raise Error(f"satrap {command}: ended with the status {run.status}")
    return run


def listed(names):
    """One name, or several."""
    return [os.fspath(names)] if isinstance(names, (str, os.PathLike)) else list(map(os.fspath, names))
