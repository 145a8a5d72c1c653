"""Every error that brimful raises: one root, one class per exit code of the command line.

The native module raises these classes by name, so that Python code and the command line see one
tree. A message is one sentence: subject, place, expectation, remedy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from brimful.io.redaction import redacted


class BrimfulError(Exception):
    """The root of brimful's errors; raised directly only for a bug in brimful.

    >>> import brimful as bf
    >>> try:
    ...     bf.read("no-such-file.txt")
    ... except bf.BrimfulError as error:
    ...     type(error).__name__, error.exit_code
    ('NotFoundError', 3)
    """

    #: Exit code of the command line.
    exit_code: ClassVar[int] = 1
    #: True on the command line, where sentences name options by their flags.
    names_flags: ClassVar[bool] = False

    def __init__(self, message: str = "", *rest: object) -> None:
        """Keep the sentence, with the secrets of URLs masked."""
        super().__init__(message, *rest)
        # Set after `super().__init__`, in which an `OSError` sets its arguments itself.
        self.args = (redacted(message), *rest)

    def __str__(self) -> str:
        """Return the sentence, whatever built-in class is mixed in (`KeyError` would quote it)."""
        return worded(str(self.args[0])) if self.args else ""


def worded(sentence: str) -> str:
    """Return a sentence with flags for options on the command line, and keywords in Python."""
    if BrimfulError.names_flags or "--" not in sentence:
        return sentence
    # By name, as in `brimful/__init__.py`: the tables of options raise errors themselves.
    shown: str = import_module("brimful.options.keywords").keywords(sentence)
    return shown


class UsageError(BrimfulError, ValueError):
    """The call itself is wrong: an unknown option, a bad size, an output that exists.

    >>> import brimful as bf
    >>> bf.read("edges.txt", budget="lots")
    Traceback (most recent call last):
    brimful.errors.UsageError: ...
    """

    exit_code: ClassVar[int] = 2


class MissingPackageError(UsageError, ImportError):
    """A package that the call needs, and brimful does not require, is not installed.

    >>> import brimful as bf
    >>> issubclass(bf.MissingPackageError, (bf.UsageError, ImportError))
    True
    """


class InputError(BrimfulError, ValueError):
    """The input or the graph is not of its format.

    >>> import brimful as bf, pyarrow as pa
    >>> bf.read(pa.table({"source": [1, None], "target": [1, 2]}))
    Traceback (most recent call last):
    brimful.errors.InputError: ...
    """

    exit_code: ClassVar[int] = 3


class NotFoundError(InputError, KeyError):
    """A vertex or a graph does not exist; also a `KeyError`.

    >>> import brimful as bf
    >>> bf.Graph.open("no-such.brimful")
    Traceback (most recent call last):
    brimful.errors.NotFoundError: ...
    """

    #: The integer or the name of a vertex that a graph lacks; otherwise None.
    vertex: int | str | None = None


class RecordIdError(NotFoundError, IndexError):
    """A collection has no record with this id, or the record was removed; also an `IndexError`.

    >>> import brimful as bf, tempfile
    >>> with bf.Bag(tempfile.mkdtemp() + "/x") as bag:
    ...     bag[0]
    Traceback (most recent call last):
    brimful.errors.RecordIdError: ...
    """


class BudgetError(BrimfulError, MemoryError):
    """The memory budget is too small for the work.

    It is raised before the work begins, except where the objects of a user's program grow.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
    ...     try:
    ...         ranks = bf.pagerank(graph, budget=1)
    ...     except bf.BudgetError as error:
    ...         ranks = bf.pagerank(graph, budget=error.needed_bytes)
    >>> len(ranks)
    2
    """

    exit_code: ClassVar[int] = 4

    #: The smallest budget that works, in bytes; 0 when unknown.
    needed_bytes: int

    def __init__(self, message: str, needed_bytes: int = 0) -> None:
        """Keep the sentence and the smallest budget that works, in bytes."""
        super().__init__(message)
        self.needed_bytes = needed_bytes

    def __reduce__(self) -> tuple[type[BudgetError], tuple[str, int]]:
        """Pickle with both arguments."""
        return type(self), (self.args[0], self.needed_bytes)


class CorruptError(BrimfulError):
    """Bytes on disk fail their checksum or contradict their own structure.

    >>> import brimful as bf
    >>> bf.CorruptError.exit_code
    5
    """

    exit_code: ClassVar[int] = 5


class StoreIoError(BrimfulError, OSError):
    """The operating system refused to open, read or write; `errno` is its number (None: unknown).

    >>> import brimful as bf
    >>> issubclass(bf.StoreIoError, OSError), bf.StoreIoError.exit_code
    (True, 6)
    """

    exit_code: ClassVar[int] = 6

    def __new__(cls, message: str, errno: int | None = None) -> StoreIoError:
        """Build without letting `OSError` choose a subclass by the number."""
        return super().__new__(cls, message)

    def __init__(self, message: str, errno: int | None = None) -> None:
        """Keep the sentence and the operating system's number."""
        super().__init__(message)
        self.errno = errno

    def __reduce__(self) -> tuple[type[StoreIoError], tuple[str, int | None]]:
        """Pickle with both arguments."""
        return type(self), (self.args[0], self.errno)


class WorkerLostError(StoreIoError):
    """A worker of a cluster was lost, and the restarts of the run are used up.

    >>> import brimful as bf
    >>> issubclass(bf.WorkerLostError, bf.StoreIoError)
    True
    """


class ProgramError(BrimfulError):
    """A method of the user's program raised an exception.

    >>> import brimful as bf, pyarrow as pa
    >>> class Wrong(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return 1 / 0
    ...     def signal(self, source, target, weight):
    ...         return None
    ...     def collect(self, vertex, signals):
    ...         return vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
    ...     try:
    ...         bf.run(graph, Wrong())
    ...     except bf.ProgramError as error:
    ...         error.vertex in (1, 2), type(error.__cause__).__name__
    (True, 'ZeroDivisionError')
    """

    exit_code: ClassVar[int] = 7

    #: The vertex whose method failed; None when unknown, or for a call with arrays of vertices.
    vertex: int | str | None

    #: The state of the vertex and its `superstep`, counted from 0; None when there is none. A call
    #: with arrays has an array of states.
    state: Any = None
    superstep: int | None = None

    #: The arguments of a failed call of compiled code, until `brimful.kernels.replay` reads them.
    received: tuple[Any, ...] | None = None

    #: The purpose of a failed call of compiled code, as the native side names it.
    call: str | None = None

    #: The operation that failed, as the native side names it, such as "signal".
    doing: str | None = None

    def __init__(self, message: str, vertex: int | str | None = None) -> None:
        """Keep the sentence and the vertex."""
        super().__init__(message)
        self.vertex = vertex

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the place, and with state and cause if these can be pickled."""
        place = self.superstep, _if_picklable(self.state), _if_picklable(self.__cause__)
        return _program_error, (type(self), self.args[0], self.vertex, *place)


def _program_error(
    kind: type[ProgramError],
    message: str,
    vertex: int | str | None,
    superstep: int | None,
    state: Any,
    cause: BaseException | None,
) -> ProgramError:
    error = kind(message, vertex)
    error.superstep, error.state, error.__cause__ = superstep, state, cause
    return error


def _if_picklable(value: Any) -> Any:
    import pickle

    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - objects of users raise anything
        return None
    return value
