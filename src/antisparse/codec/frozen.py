"""Values that never change: what they are made of is copied and pickled, what they prepare for use is not."""

from dataclasses import fields
from typing import Any, ClassVar


class Frozen:
    """A frozen dataclass whose cached properties are made anew after pickling and copying."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        """Checks; also run on what was pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # arrays are read-only again
