"""The options that describe the platform, for the commands that decide which packages may be on: `run` and `plan`."""

import argparse
from typing import Final

from wharfinger.formats.version_constraint import ConstraintError, parse_version

_MAX_WORD: Final = 64


def add_platform(parser: "argparse._ArgumentGroup") -> None:
    """Add the options ``--platform-version``, ``--edition`` and ``--bundle``."""
    parser.add_argument(
        "--platform-version",
        default="",
        metavar="VERSION",
        help="the version of the platform (default: not known)",
    )
    parser.add_argument(
        "--edition",
        type=_word,
        default="",
        metavar="NAME",
        help="the edition of the platform; needs --bundle, because a package lists, for each edition, the bundles in which it "
        "is on by default",
    )
    parser.add_argument(
        "--bundle",
        type=_word,
        default="",
        metavar="NAME",
        help="the name of the bundle, which determines which Modules are on by default: a Module without spec.enabled is on "
        "if its package lists this bundle for the edition; needs --edition (default: a Module without spec.enabled is on)",
    )


def platform_problem(args: argparse.Namespace) -> str:
    """Return the problem with the options of `add_platform`; empty if there is no problem."""
    if bool(args.edition) != bool(args.bundle):
        return (
            "--edition and --bundle are used only together, because a package names its bundles for each "
            "edition; give both, or neither"
        )
    return version_problem("--platform-version", args.platform_version)


def version_problem(option: str, version: str) -> str:
    """Return the problem with the version that was given to an option; empty if there is no problem, or if no version was
    given.
    """
    try:
        if version:
            parse_version(version)
    except ConstraintError as error:
        return f"{option}: {error}"
    return ""


def _word(text: str) -> str:
    if len(text) > _MAX_WORD or text != text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"{text[: _MAX_WORD + 1]!r}: expected at most {_MAX_WORD} printable characters, without spaces at the ends"
        )
    return text
