"""`init` and `data stats` of files that hold far more than they seem to: many columns, many keys, values without end.
Time grows with the columns, memory is bounded, and no value without end gets into a configuration."""
import resource
import unittest

from cli import SANITIZED, CliTest, satrap

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None
READS_PARQUET = pyarrow is not None and "\nparquet    Arrow" in satrap("doctor").stdout

CPU_S = 30           # ten times what it takes; time with the square of the columns is more
FEWER = 4 if SANITIZED else 1
MEMORY_BYTES = 3 << 29
CONFIG_BYTES = 1 << 20


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


class LargeSamples(CliTest):
    def init(self, name, *options):
        return self.succeed("init", self.dir / name, "--label", "click", "--out", self.dir / "job.yaml", "--overwrite",
                            *options, preexec_fn=limited, cwd=self.dir).stdout

    def test_many_columns_of_text(self):
        names = [f"c{i}" for i in range(60_000 // FEWER)]
        rows = "".join(f"{r % 2}," + ",".join(f"x{(r + i) % 4}" for i in range(len(names))) + "\n" for r in range(8))
        self.write("wide.csv", ",".join(["click", *names]) + "\n" + rows)
        self.assertIn(f"{len(names)} features", self.init("wide.csv"))

    def test_many_keys_of_one_line(self):
        keys = ",".join(f'"k{i}":{i}' for i in range(300_000 // FEWER))
        rows = "".join(f'{{"a":{i % 7},"click":{i % 2}}}\n' for i in range(300))
        self.write("keys.jsonl", f'{{{keys},"click":1}}\n' + rows)
        self.assertIn("1 features", self.init("keys.jsonl"))
        self.assertIn(f"{300_000 // FEWER:,} keys that are in less than 1 %", (self.dir / "job.yaml").read_text())

    def test_values_without_end(self):
        rows = "".join(f'{{"a":"{"xyz"[i % 3]}","b":[1,{i % 5}],"n":{i},"click":{i % 2}}}\n' for i in range(300))
        long = f'{{"a":"{"z" * 20_000_000}","b":[{",".join("12" for _ in range(2_000_000))}],"n":"{"w" * 9_000_000}",'
        self.write("long.jsonl", rows + long + f'"{"k" * 2_000_000}":1,"click":1}}\n')
        self.init("long.jsonl")
        self.assertLess((self.dir / "job.yaml").stat().st_size, CONFIG_BYTES)
        self.succeed("config", "check", self.dir / "job.yaml")

    def test_texts_without_end_are_no_label(self):
        self.write("label.csv", "click,a\n" + "".join(f"{'u' * 5000 if i % 2 else 'v'},{i % 3}\n" for i in range(50)))
        error = self.fail_with(2, "init", self.dir / "label.csv", "--label", "click", cwd=self.dir)
        self.assert_words(error, "label 'click'", "of 5000 bytes", "up to 1000")
        self.assertLess(len(error), 1000)

    @unittest.skipUnless(READS_PARQUET, "needs pyarrow, and a satrap with Parquet")
    def test_many_columns_of_parquet(self):
        click = pyarrow.array([i % 2 for i in range(8)], pyarrow.int8())
        columns = {f"c{i}": [f"x{(r + i) % 4}" for r in range(8)] for i in range(16_000 // FEWER)}
        pyarrow.parquet.write_table(pyarrow.table({"click": click, **columns}), self.dir / "wide.parquet")
        self.assertIn(f"{len(columns)} features", self.init("wide.parquet"))

    @unittest.skipUnless(READS_PARQUET, "needs pyarrow, and a satrap with Parquet")
    def test_one_long_text_of_a_dictionary_in_many_rows(self):
        rows = 600
        texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([i // 3 % 2 for i in range(rows)], pyarrow.int32()),
                                                    pyarrow.array(["z" * 50_000_000, "q"]))
        click = pyarrow.array([i % 2 for i in range(rows)], pyarrow.int8())
        pyarrow.parquet.write_table(pyarrow.table({"b": texts, "click": click}), self.dir / "bomb.parquet",
                                    compression="zstd")
        self.assertLess((self.dir / "bomb.parquet").stat().st_size, 10_000)
        self.assertIn("1 features", self.init("bomb.parquet"))
        self.succeed("data", "stats", self.dir / "job.yaml", preexec_fn=limited)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, MEMORY_BYTES)


if __name__ == "__main__":
    unittest.main(verbosity=2)
