"""Breaks the host's code for a device on purpose, and checks that a job on the executor notices: it must end with another
digest than on the CPU, or not at all, under one of a few schedules. A mutant that leaves two streams without an order must
be reported as their race, under each of them.

Usage: mutants.py BUILD_DIR [PART_OF_NAME]    with a build that has simt/satrap
       mutants.py BUILD_DIR --eighth         an eighth of them; another one after each commit
       mutants.py --table                     the mutants as a table, for README.md in this folder
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "backend")]
from mutants import compile_commands, compile_mutant, folder_of, link_command, run, text_with  # noqa: E402

SEEDS = 8
JOB = """
seed: 7
data:
  format: synthetic
  batch_size: 64
  shuffle_rows: 500
  synthetic: {rows: 3200, eval_rows: 100, cardinalities: [100, 1000, 3000, 50], min_ids: [1, 0, 1, 1],
              max_ids: [1, 4, 2, 1], num_numeric: 4}
tables:
  default: {dim: 8, optimizer: {type: adam, lr: 0.01}}
  C2: {dim: 6, optimizer: {type: adagrad, lr: 0.02}}
  C3: {dim: 8, weights: bf16, optimizer: {type: adagrad, lr: 0.02}}
model: {type: ffnn, top: [16]}
train: {mode: hybrid, staleness: 4, staleness_schedule: constant, deterministic: true, threads: 1, precision: fp32,
        report_every: 10 steps}
