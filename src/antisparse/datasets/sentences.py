"""Sentences that are on every machine that has this library, and their vectors: something to try an index on.

They are the first sentences of the documentation of functions of Python, NumPy, SciPy and scikit-learn. The vectors are
made without a model: weighted counts of words and of parts of words, projected to their principal axes.
"""

import inspect
import re
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse._arrays import integer

_MODULES = """
builtins math cmath statistics random itertools functools operator collections heapq bisect decimal fractions datetime
calendar time zoneinfo string re textwrap difflib unicodedata json csv pickle struct base64 binascii hashlib hmac
secrets zlib gzip bz2 lzma zipfile tarfile os os.path pathlib shutil tempfile glob fnmatch io stat subprocess threading
queue asyncio socket ssl selectors signal email.message email.utils urllib.parse urllib.request http.client logging
argparse configparser inspect ast dis types enum dataclasses contextlib weakref copy gc sys traceback locale gettext
html ipaddress uuid array sched cProfile timeit unittest.mock
numpy numpy.linalg numpy.fft numpy.random numpy.ma numpy.polynomial.polynomial numpy.polynomial.chebyshev numpy.char
scipy.linalg scipy.fft scipy.signal scipy.signal.windows scipy.special scipy.stats scipy.stats.mstats scipy.optimize
scipy.integrate scipy.interpolate scipy.ndimage scipy.spatial scipy.spatial.distance scipy.sparse scipy.sparse.linalg
scipy.sparse.csgraph scipy.cluster.hierarchy scipy.cluster.vq scipy.io
sklearn.cluster sklearn.decomposition sklearn.ensemble sklearn.linear_model sklearn.manifold sklearn.metrics
sklearn.metrics.pairwise sklearn.model_selection sklearn.neighbors sklearn.preprocessing sklearn.svm sklearn.tree
sklearn.datasets sklearn.feature_extraction.text sklearn.feature_selection sklearn.naive_bayes sklearn.neural_network
"""
_WORDS = re.compile(r"[a-zA-Z]{2,}")
_LEAST_WORDS, _LONGEST = 4, 200


def sentences(dimensions: int = 128) -> tuple[list[str], list[str], npt.NDArray[np.float32]]:
    """Some thousand sentences on what functions do, found on this machine.

    The same versions of Python, NumPy, SciPy and scikit-learn give the same sentences.

    Parameters
    ----------
    dimensions : int
        Of the vectors.

    Returns
    -------
    names : list of str
        Of the functions, such as "math.gcd"; they are distinct.
    texts : list of str
    vectors : ndarray of shape (n, dimensions), float32
        Of unit length.
    """
    dimensions = integer(dimensions, "dimensions", 2, 1025)
    found: dict[str, str] = {}  # each sentence once, by the first that says it
    for name in _MODULES.split():
        for function, text in _documented(name):
            found.setdefault(text, function)
    pairs = sorted((function, text) for text, function in found.items())
    texts = [text for _, text in pairs]
    return [function for function, _ in pairs], texts, _vectors(texts, dimensions)


def _documented(name: str) -> list[tuple[str, str]]:
    """The public functions, classes and methods of a module, with the first sentence on each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = import_module(name)
        except ImportError:  # not every Python has each
            return []
        found = []
        for own in sorted(vars(module)):
            value = getattr(module, own, None)
            if own.startswith("_") or isinstance(value, ModuleType) or not callable(value):
                continue
            if isinstance(value, type) and value.__module__.strip("_").partition(".")[0] != name.partition(".")[0]:
                continue  # imported from elsewhere
            found.append((f"{name}.{own}", value))
            if isinstance(value, type) and not name.startswith(("numpy", "scipy", "sklearn")):
                methods = {method: inner for method, inner in vars(value).items() if method[0] != "_"}
                found += [(f"{name}.{own}.{method}", methods[method]) for method in sorted(methods)]
        said = [(called.removeprefix("builtins."), _first_sentence(value)) for called, value in found]
    return [(called, text) for called, text in said if text]


def _first_sentence(value: Any) -> str:
    """The first sentence of a docstring that is one; of others nothing."""
    try:
        doc = inspect.cleandoc(str(value.__doc__ or ""))
    except Exception:  # whatever an object does when it is asked
        return ""
    blocks = [block for block in doc.split("\n\n") if not re.match(r"[\w.]+\(.*", block)]  # signatures
    text = " ".join(blocks[0].split()) if blocks else ""
    text = re.sub(r":\w+:`~?([^`]*)`|``?([^`]*)``?", lambda match: match[1] or match[2] or "", text)
    text = re.split(r"(?<=[a-z)\]])(?<!eg)(?<!e\.g)(?<!i\.e)(?<!etc)\.\s", text, maxsplit=1)[0].rstrip(".").strip()
    sound = text[:1].isupper() and len(text) <= _LONGEST and len(_WORDS.findall(text)) >= _LEAST_WORDS
    return text + "." if sound and text.isprintable() and "deprecated" not in text.lower() else ""


def _vectors(texts: list[str], dimensions: int) -> npt.NDArray[np.float32]:
    """Counts of words and of parts of words, by how rare they are, along their principal axes."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.utils.extmath import randomized_svd

    words = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2)
    parts = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 5), sublinear_tf=True, min_df=3)
    counts = hstack([words.fit_transform(texts), 0.5 * parts.fit_transform(texts)]).tocsr()
    axes, strengths, _ = randomized_svd(counts, min(dimensions, min(counts.shape) - 1), n_iter=5, random_state=0)
    vectors = axes * np.sqrt(strengths)  # between the counts themselves and axes of equal weight
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
