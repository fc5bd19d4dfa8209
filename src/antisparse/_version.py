"""The version of the package, which files name as their writer; pyproject.toml takes it from here."""

__version__ = "0.2.0"
