"""From a text to an expression whose types are known, or to all that is wrong with it."""

from collections.abc import Mapping
from typing import Final

from wharfinger.cluster.control_plane.cel.checker import Checked, Fields, check
from wharfinger.cluster.control_plane.cel.issues import told
from wharfinger.cluster.control_plane.cel.literals import literal_issues
from wharfinger.cluster.control_plane.cel.macros import NO_MACROS, Macro, MacroKey
from wharfinger.cluster.control_plane.cel.parser import NotAnExpressionError, parse
from wharfinger.cluster.control_plane.cel.syntax import TOO_DEEP, syntax_errors
from wharfinger.cluster.control_plane.cel.types import Type

MAX_CHARS: Final = 100_000


def judged(
    text: str,
    variables: Mapping[str, Type],
    fields: Fields,
    *,
    patches: bool = False,
    more: Mapping[MacroKey, Macro] = NO_MACROS,
) -> Checked | str:
    """The expression, or its errors as a server tells them.

    ``patches``: as :func:`.checker.check` has it; ``more``: macros beside those that there always are.
    """
    if len(text) > MAX_CHARS:
        size = len(text)
        return f"ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {MAX_CHARS}"
    try:
        parsed = parse(text, more)
        if parsed.issues:
            return told([*parsed.issues], text)
        checked = check(parsed.root, variables, fields, patches=patches)
        issues = checked.issues or literal_issues(checked)
    except NotAnExpressionError:
        return syntax_errors(text)
    except RecursionError:  # a chain of thousands of links
        return TOO_DEEP
    return told(issues, text) if issues else checked
