"""An index of codes by id, in memory or on disk."""

from antisparse.index.index import Index

__all__ = ["Index"]
