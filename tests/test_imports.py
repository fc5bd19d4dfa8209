"""What an import takes: heavy packages only where they are used."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import zoo

import antisparse
from antisparse import Index

X = zoo.vectors(40, 1)


def imported(code: str, cwd: object = None) -> set[str]:
    """The modules that there are in a new process after some code."""
    code += "\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd).stdout.split()
    )


def test_the_package_brings_numpy_and_little_else() -> None:
    """What takes the time of `import antisparse` is numpy's; `python -X importtime` shows how much."""
    found = imported("import antisparse")
    assert {"antisparse._core", "numpy"} <= found
    heavy = {
        "scipy",
        "sklearn",
        "threadpoolctl",
        "rich",
        "filelock",
        "safetensors",
        "pyarrow",
        "pandas",
        "importlib.metadata",
    }
    assert not found & heavy
    assert {name for name in found if name.startswith("antisparse.")} <= {
        *(
            "antisparse._arrays",
            "antisparse._containers",
            "antisparse._core",
            "antisparse._version",
            "antisparse.codes",
            "antisparse.errors",
            "antisparse.frames",
        ),
        *("antisparse.refine", "antisparse.spread"),
        *(f"antisparse.spread.{name}" for name in ("batch", "path", "plot", "problem")),
    }


def test_an_index_is_opened_searched_and_changed_without_scikit_learn_and_scipy_optimize(tmp_path) -> None:
    for name in ("signs cells scale", "codebooks cells nibble", "codebooks blocks", "lsh"):
        path = tmp_path / name
        with Index.create(path, zoo.codec(name)) as index:
            index.add(X)
        np.save(tmp_path / "X.npy", X)
        found = imported(
            "import numpy as np; from antisparse import Index\n"
            f"index, X = Index.open({str(path)!r}), np.load('X.npy')\n"
            "index.search(X, 3); index.search(X, 3, filter={1, 2}); index.range_search(X, 1.0)\n"
            "index.reconstruct([1])\n"
            "index.add(X[:2]); index.remove([2]); index.compact(); index.verify(); index.close()",
            tmp_path,
        )
        assert "antisparse.index" in found
        heavy = found & {"sklearn", "scipy.optimize", "pyarrow", "pandas", "polars", "rich"}
        assert not heavy, name


def test_every_public_name_is_listed_and_there() -> None:
    """Names that are imported when first asked for are found by completion, too."""
    listed = imported_names()
    assert {*antisparse.__all__, "__version__"} <= listed
    assert not listed & {"Any", "TYPE_CHECKING", "import_module"}
    for name in antisparse.__all__:
        value = getattr(antisparse, name)
        assert name in ("BlockFrame", "Codec") or not hasattr(value, "__path__"), f"{name} is a module"
    lazy = antisparse._LAZY
    assert set(lazy) <= set(antisparse.__all__)
    assert all(getattr(import_module(module), name) is getattr(antisparse, name) for name, module in lazy.items())


def imported_names() -> set[str]:
    """What `dir` lists before anything was asked for."""
    code = "import antisparse; print(*dir(antisparse))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
