#!/usr/bin/env python3
"""Whole training jobs on a GPU: do they end with the bits of the CPU, and how fast are they?

    bench/gpu_trainer.py same PROGRAM         small deterministic jobs: each digest beside that of the CPU
    bench/gpu_trainer.py rates PROGRAM        Criteo-shaped jobs: examples/s with caches of part of the rows
    bench/gpu_trainer.py ranks PROGRAM        the same jobs over a shard: by one rank, and by two that share a GPU
    bench/gpu_trainer.py peers PROGRAM        the same shape from a TSV in memory, in turn with PyTorch and FBGEMM
    bench/gpu_trainer.py --small ...          with less of everything, to try it without a GPU

PROGRAM is satrap of a bundle of gpu_bundle.sh, with satrap-ps and trainer_step_bench beside it. Jobs of `same` run with the dense
network on the CPU (model.engine: native), which gives the bits of the CPU, and on the GPU (graph), which gives its metrics
to rounding, if PROGRAM can open PyTorch's libraries: those of the python3 in PATH are offered to it. One line per job. Exit
status 1: a digest or a metric differs, or a job failed.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SAME = """
device: cpu
seed: 7
data: {format: synthetic, batch_size: 256, shuffle_rows: 2000,
       synthetic: {rows: ROWS, eval_rows: 20000, cardinalities: [100, 1000, 20000, 50], min_ids: [1, 0, 1, 1],
                   max_ids: [1, 4, 2, 1], num_numeric: 4}}
tables:
  default: {dim: 16, optimizer: {type: adam, lr: 0.01}}
  C2: {dim: 6, optimizer: {type: rowwise_adagrad, lr: 0.02}}
  C3: {dim: 32, weights: bf16, optimizer: {type: adagrad, lr: 0.02}}
model: {type: ffnn, top: [32]}
train: {mode: sync, deterministic: true, precision: fp32, epochs: 2}
checkpoint: {every: 20 steps, keep: 2}
"""
RATES = """
device: cpu
seed: 7
data: {format: synthetic, batch_size: BATCH, synthetic: {rows: 1000000000, eval_rows: 0, scale: SCALE}}
tables: {default: {dim: 64, optimizer: {type: adagrad, lr: 0.02}}}
model: {type: dlrm, bottom: [64], top: [64]}
train: {mode: hybrid, staleness: 4, precision: fp32, max_steps: STEPS, report_every: 10 steps}
checkpoint: {every: never}
"""
PEERS = """
device: auto
seed: 7
data: {schema: criteo, train: {path: TSV}, batch_size: 4096}
tables: {default: {dim: 64, optimizer: {type: adagrad, lr: 0.02}}}
model: {type: dlrm, bottom: [64], top: [64]}
train: {mode: hybrid, staleness: 4, precision: fp32}
"""
PYTORCH = [("rows on the GPU", "gpu"), ("rows on the host", "host")]
FBGEMM = [("rows on the GPU", "fbgemm"), ("cache of 25 % of the rows", "fbgemm_cache")]
MODES = [["train.mode=sync"], ["train.mode=hybrid", "train.staleness=0"],
         ["train.mode=hybrid", "train.staleness=4", "train.staleness_schedule=constant"]]


class Failed(Exception):
    pass


def torch_libraries():
    """The folder of libtorch in PyTorch's package, or "" if there is none."""
    code = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"
    found = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    return str(pathlib.Path(found).parent / "lib") if found else ""


def environment():
    paths = [path for path in (os.environ.get("LD_LIBRARY_PATH", ""), torch_libraries()) if path]
    return os.environ | ({"LD_LIBRARY_PATH": ":".join(paths)} if paths else {})


ENVIRONMENT = environment()


