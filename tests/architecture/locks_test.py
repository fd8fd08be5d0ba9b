"""Holds locks to what clang checks: satrap/core/mutex.h, whose attributes -Wthread-safety reads.

The locks of the standard library have no attributes in ours: std::mutex and its like are named only in core/mutex.h, in
tests, and where a vendor's code brings its own mutex. Nothing but core/mutex.h may switch the check off.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from trees import TreeTest

FOLDERS = ["include/satrap", "src", "cuda", "launch"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
ROOM = "include/satrap/core/mutex.h"
# What may name locks of the standard library, too, and whose mutex that is.
VENDORS = {
    "src/core/log.cpp": "spdlog's library has its sinks for std::mutex alone",
    "src/net/gloo_mesh.cpp": "Gloo's pair has it",
}
LOCK = re.compile(r"\bstd::((?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex"
                  r"|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable(?:_any)?)\b")
USE_OURS = "use those of satrap/core/mutex.h, which clang checks"
OFF = re.compile(r"no_thread_safety_analysis|-Wthread-safety", re.IGNORECASE)


def violations(root):
    root = pathlib.Path(root)
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in SUFFIXES or name == ROOM:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                code = line.split("//")[0]
                lock = name not in VENDORS and LOCK.search(code)
                if lock:
                    found.append(f"{name}:{number}: std::{lock[1]}: {USE_OURS}")
                if OFF.search(code):
                    found.append(f"{name}:{number}: switches the check of locks off: only core/mutex.h may")
    return found


class CheckerTest(TreeTest):
    """The checker itself."""

    violations = staticmethod(violations)

    def test_locks_of_ours_and_of_vendors_pass(self):
        self.assertEqual([], self.check({
            ROOM: "std::mutex mutex_;\n[[clang::no_thread_safety_analysis]] void f();\n",
            "src/net/gloo_mesh.cpp": "const std::lock_guard lock(m_);\n",
            "src/ps/shard.h": "Mutex mutex_;  // not std::mutex\nstd::once_flag is_told;\n",
            "tests/ps/shard_test.cpp": "std::mutex mutex;\n",
        }))

    def test_every_lock_of_the_standard_library_is_refused(self):
        for name in ["mutex", "recursive_mutex", "shared_mutex", "lock_guard", "unique_lock", "scoped_lock",
                     "shared_lock", "condition_variable", "condition_variable_any"]:
            for file in ["src/ps/shard.h", "include/satrap/ps/shard.h", "cuda/backend/device.cu", "src/core/text.cpp"]:
                found = self.check({file: f"\nstd::{name} x;\n"})
                self.assertEqual([f"{file}:2: std::{name}: {USE_OURS}"], found)

    def test_a_function_that_is_not_checked_is_refused(self):
        for text in ["void f() NO_THREAD_SAFETY_ANALYSIS;", "[[clang::no_thread_safety_analysis]] void f();",
                     '#pragma clang diagnostic ignored "-Wthread-safety-analysis"']:
            found = self.check({"src/net/gloo_mesh.cpp": text})
            self.assertEqual(["src/net/gloo_mesh.cpp:1: switches the check of locks off: only core/mutex.h may"], found)


class ProjectTest(unittest.TestCase):
    root = pathlib.Path(os.environ.get("SATRAP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))

    def test_locks_are_those_of_core(self):
        self.assertEqual([], violations(self.root))

    def test_each_vendor_still_has_its_mutex(self):
        for name in VENDORS:
            self.assertRegex((self.root / name).read_text(encoding="utf-8"), LOCK)


SNIPPET = """
#include "satrap/core/mutex.h"

class Counter {
 public:
  void add() {
    %s
    add_locked();
  }
  void wait() {
    const satrap::MutexLock lock(mutex_);
    while (value_ == 0) changed_.wait(%s);
  }

 private:
  void add_locked() SATRAP_REQUIRES(mutex_) { ++value_; }

  satrap::Mutex mutex_, other_;
  satrap::CondVar changed_;
  int value_ SATRAP_GUARDED_BY(mutex_) = 0;

 public:
  int value() %s { return value_; }
};
"""
LOCKED = "const satrap::MutexLock lock(mutex_);"


@unittest.skipUnless(shutil.which("clang++-19"), "clang++-19 is not installed")
class ClangTest(unittest.TestCase):
    """What builds by clang refuse."""

    def compile(self, add=LOCKED, mutex="mutex_", value="SATRAP_REQUIRES(mutex_)"):
        """What the compiler says against it: nothing, or why it ends."""
        command = ["clang++-19", "-std=c++20", "-fsyntax-only", "-Werror=thread-safety",
                   "-I", ProjectTest.root / "include", "-x", "c++", "-"]
        done = subprocess.run(command, input=SNIPPET % (add, mutex, value), capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode == 0, done.stderr == "", done.stderr)
        return done.stderr

    def test_access_with_the_lock_compiles(self):
        self.assertEqual("", self.compile())

    def test_access_without_the_lock_does_not(self):
        self.assertIn("reading variable 'value_' requires holding mutex 'mutex_'", self.compile(value=""))

    def test_a_call_without_the_lock_does_not(self):
        self.assertIn("calling function 'add_locked' requires holding mutex 'mutex_'", self.compile(add=""))

    def test_a_call_after_unlock_does_not(self):
        self.assertIn("calling function 'add_locked' requires holding mutex 'mutex_'",
                      self.compile(add="satrap::MutexLock lock(mutex_); lock.unlock();"))

    def test_a_wait_with_another_mutex_does_not(self):
        self.assertIn("calling function 'wait' requires holding mutex 'other_'", self.compile(mutex="other_"))

    def test_a_second_lock_does_not(self):
        self.assertIn("acquiring mutex 'mutex_' that is already held",
                      self.compile(add=LOCKED + " const satrap::MutexLock again(mutex_);"))


if __name__ == "__main__":
    unittest.main()
