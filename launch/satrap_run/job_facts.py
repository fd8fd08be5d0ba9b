"""What the program satrap says about a job and this machine, before anything is started."""
import dataclasses
import pathlib
import re
import subprocess
import sys

from .arguments import AUTO, GPU, USAGE_STATUS


@dataclasses.dataclass
class JobFacts:
    run_dir: str | None  # None: the program cannot say
    device: str | None  # cpu or cuda: what `auto` is on this machine

    @property
    def log_dir(self):
        """The folder logs in the job's run_dir."""
        return pathlib.Path(self.run_dir or "") / "logs"


def ask(options, *command):
    return subprocess.run([options.train_program, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def job_facts(options):
    """A wrong configuration ends the launcher here, with one error for all processes."""
    if options.config is None:
        return JobFacts(run_dir=None, device=None)
    done = ask(options, "config", "dump", options.config, *options.settings)
    if done.returncode == USAGE_STATUS:
        sys.stderr.write(done.stderr)
        raise SystemExit(USAGE_STATUS)
    text = done.stdout if done.returncode == 0 else ""
    return JobFacts(run_dir=run_dir_of(text), device=value_of("device", text))


def run_dir_of(yaml):
    """That of this machine: of a job in a store, where it would be by default. A relative one is in the folder that the
    configuration names."""
    run_dir = value_of("run_dir", yaml)
    if run_dir is None:
        return None
    if "://" in run_dir:
        run_dir = f"runs/{run_dir.rstrip('/').rpartition('/')[2]}"
    return str(pathlib.Path(value_of("folder", yaml) or "") / run_dir)


def value_of(key, yaml):
    """Of a key of the first level; None if it has none."""
    found = re.search(rf"^{key}: *(.+?) *$", yaml, re.M)
    if found is None:
        return None
    text = found.group(1)
    if text[0] == text[-1] and text[0] in "'\"" and len(text) > 1:
        text = text[1:-1]
    return text


def count_ranks(options, facts):
    """The ranks of this node. Where they are to be as many as GPUs and there are none, the launcher ends."""
    if options.nproc == GPU or (options.nproc == AUTO and facts.device == "cuda"):
        return count_gpus(options)
    return 1 if options.nproc == AUTO else options.nproc


def count_gpus(options):
    done = ask(options, "doctor", "--num-gpus")
    if done.returncode == 0 and done.stdout.strip().isdecimal():
        return int(done.stdout)
    why = done.stderr.strip().removeprefix("error: ") or f"`{options.train_program} doctor --num-gpus` does not tell"
    remedy = "device=cpu" if options.nproc == AUTO else "--nproc-per-node with a number"
    print(f"error: --nproc-per-node {options.nproc}: {why}; or write {remedy}", file=sys.stderr)
    raise SystemExit(1)
