"""Patterns as Go's ``regexp`` has them: whether one compiles and what Go says if not, and whether a text matches.

Matching is linear in the text (:mod:`wharfinger.formats.schema_patterns`). What Go says names the part of the pattern that is
wrong, so its parser is followed here as far as its refusals go; what the parts mean is left to the engine.
"""

import re
from functools import lru_cache
from typing import Final

from wharfinger.formats.schema_patterns import PatternError, matcher, read_pattern

_MOST_REPEATED: Final = 1000
_MOST_NESTED: Final = 1000
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:,((?:0|[1-9][0-9]*)?))?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_CLASSES: Final = frozenset(
    [
        "alnum",
        "alpha",
        "ascii",
        "blank",
        "cntrl",
        "digit",
        "graph",
        "lower",
        "print",
        "punct",
        "space",
        "upper",
        "word",
        "xdigit",
    ]
)
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_LETTERS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LARGEST_RUNE: Final = 0x10FFFF


class GoPatternError(ValueError):
    """What Go says of a pattern: ``error parsing regexp: missing closing ): `(```."""

    def __init__(self, why: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{part}`")


@lru_cache(maxsize=512)
def pattern_problem(pattern: str) -> str:
    """What Go says of a pattern that it refuses, "" where it compiles."""
    try:
        _Reader(pattern).read()
    except GoPatternError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches anywhere in a text; one that no engine here takes matches everything."""
    translated = _translated(pattern)
    return translated is None or matcher(translated).is_valid(text)


@lru_cache(maxsize=512)
def _translated(pattern: str) -> str | None:
    try:
        return read_pattern(pattern)
    except PatternError:
        return None


class _Reader:
    """Follows a pattern for what is wrong in it; ``_stack`` holds how often each operand is repeated, None a parenthesis."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._stack: list[int | None] = []
        self._depth = 0

    def read(self) -> None:
        """Raises GoPatternError."""
        pattern = self._pattern
        last = ""
        while self._at < len(pattern):
            char, rest = pattern[self._at], pattern[self._at :]
            repeated = ""
            if char == "(":
                self._open(rest)
            elif char == ")":
                self._close()
            elif char == "|":
                self._stack.append(0)
                self._at += 1
            elif char == "[":
                self._at = self._class(self._at)
                self._stack.append(1)
            elif char in "*+?":
                self._at += 1
                self._repeat(rest, last, 1)
                repeated = rest
            elif char == "{" and (count := _COUNT.match(pattern, self._at)):
                repeated = self._counted(rest, count, last)
            elif char == "\\":
                self._escaped(rest)
            else:
                self._at += 1
                self._stack.append(1)
            last = repeated
        if self._depth:
            raise GoPatternError("missing closing )", pattern)

    def _open(self, rest: str) -> None:
        self._at += 1
        opened = self._flags(rest) if rest.startswith("(?") else True
        if opened:
            self._stack.append(None)
            self._depth += 1
            if self._depth > _MOST_NESTED:
                raise GoPatternError("expression nests too deeply", self._pattern)

    def _flags(self, rest: str) -> bool:
        """Reads ``(?…``; whether a group was opened."""
        for prefix, shortest in (("(?P<", 5), ("(?<", 4)):
            if rest.startswith(prefix) and len(rest) >= shortest:
                end = rest.find(">")
                if end < 0:
                    raise GoPatternError("invalid named capture", rest)
                if not _NAME.fullmatch(rest[len(prefix) : end]):
                    raise GoPatternError("invalid named capture", rest[: end + 1])
                self._at += end
                return True
        negated = seen = False
        for index, char in enumerate(rest[2:], 2):
            if char in "imsU":
                seen = True
            elif char == "-" and not negated:
                negated, seen = True, False
            elif char in ":)" and (not negated or seen):
                self._at += index
                return char == ":"
            else:
                raise GoPatternError("invalid or unsupported Perl syntax", rest[: index + 1])
        raise GoPatternError("invalid or unsupported Perl syntax", rest)

    def _close(self) -> None:
        if not self._depth:
            raise GoPatternError("unexpected )", self._pattern)
        inner = 1
        while (top := self._stack.pop()) is not None:
            inner = max(inner, top)
        self._stack.append(inner)
        self._depth -= 1
        self._at += 1

    def _repeat(self, before: str, last: str, times: int) -> None:
        """The operand on top is repeated; ``before`` begins at the operator, and ``_at`` is behind it."""
        if self._pattern.startswith("?", self._at):
            self._at += 1
        after = len(self._pattern) - self._at
        operator = before[: len(before) - after]
        if last:
            raise GoPatternError("invalid nested repetition operator", last[: len(last) - after])
        if not self._stack or not self._stack[-1]:
            raise GoPatternError("missing argument to repetition operator", operator)
        total = self._stack[-1] * max(times, 1)
        if times >= 2 and total > _MOST_REPEATED:
            raise GoPatternError("invalid repeat count", operator)
        self._stack[-1] = total

    def _counted(self, rest: str, count: re.Match[str], last: str) -> str:
        least, most = count[1], count[1] if count[2] is None else count[2]
        sizes = [int(number[:9]) for number in (least, most) if number]
        if max(sizes) > _MOST_REPEATED or (len(sizes) == 2 and sizes[0] > sizes[1]):
            raise GoPatternError("invalid repeat count", count[0])
        self._at = count.end()
        self._repeat(rest, last, max(sizes))
        return rest

    def _escaped(self, rest: str) -> None:
        after = rest[1:2]
        if after == "C":
            raise GoPatternError("invalid escape sequence", rest[:2])
        if after == "Q":
            end = rest.find("\\E", 2)
            self._at = len(self._pattern) if end < 0 else self._at + end + 2
            if rest[2:end] if end >= 0 else rest[2:]:
                self._stack.append(1)
            return
        if after and after in "AbBzdDsSwW":
            self._at += 2
        elif after and after in "pP":
            self._at = self._property(self._at)
        else:
            _, self._at = self._escape(self._at)
        self._stack.append(1)

    def _property(self, at: int) -> int:
        """``\\pL``, ``\\p{Greek}``: where it ends."""
        rest = self._pattern[at:]
        if len(rest) < 3:
            raise GoPatternError("invalid character class range", rest)
        if rest[2] != "{":
            seq = rest[:3]
        else:
            end = rest.find("}")
            if end < 0:
                raise GoPatternError("invalid character class range", rest)
            seq = rest[: end + 1]
        if seq.strip("\\pP{}^") != "Any" and _translated(seq) is None:
            raise GoPatternError("invalid character class range", seq)
        return at + len(seq)

    def _escape(self, at: int) -> tuple[int, int]:
        """One escaped character, and where it ends."""
        pattern = self._pattern
        char = pattern[at + 1 : at + 2]
        if not char:
            raise GoPatternError("trailing backslash at end of expression", "")
        end = at + 2
        following = pattern[end : end + 1]
        if char == "0" or (char in "1234567" and following and following in _OCTAL):
            while end < min(len(pattern), at + 4) and pattern[end] in _OCTAL:
                end += 1
            return int(pattern[at + 1 : end], 8), end
        if char == "x":
            return self._hexadecimal(at)
        if char in _LETTERS:
            return _LETTERS[char], end
        if char.isascii() and not char.isalnum():
            return ord(char), end
        raise GoPatternError("invalid escape sequence", pattern[at:end])

    def _hexadecimal(self, at: int) -> tuple[int, int]:
        pattern = self._pattern
        end = at + 2
        if pattern[end : end + 1] == "{":
            code, at_digit = 0, end + 1
            while pattern[at_digit : at_digit + 1] and pattern[at_digit] in _HEX and code <= _LARGEST_RUNE:
                code = code * 16 + int(pattern[at_digit], 16)
                at_digit += 1
            if code <= _LARGEST_RUNE and pattern[at_digit : at_digit + 1] == "}" and at_digit > end + 1:
                return code, at_digit + 1
            raise GoPatternError("invalid escape sequence", pattern[at : at_digit + (code <= _LARGEST_RUNE)])
        digits = pattern[end : end + 2]
        if len(digits) == 2 and set(digits) <= _HEX:
            return int(digits, 16), end + 2
        wrong = next((index for index, digit in enumerate(digits, 1) if digit not in _HEX), len(digits))
        raise GoPatternError("invalid escape sequence", pattern[at : end + wrong])

    def _class(self, start: int) -> int:
        """``[a-z]``: where it ends."""
        pattern = self._pattern
        at = start + (2 if pattern.startswith("[^", start) else 1)
        first = True
        while first or not pattern.startswith("]", at):
            first = False
            end = pattern.find(":]", at + 2) if pattern.startswith("[:", at) else -1
            if end >= 0:
                name = pattern[at : end + 2]
                if name[2:-2].removeprefix("^") not in _CLASSES:
                    raise GoPatternError("invalid character class range", name)
                at = end + 2
            elif pattern.startswith(("\\p", "\\P"), at):
                at = self._property(at)
            elif pattern.startswith(("\\d", "\\D", "\\s", "\\S", "\\w", "\\W"), at):
                at += 2
            else:
                at = self._range(at, start)
        return at + 1

    def _range(self, at: int, start: int) -> int:
        begin = at
        low, at = self._class_char(at, start)
        if self._pattern.startswith("-", at) and len(self._pattern) > at + 1 and self._pattern[at + 1] != "]":
            high, at = self._class_char(at + 1, start)
            if high < low:
                raise GoPatternError("invalid character class range", self._pattern[begin:at])
        return at

    def _class_char(self, at: int, start: int) -> tuple[int, int]:
        if at >= len(self._pattern):
            raise GoPatternError("missing closing ]", self._pattern[start:])
        if self._pattern[at] == "\\":
            return self._escape(at)
        return ord(self._pattern[at]), at + 1
