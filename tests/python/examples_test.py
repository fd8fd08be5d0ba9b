"""The examples train with the losses of the same networks in plain PyTorch: on real rows, generated where they are not there."""
import collections
import copy
import csv
import json
import pathlib
import random
import runpy
import sys
import unittest
from unittest import mock

import numpy as np

from engine_case import SOURCE, EngineCase, satrap, torch
from plain_tables import PlainTables

EXAMPLES = SOURCE / "python/examples"
sys.path.insert(0, str(EXAMPLES))
import bst  # noqa: E402
import hstu  # noqa: E402
import mmoe  # noqa: E402
import two_towers  # noqa: E402

RATINGS = SOURCE.parent / "shared/data/movielens_small/ratings.csv"
LENGTH = 12
STEPS = 40
OPTIMIZERS = {"adagrad": ({"type": "adagrad", "lr": 0.05}, lambda rows: torch.optim.Adagrad(rows, lr=0.05, eps=1e-8)),
              "sgd": ({"type": "sgd", "lr": 0.5}, lambda rows: torch.optim.SGD(rows, lr=0.5))}


def head(path, lines):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(lines))]


class ExampleCase(EngineCase):
    def check(self, config, features, rows, net_of, loss_of, row_optimizer):
        """The losses of satrap and of plain PyTorch, batch by batch; returns satrap's."""
        row_optimizer, make_optimizer = OPTIMIZERS[row_optimizer]
        # LayerNorm of small rows, and Adam where a gradient is 0 but for its rounding, would magnify rounding errors.
        init = {"type": "normal", "scale": 0.5}
        config["tables"] = {name: {"dim": 8, "optimizer": row_optimizer, "init": init} for name in set(features.values())}
        config["train"] = {"mode": "sync", "deterministic": True, "max_steps": STEPS, "report_every": f"{STEPS} steps"}
        config["data"]["shuffle_rows"] = 0
        job = satrap.Job({"run_dir": self.dir / "run", "device": "cpu", "checkpoint": {"every": "never"}, **config})
        torch.manual_seed(1)
        net = net_of(job)
        tables = PlainTables(job, features, rows, make_optimizer)
        plain = copy.deepcopy(net)
        optimizer, plain_optimizer = (torch.optim.Adam(each.parameters(), lr=0.003, eps=1e-4) for each in (net, plain))
        trainer = satrap.Trainer(job, net, optimizer, predict=getattr(net, "predict", None))
        losses, largest = [], 0.0
        for batch in trainer:
            plain_batch = tables.batch_like(batch)
            loss = loss_of(net, batch)
            trainer.step(loss)
            losses.append(loss.item())
            plain_loss = loss_of(plain, plain_batch)
            for part in (plain_optimizer, tables.optimizer):
                part.zero_grad()
            plain_loss.backward()
            for part in (plain_optimizer, tables.optimizer):
                part.step()
            largest = max(largest, abs(losses[-1] - plain_loss.item()))
        print(f"{self.id()}: largest difference of {len(losses)} losses {largest:.1e}; the mean of the first 8 is "
              f"{np.mean(losses[:8]):.4f}, of the last 8 {np.mean(losses[-8:]):.4f}", file=sys.stderr)
        self.assertEqual(len(losses), STEPS)
        self.assertLess(largest, 1e-5)
        return losses


def from_logits(module):
    return lambda net, batch: module.loss_of(net(batch), batch)


class Adult(ExampleCase):
    NAMES = ["workclass", "education", "occupation", "relationship", "race", "sex", "native_country"]

    def test_mmoe_learns_two_labels(self):
        adult = SOURCE / "datasets/adult/adult.data"
        schema = {"delimiter": ",", "header": False, "missing": ["?"],
                  "columns": ["age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
                              "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
                              "native_country", "income"],
                  "labels": [{"name": "income", "column": "income", "positive": [">50K"], "negative": ["<=50K"]},
                             {"name": "single", "column": "marital_status", "positive": ["Never-married"], "weight": 0.5}],
                  "numeric": [{"name": name, "transform": "log1p_zscore"} for name in ("age", "hours_per_week")],
                  "features": [{"name": name} for name in self.NAMES]}
        rows = []
        for line in head(adult, 128 * STEPS):
            values = dict(zip(schema["columns"], line.split(", ")))
            rows.append({name: [] if values[name] == "?" else [values[name]] for name in self.NAMES})
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer):
                losses = self.check({"data": {"schema": schema, "train": {"path": adult}, "batch_size": 128},
                                     "run_dir": self.dir / optimizer}, {name: name for name in self.NAMES}, rows, mmoe.Mmoe,
                                    from_logits(mmoe), optimizer)
                self.assertLess(np.mean(losses[-8:]), 0.9 * np.mean(losses[:8]))


