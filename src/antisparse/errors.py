"""The exceptions a caller may catch. All derive from `AntisparseError`."""


class AntisparseError(Exception):
    """Base class of every error this library raises on purpose."""


class InputError(AntisparseError, ValueError):
    """An argument has a value that cannot be used. The message names the argument and says what to do."""


class InputTypeError(AntisparseError, TypeError):
    """An argument has a type that cannot be used. The message names the argument and says what to do."""


class UnsupportedError(AntisparseError, NotImplementedError):
    """What was asked for cannot be done with this encoder or index. The message says with which it can."""


class FormatError(AntisparseError, ValueError):
    """A file is damaged, truncated, of another kind, or of a newer version. The message names the file."""


class StorageError(AntisparseError, OSError):
    """A file could not be written or read: a full disk, say. What was stored before is as it was."""


class MissingFileError(StorageError, FileNotFoundError):
    """There is no file of that name."""


class LockedError(StorageError):
    """The index is open for writing elsewhere."""


class DownloadError(AntisparseError, OSError):
    """A file could not be fetched, or is not the file that was expected. The message says how to place it by hand."""


class ClusterError(AntisparseError, RuntimeError):
    """Machines that share the work did not do it: one died too often, or did not answer in time."""


class MissingDependencyError(AntisparseError, ImportError):
    """An optional package is needed and not installed. The message says how to install it."""


class RankError(InputError):
    """The frame does not have full rank, so the spread representation is not defined.

    Attributes
    ----------
    rank : int
        The numerical rank found.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message, rank)
        self.rank = rank

    def __str__(self) -> str:
        return str(self.args[0])


class StepLimitError(AntisparseError, RuntimeError):
    """The path of a vector has more breakpoints than `max_steps` allows.

    Attributes
    ----------
    row : int
        The vector's row.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])


class AccuracyError(AntisparseError, ArithmeticError):
    """A solution was found but fails its own certificate: the frame is too badly conditioned for float64.

    Attributes
    ----------
    row : int
        The vector's row.
    certificate : float
        The largest violation of the optimality conditions, relative to ``||A.T @ y||_1``.
    """

    def __init__(self, message: str, row: int, certificate: float) -> None:
        super().__init__(message, row, certificate)
        self.row = row
        self.certificate = certificate

    def __str__(self) -> str:
        return str(self.args[0])
