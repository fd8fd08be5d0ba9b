"""The rows of an exported table, and the weights of ids that have none."""
import numpy as np

from .arrays import read_array

ID_MASK = np.uint64(2**54 - 1)
TWO_24 = float(2**24)


def splitmix64(x):
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


def fold(ids):
    """Ids as they stand in the arrays of keys: those that do not fit 54 bits are hashed."""
    return np.where(ids <= ID_MASK, ids, splitmix64(ids) & ID_MASK)


def mix(ids):
    """The bijection on 54 bits by which initial weights are drawn."""
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        ids = ids * np.uint64(factor) & ID_MASK
        ids = ids ^ ids >> np.uint64(27)
    return ids


def fma(a, b, c):
    """a * b + c in float32, rounded once: a double holds the product exactly."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def portable_log(x):
    """Natural logarithm of positive floats: Cephes' polynomial on [sqrt(1/2), sqrt(2))."""
    bits = x.view(np.uint32)
    offset = bits - np.uint32(0x3F3504F3)
    exponent = (offset.view(np.int32) >> 23).astype(np.float32)
    m = ((offset & np.uint32(0x007FFFFF)) + np.uint32(0x3F3504F3)).view(np.float32) - np.float32(1)
    p = np.zeros_like(m)
    for c in np.float32([7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1]):
        p = fma(p, m, c)
    square = m * m
    y = fma(exponent, np.float32(-2.12194440e-4), m * square * p)
    y = fma(np.float32(-0.5), square, y)
    return fma(exponent, np.float32(0.693359375), m + y)


def normal_quantile(n):
    """The normal quantile of (n + 0.5) / 2^24, by Giles' approximation of the inverse error function."""
    doubled = 2 * n.astype(np.int64) + 1
    x = (doubled - (1 << 24)).astype(np.float32) * np.float32(2**-24)
    low = doubled.astype(np.float32) * np.float32(2**-24)
    high = ((1 << 25) - doubled).astype(np.float32) * np.float32(2**-24)
    w = -portable_log(low * high)
    central = w < 5
    t = np.where(central, w - np.float32(2.5), np.sqrt(w) - np.float32(3)).astype(np.float32)
    near = np.float32([2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                       -0.00417768164, 0.246640727, 1.50140941])
    far = np.float32([-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                      0.00943887047, 1.00167406, 2.83297682])
    p = np.zeros_like(t)
    for a, b in zip(near, far):
        p = fma(p, t, np.where(central, a, b))
    return p * x * np.float32(1.41421356)


def initial_weights(init, dim, ids):
    """[ids, dim]: draw number d of a stream made of the table's seed and the id."""
    scale = np.float32(init["scale"])
    if init["type"] == "constant":
        return np.full((len(ids), dim), scale, np.float32)
    table = splitmix64(np.array([int(init["seed"], 16)], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    stream = splitmix64(table ^ mix(ids) + np.uint64(0xD1B54A32D192ED03))
    steps = np.arange(1, dim + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    draws = splitmix64(stream[:, None] + steps) >> np.uint64(40)
    if init["type"] == "normal":
        return scale * normal_quantile(draws)
    return fma(2 * scale, draws.astype(np.float32) * np.float32(1 / TWO_24), -scale)


def round_as_stored(weights, stored_as):
    """Rounded to the table's type of weights: to nearest, ties to even."""
    if stored_as == "fp16":
        return weights.astype(np.float16).astype(np.float32)
    if stored_as == "bf16":
        bits = weights.view(np.uint32)
        bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return weights


class Table:
    """Weights stay in their file until they are read; keys are in memory, 16 bytes each."""

    def __init__(self, folder, description):
        self.name, self.dim = description["name"], description["dim"]
        self._missing_row, self._stored_as = description["missing_row"], description["stored_as"]
        self._weights = read_array(folder / description["weights"], "weights")
        keys = read_array(folder / description["keys"], "keys")
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def weights_of(self, ids):
        """[ids, dim] in float32: the rows of ids, or what an id without a row begins with."""
        ids = fold(np.asarray(ids, np.uint64))
        result = np.empty((len(ids), self.dim), np.float32)
        has_row, places = self.find(ids)
        result[has_row] = self._weights[places]
        if not has_row.all():
            result[~has_row] = self.weights_without_row(ids[~has_row])
        return result

    def find(self, ids):
        """Which folded ids have a row, and the rows of these."""
        at = np.searchsorted(self._keys, ids)
        has_row = np.zeros(len(ids), bool)
        inside = at < len(self._keys)
        has_row[inside] = self._keys[at[inside]] == ids[inside]
        return has_row, self._order[at[has_row]]

    def weights_without_row(self, ids):
        return round_as_stored(initial_weights(self._missing_row, self.dim, ids), self._stored_as)
