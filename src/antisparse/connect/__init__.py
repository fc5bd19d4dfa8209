"""Codes where the data already lives: one file a system, each imported by its own name (docs/databases.md)."""
