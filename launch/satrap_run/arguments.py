"""The command line: options, their rules, the help."""
import argparse
import dataclasses
import os
import pathlib
import shutil
import sys

USAGE_STATUS = 2  # wrong usage or configuration, as in every program of satrap
MIN_TOKEN_CHARS = 16
MAX_SHARDS = 512  # as `satrap checkpoint reshard` has it
MAX_PROCESSES = 1024  # ranks of a node, loaders of a job
AUTO, GPU = "auto", "gpu"  # of --nproc-per-node

DESCRIPTION = """\
Starts and supervises a satrap job of many processes: N parameter-server shards
(`satrap-ps CONFIG --shard I --shards N`) and M ranks on each node (`satrap train CONFIG`).

  satrap-run job.yaml                                (a rank for each GPU, or one on the CPU)
  satrap-run --ps 2 --nproc-per-node 2 job.yaml      (--ps sets embedding.store=ps)
  satrap-run --loaders 2 job.yaml                    (processes that read for the ranks)
  satrap-run --ps 2 --nproc-per-node 2 --max-restarts 3 job.yaml train.epochs=2 -- --overwrite
  satrap-run --ps 2 --nproc-per-node 2 train.py --lr 0.1       (each rank runs a program in Python)
"""

EPILOG = """\
ranks and GPUs
  Each rank of a node has a GPU of its own, by its LOCAL_RANK, unless it sees only one. `auto` starts a
  rank for each GPU if the job is trained on them (`device: cuda`, or `auto` where the job can run on
  what is there), else one; `gpu` does so for any job, and fails where there is none. `satrap doctor`
  shows the GPUs; CUDA_VISIBLE_DEVICES chooses among them.

output
  Lines of all processes appear on standard error, each after the name of its process; rank 0's
  standard output passes through to standard output. DIR/attempt-0/rank-0.log, .../shard-1.log hold
  everything that one process wrote. Standard input of all processes is empty.

failures
  A process that ends with a status other than 0, or a shard that ends while ranks run, ends the
  attempt: all others get SIGTERM, and SIGKILL after 3 s. Then the next attempt starts with
  `train --resume`, from the last checkpoint, at most --max-restarts times, each after a longer wait
  (--restart-delay). Status 2, a wrong configuration, is never retried. --resume, --resume-from and
  --overwrite after `--` apply to attempt 0 only; --accept-changed-data is for all. A rank that hangs
  after rank 0 has finished is killed after --grace; the job is complete nevertheless. A process that
  is stopped (SIGSTOP) for longer than --grace is killed, which counts as a failure.

loaders
  --loaders N starts N processes of `satrap loader`, which read and parse the training data for the
  ranks (data.loaders.store=job). One that ends is started again after a second, and is no failure:
  the others read its rows meanwhile. To read on other machines, serve a store with `satrap store`,
  start `satrap loader --store URL` there, and write data.loaders.store: URL instead.

stopping
  On Ctrl-C or SIGTERM ranks get the signal, write a checkpoint and end; then shards end. Between two
  attempts the job ends at once. A second signal kills everything at once. If the launcher itself is
  killed, its processes die with it.

exit status
  0 if all ranks have finished, or rank 0 has and others hang; 128 + signal if stopped by a signal;
  2 for wrong usage or configuration; otherwise the status of the process that failed first
  (128 + signal if it was killed).

several nodes
  Start satrap-run once on each, with the same arguments except for --node-rank, and with the same
  secret in SATRAP_TOKEN. The launchers meet at --master-addr:--master-port, in a private network.
  Shards and ranks listen on the interface that reaches node 0, or on SATRAP_INTERFACE.
    export SATRAP_TOKEN=...       # for example: head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n'
    satrap-run --ps 4 --nproc-per-node 2 --nnodes 2 --node-rank I --master-addr A --master-port P job.yaml
  launch/slurm/satrap.sbatch does this under Slurm, launch/kubernetes/job.yaml under Kubernetes.

a program in Python (satrap.Trainer)
  CONFIG ends in .py: each rank runs it with this launcher's Python, and what follows is for the
  program. Its job is where the program says; shards learn from rank 0 what their tables are. After
  a restart its trainer resumes by itself. Log files are in ./logs.

ranks started by torchrun, Slurm or Kubernetes
  --ps-only starts only the shards and prints the variables that ranks need; for ranks of a program
  in Python (torchrun train.py) CONFIG is left out:
    eval "$(satrap-run --ps-only --ps 2 job.yaml &)"
    torchrun --no-python --nproc-per-node 2 satrap train job.yaml
    kill $SATRAP_RUN_PID
  For ranks on other machines add --master-addr, this machine's address in the private network.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        if message.startswith("unrecognized arguments"):
            message += "; flags of `satrap train` go after `--`"
        print(f"error: {message}; see `satrap-run --help`", file=sys.stderr)
        raise SystemExit(USAGE_STATUS)


@dataclasses.dataclass
class Options:
    config: str | None  # None: shards learn it from rank 0
    settings: list  # key.path=value
    train_flags: list  # what follows `--`
    script: list  # a program in Python and its arguments, in place of a configuration
    ps: int | None  # None until complete(): not given
    nproc: int | str  # AUTO or GPU until complete()
    nnodes: int
    node_rank: int
    master_addr: str | None
    master_port: int
    join_timeout: float
    max_restarts: int
    restart_delay: float
    grace: float
    log_dir: str | None
    bin_dir: str | None
    ps_workers: int | None
    loaders: int  # of the job, over all nodes
    loader_threads: int | None
    ps_only: bool
    token: str | None  # from the environment
    interface: str | None  # where processes listen, SATRAP_INTERFACE; None: their default
    train_program: str
    ps_program: str

    @property
    def world_size(self):
        return self.nnodes * self.nproc

    def shape(self):
        """What the launchers of all nodes must agree on."""
        return {"--nnodes": self.nnodes, "--nproc-per-node": self.nproc, "--ps": self.ps,
                "--loaders": self.loaders, "--max-restarts": self.max_restarts, "--ps-only": self.ps_only}

    def local_shards(self):
        """Shards are assigned to the nodes round-robin."""
        return range(self.node_rank, self.ps, self.nnodes)

    def local_loaders(self):
        """As shards."""
        return range(self.node_rank, self.loaders, self.nnodes)


def count(minimum, maximum=None):
    def parse(text):
        number = int(text)
        if number < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {number}")
        if maximum is not None and number > maximum:
            raise argparse.ArgumentTypeError(f"must be at most {maximum}, got {number}")
        return number
    parse.__name__ = "number"  # argparse's messages show this name
    return parse


def ranks(text):
    if text in (AUTO, GPU):
        return text
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number, auto or gpu, got '{text}'")
    return count(1, MAX_PROCESSES)(text)


def seconds(text):
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be 0 or more seconds, got {text}")
    return number


def make_parser():
    parser = Parser(
        prog="satrap-run", allow_abbrev=False, description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="satrap-run [options] CONFIG [key.path=value ...] [-- flags of satrap train]\n"
              "       satrap-run [options] PROGRAM.py [arguments of the program]")
    parser.add_argument("config", metavar="CONFIG", nargs="?",
                        help="the job, a YAML file; or a program in Python that trains it")
    parser.add_argument("settings", metavar="key.path=value", nargs="*",
                        help="each overrides the file, for shards and ranks")
    add = parser.add_argument
    add("--ps", type=count(0, MAX_SHARDS), metavar="N",
        help="parameter-server shards of the job, over all nodes (default: one per node if auto or gpu has "
             "started several ranks, which need them; else 0)")
    add("--nproc-per-node", type=ranks, default=AUTO, metavar="M",
        help="ranks per node: a number; gpu, as many as GPUs; auto, as many if the job is trained on them, else 1 "
             "(default auto)")
    add("--max-restarts", type=count(0), default=0, metavar="R",
        help="how often a failed job is restarted (default 0)")
    add("--restart-delay", type=seconds, default=1.0, metavar="S",
        help="seconds before the first restart; doubled, up to 30, before each further one, until an attempt "
             "has run for a minute (default 1)")
    add("--grace", type=seconds, default=60.0, metavar="S",
        help="seconds that ranks have to end, after Ctrl-C or SIGTERM (they write a checkpoint) and "
             "after rank 0 has finished; seconds that a process may be stopped by SIGSTOP (default 60)")
    add("--log-dir", metavar="DIR",
        help="log files (default: logs in the job's run_dir; of a job in a store, in runs/ and the last name of its "
             "URL)")
    add("--bin-dir", metavar="DIR",
        help="folder of satrap and satrap-ps (default: this program's folder, its build, or PATH)")
    add("--ps-workers", type=count(1), metavar="W", help="worker threads of a shard")
    add("--loaders", type=count(0, MAX_PROCESSES), default=0, metavar="N",
        help="processes that read the training data for the ranks, over all nodes (default 0: the ranks read)")
    add("--loader-threads", type=count(1), metavar="T",
        help="threads of a loader that parse, for each rank (default: the CPUs, divided among the ranks)")
    add("--ps-only", action="store_true",
        help="start only shards; print the variables for ranks started by others")
    add("--nnodes", type=count(1), default=1, metavar="K", help="nodes of the job (default 1)")
    add("--node-rank", type=count(0), default=0, metavar="I", help="number of this node, from 0")
    add("--master-addr", metavar="A", help="address of node 0 in the private network")
    add("--master-port", type=count(1, 65535), default=29400, metavar="P",
        help="port at which the launchers meet (default 29400)")
    add("--join-timeout", type=seconds, default=300.0, metavar="S",
        help="seconds to wait for the launchers of the other nodes, and for the name of node 0 (default 300)")
    return parser


def find_program(name, bin_dir, parser):
    beside = pathlib.Path(sys.argv[0]).absolute().parent
    checkout = pathlib.Path(__file__).resolve().parents[2]
    places = [pathlib.Path(bin_dir)] if bin_dir else [beside, checkout / "build/release/bin"]
    for place in places:
        path = place / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    found = None if bin_dir else shutil.which(name)
    if found is None:
        where = ", ".join(map(str, places)) + ("" if bin_dir else " or PATH")
        parser.error(f"no program '{name}' in {where} (--bin-dir)")
    return found


def parse(argv, environment):
    """Parses a command line; a wrong one raises SystemExit(2) after a line `error: …`."""
    parser = make_parser()
    argv, script = split_off_script(argv)
    split = argv.index("--") if "--" in argv else len(argv)
    given = parser.parse_intermixed_args(argv[:split])
    if script and (given.config is not None or split < len(argv)):
        parser.error(f"{script[0]}: a program in Python stands in place of a configuration, and after all options of satrap-run")
    if script and given.ps_only:
        parser.error(f"--ps-only starts no ranks, and {script[0]} is for them; leave it out, and start it by torchrun")
    if given.config is None and not script and not given.ps_only:
        parser.error("the following arguments are required: CONFIG")
    for setting in given.settings:
        if "=" not in setting and not setting.startswith("~"):
            parser.error(f"'{setting}': neither an option nor key.path=value")
    if given.ps_only and not given.ps:
        parser.error("--ps-only needs --ps N with at least one shard")
    if given.ps_only and given.max_restarts > 0:
        parser.error("--max-restarts restarts ranks, and --ps-only has none: ranks would not find new shards")
    if given.ps_only and given.loaders > 0:
        parser.error("--loaders read for the ranks, and --ps-only has none: start `satrap loader` beside the ranks")
    if given.loader_threads is not None and given.loaders == 0:
        parser.error(f"--loader-threads {given.loader_threads}: there are no loaders; --loaders N starts some")
    if given.node_rank >= given.nnodes:
        parser.error(f"--node-rank {given.node_rank}: nodes are 0 to {given.nnodes - 1} (--nnodes)")
    token = environment.get("SATRAP_TOKEN") or None
    if given.nnodes > 1:
        if given.master_addr is None:
            parser.error("--nnodes above 1 needs --master-addr, the address of node 0")
        if token is None:
            parser.error("several nodes need the same secret in the environment variable SATRAP_TOKEN")
    if token is not None and len(token) < MIN_TOKEN_CHARS:
        parser.error(f"SATRAP_TOKEN has {len(token)} characters: too easy to guess, use {MIN_TOKEN_CHARS}")
    return Options(
        config=given.config, train_flags=argv[split + 1:], script=script,
        settings=[] if given.config is None else with_loaders(with_shards(given.settings, given.ps), given.loaders),
        ps=given.ps, nproc=0 if given.ps_only else given.nproc_per_node, nnodes=given.nnodes,
        node_rank=given.node_rank, master_addr=given.master_addr, master_port=given.master_port,
        join_timeout=given.join_timeout, max_restarts=given.max_restarts,
        restart_delay=given.restart_delay, grace=given.grace,
        interface=environment.get("SATRAP_INTERFACE") or None, log_dir=given.log_dir, bin_dir=given.bin_dir,
        ps_workers=given.ps_workers, loaders=given.loaders, loader_threads=given.loader_threads,
        ps_only=given.ps_only, token=token,
        train_program=find_program("satrap", given.bin_dir, parser),
        ps_program=find_program("satrap-ps", given.bin_dir, parser) if given.ps else "")


def split_off_script(argv):
    """The words for the launcher, and a program in Python with its arguments."""
    end = argv.index("--") if "--" in argv else len(argv)
    first = next((number for number, word in enumerate(argv[:end]) if word.endswith(".py")), len(argv))
    return argv[:first], argv[first:]


def with_shards(settings, ps):
    """Shards are started for rows to live on them; whoever wants something else says so."""
    return [*(["embedding.store=ps"] if ps else []), *settings]


def with_loaders(settings, loaders):
    """As shards: loaders are started to be read from."""
    return [*(["data.loaders.store=job"] if loaders else []), *settings]


def complete(options, nproc):
    """The options for this many ranks on each node."""
    if options.ps is not None:
        return dataclasses.replace(options, nproc=nproc)
    ps = options.nnodes if options.nproc in (AUTO, GPU) and nproc * options.nnodes > 1 else 0
    return dataclasses.replace(
        options, nproc=nproc, ps=ps, settings=options.settings if options.script else with_shards(options.settings, ps),
        ps_program=find_program("satrap-ps", options.bin_dir, make_parser()) if ps else "")
