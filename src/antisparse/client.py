"""A client of the service: asked as an `Index` is (docs/serve.md)."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from antisparse._arrays import filter_array, plain_array, shown, text_list
from antisparse.errors import (
    AntisparseError,
    InputError,
    MissingDependencyError,
    StorageError,
    UnsupportedError,
)

NPY = "application/x-npy"
_ERRORS: dict[str, type[AntisparseError]] = {
    **dict.fromkeys(("input", "not_found", "unauthorized", "forbidden", "too_large"), InputError),
    **dict.fromkeys(("unsupported", "read_only"), UnsupportedError),
}


class Client:
    """An index that a service has.

    Parameters
    ----------
    address : str
        Such as "http://127.0.0.1:8000".
    token : str, optional
    timeout : float
        Seconds that an answer may take.

    Examples
    --------
    >>> from antisparse.client import Client
    >>> with Client("http://127.0.0.1:8000") as index:  # doctest: +SKIP
    ...     distances, ids = index.search(Q, k=10)
    """

    def __init__(self, address: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("a client needs httpx: pip install 'antisparse[serve]'") from None
        if not isinstance(address, str) or not address.startswith(("http://", "https://")):
            raise InputError(f"address = {shown(address)} must begin with http:// or https://")
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _call(self, method: str, path: str, **what: Any) -> Any:
        import httpx

        try:
            answer = self._http.request(method, path, **what)
        except httpx.HTTPError as error:
            raise StorageError(f"{self._http.base_url} did not answer: {error}") from None
        if answer.is_success:
            return answer.json()
        try:
            said = answer.json()["error"]
            code, message = str(said["code"]), str(said["message"])
        except (ValueError, LookupError, TypeError):
            code, message = "http", answer.reason_phrase
        raise _ERRORS.get(code, StorageError)(f"{message} ({answer.status_code})")

    def info(self) -> dict[str, Any]:
        """What is in the index."""
        found: dict[str, Any] = self._call("GET", "/info")
        return found

    def __len__(self) -> int:
        return int(self.info()["vectors"])

    def search(self, Q: Any, k: int = 10, *, items: bool = False, **what: Any) -> Any:
        """The k nearest ids to each query: distances and ids, as `Index.search` gives them.

        With `items` a list for each query of dicts: the distance, and the key and the columns of the item. `what` are
        method, probes, shortlist, shortlist_method and filter. Vectors travel as they are, in binary, unless a filter
        is an array of ids, keys or bool; texts need a model at the service.
        """
        results, single = self._ask("/search", Q, {"k": k, "items": items, **what})
        if items:
            rows = [
                [{"distance": d, **item} for d, item in zip(one["distances"], one["items"], strict=True)]
                for one in results
            ]
            return rows[0] if single else rows
        distances, ids = _filled(results, k, np.int32 if what.get("method") == "hamming" else np.float64)
        return (distances[0], ids[0]) if single else (distances, ids)

    def range_search(
        self, Q: Any, radius: float, **what: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[np.int64]]:
        """All ids within a distance of each query: limits, distances, ids, as `Index.range_search` gives them."""
        results, _ = self._ask("/range", Q, {"radius": radius, **what})
        limits = np.cumsum([0, *(len(one["ids"]) for one in results)], dtype=np.int64)
        dtype = np.int32 if what.get("method") == "hamming" else np.float64
        distances = np.array([d for one in results for d in one["distances"]], dtype)
        return limits, distances, np.array([i for one in results for i in one["ids"]], np.int64)

    def _ask(self, path: str, Q: Any, what: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """The results for each query, and whether there is but one, by itself."""
        asked = {name: value for name, value in what.items() if value is not None}
        allowed = asked.get("filter")
        if allowed is not None and not isinstance(allowed, str):
            chosen = filter_array(allowed, "filter")
            asked["filter"] = (np.flatnonzero(chosen) if chosen.dtype == bool else chosen).tolist()
        texts = text_list(Q, "Q")
        if texts is not None:
            return self._call("POST", path, json={"texts": texts, **asked})["results"], isinstance(Q, str)
        array = plain_array(Q, "Q")
        if isinstance(asked.get("filter"), list):  # which has no place in an address
            found = self._call("POST", path, json={"vectors": np.atleast_2d(array).tolist(), **asked})
        else:
            content, header = _npy(np.atleast_2d(array)), {"content-type": NPY}
            found = self._call("POST", path, params=asked, content=content, headers=header)
        return found["results"], array.ndim == 1

    def item(self, key: str | int) -> dict[str, Any]:
        """The item of a key, or of an id."""
        from urllib.parse import quote

        found: dict[str, Any] = self._call("GET", f"/items/{quote(str(key), safe='')}")["item"]
        return found

    def add(self, X: Any, ids: Any = None, *, items: list[dict[str, Any]] | None = None) -> npt.NDArray[np.int64]:
        """Add vectors, if the service takes changes; returns their ids."""
        return np.array(self._call("POST", "/add", json=_rows(X, ids, items))["ids"], np.int64)

    def update(self, X: Any, ids: Any = None, *, items: list[dict[str, Any]] | None = None) -> None:
        """Replace vectors."""
        self._call("POST", "/update", json=_rows(X, ids, items))

    def remove(self, ids: Any) -> None:
        """Remove vectors by ids, or keys."""
        self._call("POST", "/remove", json={"ids": np.asarray(ids).tolist()})


def _npy(Q: npt.NDArray[Any]) -> bytes:
    import io

    file = io.BytesIO()
    np.save(file, Q, allow_pickle=False)
    return file.getvalue()


def _rows(X: Any, ids: Any, items: Any) -> dict[str, Any]:
    vectors = np.atleast_2d(plain_array(X, "X")).tolist()
    return {"vectors": vectors, "ids": None if ids is None else np.asarray(ids).tolist(), "items": items}


def _filled(results: list[dict[str, Any]], k: int, dtype: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Rows of k, filled up as a search does."""
    none = np.iinfo(np.int32).max if dtype == np.int32 else np.inf
    distances, ids = np.full((len(results), k), none, dtype), np.full((len(results), k), -1, np.int64)
    for row, result in enumerate(results):
        found = len(result["ids"])
        distances[row, :found], ids[row, :found] = result["distances"], result["ids"]
    return distances, ids
