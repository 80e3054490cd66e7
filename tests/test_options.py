"""Every option in the output of every `--help` is used by a test.

An option counts as used if one test module contains the option and the name of its command. This finds options that no test uses,
but it does not show that a test really checks the option.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from wharfinger.__main__ import build_parser

ROOT: Final = Path(__file__).resolve().parent
_WORD: Final = re.compile(r"--?[A-Za-z][\w-]*|\w[\w-]*")
WORDS: Final = [
    frozenset(_WORD.findall(path.read_text()))
    for path in sorted(ROOT.rglob("*.py"))
    if path != Path(__file__).resolve()
]
"""The words and options that each test module has."""
Option = tuple[tuple[str, ...], tuple[str, ...], str]
"""The words of a command, the spellings of one of its options, and its help."""


def options(parser: argparse.ArgumentParser, command: tuple[str, ...] = ()) -> Iterator[Option]:
    """Yield every option with the words of its command, its spellings and its help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from options(below, (*command, name))
        elif action.option_strings and not isinstance(action, argparse._HelpAction):
            yield command, tuple(action.option_strings), str(action.help)


def every_option() -> list[Option]:
    found = [*options(build_parser("*"))]
    live = [one for one in options(build_parser("diff", is_live=True)) if one[0] == ("diff",)]
    return [*found, *(one for one in live if one not in found)]


def is_used(command: tuple[str, ...], spellings: tuple[str, ...]) -> bool:
    """Return whether a test module contains one of the spellings and the words of the command."""
    return any(not words.isdisjoint(spellings) and words.issuperset(command[-2:]) for words in WORDS)


@pytest.mark.slow
def test_every_option_is_used_by_a_test() -> None:
    """If several commands have an option with the same names and help text, a test of one of these commands is enough."""
    found = every_option()
    used = {(spellings, told) for command, spellings, told in found if is_used(command, spellings)}
    unused = {
        " ".join((*command, spellings[-1])) for command, spellings, told in found if (spellings, told) not in used
    }
    assert unused == set()


@pytest.mark.parametrize("command", ["get", "wait", "logs", "describe", "diff", "run", "build", "package"])
def test_the_search_finds_the_options_of_every_command(command: str) -> None:
    assert any(words[0] == command for words, _, _ in every_option() if words)
