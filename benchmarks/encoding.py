"""Speed of encoding, beside what FAISS needs to add the same vectors.

    python benchmarks/encoding.py [--smoke] [--json FILE]

One million random vectors of 48 dimensions in float32 (a memory-mapped file), encoded to 128 bits in bounded memory.
One thread for both sides. Also the cosine between vectors and what their codes rebuild.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from search import resident
from timing import options, write_json

from antisparse import AntiSparseEncoder, ITQEncoder, LSHEncoder


def throughput(n: int) -> dict[str, Any]:
    """Vectors a second of our encoders and of FAISS' add."""
    d, bits = 48, 128
    numbers: dict[str, Any] = {}
    print(f"{n} x {d} float32 to {bits} bits, one thread")
    print(f"{'':28} {'vectors/s':>10} {'seconds':>8} {'MB added':>9}")

    def report(name: str, seconds: float, added: float | None = None) -> None:
        numbers[name] = {"vectors_per_s": n / seconds, "mb_added": added}
        print(f"{name:28} {n / seconds:10.0f} {seconds:8.1f} {'' if added is None else f'{added:9.1f}'}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.npy"
        X = np.lib.format.open_memmap(file, "w+", np.float32, (n, d))
        rng = np.random.default_rng(0)
        for start in range(0, n, 100_000):
            X[start : start + 100_000] = rng.standard_normal((len(X[start : start + 100_000]), d))
        X.flush()
        learn = np.array(X[:20_000])
        for encoder in (
            LSHEncoder(bits, random_state=0, n_threads=1),
            ITQEncoder(bits, random_state=0, n_threads=1, n_iter=5),
            AntiSparseEncoder(bits, frame="tight", effort=0, h=0.3, random_state=0, n_threads=1),
            AntiSparseEncoder(bits, frame="tight", effort=0, h=0.1, random_state=0, n_threads=1),
            AntiSparseEncoder.paper(bits, random_state=0, n_threads=1),
        ):
            encoder.fit(learn)
            mapped = np.load(file, mmap_mode="r")
            before = resident()
            start_time = time.perf_counter()
            codes = encoder.codec_.encode(mapped, progress=sys.stderr.isatty(), n_threads=1)
            seconds = time.perf_counter() - start_time
            # What the mapped file itself takes of the page cache is not memory held: count the rest.
            added = (resident() - before - mapped.nbytes) / 2**20
            name = type(encoder).__name__ + (f" h = {encoder.h:g}" if hasattr(encoder, "h") else "")
            report(name + (" (paper)" if not getattr(encoder, "relative_h", True) else ""), seconds, max(added, 0.0))
            del codes, mapped
        for name in ("LSH", "PQ16x8", "RaBitQ"):
            index: Any = faiss.IndexLSH(d, bits) if name == "LSH" else faiss.index_factory(d, name)
            if name == "PQ16x8":
                index.do_polysemous_training = False  # it orders centroids, for long, and changes no rate
            index.train(learn)
            data = np.array(X)
            start_time = time.perf_counter()
            index.add(data)
            report(f"faiss {name} add", time.perf_counter() - start_time)
    return numbers


def cosines() -> dict[str, float]:
    """Mean cosine of vectors and their reconstructions: 16 dimensions, 48 bits, as in the paper."""
    rng = np.random.default_rng(0)
    sphere = rng.standard_normal((10_000, 16))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    found = {}
    print("\nmean cosine of y and its reconstruction, d = 16, 48 bits, tight frame")
    for name, encoder in (
        ("anti-sparse, h = 1", AntiSparseEncoder.paper(48, random_state=0)),
        ("LSH", LSHEncoder(48, center=False, random_state=0)),
    ):
        rebuilt = encoder.fit(sphere).inverse_transform(encoder.transform(sphere))
        found[name] = float(((rebuilt * sphere).sum(1) / np.linalg.norm(rebuilt, axis=1)).mean())
        print(f"  {name:20} {found[name]:.4f}")
    return found


def main() -> None:
    """Run everything and write the numbers."""
    arguments = options(__doc__).parse_args()
    faiss.omp_set_num_threads(1)
    numbers = throughput(2_000 if arguments.smoke else 1_000_000)
    write_json(arguments.json, {"faiss": faiss.__version__, "throughput": numbers, "cosine": cosines()})


if __name__ == "__main__":
    main()
