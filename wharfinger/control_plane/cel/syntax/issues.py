"""The errors of an expression and their format, with the line and a mark under the place."""

from dataclasses import dataclass
from typing import Final

MAX_TOLD: Final = 100
_LONGEST_LINE: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Issue:
    """An error at a place of the text; if ``at`` is negative, it has no place."""

    at: int
    text: str


def told(issues: list[Issue], source: str) -> str:
    """Format all errors in the order of their places."""
    ordered = sorted(issues, key=lambda issue: _place(source, issue.at))
    lines = [_told(issue, source) for issue in ordered[:MAX_TOLD]]
    if len(issues) > MAX_TOLD:
        lines.append(f"{len(issues) - MAX_TOLD} more errors were truncated")
    return "\n".join(lines)


def _place(source: str, at: int) -> tuple[int, int]:
    """Return line and column; both are -1 for an error without a place."""
    if at < 0:
        return -1, -1
    return source.count("\n", 0, at) + 1, at - (source.rfind("\n", 0, at) + 1)


def _told(issue: Issue, source: str) -> str:
    line, column = _place(source, issue.at)
    result = f"ERROR: <input>:{line}:{column + 1}: {issue.text}"
    lines = source.split("\n")
    if not 1 <= line <= len(lines) or len(lines[line - 1]) > _LONGEST_LINE:
        return result
    snippet = lines[line - 1].replace("\t", " ")
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in snippet[:column])
    mark = "\uff3e" if column < len(snippet) and ord(snippet[column]) > 127 else "^"
    return f"{result}\n | {snippet}\n | {dots}{mark}"
