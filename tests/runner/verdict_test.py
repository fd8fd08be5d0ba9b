"""Which failures are final, on what real tests print."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from verdict import final_reason  # noqa: E402

PYTHON = """test_it (__main__.Kafka.test_it) ... {kind}

======================================================================
{kind}: test_it (__main__.Kafka.test_it)
{document}----------------------------------------------------------------------
Traceback (most recent call last):
  File "/work/tests/app/kafka_test.py", line 20, in test_it
    {code}
{raised}

----------------------------------------------------------------------
Ran 1 test in 3.210s

FAILED (failures=1)
"""
GTEST = """[ RUN      ] DeviceStreams.AskingForAnEvent
/work/tests/backend/memory_test.cpp:40: Failure
{failure}

[  FAILED  ] DeviceStreams.AskingForAnEvent (0 ms)
"""


def python(code, raised, kind="FAIL", document=""):
    return PYTHON.format(kind=kind, document=document, code=code, raised=raised)


def gtest(failure):
    return GTEST.format(failure=failure)


class HowItEnded(unittest.TestCase):
    def test_time_limits_and_signals_are_final(self):
        self.assertEqual(final_reason("***Timeout", ""), "exceeded its time limit")
        for end in ("***Exception: SegFault", "Subprocess aborted***Exception:", "Subprocess killed***Exception:"):
            self.assertEqual(final_reason(end, ""), "a signal")

    def test_any_other_end_is_not(self):
        self.assertIsNone(final_reason("***Failed", "something went wrong\n"))
        self.assertIsNone(final_reason("***Failed  Required regular expression not found. Regex=[x]", "y"))


class WhatItPrinted(unittest.TestCase):
    def check_final(self, reason, *outputs):
        for output in outputs:
            with self.subTest(output):
                self.assertEqual(final_reason("***Failed", output), reason)

    def check_not_final(self, *outputs):
        for output in outputs:
            with self.subTest(output):
                self.assertIsNone(final_reason("***Failed", output))

    def test_reports_of_sanitizers(self):
        self.check_final("a sanitizer's report",
                         "==1==ERROR: AddressSanitizer: heap-use-after-free on address",
                         "==1==ERROR: LeakSanitizer: detected memory leaks",
                         "WARNING: ThreadSanitizer: data race (pid=1)",
                         "a.cpp:3:5: runtime error: signed integer overflow: 1 + 2",
                         "==7== ERROR: libFuzzer: deadly signal",
                         python("self.assertEqual(done.returncode, 0)", "AssertionError: 86 != 0"))

    def test_signals_of_programs_that_a_test_started(self):
        self.check_final("a signal",
                         python("self.assertEqual(done.returncode, 0)", "AssertionError: -11 != 0 : "),
                         python("self.assertEqual(0, done.returncode)", "AssertionError: 0 != -6 : "),
                         python("self.assertIn(done.returncode, (0, 1))", "AssertionError: -11 not found in (0, 1)"),
                         python("self.assertIn(status, ends)",
                                "AssertionError: -6 not found in (0, <Signals.SIGKILL: -9>)"),
                         python("self.assertEqual(ends, [0, 0])",
                                "AssertionError: Lists differ: [-11, 0] != [0, 0]"),
                         python("satrap('train')", "AssertionError: ('train',) ended with -11", "ERROR"),
                         python("run(check=True)", "subprocess.CalledProcessError: Command '['x']' died with "
                                                   "<Signals.SIGSEGV: 11>.", "ERROR"),
                         "terminate called after throwing an instance of 'std::runtime_error'\n")

    def test_exceeded_time_limits(self):
        self.check_final("exceeded a time limit",
                         python("run(timeout=5)", "subprocess.TimeoutExpired: Command 'x' timed out after 5 seconds",
                                "ERROR"),
                         "Traceback (most recent call last):\n  File 'x', line 1\nsubprocess.TimeoutExpired: 5 s\n",
                         python("job.end(60)", "cluster_job.Hang: the job has not ended within 60 s\nps 0: ...", "ERROR"),
                         python("job.wait_lines(3, 9)", "cluster_job.Hang: 3 lines: not within 9 s", "ERROR"))

    def test_unequal_bits(self):
        self.check_final("unequal bits",
                         python("self.assertEqual(job.digest(JOB_S), expected)", "AssertionError: 'x' != 'y'"),
                         python("self.assertEqual(found, expected)",
                                "AssertionError: 'step-00012 9f3a77c012ab34cd' != 'step-00012 9f3a77c012ab34ce'"),
                         python("self.assertEqual(found, expected)", "AssertionError: 0.8731234 != 0.8731244"),
                         python("self.assertEqual(found, expected)",
                                "AssertionError: Tuples differ: ('9f3a77c012ab34cd', 1) != ('0f3a77c012ab34cd', 1)"),
                         python("self.check(a, b)", "AssertionError: False is not true",
                                document="The same bits again, on two threads\n"),
                         gtest("Expected equality of these values:\n  digest_of(a)\n    Which is: 1\n  2"),
                         gtest("Expected equality of these values:\n  a\n    Which is: 0.12345678\n  b\n"
                               "    Which is: 0.12345679"),
                         gtest("Expected equality of these values:\n  a\n    Which is: 0.693147\n  b\n"
                               "    Which is: 0.693147"),
                         python("self.assertEqual(a, b)", "AssertionError: 0.5 != 0.5000000001"),
                         python("self.assertEqual(a, b)", "AssertionError: Lists differ: [0.5, 0.25] != [0.5, 0.375]"),
                         python("self.assertEqual(one, other)", "AssertionError: b'\\x01\\x02' != b'\\x01\\x03'"),
                         gtest("Value of: same(a, b)\n  Actual: false\nExpected: true").replace(
                             "AskingForAnEvent", "TheSameBitsOnTwoThreads"),
                         "unknown file: Failure\nC++ exception with description \"the digest differs\" thrown.\n",
                         "losses: relative error 0.3; unequal bits\n",
                         gtest("Value of: rounded\nExpected: elements are equal bit for bit\n  Actual: { 1, 2 }"))

    def test_lost_rows(self):
        self.check_final("lost rows",
                         python('self.assertEqual(summary["rows"], 1000)', "AssertionError: 999 != 1000"),
                         python("self.assertCountEqual(seen, sent)",
                                "AssertionError: Element counts were not equal:\nFirst has 1, Second has 0:  7 rows"),
                         python("self.fail(f'{n} rows are lost')", "AssertionError: 1 rows are lost"),
                         gtest("Expected equality of these values:\n  reader.num_rows()\n    Which is: 9\n  10"))

    def test_texts_connections_and_threads_that_cannot_start_are_tried_again(self):
        self.check_not_final(
            python('self.assertIn("too little memory", done.stderr)',
                   "AssertionError: 'too little memory' not found in \"error: thread 'signals' cannot be started\""),
            python("self.assertRegex(text, pattern)", "AssertionError: Regex didn't match: 'a' not found in 'b'"),
            python("random.sample(found, 2)", "ValueError: Sample larger than population or is negative", "ERROR"),
            python("connect()", "ConnectionRefusedError: [Errno 111] Connection refused", "ERROR"),
            python("self.assertEqual(done.returncode, 2)", "AssertionError: 1 != 2 : error: out of memory"),
            python("self.assertTrue(device.is_idle(stream))", "AssertionError: False is not true"),
            gtest("Value of: device.reached(event)\n  Actual: true\nExpected: false"))

    def test_quality_within_a_tolerance_is_no_bit(self):
        self.check_not_final(python("self.assertAlmostEqual(auc, 0.9, delta=0.01)",
                                    "AssertionError: 0.8812345 != 0.9012345 within 0.01 delta (0.02 difference)"))

    def test_what_programs_log_beside_the_failure_says_nothing(self):
        self.check_not_final("info: 1000 rows read, digest 9f3a77c012ab34cd; timed out, trying again\n" +
                             python("self.assertIn('x', text)", "AssertionError: 'x' not found in 'y'"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
