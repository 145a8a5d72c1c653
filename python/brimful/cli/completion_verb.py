"""`brimful completion bash|zsh|fish`: a script that completes the command line, from its parser."""

from __future__ import annotations

import argparse
import shlex

from brimful.cli import options as shared
from brimful.cli import tree


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "completion",
        "Print a script that completes verbs, options, values and graphs in a shell.",
        act,
        examples=(
            "source <(brimful completion bash)",
            "brimful completion zsh > ~/.zfunc/_brimful",
            "brimful completion fish > ~/.config/fish/completions/brimful.fish",
        ),
    )
    parser.add_argument("shell", metavar="SHELL", choices=list(_SCRIPTS), help="bash, zsh or fish")


def act(options: argparse.Namespace) -> None:
    """Print the script."""
    shared.show(_SCRIPTS[options.shell](options.root))


def _algorithms() -> list[str]:
    from brimful.catalog import algorithms

    return list(algorithms())


def _words(action: argparse.Action) -> list[str]:
    """Return the words that an argument may be; none if it may be any text."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return _algorithms() if "ALGORITHM" in str(action.metavar) else []


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a verb, with the parameters of algorithms if it takes them."""
    flags = [name for name in tree.option_names(parser) if name.startswith("--")]
    return flags + [f"--{name}" for name in _parameters()] if "--param" in flags else flags


def _parameters() -> dict[str, list[str]]:
    """Return the parameters of all algorithms with the words that they take."""
    from brimful.catalog import algorithms

    parameters: dict[str, list[str]] = {}
    for info in algorithms().values():
        for one in info["parameters"]:
            words = parameters.setdefault(one["name"].replace("_", "-"), [])
            words += [word for word in one["choices"] or () if word not in words]
    return parameters


def _valued(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return the options of a verb that take one of some words."""
    valued = {
        name: _words(action)
        for action in tree.actions(parser)
        for name in action.option_strings
        if _takes_value(action) and _words(action)
    }
    if "--param" in tree.option_names(parser):
        valued |= {f"--{name}": words for name, words in _parameters().items() if words}
    return valued


def _positionals(parser: argparse.ArgumentParser) -> list[str]:
    """Return the words that the positional arguments of a verb may be."""
    return [
        word
        for action in tree.actions(parser)
        if not action.option_strings
        for word in _words(action)
    ]


def _bash(parser: argparse.ArgumentParser) -> str:
    cases = []
    for verb, one in tree.verbs(parser).items():
        lines = [
            f"            {option}) words={_quoted(words)};;"
            for option, words in _valued(one).items()
        ]
        cases.append(
            f"    {verb})\n"
            f"        flags={_quoted(_flags(one))}\n"
            f"        words={_quoted(_positionals(one))}\n"
            '        case "$before" in\n'
            + "\n".join([*lines, "            -*) words=;;"])
            + "\n        esac;;"
        )
    return (
        "# Completion of brimful for bash: source <(brimful completion bash)\n"
        "_brimful() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local flags= words=\n"
        "    if [ $COMP_CWORD -eq 1 ]; then\n"
        f"        COMPREPLY=($(compgen -W {_quoted([*tree.verbs(parser), '--help', '--version'])}"
        ' -- "$word"))\n'
        "        return\n"
        "    fi\n"
        '    case "${COMP_WORDS[1]}" in\n' + "\n".join(cases) + "\n    esac\n"
        "    if [[ $word == -* ]]; then words=$flags; fi\n"
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))\n'
        "}\n"
        "# Graphs and other files where no word fits.\n"
        "complete -o default -F _brimful brimful"
    )


def _zsh(parser: argparse.ArgumentParser) -> str:
    return (
        "#compdef brimful\n"
        "# Completion of brimful for zsh: write this to _brimful in a folder of $fpath.\n"
        "autoload -U +X bashcompinit && bashcompinit\n" + _bash(parser)
    )


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = [
        "# Completion of brimful for fish.",
        "complete -c brimful -n __fish_use_subcommand -f -a "
        + _quoted([*tree.verbs(parser), "--help", "--version"]),
    ]
    for verb, one in tree.verbs(parser).items():
        when = f"complete -c brimful -n '__fish_seen_subcommand_from {verb}'"
        valued = _valued(one)
        plain = {
            name: action.help or ""
            for action in tree.actions(one)
            for name in action.option_strings
            if name.startswith("--")
        }
        for flag in _flags(one):
            about = plain.get(flag, "a parameter of the algorithm").partition(";")[0]
            words = f" -x -a {_quoted(valued[flag])}" if flag in valued else ""
            lines.append(
                f"{when} -l {flag[2:]} -d {shlex.quote(about % {'prog': 'brimful'})}{words}"
            )
        if names := _positionals(one):
            lines.append(f"{when} -a {_quoted(names)}")
    return "\n".join(lines)


def _quoted(words: list[str]) -> str:
    return shlex.quote(" ".join(words))


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
