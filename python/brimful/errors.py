"""Every error that brimful raises: one root, one class per exit code of the command line.

The native module raises these classes by name, so that Python code and the command line see one
tree. A message is one sentence: what, where, what was expected, what to do.
"""

from __future__ import annotations

from typing import ClassVar

from brimful.redaction import redacted


class BrimfulError(Exception):
    """The root of brimful's errors; never raised itself."""

    #: What the command line exits with.
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", *rest: object) -> None:
        """Keep the sentence, without the secrets of URLs in it."""
        super().__init__(message, *rest)
        # Set here, because an `OSError` takes its arguments before.
        self.args = (redacted(message), *rest)

    def __str__(self) -> str:
        """Return the sentence, whatever built-in class is mixed in (`KeyError` would quote it)."""
        return str(self.args[0]) if self.args else ""


class UsageError(BrimfulError, ValueError):
    """The call itself is wrong: an unknown option, a bad size, an output that exists."""

    exit_code: ClassVar[int] = 2


class MissingPackageError(UsageError, ImportError):
    """A package that the call needs, and brimful does not, is not installed."""


class InputError(BrimfulError, ValueError):
    """The input or the graph is not what it should be."""

    exit_code: ClassVar[int] = 3


class NotFoundError(InputError, KeyError):
    """A vertex or a graph that is not there."""


class RecordIdError(NotFoundError, IndexError):
    """A record id that a collection does not have, or whose record was removed."""


class BudgetError(BrimfulError, MemoryError):
    """The memory budget cannot hold what the work needs; raised before the work begins."""

    exit_code: ClassVar[int] = 4

    #: The smallest budget that works, in bytes; 0 when unknown.
    needed_bytes: int

    def __init__(self, message: str, needed_bytes: int = 0) -> None:
        """Keep the sentence and the smallest budget that works, in bytes."""
        super().__init__(message)
        self.needed_bytes = needed_bytes

    def __reduce__(self) -> tuple[type[BudgetError], tuple[str, int]]:
        """Pickle with both arguments."""
        return type(self), (str(self), self.needed_bytes)


class CorruptError(BrimfulError):
    """Bytes on disk fail their checksum or contradict their own structure."""

    exit_code: ClassVar[int] = 5


class StoreIoError(BrimfulError, OSError):
    """The operating system refused to open, read or write; `errno` says why (None: unknown)."""

    exit_code: ClassVar[int] = 6

    def __new__(cls, message: str, errno: int | None = None) -> StoreIoError:
        """Build without letting `OSError` pick a subclass from the number."""
        return super().__new__(cls, message)

    def __init__(self, message: str, errno: int | None = None) -> None:
        """Keep the sentence and the operating system's number."""
        super().__init__(message)
        self.errno = errno

    def __reduce__(self) -> tuple[type[StoreIoError], tuple[str, int | None]]:
        """Pickle with both arguments."""
        return type(self), (str(self), self.errno)


class ProgramError(BrimfulError):
    """The user's own program failed while it ran."""

    exit_code: ClassVar[int] = 7

    #: The vertex at which it failed; None when unknown.
    vertex: int | str | None

    def __init__(self, message: str, vertex: int | str | None = None) -> None:
        """Keep the sentence and the vertex."""
        super().__init__(message)
        self.vertex = vertex

    def __reduce__(self) -> tuple[type[ProgramError], tuple[str, int | str | None]]:
        """Pickle with both arguments."""
        return type(self), (str(self), self.vertex)
