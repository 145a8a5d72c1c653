"""Tables of options: each option is defined once, and every use follows from the definition.

A table is a `TypedDict` whose fields are `Annotated[type, Option(...)]`; tables compose by
inheritance. Flags (`brimful.cli.options`), docstrings and signatures (`described`), checks and
requests are made from it, and a type checker reads it as `**options: Unpack[Table]`.
"""

import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from brimful.errors import BrimfulError
from brimful.options import checks
from brimful.reporting import Progress, reportable
from brimful.sizes import Budget, parse_budget
from brimful.wording import did_you_mean

_T = TypeVar("_T")


@dataclass(frozen=True)
class Option:
    """Properties of an option besides its type.

    Attributes:
        text: Its sentence in docstrings.
        help: Its sentence on the command line, if it differs from `text`.
        metavar: Name of its value on the command line; None: N or X for a number.
        short: Its short flag on the command line, if there is one.
        default: Its value if none is given.
        least: The least number.
        most: The largest number.
        whole: The number is whole, and may be written as 11.5e9.
        repeated: It may be given several times on the command line.
        opposite: Flag and help for False, of a truth value that may also be None.
        check: Takes value and name, and returns the value as the native module takes it; None: the
            check follows from the type.
        name: Its name; from the table.
        type: Its type; from the table.
        kind: The one type besides None; None: there are several. From the table.
        words: The words that it takes, if these are few; from the table.
        names: The names of all options of the table.
    """

    text: str
    help: str | None = None
    metavar: str | None = None
    short: str = ""
    default: Any = None
    least: int = 0
    most: int = checks.MOST
    whole: bool = False
    repeated: bool = False
    opposite: tuple[str, str] | None = None
    check: Callable[[Any, str], Any] | None = None
    name: str = ""
    type: Any = None
    kind: Any = None
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def checked_value(self, value: Any) -> Any:
        """Return a value as the native module takes it.

        Raises:
            UsageError: The value is of another type, or out of range.
        """
        name = flag_of(self.name) if BrimfulError.names_flags else self.name
        if self.check is not None:
            return self.check(value, name)
        if value is None and types.NoneType in get_args(self.type):
            return None
        if self.words:
            return checks.word(value, name, self.words)
        if self.kind is bool:
            return checks.flag(value, name)
        if self.kind is int:
            return None if value is None else checks.whole(value, name, self.least, self.most)
        if self.kind is float and self.whole:
            return checks.whole(value, name, self.least, self.most, floats=True)
        if self.kind is float:
            return checks.real(value, name)
        if self.kind is str:
            return checks.text(value, name)
        raise TypeError(f"the option {self.name} of type {self.type} needs a check")

    @property
    def command_help(self) -> str:
        """Its sentence on the command line: `text` with flags for options, and without quotes."""
        if self.help is not None:
            return self.help
        text = self.text.removesuffix(".")
        for name in self.names:
            text = text.replace(f"`{name}`", flag_of(name))
        text = re.sub('["`]', "", text)
        text, none, default = text.partition("; None: ")
        return text[0].lower() + text[1:] + (f" (default: {default})" if none else "")


def flag_of(name: str) -> str:
    """Return the flag of an option: `--max-supersteps`."""
    return "--" + name.replace("_", "-")


@cache
def options_of(table: type) -> dict[str, Option]:
    """Return the options of a table, by name."""
    hints = get_type_hints(table, include_extras=True)
    return {
        name: replace(_completed(name, *get_args(hint)), names=tuple(hints))
        for name, hint in hints.items()
    }


def _completed(name: str, annotated: Any, option: Option) -> Option:
    union = get_origin(annotated) in (Union, types.UnionType)
    members = get_args(annotated) if union else (annotated,)
    kinds = [member for member in members if member is not types.NoneType]
    kind = kinds[0] if len(kinds) == 1 else None
    words = get_args(kind) if get_origin(kind) is Literal else ()
    return replace(option, name=name, type=annotated, kind=kind, words=words)


def texts(table: type) -> dict[str, str]:
    """Return the sentences of a table for docstrings, by name."""
    return {name: option.text for name, option in options_of(table).items()}


def checked(
    table: type[_T], arguments: Mapping[str, object], caller: str = "", others: Iterable[str] = ()
) -> _T:
    """Return all options of a table as the native module takes them, defaults included.

    Raises:
        TypeError: `arguments` has an unknown name; the message suggests names of the table and of
            `others`.
        UsageError: A value is of another type, or out of range.
    """
    options = options_of(table)  # type: ignore[arg-type]
    for name in arguments:
        if name not in options:
            hint = did_you_mean(name, [*options, *others])
            raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}{hint}")
    values = {
        name: option.checked_value(arguments.get(name, option.default))
        for name, option in options.items()
    }
    return cast(_T, values)


def picked(table: type, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the given options that a table has."""
    return {name: options[name] for name in options_of(table) if name in options}


#: The most threads: more gain nothing, and each takes buffers.
MAX_THREADS = 1024


class ResourceOptions(TypedDict, total=False):
    """Resources of a call."""

    threads: Annotated[
        int | None,
        Option(
            f"Compute threads, at most {MAX_THREADS:,}; None: all cores.",
            least=1,
            most=MAX_THREADS,
        ),
    ]
    budget: Annotated[
        Budget,
        Option(
            'Memory for brimful\'s own use, in bytes or as "500M"; None: the default of the graph, '
            "or else three quarters of the available memory.",
            help="memory limit of the whole process: 500M, 1G or auto (the default: three quarters "
            "of the cgroup limit or of available memory)",
            metavar="SIZE",
            check=lambda budget, name: parse_budget(budget),
        ),
    ]


class WorkOptions(ResourceOptions, total=False):
    """Options of long calls in Python."""

    progress: Annotated[
        Progress | None,
        Option(
            "True shows a bar, on standard error or in a notebook. A function is called about ten "
            "times a second with the phase, the units done, the total of units (0: unknown) and "
            "the seconds.",
            check=reportable,
        ),
    ]
