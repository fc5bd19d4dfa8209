"""A setting: one way to spend the bytes, what it was measured to give, and the lines that make an index of it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antisparse._arrays import integer, texts
from antisparse.encoders import AntiSparseEncoder, LearnedEncoder
from antisparse.encoders.base import Encoder
from antisparse.learning.symbols import SYMBOLS
from antisparse.tuning.ways import DEFAULT_EFFORT, Parameters, default_split

MANY = 1_000_000  # vectors from which on an index is built with cells unless told otherwise

_USUAL = {"metric": "l2", "split": None, "symbols": "auto", "effort": DEFAULT_EFFORT}  # not said in lines to paste
_ENCODERS: dict[str, type[Encoder]] = {"AntiSparseEncoder": AntiSparseEncoder, "LearnedEncoder": LearnedEncoder}


@dataclass(frozen=True)
class Recall:
    """A recall measured on queries, and the 95 % interval that these leave for it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Setting:
    """One way to spend the bytes, and what it was measured to give.

    Attributes
    ----------
    way : str
        Its name, such as "default" or "signs, scale".
    estimator : {"LearnedEncoder", "AntiSparseEncoder"}
    parameters : dict
        Of the encoder.
    method : {"reconstruction", "hamming"}
        How the codes are searched.
    n_bytes : int
        All that is stored of a vector but its id.
    code : str
        What the bytes are, such as "30 codebooks, bias byte".
    recalls : dict of str to Recall
        By the name of the measure, such as "1@10".
    fit_seconds : float
    encode_us, search_us : float
        Microseconds a vector and a query, of one thread.
    dimension : int
        Of the vectors.
    """

    way: str
    estimator: str
    parameters: Parameters
    method: str
    n_bytes: int
    code: str
    recalls: dict[str, Recall]
    fit_seconds: float
    encode_us: float
    search_us: float
    dimension: int

    def encoder(self, n_threads: int | None = None) -> Encoder:
        """A new encoder of this setting, not fitted."""
        return new_encoder(self.estimator, {**self.parameters, "n_threads": n_threads})

    def symbols(self, n_indexed: int) -> str | None:
        """The `symbols` of `LearnedEncoder` that give this split for so many vectors; None if it must be given."""
        if "split" not in self.parameters:
            return None
        split, metric = self.parameters["split"], self.parameters["metric"]
        for kind in ("auto", *SYMBOLS):
            if default_split(self.n_bytes, n_indexed, self.dimension, metric, kind) == split:
                return kind
        return None

    def python(self, n_indexed: int) -> str:
        """Lines of Python that make an index of vectors X, of which there are `n_indexed`, with this setting."""
        n_indexed = integer(n_indexed, "n_indexed", 0, 2**63)
        given, symbols = dict(self.parameters), self.symbols(n_indexed)
        if symbols is not None:
            given["split"], given["symbols"] = None, symbols
        given = {name: value for name, value in given.items() if _USUAL.get(name, ...) != value}
        if symbols == "auto" and "effort" not in given:
            many = {"cells": self.parameters["split"].cells} if n_indexed >= MANY else {}
            return f"from antisparse import Index\nindex = Index.build(X, {_arguments(given | many)})"
        names = sorted({"Index", self.estimator} | ({"Split"} if "split" in given else set()))
        lines = [
            f"from antisparse import {', '.join(names)}",
            f"encoder = {self.estimator}({_arguments(given)}).fit(X)",
            "index = Index.create(None, encoder)  # a path in place of None keeps it on disk",
            "index.add(X)",
        ]
        if self.method != "reconstruction":
            lines.append(f"distances, ids = index.search(X[:1], method={self.method!r})")
        return "\n".join(lines)

    def command(self, n_indexed: int, data: Sequence[str] = ("DATA",)) -> str | None:
        """The command that makes the folder INDEX of this setting; None where its options cannot say it.

        `data` are the arguments that name the vectors, of which there are `n_indexed`.
        """
        n_indexed, data = integer(n_indexed, "n_indexed", 0, 2**63), texts(data, "data")
        symbols = self.symbols(n_indexed)
        if symbols is None:
            return None
        words = ["antisparse", "build", *data, "-o", "INDEX", "--bytes", str(self.n_bytes)]
        for option, name, usual in (("--metric", "metric", "l2"), ("--effort", "effort", DEFAULT_EFFORT)):
            if self.parameters[name] != usual:
                words += [option, str(self.parameters[name])]
        words += ["--symbols", symbols] * (symbols != "auto")
        words += ["--cells", str(self.parameters["split"].cells)] * (n_indexed >= MANY)
        return shlex.join([*words, "--seed", str(self.parameters["random_state"])])


def new_encoder(estimator: str, parameters: Parameters) -> Encoder:
    """An encoder by the name of its class."""
    return _ENCODERS[estimator](**parameters)


def _arguments(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