def engines(program):
    """What can compute the dense network."""
    page = subprocess.run([program, "doctor"], capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout
    told = next((line for line in page.splitlines() if re.match("gpu torch|cuda +off", line)), "no line of GPUs")
    if re.match("gpu torch +(?!off)", told):
        return ["native", "graph"]
    print(f"NOT RUN with model.engine=graph: {told}")
    return ["native"]


def train(program, config, *settings, launcher=(), env=ENVIRONMENT):
    """The job's summary and the digest of its last checkpoint ("" without one). `launcher`: what starts the job instead
    of `PROGRAM train`."""
    with tempfile.TemporaryDirectory() as folder:
        path, run = pathlib.Path(folder, "job.yaml"), pathlib.Path(folder, "run")
        path.write_text(config)
        done = subprocess.run([*(launcher or (program, "train")), path, f"run_dir={run}", *settings], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, env=env)
        if done.returncode != 0:
            raise Failed(f"{' '.join(settings)}: status {done.returncode}: {done.stderr[-500:].strip()}")
        require_registered(done.stderr)
        summary = json.loads((run / "summary.json").read_text())
        checkpoints = sorted((run / "checkpoints").glob("step-*"))
        if not checkpoints:
            return summary, ""
        text = subprocess.run([program, "checkpoint", "verify", checkpoints[-1]], capture_output=True, text=True,
                              check=True, env=ENVIRONMENT).stdout
        return summary, re.search(r"digest ([0-9a-f]+)", text).group(1)


def require_registered(said):
    """Figures of rows that were staged after all must not pass for those of registered ones."""
    if "rows are staged" in said:
        raise Failed(said[-500:].strip())


def same(program, small):
    config = SAME.replace("ROWS", "2000" if small else "100000")
    differ = 0
    for engine in engines(program):
        for mode in MODES[2:] if small else MODES:
            mode = [*mode, f"model.engine={engine}"]
            cpu, expected = train(program, config, *mode)
            for memory in ("200KiB", "16MiB"):
                gpu, found = train(program, config, *mode, "device=cuda", f"embedding.cache.memory={memory}")
                is_same = found == expected and cpu["train"] == gpu["train"]
                is_near = engine == "graph" and all(abs(cpu[part]["auc"] - gpu[part]["auc"]) < 0.001
                                                    for part in ("train", "eval"))
                differ += not is_same and not is_near
                print(f"{' '.join(mode)}, cache of {memory}, hits {gpu['cache']['hit_rate']:.1%}: digest {found}, auc "
                      f"{gpu['eval']['auc']:.5f}: " + ("as on the CPU" if is_same else
                      f"{'near' if is_near else 'DIFFERS from'} {expected}, {cpu['eval']['auc']:.5f} of the CPU"), flush=True)
    if differ:
        raise Failed(f"{differ} jobs differ")


def config_of_rates(small):
    scale, steps, batch = ("0.0001", "3", "256") if small else ("0.1", "300", "4096")
    return RATES.replace("SCALE", scale).replace("STEPS", steps).replace("BATCH", batch)


def rates(program, small):
    config = config_of_rates(small)
    cpu, _ = train(program, config, "model.engine=native")
    print(json.dumps({"device": "cpu", "examples_per_second": cpu["examples_per_second"], "rows": cpu["rows"]}))
    row_bytes = 64 * 4 * 2 + 64  # weights and states, and what a cache keeps beside them
    engine = engines(program)[-1]
    for percent, host_rows in ((25, "staged"), (25, "registered"), (120, "staged"), (400, "staged")):
        gpu, _ = train(program, config, "device=cuda", f"model.engine={engine}", f"embedding.cache.host_rows={host_rows}",
                       f"embedding.cache.memory={max(1 << 20, cpu['rows'] * row_bytes * percent // 100)}B")
        print(json.dumps({"device": "cuda", "engine": engine, "cache_percent": percent, "host_rows": host_rows,
                          "hit_rate": gpu["cache"]["hit_rate"], "examples_per_second": gpu["examples_per_second"],
                          "seconds": gpu["seconds"], "stage_seconds": gpu["stage_seconds"],
                          "device_seconds": gpu.get("device_seconds")}), flush=True)


def ranks(program, small):
    """Both ranks see one GPU, which NCCL refuses, so that they exchange in the hosts' memory."""
    config = config_of_rates(small)
    bundle = pathlib.Path(program).resolve().parents[1]
    env = ENVIRONMENT | {"CUDA_VISIBLE_DEVICES": "0", "SIMT_DEVICES": "1"}  # of the executor, in a bundle for no GPU
    for number in (1, 2):
        launcher = ["python3", bundle / "launch/satrap-run", "--bin-dir", bundle / "bin", "--ps", "1",
                    "--nproc-per-node", str(number)]
        found, _ = train(program, config, "device=cuda", f"model.engine={engines(program)[-1]}",
                         f"embedding.cache.memory={1 << (20 if small else 33)}B", launcher=launcher, env=env)
        print(json.dumps({"ranks": number, "hit_rate": found["cache"]["hit_rate"], "stage_seconds": found["stage_seconds"],
                          "device_seconds": found.get("device_seconds"),
                          "examples_per_second": found["examples_per_second"]}), flush=True)


def why_no_pytorch(modules="pyarrow, torch"):
    """Why pytorch_trainer.py cannot run with the python3 in PATH and these modules, or ""."""
    code = f"import {modules}; assert torch.cuda.is_available(), 'PyTorch sees no GPU'"
    done = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no python3"])[-1]


def line_of(command, what):
    """The JSON line at the end of what a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode != 0:
        raise Failed(f"{what}: status {done.returncode}: {done.stderr[-500:].strip()}")
    require_registered(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def peers(program, small):
    """Rounds of satrap with all rows in its cache, and with a quarter, staged and registered; PyTorch with its rows on the
    GPU and on the host; and FBGEMM with its rows on the GPU, and with a quarter in its cache. The caches' memory is of the
    rows that the TSV has."""
    rows, seconds, rounds = (20_000, "1", 1) if small else (409_600, "4", 3)
    here, row_bytes = pathlib.Path(__file__).parent, 64 * 4 * 2 + 64
    with tempfile.TemporaryDirectory() as folder:
        tsv, config = pathlib.Path(folder, "rows.tsv"), pathlib.Path(folder, "job.yaml")
        subprocess.run([program, "data", "generate", "--rows", str(rows), "--out", tsv, "scale=0.1"], check=True,
                       stdout=subprocess.DEVNULL)
        config.write_text(PEERS.replace("TSV", str(tsv)).replace("4096", "256" if small else "4096"))
        pytorch = ["python3", here / "backend/pytorch_trainer.py", tsv, seconds]
        total, others = None, []
        for peer, modules, places in (("pytorch", "pyarrow, torch", PYTORCH), ("fbgemm", "pyarrow, torch, fbgemm_gpu", FBGEMM)):
            reason = why_no_pytorch(modules)
            if reason:
                print(f"NOT RUN: {peer}: {reason}")
            else:
                others += [(f"{peer}, {name}", place) for name, place in places]
        for turn in range(rounds):
            for name, place in list(others):
                try:
                    found = line_of([*pytorch, place], name)
                except Failed as error:  # its wheel may not be for this GPU
                    print(f"NOT RUN: {error}")
                    others.remove((name, place))
                    continue
                total = found["rows"]
                print(json.dumps({"round": turn, "program": name} | found), flush=True)
            for percent, host_rows in ((120, "staged"), (25, "staged"), (25, "registered")):
                memory = max(1 << 20, (total or rows * 3) * row_bytes * percent // 100)
                name = f"satrap, cache of {percent} % of the rows"
                name += ", host rows registered" if host_rows == "registered" else ""
                step_bench = pathlib.Path(program).parent / "trainer_step_bench"
                found = line_of([step_bench, config, seconds, f"embedding.cache.memory={memory}B",
                                 f"embedding.cache.host_rows={host_rows}"], name)
                print(json.dumps({"round": turn, "program": name} | found), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("what", choices=["same", "rates", "ranks", "peers"])
    parser.add_argument("program")
    given = parser.parse_args()
    try:
        {"same": same, "rates": rates, "ranks": ranks, "peers": peers}[given.what](given.program, given.small)
    except Failed as error:
        sys.exit(f"FAILED: {error}")
