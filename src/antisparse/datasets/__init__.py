"""Vectors from files of every common format, and data sets by name (docs/datasets.md)."""

from antisparse.datasets.dataset import Dataset, read_dataset, write_dataset
from antisparse.datasets.download import cache_folder, fetch
from antisparse.datasets.files import read_vectors, write_vectors
from antisparse.datasets.named import load, sift1m, siftsmall, synthetic
from antisparse.datasets.sentences import sentences

__all__ = [
    "Dataset",
    "cache_folder",
    "fetch",
    "load",
    "read_dataset",
    "read_vectors",
    "sentences",
    "sift1m",
    "siftsmall",
    "synthetic",
    "write_dataset",
    "write_vectors",
]
