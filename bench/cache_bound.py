#!/usr/bin/env python3
"""The fewest misses that any policy can have on draws of a power law, if it knows the next batches alone.

Usage: cache_bound.py [--zipf 0.9,1.05] [--shares 0.05,0.1,0.25] [--fulls 2,4,6,8] [--rows 100000] [--ids 4096]

A batch is --ids independent draws of --rows rows, as in cache_policies, whose streams this is about when they are so
long that first sightings do not matter. A key is in a batch with probability q, whatever was before, so that what other
keys do says nothing about its gap D to the next batch that has it. A policy knows D <= window + 1 when it may first
give the row up; of longer gaps it knows no more than that they are longer. Let a row in the cache cost r per batch, and
a miss 1. Then the least expected cost of a gap is
    min(1, r (D - 1)) if D is known, else min(1, r (window + 1/q)),  the expectation of D - 1 being window + 1/q,
and for every r the sum over keys, less r times the size of the cache, is below the misses of all policies in caches of
that size, with sets or without: a cache that is as large only on average can do all that one can that is always so.
The largest over r is the bound. Printed is its ratio to that of a window without end, which Belady's optimum comes close
to. It does not hold for a policy that takes a row past the cache: a batch's rows are in the cache while it is computed.
"""

import argparse
import math


def chances(exponent, rows, ids):
    """(probability that a batch has the key, number of such keys); neighbours in rank are taken together."""
    def below(rank):
        if abs(exponent - 1) < 1e-9:
            return math.log(rank) / math.log(rows)
        return (rank ** (1 - exponent) - 1) / (rows ** (1 - exponent) - 1)

    buckets, first = [], 1
    while first < rows:
        end = min(rows, first + max(1, first // 100))
        draw = (below(end) - below(first)) / (end - first)
        buckets.append((-math.expm1(ids * math.log1p(-draw)), end - first))
        first = end
    return buckets


def cost(rent, buckets, size, window):
    """Per batch. window None: without end."""
    total = -rent * size
    for q, keys in buckets:
        known = math.inf if window is None else window + 1
        paid = min(known, math.floor(1 / rent + 1))  # gaps up to this are kept at r (D - 1), known longer ones cost 1
        beyond_paid, beyond_known = (1 - q) ** paid, 0 if window is None else (1 - q) ** known
        gap = rent * ((1 - beyond_paid) / q - paid * beyond_paid - (1 - beyond_paid)) + beyond_paid - beyond_known
        if window is not None:
            gap += beyond_known * min(1, rent * (window + 1 / q))
        total += keys * q * (rent + gap)
    return total


def bound(*problem):
    """The cost is concave in the logarithm of the rent where it matters; any rent gives a bound."""
    low, high = math.log(1e-5), 0.0
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if cost(math.exp(a), *problem) < cost(math.exp(b), *problem):
            low = a
        else:
            high = b
    return cost(math.exp((low + high) / 2), *problem)


def main():
    def floats(text):
        return [float(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zipf", type=floats, default=[0.9, 1.05])
    parser.add_argument("--shares", type=floats, default=[0.05, 0.1, 0.25])
    parser.add_argument("--fulls", type=floats, default=[2, 4, 6, 8])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ids", type=int, default=4096)
    arguments = parser.parse_args()
    print("| Zipf | cache | optimum, of keys | " + " | ".join(f"{fulls:g}" for fulls in arguments.fulls) + " |")
    print("|---" * (3 + len(arguments.fulls)) + "|")
    for exponent in arguments.zipf:
        buckets = chances(exponent, arguments.rows, arguments.ids)
        unique = sum(q * keys for q, keys in buckets)
        for share in arguments.shares:
            size = round(share * arguments.rows / 32) * 32
            best = bound(buckets, size, None)
            ratios = (bound(buckets, size, round(fulls * size / unique)) / best for fulls in arguments.fulls)
            print(f"| {exponent:g} | {100 * share:g} % | {100 * best / unique:.1f} % | "
                  + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |", flush=True)


if __name__ == "__main__":
    main()
