"""An index of codes by id, in memory or on disk."""

from antisparse.index.index import Index
from antisparse.index.interop import add_faiss, to_faiss
from antisparse.index.staging import commit, stage

__all__ = ["Index", "add_faiss", "commit", "stage", "to_faiss"]
