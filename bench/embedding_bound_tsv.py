#!/usr/bin/env python3
"""Rows for embedding_bound.yaml: embedding_bound_tsv.py [ROWS] > FILE   (196608 rows: 316 MB, a minute)

label, 13 numbers, 26 bags of 10 ids, all of a Zipf of exponent 0.95 over 76923 ids, whose numbers are
shuffled. The label follows a weight per id.
"""
import math
import random
import sys

FEATURES, IDS_PER_BAG, NUM_IDS, EXPONENT = 26, 10, 2_000_000 // 26, 0.95


def main():
    num_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 196_608
    rng = random.Random(1)
    ids_by_rank = [rng.sample(range(NUM_IDS), NUM_IDS) for _ in range(FEATURES)]
    weights = [[rng.gauss(0, 0.35 / math.sqrt(IDS_PER_BAG)) for _ in range(NUM_IDS)] for _ in range(FEATURES)]
    power, top = 1 / (1 - EXPONENT), (NUM_IDS + 1) ** (1 - EXPONENT) - 1
    for _ in range(num_rows):
        numbers = [math.log1p(rng.lognormvariate(1.0, 1.5)) for _ in range(13)]
        logit = -1.2 + 0.2 * (numbers[0] - numbers[1])
        bags = []
        for ids, weight in zip(ids_by_rank, weights):
            # The inverse of the distribution's continuous form.
            ranks = [int((rng.random() * top + 1) ** power) - 1 for _ in range(IDS_PER_BAG)]
            bag = [ids[min(rank, NUM_IDS - 1)] for rank in ranks]
            logit += sum(weight[i] for i in bag)
            bags.append(" ".join(map(str, bag)))
        label = int(rng.random() < 1 / (1 + math.exp(-logit)))
        print(label, *(f"{x:.4g}" for x in numbers), *bags, sep="\t")


if __name__ == "__main__":
    main()