checkpoint: {every: 9 steps, keep: 2}
"""
SMALL, LARGE = "embedding.cache.memory=60KiB", "embedding.cache.memory=400KiB"
SAVED = f"{LARGE}, checkpoint.every=1 steps"
REGISTERED = f"{SMALL}, embedding.cache.host_rows=registered"
NATIVE = "model.engine=native"  # the network on the CPU, to which pooled rows and gradients go
ON_CPU = f"{LARGE}, {NATIVE}"
RACE = "race between streams"

# Description, file of src/embedding (or of src/dense: dense/...), old text, new text, settings of the job, sources to compile, perhaps RACE.
MUTANTS = [
    ("dropped wait: pooled rows are read before they have come from the device", "device_columns.cpp",
     "  stream.wait_until_idle();\n  copy_columns", "  copy_columns", ON_CPU, ["device_columns.cpp"]),
    ("dropped copy: the gradient stays in the host's memory", "device_columns.cpp",
     "  device_.copy(copy, padded, bytes_of(num_examples), stream);\n", "", ON_CPU, ["device_columns.cpp"]),
    ("dropped wait: what is missing is read before the device has listed it", "resolve_lists.cpp",
     "stream);\n  stream.wait_until_idle();\n\n  counts_", "stream);\n\n  counts_", SMALL, ["resolve_lists.cpp"]),
    ("dropped wait: the rest of a list is read before it has been copied", "resolve_lists.cpp",
     "lengths_, stream);\n  stream.wait_until_idle();\n}", "lengths_, stream);\n}", SMALL, ["resolve_lists.cpp"]),
    ("dropped wait: rows are pooled before they have come to their slots", "cached_parts.cpp",
     "  arrived_.make_wait(cached_.compute);\n", "", SMALL, ["cached_parts.cpp"], RACE),
    ("dropped wait: a step counts as completed while its update is queued", "completed_steps.cpp",
     "  mark->record(stream);\n", "  static_cast<void>(stream);\n", SMALL, ["completed_steps.cpp"], RACE),
    ("dropped wait: slots whose rows are saved are marked clean at any time", "group_cache.cpp",
     "    device_.mark_clean({view(), changed}, stream_);\n    for (const Key key : list(changed.keys, count)) rows->add_key(key);\n",
     "    for (const Key key : list(changed.keys, count)) rows->add_key(key);\n    device_.mark_clean({view(), changed}, stream_);\n",
     SAVED, ["group_cache.cpp"]),  # a race, unless the planner happens to wait in between
    ("missing pin: rows may leave before their last update", "row_cache.cpp",
     "numbers(step, newest), write_back)) break;",
     "numbers(step, std::min(step - 1, newest + 1)), write_back)) break;", SMALL, ["row_cache.cpp"]),
    ("early reuse: a batch is looked at in memory that the device still reads", "kept_batches.cpp",
     "  exchange(kept, parts);\n  kept_.push_back", "  kept_.push_back", SMALL, ["kept_batches.cpp"]),
    ("wrong stream: rows are pooled on the planner's", "cached_parts.cpp",
     "FloatType::kFp32, out[g]},\n                                cached_.compute);",
     "FloatType::kFp32, out[g]},\n                                cached_.planning);", LARGE,
     ["cached_parts.cpp"], RACE),
    ("wrong stream: fetched rows come to their slots on the planner's", "cached_parts.cpp",
     "scatter(*parts[g], cached_.copies);", "scatter(*parts[g], cached_.planning);", SMALL, ["cached_parts.cpp"], RACE),
    ("wrong stream: rows are updated on the planner's", "cached_parts.cpp",
     "parts[g]->group.optimizer, uploaded},\n                                   cached_.compute);",
     "parts[g]->group.optimizer, uploaded},\n                                   cached_.planning);", LARGE,
     ["cached_parts.cpp"], RACE),
    ("older rows: those on their way to the store are fetched from it", "cached_parts.cpp",
     "    if (found_[i]) continue;\n", "", SMALL, ["cached_parts.cpp"]),
    # it may survive where no row is on its way just then: in one of two runs on a busy machine
    ("older rows: those on their way to the store are read in their tables", "cached_parts.cpp",
     "    if (found_[i]) continue;\n", "", REGISTERED, ["cached_parts.cpp"]),
    ("lost places: rows that stay in their tables are read in staging", "cached_parts.cpp",
     "places_[numbers_[i]] = rows_[i];", "static_cast<void>(i);", REGISTERED, ["cached_parts.cpp"]),
    ("dropped wait: fetched rows come to slots whose rows are still being copied", "cached_parts.cpp",
     "  for (const auto& part : parts) part->made_room.make_wait(cached_.copies);\n", "", SMALL, ["cached_parts.cpp"]),
    # a race, unless the write-back happens to wait in between
    ("dropped wait: rows reach the store before they have come from the device", "write_back.cpp",
     "  for (const Rows* rows : taken_rows_) rows->wait_for_arrival();\n", "", SMALL, ["write_back.cpp"]),
    ("lost rows: what makes room does not reach the store", "group_cache.cpp",
     "  write_back.add(std::move(rows), step);\n", "  static_cast<void>(step);\n", SMALL, ["group_cache.cpp"]),
    ("lost rows: a checkpoint leaves out what has changed in overflow rows", "group_cache.cpp",
     "overflow_.list_changed(numbers.completed);", "overflow_.list_changed(0);", SMALL, ["group_cache.cpp"]),
    ("lost rows: what leaves an overflow row does not reach the store", "group_cache.cpp",
     "  write_back.add(std::move(rows), numbers.step);\n", "", SMALL, ["group_cache.cpp"]),
    ("wrong stream: room counts as made before the rows have been copied", "group_cache.cpp",
     "part.made_room.record(evictions_);", "part.made_room.record(stream_);", SMALL, ["group_cache.cpp"]),
    ("early reuse: an overflow row is given away while a batch needs it", "overflow_rows.cpp",
     "if (shared.is_needed != 0) row->second.last = batch;", "static_cast<void>(batch);", SMALL, ["overflow_rows.cpp"]),
    ("dropped copy: the device does not learn which overflow rows are free again", "overflow_rows.cpp",
     "    changed_end_ = std::max(changed_end_, first_free_);\n", "", SMALL, ["overflow_rows.cpp"]),
    ("early reuse: the memory of a plan is free while the plan is in use", "plan_room.h",
     "      part.scratch = scratch_;\n", "", SMALL, ["group_cache.cpp"]),
    ("wrong stream: the network computes on one of its own", "dense/graph_network.cpp",
     "  device_.run_in_order(stream, [this, stream, compute] {",
     "  static const backend::Stream other(device_);\n  device_.run_in_order(other, [this, stream, compute] {",
     LARGE, ["graph_network.cpp"]),
    ("dropped copy: the flag of a step does not reach the update of its rows", "dense/graph_network.cpp",
     "  device_.copy(to, parameters_.memory().flag, sizeof(float), stream_);\n", "", LARGE, ["graph_network.cpp"]),
    ("dropped wait: a step is finished before its results are there", "dense/steps_in_flight.cpp",
     "  device_.use_on_this_thread();\n  step.done.wait_until_reached();\n", "  device_.use_on_this_thread();\n", LARGE,
     ["steps_in_flight.cpp"]),
    ("early reuse: all steps in flight stage their numbers in the same memory", "dense/steps_in_flight.h",
     "steps_[static_cast<std::size_t>((num_begun_ - 1) % kMax)]", "steps_[0]", LARGE, ["steps_in_flight.cpp"]),
]


def commands_of_dense(build):
    """Its sources are compiled together elsewhere; the flags of one are those of all."""
    command = next(iter(compile_commands(build, "satrap_dense").values()))
    return {path.name: command for path in (pathlib.Path(__file__).parents[2] / "src/dense").glob("*.cpp")}


def place(mutant):
    """The folder and the name of its file."""
    module, file = mutant[1].split("/") if "/" in mutant[1] else ("embedding", mutant[1])
    return f"src/{module}", file


def build_mutant(build, folder, mutant, commands, link):
    module, file = place(mutant)
    objects = compile_mutant(build, folder, (mutant[0], file, *mutant[2:6]), commands, module)
    program = folder / "bin" / "satrap"
    program.parent.mkdir()
    (folder / "lib").symlink_to(build / "lib")
    command = link.replace("-o simt/satrap",
                           f"-o {program} -Wl,--allow-multiple-definition {' '.join(objects)}", 1)
    subprocess.run(command, shell=True, cwd=build, check=True, capture_output=True, text=True)
    return program


def digest(folder, program, number, *settings, seed=0):
    """Of the job's last checkpoint; or how it failed."""
    run_dir = folder / f"run-{number}"
    config = folder / "job.yaml"
    config.write_text(JOB)
    settings = [*settings, *([] if NATIVE in settings else ["model.engine=graph"])]
    try:
        done = subprocess.run([program, "train", config, f"run_dir={run_dir}", *settings], capture_output=True, text=True,
                              timeout=60, env=os.environ | {"SIMT_SEED": str(seed), "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            return (done.stderr.splitlines() or ["crash"])[-1]
        newest = sorted((run_dir / "checkpoints").glob("step-*"))[-1]
        text = subprocess.run([program, "checkpoint", "verify", newest], capture_output=True, text=True, timeout=60)
        return re.search(r"digest ([0-9a-f]+)", text.stdout + "digest 0").group(1)
    except subprocess.TimeoutExpired:
        return "does not end"


def prepare(build):
    for mutant in MUTANTS:
        module, file = place(mutant)
        text_with(mutant[2], module, file)
    commands = commands_of_dense(build) | compile_commands(build, "satrap_embedding_simt")
    link = link_command(build, "satrap_on_simt", "simt/satrap")
    with tempfile.TemporaryDirectory() as folder:
        expected = {}
        for number, settings in enumerate([SMALL, LARGE, SAVED, ON_CPU, REGISTERED]):
            words = settings.split(", ")
            expected[settings] = digest(pathlib.Path(folder), build / "bin" / "satrap", f"cpu-{number}",
                                        *(word for word in words if not word.startswith("embedding.cache")))
            found = digest(pathlib.Path(folder), build / "simt" / "satrap", f"gpu-{number}", "device=cuda", *words, seed=1)
            if found != expected[settings] or not re.fullmatch("[0-9a-f]{16}", found):
                sys.exit(f"without a mutant, {settings}: {found} instead of {expected[settings]}")

    def seen(mutant):
        with folder_of(build, mutant) as folder:
            try:
                program = build_mutant(build, folder, mutant, commands, link)
            except subprocess.CalledProcessError as error:
                sys.exit(f"{mutant[0]} ({mutant[1]}) does not build:\n{error.stderr}")
            ends = (digest(folder, program, seed, "device=cuda", *mutant[4].split(", "), seed=seed) for seed in range(SEEDS))
            if RACE in mutant:
                reports = [re.search(f"{RACE}.*", end) for end in ends]
                return reports[0].group() if all(reports) else None
            wrong = next((end for end in ends if end != expected[mutant[4]]), None)
            return "wrong rows" if wrong and re.fullmatch("[0-9a-f]{16}", wrong) else wrong

    return seen


def table(mutants):
    return "| broken | in | job | caught by |\n|---|---|---|---|\n" + "".join(
        f"| {name} | `{file}` | `{settings}` | {'a race, always' if RACE in rest else 'how it ends'} |\n"
        for name, file, _, _, settings, *rest in mutants)


if __name__ == "__main__":
    run(MUTANTS, prepare, pathlib.Path(__file__).parent, table)
