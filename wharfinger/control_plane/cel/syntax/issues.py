"""The errors of an expression, and their format: the message, the line of the text, and a mark under the position."""

from dataclasses import dataclass
from typing import Final

MAX_ISSUES: Final = 100
"""The maximum number of issues in one text."""
_LONGEST_LINE: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Issue:
    """An error at a position of the text; ``at`` is negative for an error without a position."""

    at: int
    text: str


def format_issues(issues: list[Issue], source: str) -> str:
    """Return all errors as text, in the order of their positions."""
    ordered = sorted(issues, key=lambda issue: _place(source, issue.at))
    lines = [_format_issue(issue, source) for issue in ordered[:MAX_ISSUES]]
    if len(issues) > MAX_ISSUES:
        lines.append(f"{len(issues) - MAX_ISSUES} more errors were truncated")
    return "\n".join(lines)


def _place(source: str, at: int) -> tuple[int, int]:
    """Return the line and the column of a position; both are -1 for an error without a position."""
    if at < 0:
        return -1, -1
    return source.count("\n", 0, at) + 1, at - (source.rfind("\n", 0, at) + 1)


def _format_issue(issue: Issue, source: str) -> str:
    line, column = _place(source, issue.at)
    result = f"ERROR: <input>:{line}:{column + 1}: {issue.text}"
    lines = source.split("\n")
    if not 1 <= line <= len(lines) or len(lines[line - 1]) > _LONGEST_LINE:
        return result
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in snippet[:column])
    mark = "\uff3e" if column < len(snippet) and ord(snippet[column]) > 127 else "^"
    return f"{result}\n | {snippet}\n | {dots}{mark}"
