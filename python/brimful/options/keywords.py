"""Options in messages: flags on the command line, keywords in Python.

Messages of all modules are written with flags, `leave --max-supersteps out`. Invariant: the command
line shows them as they are, and Python shows `leave max_supersteps= out`.
"""

from __future__ import annotations

import re
from functools import cache

#: A command in quotes, which stays, or a flag, perhaps with its value.
_FLAG = re.compile(
    r"'(?:brimful|ray) [^']*'"
    r"|--param (?P<parameter>\w+)=?"
    r"|(?<![\w-])--(?P<flag>[a-z][a-z-]*)"
    r"(?:(?P<between>[ =])(?P<value>[A-Z]+\b|\d\w*|[\w-]+(?::[A-Z]+)?))?"
)
_PLACEHOLDER = re.compile(r"[A-Z]+")


@cache
def _options() -> dict[str, tuple[str, str | None, tuple[str, ...]]]:
    """Return keyword, truth value and words of every option, by its flag."""
    from brimful.options import clusters, derivations, exports, imports, runs, table

    options: dict[str, tuple[str, str | None, tuple[str, ...]]] = {}
    for module in (clusters, derivations, exports, imports, runs, table):
        for value in vars(module).values():
            if not (isinstance(value, type) and value.__name__.endswith("Options")):
                continue
            for name, option in table.options_of(value).items():
                is_flag = option.kind is bool
                options[table.flag_of(name)] = name, "True" if is_flag else None, option.words
                if option.opposite is not None:
                    options["--" + option.opposite[0]] = name, "False", ()
    return options


def keywords(sentence: str) -> str:
    """Return a sentence with keywords instead of flags: `leave max_supersteps= out`."""
    return _FLAG.sub(_keyword, sentence) if "--" in sentence else sentence


def _keyword(match: re.Match[str]) -> str:
    text = match[0]
    if match["parameter"]:
        return f"{match['parameter']}="
    if match["flag"] is None:
        return text
    option = _options().get(f"--{match['flag']}")
    if option is None:
        return text
    name, truth, words = option
    between, value = match["between"] or "", match["value"]
    after = f"{between}{value}" if value else ""
    if truth is not None:
        return f"{name}={truth}{after}"
    if value is None:
        return f"{name}="
    if value in words or ":" in value:
        return f'{name}="{value}"'
    if _PLACEHOLDER.fullmatch(value) or value[0].isdigit():
        return f"{name}={value}"
    return f"{name}={after}"
