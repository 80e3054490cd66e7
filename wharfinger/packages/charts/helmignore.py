"""``.helmignore``: the files of a chart folder that are left out of its archive, by Helm's rules.

The rules are Helm's (``internal/ignore`` of its sources), not git's:

* patterns are those of Go's ``filepath.Match``: ``*`` and ``?`` stop at ``/``, and there is no ``**``;
* a pattern with a slash is matched against the path from the chart's folder, any other pattern against the last part of the path;
* a pattern with a slash at its end matches folders only;
* a rule that begins with ``!`` excludes every path that its pattern does *not* match;
* Helm's built-in rule ``templates/.?*`` always applies.

An ignored folder is ignored with everything in it.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from wharfinger.packages.errors import ArtifactError

FILE_NAME: Final = ".helmignore"
MAX_BYTES: Final = 64 * 1024
MAX_PATTERN: Final = 512


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule in one line of a ``.helmignore``."""

    pattern: re.Pattern[str]
    whole_path: bool
    folders_only: bool
    negated: bool

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches a path, which is relative to the chart and has ``/`` between names."""
        return self.pattern.match(path if self.whole_path else PurePosixPath(path).name) is not None


def read_rules(text: str) -> tuple[Rule, ...]:
    """Read the rules of a ``.helmignore`` and add the built-in one. Raises ArtifactError naming the line."""
    rules = [_rule("templates/.?*", 0)]
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            rules.append(_rule(stripped, number))
    return tuple(rules)


def is_ignored(rules: tuple[Rule, ...], path: str, *, is_folder: bool) -> bool:
    """Return whether the rules leave a file or folder out of the chart."""
    for rule in rules:
        if rule.negated:
            if (rule.folders_only and not is_folder) or not rule.matches(path):
                return True
        elif (is_folder or not rule.folders_only) and rule.matches(path):
            return True
    return False


def _rule(line: str, number: int) -> Rule:
    where = f"{FILE_NAME} line {number}"
    if len(line) > MAX_PATTERN:
        raise ArtifactError(f"{where}: {len(line)} characters; a pattern has at most {MAX_PATTERN}")
    if "**" in line:
        raise ArtifactError(f"{where}: {line!r}: Helm does not support '**'; write one line for each level")
    negated = line.startswith("!")
    pattern = line.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    whole_path = "/" in pattern
    try:
        compiled = re.compile(_translate(pattern.removeprefix("/")))
    except (re.error, ValueError) as error:
        raise ArtifactError(f"{where}: {line!r} is not a valid pattern: {error}") from error
    return Rule(compiled, whole_path, folders_only, negated)


def _translate(pattern: str) -> str:
    """Translate a ``filepath.Match`` pattern into a regular expression. Raises ValueError for an incomplete pattern."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            parts.append("[^/]*")
        elif character == "?":
            parts.append("[^/]")
        elif character == "\\":
            if position == len(pattern):
                raise ValueError("it ends with a backslash")
            parts.append(re.escape(pattern[position]))
            position += 1
        elif character == "[":
            group, position = _class(pattern, position)
            parts.append(group)
        else:
            parts.append(re.escape(character))
    return "".join(parts) + r"\Z"


def _class(pattern: str, position: int) -> tuple[str, int]:
    """Return a regular expression for the character class whose ``[`` is before ``position``, and the position after the class.

    Ranges and ``^`` work as in Go.
    """
    negated = pattern.startswith("^", position)
    position += negated
    parts: list[str] = []
    while not parts or not pattern.startswith("]", position):
        low, position = _class_character(pattern, position)
        high = low
        if pattern.startswith("-", position):
            high, position = _class_character(pattern, position + 1)
        parts.append(f"{re.escape(low)}-{re.escape(high)}")
    return f"[{'^' * negated}{''.join(parts)}]", position + 1


def _class_character(pattern: str, position: int) -> tuple[str, int]:
    escaped = pattern.startswith("\\", position)
    position += escaped
    if position >= len(pattern) or (not escaped and pattern[position] in "-]"):
        raise ValueError("a '[' that is not closed, or an empty '[]'")
    return pattern[position], position + 1
