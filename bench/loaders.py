#!/usr/bin/env python3
"""CPU time per row, of a rank and of its loaders: a logistic regression on JSON lines or on Criteo's TSV, whose rows
are read by the rank, by one loader or by two, in turn. Digests must be equal. With --loader-cpu each loader has no more
than that part of a CPU (a cgroup, so root alone may), as on a machine short of CPUs: then the wall time tells how far
reading was the limit.

  bench/loaders.py [--bin-dir build/release/bin] [--rows 400000] [--rounds 5] [--format json|criteo] [--loader-cpu 0.25]
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

NUMBERS = [f"I{i}" for i in range(1, 14)]
IDS = [f"C{i}" for i in range(1, 27)]
SCHEMAS = {"criteo": "criteo", "json": "{numeric: [I1..I13], features: [C1..C26]}"}
JOB = """\
seed: 7
device: cpu
data: {{schema: {schema}, train: {rows}, batch_size: 8192, reader_threads: 1}}
model: {{type: logistic}}
train: {{deterministic: true, threads: 1, report_every: 1000 steps}}
checkpoint: {{every: never}}
"""


def write_json(tsv, path):
    with open(tsv) as source, open(path, "w") as out:
        for line in source:
            fields = line.rstrip("\n").split("\t")
            row = {"label": int(fields[0])} | {n: int(v) for n, v in zip(NUMBERS, fields[1:14]) if v}
            out.write(json.dumps(row | {n: v for n, v in zip(IDS, fields[14:]) if v}) + "\n")


def cpu_s(process):
    """Waits for its end."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.args
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def limited(processes, cpus):
    """Each of the processes has so much of a CPU, in periods of 10 ms; 0: no limit."""
    groups = []
    is_v2 = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    try:
        for process in processes if cpus else []:
            group = pathlib.Path("/sys/fs/cgroup", "" if is_v2 else "cpu", f"satrap-bench-{process.pid}")
            group.mkdir()
            groups.append(group)
            quota = int(10_000 * cpus)
            if is_v2:
                (group / "cpu.max").write_text(f"{quota} 10000")
            else:
                (group / "cpu.cfs_period_us").write_text("10000")
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        for group in groups:
            group.rmdir()  # its process has ended


def measure(satrap, folder, num_loaders, loader_cpu):
    """CPU seconds of the rank and of each loader, seconds of the rank, and the digest."""
    with tempfile.TemporaryDirectory(dir=folder) as place, contextlib.ExitStack() as stack:
        environment = os.environ | {"SATRAP_STORE": f"file://{place}/store", "SATRAP_TOKEN": "a secret of the job"}
        quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        loaders = [subprocess.Popen([satrap, "loader", "--threads", "1"], **quiet) for _ in range(num_loaders)]
        store = pathlib.Path(place, "store")
        while sum(1 for _ in store.glob("loaders%2F*")) < num_loaders:
            time.sleep(0.01)
        stack.enter_context(limited(loaders, loader_cpu))
        began = time.monotonic()
        settings = ["data.loaders.store=job"] if num_loaders else []
        command = [satrap, "train", folder / "job.yaml", f"run_dir={place}/run", *settings]
        rank = cpu_s(subprocess.Popen(command, **quiet))
        seconds = time.monotonic() - began
        for loader in loaders:
            loader.send_signal(signal.SIGTERM)
        each = [cpu_s(loader) for loader in loaders]
        newest = max(pathlib.Path(place, "run", "checkpoints").glob("step-*"))
        verified = subprocess.run([satrap, "checkpoint", "verify", newest], check=True, capture_output=True, text=True)
        return rank, each, seconds, verified.stdout.split("digest")[1].split()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default="build/release/bin")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--format", choices=SCHEMAS, default="json")
    parser.add_argument("--loader-cpu", type=float, default=0)
    options = parser.parse_args()
    satrap = pathlib.Path(options.bin_dir, "satrap").absolute()
    with tempfile.TemporaryDirectory(prefix="satrap-bench-loaders-") as name:
        folder = pathlib.Path(name)
        rows = folder / "rows.tsv"
        subprocess.run([satrap, "data", "generate", "--rows", str(options.rows), "--scale", "0.01", "--out", rows],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if options.format == "json":
            write_json(rows, folder / "rows.jsonl")
            rows = folder / "rows.jsonl"
        (folder / "job.yaml").write_text(JOB.format(schema=SCHEMAS[options.format], rows=rows))
        rounds = [[measure(satrap, folder, count, options.loader_cpu) for count in range(3)] for _ in range(options.rounds)]

    assert len({result[3] for results in rounds for result in results}) == 1, "other digests"
    def us(values):
        return f"{1e6 * statistics.median(values) / options.rows:.2f}"

    for count in range(3):
        results = [results[count] for results in rounds]
        loaders = ", ".join(us([each[i] for _, each, _, _ in results]) for i in range(count)) or "-"
        print(f"{count} loaders: CPU us/row: rank {us([r for r, *_ in results])}, loaders {loaders}; "
              f"wall {statistics.median(s for _, _, s, _ in results):.2f} s")


if __name__ == "__main__":
    main()
