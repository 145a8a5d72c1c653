"""Parts of messages: shortened values, and suggestions for unknown names."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

#: Characters of a wrong value that a sentence shows.
_SHOWN_CHARACTERS = 60
#: Rows that `repr` shows, and a notebook.
SHOWN_ROWS = 5
SHOWN_HTML_ROWS = 10


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'pagerank'?` for the end of a sentence, or nothing."""
    from difflib import get_close_matches

    def simple(one: str) -> str:
        return one.lower().lstrip("-").replace("-", "_")

    wanted, known = simple(name), {simple(one): one for one in names}
    # In a short name a larger share may be wrong, such as one letter of two.
    cutoff = 0.75 if len(wanted) > 3 else 0.5
    close = get_close_matches(wanted, known, n=1, cutoff=cutoff)
    close += [one for one in known if _begins_or_is_word(wanted, one)]
    return f"; did you mean '{known[close[0]]}'?" if close else ""


def _begins_or_is_word(one: str, other: str) -> bool:
    """Return whether the shorter name is a word of the longer one, or its beginning."""
    short, long = sorted((one, other), key=len)
    return len(short) > 2 and (long.startswith(short) or short in long.split("_"))


def unknown(kind: str, name: str, choices: Iterable[str], listed_by: str | None = None) -> str:
    """Return `there is no format 'cvs'; did you mean 'csv'? (known: csv, ...)`.

    With `listed_by`, a command that lists the names replaces them.
    """
    names = list(choices)
    listed = f"known: {', '.join(names)}" if listed_by is None else f"'{listed_by}' lists all"
    return f"there is no {kind} '{name}'{did_you_mean(name, names)} ({listed})"


#: Nouns with an irregular plural.
_PLURALS = {"vertex": "vertices"}


def counted(count: int, noun: str) -> str:
    """Return `1 row` or `2,000 rows`; of a noun of several words the last one is in the plural."""
    before, space, word = noun.rpartition(" ")
    plural = word if count == 1 else _PLURALS.get(word, word + "s")
    return f"{count:,} {before}{space}{plural}"


def rows_shown(rows: Sequence[int], table: str) -> str:
    """Return `rows 1 and 3`, counted from 1; in a file of text they are `after the header`."""
    shown = " and ".join(f"{row:,}" for row in rows)
    after = " after the header" if table.lower().endswith((".csv", ".tsv")) else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {shown}{after}"


def either(words: Sequence[str]) -> str:
    """Return `keep, drop or sum`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def shortened(value: object) -> str:
    """Return a value for a message: text unchanged, other values by `repr`, shortened."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN_CHARACTERS:
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1:,} digits"
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text):,} characters)"


def cut(text: str, most: int) -> str:
    """Return a text, or its first `most` characters with three dots."""
    return text if len(text) <= most else f"{text[:most]}..."


def literal(value: object) -> str:
    """Return a value of a wrong type for a message: text is in quotes, as in `'2'`."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(value)


def printable(text: str) -> str:
    r"""Return text in which bytes that are not UTF-8, as in file names, are written `\udcff`."""
    return text.encode("utf-8", "backslashreplace").decode()


def escape_controls(text: str) -> str:
    """Return text with unprintable characters, except newline and tab, as escapes."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in "\n\t"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def quoted(text: str) -> str:
    r"""Return text in double quotes, with unprintable characters as escapes: `"two\nlines"`."""
    import json

    return escape_controls(json.dumps(text, ensure_ascii=False))


def html_text(text: str) -> str:
    """Return text for HTML, with control characters as escapes."""
    return html.escape(escape_controls(text))
