"""The network that `model.path` of a job names: net.py:Net."""
import importlib.machinery
import importlib.util
import pathlib
import sys

import torch

from .errors import ConfigError


def make_network(job, path):
    """The torch.nn.Module that the class or function of `path` makes of the job. The file is code, which this runs."""
    file, _, name = path.rpartition(":")
    if not pathlib.Path(file).is_file():
        raise ConfigError(f"model.path: '{path}': there is no file '{file}'; name a file in Python and a class or function "
                          "in it, such as net.py:Net")
    module = called(path, f"'{file}'", lambda: run_file(file))
    make = getattr(module, name, None)
    if not callable(make):
        own = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        raise ConfigError(f"model.path: '{path}': '{file}' has no class or function '{name}'; it has "
                          f"{', '.join(own) or 'none'}")
    net = called(path, f"{name}(job)", lambda: make(job))
    if not isinstance(net, torch.nn.Module):
        raise ConfigError(f"model.path: '{path}': {name}(job) must return a torch.nn.Module, got {type(net).__name__}")
    if not any(parameter.requires_grad for parameter in net.parameters()):
        raise ConfigError(f"model.path: '{path}': {name}(job) has no parameters to train")
    for key, parameter in net.named_parameters():
        if parameter.device.type != "cpu":
            raise ConfigError(f"model.path: '{path}': parameter '{key}' is on {parameter.device}; networks in Python are "
                              "trained on the CPU so far")
    return net


def run_file(file):
    """The file as a module. It finds what is beside it, as `python file` would."""
    path = pathlib.Path(file).resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = f"network_in_{path.stem}"
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(path)))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(path, what, call):
    try:
        return call()
    except Exception as error:
        raise ConfigError(f"model.path: '{path}': {what} raised {type(error).__name__}: {error}") from error
