"""Weights, missing labels and a share of the negatives, with shards, ranks and loaders: the same bits."""
import pathlib
import shutil
import tempfile
import unittest

from cluster_job import JOB_S, ClusterJob

CONFIG = """\
seed: 3
device: cpu
data:
  schema: {labels: [{column: click, positive_weight: 2}, buy], weight: w, numeric: [n], features: [user]}
  train: {path: log.csv, negatives: 0.5}
  eval: {fraction: 0.2, by: hash}
  batch_size: 60
  shuffle_rows: 200
tables: {default: {dim: 4}}
model: {type: dcn_v2, hidden: [8], heads: mmoe}
embedding: {store: ps}
train: {mode: hybrid, staleness: 2, deterministic: true, precision: fp32, threads: 1, epochs: 2}
cluster: {timeout: 60s}
"""


def line(r):
    click, buy = int(r * 7 % 5 < 2 and r * 3 % 11 < 2), int(r * 3 % 11 < 2)
    return f"{click},{'' if r % 13 == 0 else buy},{r % 4 / 2},{r * 13 % 97 / 8},u{r * r % 31}\n"


class WeightsInAClusterTest(unittest.TestCase):
    def test_the_number_of_shards_and_loaders_changes_no_bit(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="satrap-weights-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "log.csv").write_text("click,buy,w,n,user\n" + "".join(map(line, range(3000))))
        (folder / "job.yaml").write_text(CONFIG)
        digests = set()
        for name, shards, options in [("one", 1, []), ("two", 2, []), ("loaders", 1, ["--loaders", "2"])]:
            job = ClusterJob(folder / name, folder / "job.yaml", shards=shards, ranks=2, options=options)
            self.addCleanup(job.kill_all)
            self.assertEqual(job.start().end(JOB_S), 0, job.output())
            digests.add(job.digest(JOB_S))
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    unittest.main()