def ratings_in_order(rows):
    """The first ratings of MovieLens; where they are not there, of users who like movies of their own kind."""
    if RATINGS.is_file():
        with open(RATINGS, encoding="utf-8") as file:
            return sorted(csv.DictReader(file), key=lambda row: int(row["timestamp"]))[:rows]
    draw = random.Random(5)
    pairs = [(draw.randrange(40), draw.randrange(1, 300)) for _ in range(rows)]
    return [{"userId": str(user), "movieId": str(movie), "rating": str(draw.choice([4, 5] if (user + movie) % 3 == 0 else [1, 4]))}
            for user, movie in pairs]


class MovieLens(ExampleCase):
    """Ratings in the order of their time: user, movie, and the movies that the user had liked before."""

    FEATURES = {"user": "users", "movie": "movies", "history": "movies"}

    def setUp(self):
        super().setUp()
        ratings = ratings_in_order(64 * STEPS)
        liked, self.rows = collections.defaultdict(list), []
        with open(self.dir / "ratings.tsv", "w", encoding="utf-8") as out:
            for rating in ratings:
                user, movie, likes = rating["userId"], rating["movieId"], float(rating["rating"]) >= 4
                history = liked[user][-LENGTH:]
                self.rows.append({"user": [user], "movie": [movie], "history": history})
                print(int(likes), user, movie, "|".join(history), sep="\t", file=out)
                if likes:
                    liked[user].append(movie)
        self.movies = {int(rating["movieId"]) for rating in ratings}

    def config(self, numeric=()):
        schema = {"delimiter": "\t", "header": False, "columns": ["liked", "user", "movie", "history"], "label": "liked",
                  "numeric": list(numeric),
                  "features": ["user", "movie", {"name": "history", "separator": "|", "max_length": LENGTH, "keep": "last"}]}
        return {"data": {"schema": schema, "train": {"path": self.dir / "ratings.tsv"}, "batch_size": 64},
                "features": {"user": {"table": "users"}, "movie": {"table": "movies"},
                             "history": {"table": "movies", "pooling": "sequence"}}}

    def test_bst(self):
        self.check(self.config(), self.FEATURES, self.rows, bst.Bst, from_logits(bst), "adagrad")

    def test_hstu_on_jagged_sequences(self):
        self.check(self.config(), self.FEATURES, self.rows, hstu.Hstu, from_logits(bst), "sgd")

    def test_two_towers(self):
        config = self.config([{"name": "id", "column": "movie"}])
        losses = self.check(config, self.FEATURES, self.rows, two_towers.TwoTowers, lambda net, batch: net.loss(batch),
                            "adagrad")
        self.assertLess(np.mean(losses[-8:]), np.mean(losses[:8]))

    def run_example(self, name, config):
        """As a program: python NAME.py job.yaml."""
        config |= {"run_dir": str(self.dir / name), "device": "cpu", "tables": {"users": {"dim": 8}, "movies": {"dim": 8}},
                   "train": {"epochs": 1, "max_steps": 5}}
        config["data"] |= {"train": {"path": str(self.dir / "ratings.tsv")}, "eval": {"path": str(self.dir / "ratings.tsv")}}
        (self.dir / "job.yaml").write_text(json.dumps(config))  # JSON is YAML
        with mock.patch.object(sys, "argv", [name, str(self.dir / "job.yaml"), "train.mode=sync"]):
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return pathlib.Path(config["run_dir"])

    def test_programs_run_and_two_towers_write_vectors_for_an_index(self):
        for name in ("mmoe", "bst", "hstu"):
            run = self.run_example(name, self.config())
            self.assertEqual(json.loads((run / "summary.json").read_text())["step"], 5)
        run = self.run_example("two_towers", self.config([{"name": "id", "column": "movie"}]))
        ids, vectors = np.load(run / "item_ids.npy"), np.load(run / "items.npy")
        self.assertEqual(ids.tolist(), sorted(self.movies))
        self.assertEqual(vectors.shape, (len(ids), 32))
        self.assertLess(np.abs(np.linalg.norm(vectors, axis=1) - 1).max(), 1e-5)


class Sizes(unittest.TestCase):
    def test_an_example_has_60_lines_at_most(self):
        for path in EXAMPLES.glob("*.py"):
            self.assertLessEqual(len(path.read_text(encoding="utf-8").splitlines()), 60, path.name)


if __name__ == "__main__":
    unittest.main()
