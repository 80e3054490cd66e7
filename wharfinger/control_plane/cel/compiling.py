"""The compilation of an expression: its text is parsed and type-checked."""

from collections.abc import Mapping
from typing import Final

from wharfinger.control_plane.cel.checking.checker import Checked, Fields, check
from wharfinger.control_plane.cel.checking.literals import literal_issues
from wharfinger.control_plane.cel.syntax.grammar_errors import TOO_DEEP, syntax_errors
from wharfinger.control_plane.cel.syntax.issues import format_issues
from wharfinger.control_plane.cel.syntax.macros import NO_MACROS, Macro, MacroKey
from wharfinger.control_plane.cel.syntax.parser import NotAnExpressionError, parse
from wharfinger.control_plane.cel.values.types import Type

MAX_CHARS: Final = 100_000


def judged(
    text: str,
    variables: Mapping[str, Type],
    fields: Fields,
    *,
    patches: bool = False,
    more: Mapping[MacroKey, Macro] = NO_MACROS,
) -> Checked | str:
    """Compile an expression. Return it in its checked form or, if it is invalid, the text of its errors as in kube-apiserver.

    With ``patches``, the expression may construct objects and JSON patches. ``more`` are macros in addition to the standard
    ones.
    """
    if len(text) > MAX_CHARS:
        size = len(text)
        return f"ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {MAX_CHARS}"
    try:
        parsed = parse(text, more)
        if parsed.issues:
            return format_issues([*parsed.issues], text)
        checked = check(parsed.root, variables, fields, patches=patches)
        issues = checked.issues or literal_issues(checked)
    except NotAnExpressionError:
        return syntax_errors(text)
    except RecursionError:  # such as ``a + a + …`` with thousands of operands
        return TOO_DEEP
    return format_issues(issues, text) if issues else checked
