"""An index of codes by id, in memory or on disk."""

from antisparse.index.index import Index
from antisparse.index.staging import commit, stage

__all__ = ["Index", "commit", "stage"]
