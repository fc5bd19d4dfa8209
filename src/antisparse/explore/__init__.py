"""The explorer: a page on which a person sees what the codes find, and what they miss (docs/explore.md)."""

from antisparse.explore.explorer import Explorer
from antisparse.explore.originals import Originals
from antisparse.explore.sizes import other_sizes
from antisparse.explore.written import write_page

__all__ = ["Explorer", "Originals", "other_sizes", "write_page"]
