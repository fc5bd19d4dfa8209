"""Files and JSON changed at random: what tests of damage and of every reader share."""

import json

import numpy as np

from antisparse.codec import files as codec_files

HOSTILE = [0, 1, -1, 2, 31, 255, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e300, float("inf")]
HOSTILE += [float("nan"), "", "x", "\0", "manifest.json", "../x", ".", "0x1p0", "0x1p-1074", "0x1p99999", "nan", "inf"]
HOSTILE += [None, True, [], {}, [[]], "F32", "U8", "I64", "U32", "l2", "ip", "cosine", "1" * 5000, "é\ud800", [0, 0]]


EXTREME = [0, 1, 2, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -1, -2]


def leaves(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*at, key))


def bent(value, random):
    """JSON with one value another one, left out, or swapped."""
    value = json.loads(json.dumps(value))
    paths = [at for at in leaves(value) if at]
    *parents, key = paths[random.integers(len(paths))]
    inside = value
    for part in parents:
        inside = inside[part]
    kind = random.integers(5)
    if kind == 0:
        del inside[key]
    elif kind == 1 and isinstance(inside[key], int):
        inside[key] += int(random.choice([-1, 1, 32, -32, 2**16]))
    elif kind == 2:
        other = list(inside.values() if isinstance(inside, dict) else inside)
        inside[key] = other[random.integers(len(other))]
    else:
        inside[key] = HOSTILE[random.integers(len(HOSTILE))]
    return value


def mutated(data, random):
    """Bytes with some overwritten, put in, taken out, or moved."""
    data = bytearray(data)
    for _ in range(random.integers(1, 4)):
        at, length = int(random.integers(len(data) or 1)), int(random.choice([1, 1, 4, 8, 64]))
        kind = random.integers(5)
        if kind == 4:  # a number such as lengths and offsets are
            size = int(random.choice([1, 2, 4, 8]))
            number = int(random.choice(EXTREME)) % 256**size
            data[at : at + size] = number.to_bytes(size, "little" if random.random() < 0.8 else "big")
        elif kind == 0:
            data[at : at + length] = random.bytes(len(data[at : at + length]))
        elif kind == 1:
            data[at:at] = random.bytes(length)
        elif kind == 2 and len(data) > length + 16:
            del data[at : at + length]
        else:
            start = int(random.integers(len(data) or 1))
            data[at : at + length] = data[start : start + length]
    return bytes(data)


def bent_codec(data, random):
    header, tensors = codec_files._header(data), {key: a.copy() for key, a in codec_files.load_tensors(data).items()}
    content = json.loads(header["content"])
    if random.random() < 0.4:
        return mutated(data, random)
    if random.random() < 0.6:
        content = bent(content, random)
    else:
        array = tensors[random.choice(list(tensors))].reshape(-1)
        array[random.integers(len(array))] = random.choice([0, -1, 1e30, 1e300, 1e-300, np.nan, np.inf])
    text = json.dumps(content)
    header |= {"content": text, "crc32": str(codec_files._checksum(text, tensors))}
    return bytes(codec_files.save_tensors(tensors, header))
