"""XXH3 with 64 bits, seed 0 and the default secret, which satrap makes ids of texts with.

The algorithm is that of the specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
"""
import struct

BITS64 = 2**64 - 1
PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2, PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME64_4, PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
STRIPE_BYTES = 64
STRIPES_PER_BLOCK = (len(SECRET) - STRIPE_BYTES) // 8


def _u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _fold(a, b):
    """Both halves of the product of 128 bits, combined."""
    product = a * b
    return product & BITS64 ^ product >> 64


def _avalanche(h):
    h = (h ^ h >> 37) * PRIME_MX1 & BITS64
    return h ^ h >> 32


def _avalanche_xxh64(h):
    h = (h ^ h >> 33) * PRIME64_2 & BITS64
    h = (h ^ h >> 29) * PRIME64_3 & BITS64
    return h ^ h >> 32


def _up_to_16(data, length):
    if length > 8:
        low = _u64(data, 0) ^ _u64(SECRET, 24) ^ _u64(SECRET, 32)
        high = _u64(data, length - 8) ^ _u64(SECRET, 40) ^ _u64(SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(length + swapped + high + _fold(low, high) & BITS64)
    if length >= 4:
        h = _u32(data, length - 4) + (_u32(data, 0) << 32) ^ _u64(SECRET, 8) ^ _u64(SECRET, 16)
        h ^= (h << 49 | h >> 15) & BITS64 ^ (h << 24 | h >> 40) & BITS64
        h = h * PRIME_MX2 & BITS64
        h ^= (h >> 35) + length & BITS64
        h = h * PRIME_MX2 & BITS64
        return h ^ h >> 28
    if length > 0:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _avalanche_xxh64(combined ^ _u32(SECRET, 0) ^ _u32(SECRET, 4))
    return _avalanche_xxh64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _mix16(data, at, secret_at):
    return _fold(_u64(data, at) ^ _u64(SECRET, secret_at), _u64(data, at + 8) ^ _u64(SECRET, secret_at + 8))


def _up_to_128(data, length):
    total = length * PRIME64_1
    for i in range((length - 1) // 32, -1, -1):
        total += _mix16(data, 16 * i, 32 * i) + _mix16(data, length - 16 * (i + 1), 32 * i + 16)
    return _avalanche(total & BITS64)


def _up_to_240(data, length):
    total = length * PRIME64_1
    for i in range(8):
        total += _mix16(data, 16 * i, 16 * i)
    total = _avalanche(total & BITS64)
    for i in range(8, length // 16):
        total += _mix16(data, 16 * i, 16 * (i - 8) + 3)
    total += _mix16(data, length - 16, 136 - 17)
    return _avalanche(total & BITS64)


def _accumulate(lanes, data, at, secret_at):
    values = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", SECRET, secret_at)
    for i in range(8):
        key = values[i] ^ keys[i]
        lanes[i ^ 1] = lanes[i ^ 1] + values[i] & BITS64
        lanes[i] = lanes[i] + (key & 0xFFFFFFFF) * (key >> 32) & BITS64


def _long(data, length):
    lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    stripes = (length - 1) // STRIPE_BYTES
    scramble = struct.unpack_from("<8Q", SECRET, len(SECRET) - STRIPE_BYTES)
    for n in range(stripes):
        _accumulate(lanes, data, n * STRIPE_BYTES, n % STRIPES_PER_BLOCK * 8)
        if n % STRIPES_PER_BLOCK == STRIPES_PER_BLOCK - 1:
            lanes = [(lane ^ lane >> 47 ^ key) * PRIME32_1 & BITS64 for lane, key in zip(lanes, scramble)]
    _accumulate(lanes, data, length - STRIPE_BYTES, len(SECRET) - STRIPE_BYTES - 7)
    total = length * PRIME64_1
    for i in range(4):
        total += _fold(lanes[2 * i] ^ _u64(SECRET, 11 + 16 * i), lanes[2 * i + 1] ^ _u64(SECRET, 19 + 16 * i))
    return _avalanche(total & BITS64)


def xxh3(data):
    """The hash of bytes, an integer of 64 bits."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data, length)
    if length <= 128:
        return _up_to_128(data, length)
    return _up_to_240(data, length) if length <= 240 else _long(data, length)
