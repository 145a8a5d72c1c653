"""Tables of results: data frames of their columns, and a text and HTML of their first rows."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Never, Self

from brimful.errors import BrimfulError, UsageError
from brimful.io.output import refuse_input
from brimful.optional import require
from brimful.options.checks import given_path
from brimful.options.described import described
from brimful.packages import pandas, polars, pyarrow
from brimful.wording import SHOWN_HTML_ROWS, SHOWN_ROWS, counted, escape_controls, html_text

#: Longer values are shortened when rows are shown.
_SHOWN_CHARACTERS = 60


class Tabular(ABC):
    """Rows in columns, which may be larger than memory."""

    #: The files that the rows were computed from.
    _inputs: Sequence[str] = ()

    def _output_path(self, path: str | os.PathLike[str], *more_inputs: object) -> str:
        """Return the path of an output.

        Raises:
            UsageError: It would replace a file that the rows were computed from, or one of more.
        """
        name = given_path(path)
        refuse_input([name], *self._inputs, *more_inputs)
        return name

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def to_arrow(self) -> pyarrow.Table:
        """Return all columns as a `pyarrow.Table`, a copy in memory."""

    @abstractmethod
    def _headline(self) -> str:
        """Return the first line of `repr`."""

    @abstractmethod
    def _shown_columns(self) -> Sequence[str]:
        """Return the names of the columns that are shown."""

    @abstractmethod
    def _stream(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of these columns."""

    @described({}, "corrupt", "io")
    def to_pandas(self) -> pandas.DataFrame:
        """Return the columns as a `pandas.DataFrame`, a copy.

        Returns:
            The columns of `to_arrow`.

        Raises:
            MissingPackageError: pandas is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).to_pandas()["degree"].tolist()
        [1, 0]
        """
        require("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    @described({}, "corrupt", "io")
    def to_polars(self) -> polars.DataFrame:
        """Return the columns as a `polars.DataFrame`, a copy.

        Returns:
            The columns of `to_arrow`.

        Raises:
            MissingPackageError: Polars is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).to_polars().rows()
        [(0, 1), (1, 0)]
        """
        frame: polars.DataFrame = require("polars", "to_polars").DataFrame(self.to_arrow())
        return frame

    def __copy__(self) -> Self:
        """Return the object itself, which cannot be changed."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself, which cannot be changed."""
        return self

    def __reduce__(self) -> Never:
        """Refuse to be pickled.

        Raises:
            UsageError: Always.
        """
        raise UsageError(
            f"objects of {type(self).__name__} cannot be pickled, because their rows may be larger "
            "than memory; pickle their to_arrow(), or write() them to a file"
        )

    def __repr__(self) -> str:
        """Return the shape and the first rows, or why they cannot be read: debuggers call it."""
        try:
            return self._text()
        except BrimfulError as error:
            return f"<brimful.{type(self).__name__}: {error}>"

    def _text(self) -> str:
        shown = [tuple(self._shown_columns()), *islice(self._stream(), SHOWN_ROWS)]
        rows = list(map(_cells, shown))
        width = max(len(row[0]) for row in rows)
        lines = ["  ".join([f"  {first:>{width}}", *others]) for first, *others in rows]
        more = ["  ..."] if len(self) > SHOWN_ROWS else []
        return "\n".join([f"<{self._headline()}>", *lines, *more])

    def _repr_html_(self) -> str:
        """Return the shape and the first rows as an HTML table, for notebooks.

        A small figure of the distribution of a value for each vertex is below, if there are few
        rows and matplotlib.
        """
        try:
            return self._html()
        except BrimfulError:
            return f"<p>{html_text(repr(self))}</p>"

    def _html(self) -> str:
        head = "".join(f"<th>{html_text(name)}</th>" for name in self._shown_columns())
        rows = "".join(
            "<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in _cells(row)) + "</tr>"
            for row in islice(self._stream(), SHOWN_HTML_ROWS)
        )
        more = f"<p>{counted(len(self), 'row')}</p>" if len(self) > SHOWN_HTML_ROWS else ""
        return (
            f"<p>{html_text(self._headline())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table>{more}{self._small_figure()}"
        )

    def _small_figure(self) -> str:
        return ""


def _cells(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the texts of the ids and values in a row that is shown."""
    texts = (escape_controls(one) if isinstance(one, str) else repr(one) for one in row)
    return tuple(
        text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
        for text in texts
    )
