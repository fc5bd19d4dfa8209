"""The size of the experiments: the paper's, or a small one that runs in seconds."""

from dataclasses import dataclass, field

from antisparse.errors import InputError


@dataclass(frozen=True)
class Settings:
    """Sizes and seeds; the defaults are the paper's sizes."""

    seeds: list[int] = field(default_factory=lambda: list(range(10)))
    n: int = 10_000
    d: int = 16
    queries: int = 1_000
    bits: tuple[int, ...] = (16, 24, 32, 48, 64, 96, 128)
    m: int = 48  # where the number of bits is fixed
    depth: int = 1_000  # the largest R
    sift_bits: int = 128
    sift_pca: int = 48
    sift_seeds: list[int] = field(default_factory=lambda: list(range(3)))
    timed: int = 100_000  # codes in the table of times

    def __post_init__(self) -> None:
        if not self.seeds or not self.sift_seeds:
            raise InputError("seeds and sift_seeds need at least one each")
        if self.d not in self.bits or not max(self.bits) >= self.m > self.d:
            raise InputError(f"bits = {self.bits}, m = {self.m}: bits must hold d = {self.d}, and m be above it")
        for name, least in (("n", 100), ("queries", 4), ("depth", 100)):
            if getattr(self, name) < least:
                raise InputError(f"{name} = {getattr(self, name)}; it must be at least {least}")


def quick() -> Settings:
    """Everything, on sizes that a test can run whole."""
    return Settings(
        seeds=[0, 1], n=1_000, queries=100, bits=(16, 48), depth=200, sift_pca=16, sift_seeds=[0, 1], timed=5_000
    )
