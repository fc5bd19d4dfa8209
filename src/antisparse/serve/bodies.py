"""What requests hold: JSON that is checked, or vectors as .npy or Arrow."""

import io
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from antisparse.errors import InputError
from antisparse.index.tables import vector_column, vectors_of
from antisparse.serve.arrow_stream import table_in

JSON, NPY, ARROW = "application/json", "application/x-npy", "application/vnd.apache.arrow.stream"
BESIDE = 1 << 20  # values of a body of JSON that are not in vectors: ids, texts, columns
Array = npt.NDArray[Any]

Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = list[Number]
Id = Annotated[int, Field(ge=0, lt=2**63 - 1, strict=True)] | str  # strict: True is no id


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class Asked(_Body):
    """What is asked beside the vectors: the same for JSON and, as parameters of the address, for other bodies."""

    method: Literal["reconstruction", "hamming", "asymmetric"] = "reconstruction"
    probes: Annotated[int, Field(ge=1)] | Literal["all"] = Field("all", description="Cells that a query visits.")
    filter: str | list[Id] | None = Field(
        None,
        description="An expression on the columns of items, or the ids or keys that alone may be found.",
        examples=["lang = 'en' and year >= 2020"],
    )


class Queries(_Body):
    """One query or several: vectors, or texts where a model is served."""

    vector: Vector | None = Field(None, description="One query.", examples=[[0.1, 0.2, 0.3]])
    vectors: list[Vector] | None = Field(None, description="Several queries.", min_length=1)
    text: str | None = Field(None, description="One query as a text, where a model is served.")
    texts: list[str] | None = Field(None, description="Several of them.", min_length=1)

    @model_validator(mode="after")
    def _one(self) -> "Queries":
        if sum(one is not None for one in (self.vector, self.vectors, self.text, self.texts)) != 1:
            raise ValueError("give one of vector, vectors, text and texts")
        return self

    def array(self) -> Any:
        """The queries as an index takes them."""
        if self.text is not None or self.texts is not None:
            return [self.text] if self.texts is None else self.texts
        rows = [self.vector] if self.vectors is None else self.vectors
        assert rows is not None
        if len({len(row) for row in rows if row is not None}) > 1:
            raise InputError("vectors have different lengths; all must be as long as those of the index")
        return np.array(rows, np.float64).reshape(len(rows), -1)


class SearchAsked(Asked):
    """What is asked of a search."""

    k: Annotated[int, Field(ge=1)] = Field(10, description="Results a query.")
    shortlist: Annotated[int, Field(ge=1)] | None = Field(None, description="Candidates that are ranked anew.")
    shortlist_method: Literal["hamming", "asymmetric"] = Field("hamming", description="What finds these candidates.")
    items: bool = Field(False, description="Give the items of what is found.")


class SearchBody(Queries, SearchAsked):
    """A search."""


class RangeAsked(Asked):
    """What is asked of a search by distance."""

    radius: Number = Field(description="Find all that is as near as that.", examples=[0.5])


class RangeBody(Queries, RangeAsked):
    """A search by distance."""


class AddBody(_Body):
    """Vectors to add, or to put in place of others."""

    vectors: list[Vector] = Field(min_length=1, examples=[[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]])
    ids: list[Id] | None = Field(
        None, description="Ids, or, of what is replaced, keys; by default the next ids.", examples=[[17, 18]]
    )
    items: list[dict[str, Any]] | None = Field(
        None,
        description="The items of the vectors, where the index keeps any.",
        examples=[[{"key": "a", "text": "some text"}, {"key": "b", "text": "another text"}]],
    )


class RemoveBody(_Body):
    """What to remove."""

    ids: list[Id] = Field(description="Ids, or keys where these are text.", examples=[[17, 18], ["a", "b"]])


class ItemsAsked(_Body):
    """Which items the explorer lists."""

    words: str = Field("", max_length=1000, description="What the key or the text must have.")
    most: Annotated[int, Field(ge=1, le=100)] = Field(20, description="How many, at most.")
    any: bool = Field(False, description="One at random instead.")


class ExploreBody(_Body):
    """What the explorer asks: an item, a text or a vector."""

    id: str | None = Field(None, pattern="^[0-9]{1,19}$", description="The id of an item, as text.", examples=["17"])
    text: str | None = Field(None, description="A text, where a model is served.")
    vector: Vector | None = None
    size: int | None = Field(None, description="Bytes of the codes, where there are several sizes.")
    k: Annotated[int, Field(ge=1, le=100)] = Field(10, description="Neighbours.")

    @model_validator(mode="after")
    def _one(self) -> "ExploreBody":
        if sum(one is not None for one in (self.id, self.text, self.vector)) != 1:
            raise ValueError("give one of id, text and vector")
        return self


def check_values(body: bytes, most: int) -> None:
    """Raise if a body of JSON has more values than may be. Each would take ten times its bytes or more."""
    if body.count(b",") >= most:
        raise InputError(f"the body has more than {most:,} values; send vectors as {NPY}, or several requests")


def parsed(kind: type[BaseModel], body: bytes | dict[str, Any]) -> Any:
    """A body as what it should be; InputError says where it is not."""
    try:
        return kind.model_validate_json(body) if isinstance(body, bytes) else kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        if first["type"] == "extra_forbidden":
            raise InputError(f"{where[:100]!r} is none of the fields {', '.join(kind.model_fields)}") from None
        raise InputError(f"{where[:100]}: {first['msg'][:300]}") from None


def vectors_in(body: bytes, kind: str, name: str) -> Array:
    """The vectors of a body that is .npy, without pickles, or an Arrow stream of a table with a column of vectors."""
    if kind == NPY:
        return _npy(body, name)
    table = table_in(body, name)
    return vectors_of(table, vector_column(table.schema, None))


def _npy(body: bytes, name: str) -> Array:
    """Without pickles; the bytes of an array must be there before it is made."""
    file = io.BytesIO(body)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        read = readers.get(version)
        if read is None:
            raise ValueError(f"it has version {version}, or its bytes were changed on the way (curl: --data-binary)")
        shape, fortran, dtype = read(file)
        if dtype.hasobject or dtype.kind not in "iuf":
            raise ValueError(f"it holds {dtype}, where numbers are wanted")
        if len(shape) not in (1, 2) or np.prod(shape, dtype=object) * dtype.itemsize != len(body) - file.tell():
            raise ValueError(f"its shape {shape} is not that of rows of numbers, or not that of its bytes")
        return np.frombuffer(body, dtype, -1, file.tell()).reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # of numpy, which reads the header as Python
        raise InputError(f"{name} is not a .npy file: {str(error)[:200]}") from None
