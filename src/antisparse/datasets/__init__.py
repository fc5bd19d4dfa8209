"""Vectors from files of every common format."""

from antisparse.datasets.files import read_vectors, write_vectors

__all__ = ["read_vectors", "write_vectors"]
