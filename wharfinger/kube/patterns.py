"""Patterns of Go's ``regexp``: check whether a pattern compiles, return Go's error if it does not, and find matches in a text.

Go's error quotes the faulty part of the pattern, so the checks of its parser are reimplemented here. Matches come from RE2
(:mod:`~wharfinger.kube.re2_library`), on which Go's package is based; only parts with a different spelling in RE2 are converted
here.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from wharfinger.kube import re2_library as matching
from wharfinger.kube.unicode_classes import unicode_class

_MOST_REPEATED: Final = 1000
_MOST_NESTED: Final = 1000
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:,((?:0|[1-9][0-9]*)?))?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_PLAIN: Final = re.compile(r"[^\\()|\[*+?{^$.]+")
_CLASSES: Final = frozenset(
    (
        *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph"),
        *("lower", "print", "punct", "space", "upper", "word", "xdigit"),
    )
)
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_LETTERS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LARGEST_RUNE: Final = 0x10FFFF


class GoPatternError(ValueError):
    """The error that Go reports for a pattern: ``error parsing regexp: missing closing ): `(```."""

    def __init__(self, why: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{part}`")


@lru_cache(maxsize=512)
def pattern_problem(pattern: str) -> str:
    """Return Go's error for a pattern, "" if it compiles."""
    try:
        spelled = _spelled(pattern)
    except GoPatternError as error:
        return str(error)
    return "" if matching.compiles(spelled) else str(GoPatternError("expression too large", pattern))


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a text; a pattern that does not compile matches every text."""
    return pattern_problem(pattern) != "" or matching.matches(_spelled(pattern), text)


def found(pattern: str, text: str) -> Iterator[str]:
    """Yield the matches from left to right, as Go's ``FindAllString``. Raises GoPatternError, matching.TooLongError."""
    return matching.found(_spelled(pattern), text)


@lru_cache(maxsize=512)
def _spelled(pattern: str) -> str:
    """Return the pattern in RE2's spelling. Raises GoPatternError."""
    return _Reader(pattern).read()


