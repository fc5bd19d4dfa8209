"""Codes laid out for the scan, and the one search over them."""

from antisparse.scan.code_base import CodeBase
from antisparse.scan.columns import Columns, lay_out
from antisparse.scan.search import Search, Searcher

__all__ = ["CodeBase", "Columns", "Search", "Searcher", "lay_out"]
