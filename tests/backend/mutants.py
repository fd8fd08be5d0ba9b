"""Breaks the kernels on purpose, one line at a time, and checks that the tests of the executor notice.

Usage: mutants.py BUILD_DIR [PART_OF_NAME]    with a build that has backend_simt_tests
       mutants.py BUILD_DIR --eighth         an eighth of them; another one after each commit
       mutants.py --table                     the mutants as a table, for README.md in this folder

A mutant is a replacement in one file of cuda/backend; the sources that it concerns are compiled from a copy and linked
before the rest. A mutant that its test does not catch is a failure, and so is one, whether it runs or not, whose line
no longer exists, or that README.md does not list.
"""

import contextlib
import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]

# Description, file, old text, new text, test that fails, sources to compile.
MUTANTS = [
    ("dropped barrier: sums are taken before all squares are written", "update_row.h",
     "          make_float4(g[k].x * g[k].x, g[k].y * g[k].y, g[k].z * g[k].z, g[k].w * g[k].w);\n    }\n    __syncwarp();",
     "          make_float4(g[k].x * g[k].x, g[k].y * g[k].y, g[k].z * g[k].z, g[k].w * g[k].w);\n    }",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_rowwise_adagrad.cu"]),
    ("dropped barrier: sums are read before they are written", "update_row.h",
     "      eight[i] = sum;\n    }\n    __syncwarp();", "      eight[i] = sum;\n    }",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_rowwise_adagrad.cu"]),
    ("dropped wait: an event makes no stream wait", "cuda_device.cpp",
     '  check(cudaStreamWaitEvent(native(stream), native_event(event), 0), "cudaStreamWaitEvent");',
     "  static_cast<void>(stream), static_cast<void>(event);",
     "DeviceRows.VictimsAreSavedBeforeTheirRowsAreOverwritten", ["cuda_device.cpp"]),
    ("the error of an event that is not reached stays", "cuda_device.cpp",
     "    static_cast<void>(cudaGetLastError());  // CUDA keeps it, and later calls would report it\n", "",
     "DeviceStreams.AskingForAnEventTooEarlyLeavesNoErrorBehind", ["cuda_device.cpp"]),
    ("groups read the lanes of others", "lanes.h",
     "__shfl_sync(kAllLanes, value, source, size)", "__shfl_sync(kAllLanes, value, source, 32)",
     "DevicePoolForward.EveryDim", ["pool_forward.cu"]),
    ("the first id of a bag goes to the bag before", "pool_forward.cu",
     "v + step - 1) <= number", "v + step - 1) < number",
     "DevicePoolForward.ManyVectors", ["pool_forward.cu"]),
    ("a bag leaves out its last id", "pool_forward.cu",
     "within + 1 >= num_ids ?", "within + 2 >= num_ids ?",
     "DevicePoolForward.EveryDim", ["pool_forward.cu"]),
    ("one tile in shared memory: rows are written while others sum those before", "pool_long_bags.cu",
     "SharedTile& tile = tiles[k % 2];", "SharedTile& tile = tiles[0];",
     "DevicePoolForward.LongAndShortBagsOfEveryLength", ["pool_long_bags.cu"]),
    ("a long bag goes on into the next bag", "pool_long_bags.cu",
     "unique[k] = id < end ? plan.unique_of[id] : -1;",
     "unique[k] = id < end + 1 && id < plan.num_ids ? plan.unique_of[id] : -1;",
     "DevicePoolForward.LongAndShortBagsOfEveryLength", ["pool_long_bags.cu"]),
    ("an absent row of a long bag turns a sum of -0 into 0", "quad.h",
     "kNoFactor = -0.0F", "kNoFactor = 0.0F",
     "DevicePoolForward.ASumOfALongBagThatIsMinusZeroStaysSo", ["pool_long_bags.cu"]),
    ("the ids after a long bag are passed over", "plan.cu",
     "begin = warp.shuffle(bag.end, lowest(longs)) + share * 32;",
     "begin = warp.shuffle(bag.end, lowest(longs)) + 1;",
     "DevicePlan.LongBagsAreDescribedBesideShortOnes", ["plan.cu"]),
    ("weights of a long bag are left out of its sum", "plan.cu",
     "load(first + kAhead * 32);", "load(first + kAhead * 64);",
     "DevicePlan.LongBagsAreDescribedBesideShortOnes", ["plan.cu"]),
    ("dropped barrier: items are read before they are written", "backward.h",
     "  all_items[threadIdx.x] = my_item;\n  __syncwarp();", "  all_items[threadIdx.x] = my_item;",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_sgd.cu"]),
    ("an absent row turns a sum of -0 into 0", "quad.h",
     "kNoFactor = -0.0F", "kNoFactor = 0.0F",
     "DevicePoolForward.ASumThatIsMinusZeroStaysSo", ["pool_forward.cu"]),
    ("an absent occurrence turns a sum of -0 into 0", "quad.h",
     "kNoFactor = -0.0F", "kNoFactor = 0.0F",
     "DeviceBackward.ASumThatIsMinusZeroStaysSo", ["backward.cu"]),
    ("off-by-one mask: a slot counts itself among those before it", "rows.cu",
     "((1U << lane) - 1U)", "((2U << lane) - 1U)",
     "DeviceRows.ListsOfDirtySlots", ["rows.cu"]),
    ("missing pin check: rows of unfinished batches are evicted", "resolve.cu",
     "__ballot_sync(kAllLanes, last_needed <= completed)", "__ballot_sync(kAllLanes, true)",
     "DeviceResolve.PinnedRowsStayAndOverflowTakesTheRest", ["resolve.cu"]),
    ("missing pin: a row that is found is not pinned", "resolve.cu",
     "    pin(cache, plan, arguments, slot, static_cast<std::uint32_t>(u),\n        counts ? cache.last_needed[slot] : 0, counts ? cache.frequency[slot] : 0);\n", "",
     "DeviceResolve.RowsThatTheBatchNeedsAreNotItsVictims", ["resolve.cu"]),
    ("digest taken for the tag", "sets.h",
     "if (cache.tags[candidate] == tag) slot =", "slot =",
     "DeviceResolve.EqualsTheHostOverManyBatches", ["resolve.cu"]),
    ("dirty victims are not written back", "resolve.cu",
     "set.digest != 0 && cache.dirty[set.slot] != kClean", "set.digest == 0",
     "DeviceResolve.TheOldestUnpinnedRowGoesFirst", ["resolve.cu"]),
    ("overflow rows of two tiles are the same", "resolve.cu",
     "static_cast<std::int64_t>(before.c) + ordinal", "static_cast<std::int64_t>(ordinal)",
     "DeviceResolve.WhereAllSetsAreFullOfPinnedRowsNothingIsAdmitted", ["resolve.cu"]),
    ("frequency is ignored", "resolve.cu",
     "candidate && score == least", "candidate",
     "DeviceResolve.TheRarestRowGoesFirst", ["resolve.cu"]),
    ("a key in an overflow row of another batch is missed", "resolve.cu",
     "slot < 0 ? find_shared(arguments, tag) : slot", "slot",
     "DeviceResolve.AKeyInAnOverflowRowOfAnUnfinishedBatchIsFoundThere", ["resolve.cu"]),
    ("nobody learns that a batch needs an overflow row of another", "resolve.cu",
     "  arguments.shared[first].is_needed = 1;\n", "",
     "DeviceResolve.AKeyInAnOverflowRowOfAnUnfinishedBatchIsFoundThere", ["resolve.cu"]),
    ("the search among overflow rows passes over the tag", "resolve.cu",
     "arguments.shared[middle].tag < tag", "arguments.shared[middle].tag <= tag",
     "DeviceResolve.AKeyInAnOverflowRowOfAnUnfinishedBatchIsFoundThere", ["resolve.cu"]),
    ("a row forgets when its next batch comes", "resolve.cu",
     "    cache.next_use[slot] = next_use_of(arguments, unique);\n", "",
     "DeviceWindow.EveryRowKnowsItsNextUseInTheWindow", ["resolve.cu"]),
    ("hot rows do not cool", "resolve.cu",
     "add_occurrences(aged(cache.policy, frequency, last, arguments),", "add_occurrences(frequency,",
     "DeviceWindow.EveryRowKnowsItsNextUseInTheWindow", ["resolve.cu"]),
    ("a row that is needed sooner is needed last", "touch.cu",
     "slot >= 0 && cache.next_use[slot] <= arguments.resolved", "slot >= 0",
     "DeviceWindow.EveryRowKnowsItsNextUseInTheWindow", ["touch.cu"]),
    ("the line of a batch that is resolved is written", "touch.cu",
     "known && my_batch > arguments.resolved", "known",
     "DeviceWindow.EveryRowKnowsItsNextUseInTheWindow", ["touch.cu"]),
    ("the directory forgets any key", "touch.cu",
     "my_batch == oldest", "true",
     "DeviceWindow.WhatItForgetsDoesNotDependOnTheSchedule", ["touch.cu"]),
    ("keys enter a set of the directory several times", "touch.cu",
     "set(mine - 1) != set(mine)", "true",
     "DeviceWindow.WhatItForgetsDoesNotDependOnTheSchedule", ["touch.cu"]),
    ("the next use of a key that no line holds is written", "touch.cu",
     "if (seen != WindowView::kNoNote)", "if (true)",
     "DeviceWindow.WhatItForgetsDoesNotDependOnTheSchedule", ["touch.cu"]),
    ("a chunk of exactly kSumChunk occurrences belongs to nobody", "backward.h",
     "count > kSumChunk ? -1", "count >= kSumChunk ? -1",
     "DeviceBackward.AKeyOfWholeChunksIsSummedToItsEnd", ["backward.cu", "backward_adagrad.cu"]),
    ("groups are passed over for the chunks they sum", "backward.h",
     "grouped ? plan.long_groups : plan.long_chunks", "plan.long_chunks",
     "DeviceBackward.TheHottestKeyIsSummedInGroups", ["backward.cu", "backward_sgd.cu"]),
    ("multiplication and addition are rounded apart", "quad.h",
     "fmaf(c, x.x, sum.x)", "(c * x.x + sum.x)",
     "DevicePoolForward.EveryDim", ["pool_forward.cu"]),
    ("stochastic rounding is dropped", "quad.h",
     "rounding_bits(random, element)", "0x8000U",
     "DeviceBackward.StochasticRoundingKeepsTheMean", ["backward_sgd.cu"]),
    ("every table has the step of the first", "update_row.h",
     "steps[static_cast<int>(table_of(key_of_tag(tag)))]", "steps[0]",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_sgd.cu"]),
    ("updates are noted in the first weights", "update_row.h",
     "(bytes + layout.device_header_offset())", "(bytes)",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_sgd.cu"]),
    ("the header moves with the weights", "rows.cu",
     "uint4& unit = row[u == 0 ? units - 1 : u - 1];", "uint4& unit = row[u];",
     "DeviceRows.VictimsAreSavedBeforeTheirRowsAreOverwritten", ["rows.cu"]),
    ("the header moves with the weights where rows are", "rows.cu",
     "to[u == 0 ? units - 1 : u - 1] = from[u];", "to[u] = from[u];",
     "DeviceRows.ComeFromWhereTheyAreAsFromStaging", ["rows.cu"]),
    ("updated rows stay clean", "update_row.h",
     "  if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;\n", "",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_sgd.cu"]),
    ("a sequence runs over its end", "plan.cu",
     "within < warp.shuffle(bag.num_used, b)", "within <= warp.shuffle(bag.num_used, b)",
     "DevicePlan.EqualsTheHostOnRandomBatches", ["plan.cu"]),
    ("tags that differ only in their low bits stay as they came", "order_tags.cu",
     "  launch(order_mixed_runs, grids.grid_for((n + 31) / 32, kThreads), stream, plan);\n", "",
     "DevicePlan.TagsThatDifferOnlyInTheirLowBits", ["order_tags.cu"]),
    ("one tag takes all places of a run", "order_tags.cu",
     "if (tag >= from && tag < least) least = tag;", "if (tag < least) least = tag;",
     "DevicePlan.TagsThatDifferOnlyInTheirLowBits", ["order_tags.cu"]),
    ("a run of equal prefix ends at its first pair", "order_tags.cu",
     "end += others != 0 ? lowest(others) : 32;", "end += 1;",
     "DevicePlan.TagsThatDifferOnlyInTheirLowBits", ["order_tags.cu"]),
    ("the search for a frequent key's first occurrence ends after 32", "order_tags.cu",
     "    begin -= others != 0 ? lowest(others) : 32;\n    goes_on = others == 0;",
     "    begin -= others != 0 ? lowest(others) : 32;\n    goes_on = false;",
     "DevicePlan.AFrequentKeyMayHaveThePrefixOfOthers", ["order_tags.cu"]),
    ("a run of equal prefix with a pair before is one too many", "order_tags.cu",
     "lowest(others))) != prefix_of(tag);", "lowest(others))) == prefix_of(tag);",
     "DevicePlan.TagsThatDifferOnlyInTheirLowBits", ["order_tags.cu"]),
    ("a long segment is announced twice", "plan.cu",
     "|| j - begin >= kSumChunk", "",
     "DevicePlan.OneKeyEverywhere", ["plan.cu"]),
    ("rows after the end of the list are copied", "rows.cu",
     "left < range.max_rows ? left : range.max_rows", "range.max_rows",
     "DeviceRows.GoOutAndComeBackInChunks", ["rows.cu"]),
    ("an update leaves the mark of a row that is being saved", "update_row.h",
     "if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;",
     "if (slot < cache.size.num_slots() && cache.dirty[slot] == kClean) cache.dirty[slot] = kChanged;",
     "DeviceBackward.EveryOptimizerAndDim", ["backward_sgd.cu"]),
    ("a row that changes while it is saved is marked clean", "rows.cu",
     "if (mark == kGathered) mark = kClean;", "mark = kClean;",
     "DeviceRows.SavedSlotsAreCleanUnlessTheyHaveChangedSince", ["rows.cu"]),
]


def compile_commands(build, library):
    """By the name of the source."""
    return {pathlib.Path(entry["file"]).name: shlex.split(entry["command"])
            for entry in json.loads((build / "compile_commands.json").read_text())
            if f"{library}.dir" in entry["command"]}


def link_command(build, target, program):
    lines = subprocess.run(["ninja", "-C", str(build), "-t", "commands", target],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    line = next(l for l in reversed(lines) if f"-o {program}" in l)
    return next(part for part in line.split("&&") if f"-o {program}" in part).strip()


def text_with(line, module, file):
    """The text of a file, in which `line` is exactly once."""
    text = (ROOT / module / file).read_text()
    if text.count(line) != 1:
        raise ValueError(f"{text.count(line)} places in {module}/{file} read: {line}")
    return text


def eighth(mutants):
    """Every eighth; which of them, the number of commits decides."""
    commits = subprocess.run(["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    return mutants[int(commits.stdout or 0) % 8::8]


@contextlib.contextmanager
def folder_of(build, mutant):
    """An empty folder for what is made of a mutant; of the same name each time, for ccache."""
    folder = build / "mutants" / hashlib.sha256(repr(mutant).encode()).hexdigest()[:16]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compile_mutant(build, folder, mutant, commands, module="cuda/backend"):
    """The objects of its sources, compiled from a copy of its file in `folder`."""
    _, file, old, new, _, sources = mutant
    overlay = folder / module
    overlay.mkdir(parents=True)
    (overlay / file).write_text(text_with(old, module, file).replace(old, new))
    objects = []
    for source in sources:
        arguments = list(commands[source])
        at = arguments.index("-o") + 1
        arguments[at] = str(folder / f"{source}.o")
        objects.append(arguments[at])
        arguments[-1] = str((overlay if source == file else ROOT / module) / source)
        compiler = next(i for i, a in enumerate(arguments) if re.search(r"[+][+](-\d+)?$", a))  # after ccache
        arguments[compiler + 1:compiler + 1] = [f"-I{folder}"]
        arguments += ["-O0", "-w"]
        subprocess.run(arguments, cwd=build, check=True, capture_output=True, text=True)
    return objects


def build_mutant(build, folder, mutant, commands, link):
    objects = compile_mutant(build, folder, mutant, commands)
    program = folder / "mutant"
    command = link.replace("-o tests/backend_simt_tests", f"-o {program} {' '.join(objects)}")
    subprocess.run(command, shell=True, cwd=build, check=True, capture_output=True, text=True)
    return program


def verdict(program, test):
    """How the test failed; None if it passed."""
    try:
        result = subprocess.run([program, f"--gtest_filter={test}"], capture_output=True, text=True,
                                timeout=300)
    except subprocess.TimeoutExpired:
        return "does not end"
    if "is not modelled" in result.stdout:
        raise ValueError(f"no valid PTX: {result.stdout}")
    if "[==========] 0 tests from 0 test suites ran" in result.stdout:
        raise ValueError(f"there is no test {test}")
    if result.returncode == 0:
        return None
    fault = re.search(r'description "([^"]*)"', result.stdout)
    return fault.group(1)[-100:] if fault else "wrong result" if result.returncode == 1 else "crash"


def table(mutants):
    return "| broken | in | caught by |\n|---|---|---|\n" + "".join(
        f"| {name} | `{file}` | `{test}` |\n" for name, file, _, _, test, *_ in mutants)


def run(mutants, prepare, folder=pathlib.Path(__file__).parent, table=table):
    """The command line of a list of mutants; prepare(build) returns a function that says how a mutant's test failed."""
    if sys.argv[1:] == ["--table"]:
        print(table(mutants), end="")
        return
    if table(mutants) not in (folder / "README.md").read_text():
        sys.exit(f"{folder}/README.md does not hold the table that --table prints")
    seen = prepare(pathlib.Path(sys.argv[1]).resolve())
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = eighth(mutants) if part == "--eighth" else [mutant for mutant in mutants if part in mutant[0]]
    survivors = 0
    for mutant in chosen:
        how = seen(mutant)
        survivors += how is None
        print(f"{'SURVIVES' if how is None else 'caught  '} {mutant[0]} | {mutant[4]} | {how}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    sys.exit(survivors != 0 or not chosen)


def prepare(build):
    for _, file, line, *_ in MUTANTS:
        text_with(line, "cuda/backend", file)
    commands = compile_commands(build, "satrap_backend_simt")
    link = link_command(build, "backend_simt_tests", "tests/backend_simt_tests")

    def seen(mutant):
        with folder_of(build, mutant) as folder:
            try:
                return verdict(build_mutant(build, folder, mutant, commands, link), mutant[4])
            except subprocess.CalledProcessError as error:
                sys.exit(f"{mutant[0]} ({mutant[1]}) does not build:\n{error.stderr}")

    return seen


if __name__ == "__main__":
    run(MUTANTS, prepare)
