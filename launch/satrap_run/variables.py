"""Command line and environment of each process of a job."""
import dataclasses
import math
import os
import sys

ATTEMPT_0_FLAGS = ("--resume", "--overwrite", "--resume-from")


@dataclasses.dataclass
class Attempt:
    """The settings of all processes of an attempt; node 0 makes them, the others get them from there."""
    number: int
    run_id: str
    store: str  # a URL
    master_addr: str
    master_port: int


def shard_command(options, shard):
    workers = [] if options.ps_workers is None else ["--workers", str(options.ps_workers)]
    config = [] if options.config is None else [options.config]
    return [options.ps_program, *config, "--shard", str(shard), "--shards", str(options.ps),
            *workers, *options.settings]


def loader_command(options):
    threads = [] if options.loader_threads is None else ["--threads", str(options.loader_threads)]
    return [options.train_program, "loader", *threads]


def rank_command(options, attempt):
    if options.script:
        return [sys.executable, *options.script]
    flags = options.train_flags
    if attempt > 0:
        flags = [*later_flags(flags), "--resume"]
    return [options.train_program, "train", options.config, *options.settings, *flags]


def later_flags(flags):
    """The flags without those for the start of attempt 0."""
    kept = []
    words = iter(flags)
    for word in words:
        if word.split("=")[0] not in ATTEMPT_0_FLAGS:
            kept.append(word)
        elif word == "--resume-from":
            next(words, None)  # its value
    return kept


def launcher_variables(options):
    """By which a process knows a signal of its launcher, and how long to serve after one of somebody else."""
    return {"SATRAP_RUN_PID": str(os.getpid()), "SATRAP_RUN_GRACE": str(math.ceil(options.grace))}


def shard_variables(options, attempt, token):
    values = {"SATRAP_STORE": attempt.store, "SATRAP_TOKEN": token,
              "SATRAP_ATTEMPT": str(attempt.number), "TORCHELASTIC_RUN_ID": attempt.run_id}
    if options.interface is not None:
        values["SATRAP_INTERFACE"] = options.interface
    return values


def rank_variables(options, attempt, token, local_rank):
    """torchrun's variables and satrap's. A c10d store opened at MASTER_PORT is hosted by rank 0."""
    rank = options.node_rank * options.nproc + local_rank
    values = {
        "RANK": rank, "LOCAL_RANK": local_rank, "GROUP_RANK": options.node_rank,
        "WORLD_SIZE": options.world_size, "LOCAL_WORLD_SIZE": options.nproc,
        "GROUP_WORLD_SIZE": options.nnodes,
        "ROLE_NAME": "default", "ROLE_RANK": rank, "ROLE_WORLD_SIZE": options.world_size,
        "MASTER_ADDR": attempt.master_addr, "MASTER_PORT": attempt.master_port,
        "TORCHELASTIC_RESTART_COUNT": attempt.number,
        "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
        "TORCHELASTIC_USE_AGENT_STORE": False,
        "SATRAP_SHARDS": options.ps,
        "SATRAP_LOADERS": options.loaders,
    }
    # NCCL, which meets before GPUs exchange anything, listens where it likes, to anybody.
    if options.nnodes == 1 and "NCCL_SOCKET_IFNAME" not in os.environ:
        values["NCCL_SOCKET_IFNAME"] = "lo"
    return ({name: str(value) for name, value in values.items()}
            | shard_variables(options, attempt, token))
