"""Vectors from files of every common format."""

from antisparse.datasets.dataset import Dataset, read_dataset, write_dataset
from antisparse.datasets.download import cache_folder, fetch
from antisparse.datasets.files import read_vectors, write_vectors

__all__ = ["Dataset", "cache_folder", "fetch", "read_dataset", "read_vectors", "write_dataset", "write_vectors"]