class _Reader:
    """A parser that finds errors in a pattern, and at the same time converts its spelling to RE2's.

    ``_stack`` has a number for each operand: the largest product of the nested repeat counts in it, or 0 if it cannot be
    repeated. An open parenthesis has the entry None.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._copied = 0
        self._spelled: list[str] = []
        self._stack: list[int | None] = []
        self._depth = 0
        self._last_name = pattern.rfind(":]")

    def read(self) -> str:
        """Return the pattern in RE2's spelling. Raises GoPatternError."""
        pattern = self._pattern
        last = -1
        while self._at < len(pattern):
            start, char = self._at, pattern[self._at]
            repeated = -1
            if char == "(":
                self._open()
            elif char == ")":
                self._close()
            elif char == "|":
                self._stack.append(0)
                self._at += 1
            elif char == "[":
                self._at = self._class(start)
                self._stack.append(1)
            elif char in "*+?":
                self._at += 1
                self._repeat(start, last, 1)
                repeated = start
            elif char == "{" and (count := _COUNT.match(pattern, start)):
                self._counted(count, last)
                repeated = start
            elif char == "\\":
                self._escaped()
            else:
                plain = _PLAIN.match(pattern, start)
                self._at = plain.end() if plain else start + 1
                self._stack.append(1)
            last = repeated
        if self._depth:
            raise GoPatternError("missing closing )", pattern)
        return "".join((*self._spelled, pattern[self._copied :]))

    def _replace(self, start: int, end: int, spelled: str) -> None:
        """Replace the part of the pattern from ``start`` to ``end`` with its spelling in RE2."""
        self._spelled += (self._pattern[self._copied : start], spelled)
        self._copied = end

    def _open(self) -> None:
        start = self._at
        self._at += 1
        opened = self._flags(start) if self._pattern.startswith("?", start + 1) else True
        if opened:
            self._stack.append(None)
            self._depth += 1
            if self._depth > _MOST_NESTED:
                raise GoPatternError("expression nests too deeply", self._pattern)

    def _flags(self, start: int) -> bool:
        """Read ``(?`` and the name or flags after it. Return whether a group was opened: by ``(?i:``, but not by ``(?i)``."""
        pattern = self._pattern
        for prefix, shortest in (("(?P<", 5), ("(?<", 4)):
            if pattern.startswith(prefix, start) and len(pattern) - start >= shortest:
                end = pattern.find(">", start)
                if end < 0:
                    raise GoPatternError("invalid named capture", pattern[start:])
                if not _NAME.fullmatch(pattern, start + len(prefix), end):
                    raise GoPatternError("invalid named capture", pattern[start : end + 1])
                self._at = end + 1
                self._replace(start, end + 1, "(")  # Go allows two groups with the same name
                return True
        negated = seen = False
        for index in range(start + 2, len(pattern)):
            char = pattern[index]
            if char in "imsU":
                seen = True
            elif char == "-" and not negated:
                negated, seen = True, False
            elif char in ":)" and (not negated or seen):
                self._at = index + 1
                return char == ":"
            else:
                raise GoPatternError("invalid or unsupported Perl syntax", pattern[start : index + 1])
        raise GoPatternError("invalid or unsupported Perl syntax", pattern[start:])

    def _close(self) -> None:
        if not self._depth:
            raise GoPatternError("unexpected )", self._pattern)
        inner = 1
        while (top := self._stack.pop()) is not None:
            inner = max(inner, top)
        self._stack.append(inner)
        self._depth -= 1
        self._at += 1

    def _repeat(self, start: int, last: int, times: int) -> None:
        """Apply a repetition to the operand on top of the stack.

        The operator of the repetition begins at ``start``. ``last`` is the position of the repetition operator directly before
        it; -1 if there is none.
        """
        if self._pattern.startswith("?", self._at):
            self._at += 1
        operator = self._pattern[start : self._at]
        if last >= 0:
            raise GoPatternError("invalid nested repetition operator", self._pattern[last : self._at])
        if not self._stack or not self._stack[-1]:
            raise GoPatternError("missing argument to repetition operator", operator)
        total = self._stack[-1] * max(times, 1)
        if times >= 2 and total > _MOST_REPEATED:
            raise GoPatternError("invalid repeat count", operator)
        self._stack[-1] = total

    def _counted(self, count: re.Match[str], last: int) -> None:
        least, most = count[1], count[1] if count[2] is None else count[2]
        sizes = [int(number[:9]) for number in (least, most) if number]
        if max(sizes) > _MOST_REPEATED or (len(sizes) == 2 and sizes[0] > sizes[1]):
            raise GoPatternError("invalid repeat count", count[0])
        self._at = count.end()
        self._repeat(count.start(), last, max(sizes))

    def _escaped(self) -> None:
        pattern, start = self._pattern, self._at
        after = pattern[start + 1 : start + 2]
        if after == "C":
            raise GoPatternError("invalid escape sequence", pattern[start : start + 2])
        if after == "Q":
            end = pattern.find("\\E", start + 2)
            self._at = len(pattern) if end < 0 else end + 2
            if self._at > start + (2 if end < 0 else 4):
                self._stack.append(1)
            return
        if after and after in "AbBzdDsSwW":
            self._at += 2
        elif after and after in "pP":
            self._at = self._property(start, "[%s]")
        else:
            _, self._at = self._escape(start)
        self._stack.append(1)

    def _property(self, at: int, shape: str = "%s") -> int:
        r"""Return the end of a property, such as ``\pL`` or ``\p{Greek}``."""
        pattern = self._pattern
        name = pattern[at + 2 : at + 3]
        end = at + 3
        if name == "{":
            end = pattern.find("}", at) + 1
            name = pattern[at + 3 : end - 1] if end else ""
        if not name and end != at + 4:  # the closing brace or the name is missing
            raise GoPatternError("invalid character class range", pattern[at:])
        inverted = name.startswith("^")
        found = unicode_class(name.removeprefix("^"), negated=(pattern[at + 1] == "P") is not inverted)
        if found is None:
            raise GoPatternError("invalid character class range", pattern[at:end])
        self._replace(at, end, shape % found)
        return end

    def _escape(self, at: int) -> tuple[int, int]:
        """Return one escaped character, and its end."""
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
        """Return the end of a class, such as ``[a-z]``."""
        pattern = self._pattern
        at = start + (2 if pattern.startswith("[^", start) else 1)
        first = True
        while first or not pattern.startswith("]", at):
            first = False
            end = pattern.find(":]", at + 2) if at < self._last_name and pattern.startswith("[:", at) else -1
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
