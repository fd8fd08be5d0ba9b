// Run-time options and suppressions of the sanitizer builds, linked into all of their programs.
// allow_addr2line: names of functions in reports by Clang's runtimes where there is no
// llvm-symbolizer. libtorch, Arrow's client of S3, libgomp and the system's C++ libraries are not
// instrumented: faults wholly inside them are not reported. No suppression names a function of
// satrap, and none may. The exit status of a report is 86, by which tests/runner/verdict.py knows
// one of a program whose messages a test does not show.

#if defined(__SANITIZE_ADDRESS__)

// intercept_tls_get_addr: the runtimes of GCC up to 13 and LLVM up to 16 take a block of
// thread-local storage that begins 16 bytes into a page for one of glibc 2.19, read its length from
// whatever lies before it, and die at the exit of the program. Libraries opened late, as libtorch
// is, have such blocks, one in 64 of them there (github.com/google/sanitizers/issues/1322).
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1:"
         "check_initialization_order=1:abort_on_error=0:intercept_tls_get_addr=0:"
         "allow_addr2line=1:exitcode=86";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1:allow_addr2line=1:exitcode=86";
}

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libtorch_cpu.so\n"
         "leak:libc10.so\n"
         "leak:libgomp\n"
         "leak:libmkl\n";
}

#elif defined(__SANITIZE_THREAD__)

extern "C" const char* __tsan_default_options() {
  return "second_deadlock_stack=1:allow_addr2line=1:exitcode=86";
}

extern "C" const char* __tsan_default_suppressions() {
  return "race:libtorch_cpu.so\n"
         "race:libc10.so\n"
         "race:libgomp\n"
         "race:libarrow_s3.so\n"
         "called_from_lib:libtorch_cpu.so\n"
         "called_from_lib:libc10.so\n"
         "called_from_lib:libgomp.so\n"
         "thread:libgomp\n";
}

#endif
