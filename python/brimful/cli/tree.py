"""The parser as a tree: its verbs and their options, for suggestions and for completion."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

# argparse offers no public way to inspect a parser; `_actions` has existed since its first release.


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a parser, in the order of its help."""
    return list(parser._actions)


def verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the verbs."""
    for action in actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """Return all ways to write the options of a parser."""
    return [name for action in actions(parser) for name in action.option_strings]


def every_action(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.ArgumentParser, argparse.Action]]:
    """Yield each argument of each verb, with the name and the parser of the verb."""
    for verb, verb_parser in verbs(parser).items():
        for action in actions(verb_parser):
            yield verb, verb_parser, action
