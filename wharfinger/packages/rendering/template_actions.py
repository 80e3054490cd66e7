"""The actions of Go templates (``{{ … }}``): the functions that a text calls, and the fields that it reads. Pure.

Only the content of an action can have an effect, so prose, comments and string literals never count as calls. The text is split
into tokens like in Go's own lexer, but not parsed further: an action that is never executed counts, too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MAX_TOKENS: Final = 2_000_000
"""The largest number of tokens that are read from one chart; a chart with more tokens is assumed to use everything."""

_TOKEN: Final = re.compile(
    r"""(?P<close>-?\}\})
    |"(?P<string>(?:[^"\\\n]|\\.)*)"
    |`(?P<raw>[^`]*)`
    |'(?:[^'\\\n]|\\.)*'
    |(?P<chain>\$?\w*(?:\.\w+)+)
    |(?P<word>\$?\w+)
    |\s+
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"(?:-\s)?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_CALL_IN_PROSE: Final = re.compile(r"(?<![\w.$])lookup\s+[(\"`$.']")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}

VALUES: Final = "Values"
_BY_KEY: Final = frozenset({"index", "get", "hasKey"})
"""The template functions that look up keys in their first argument. The further arguments are the keys."""
CAPABILITIES: Final = "Capabilities"
HAS: Final = ("APIVersions", "Has")


@dataclass(slots=True)
class TemplateUse:
    """The functions that actions call, and the fields that they read.

    ``functions`` are bare names; ``words`` are all names in field chains; ``ends`` are the last names of the chains;
    ``literals`` are the string literals. ``asked`` are the API versions that ``.Capabilities.APIVersions.Has`` is called with.
    ``asks_more`` is True if the argument of ``Has`` is not always a literal. ``versions`` is True if the list of API versions
    itself is read, or the capabilities as a whole. ``kube`` is True if anything else of the capabilities is read. ``builds`` is
    True if an action works with a literal that contains ``{{``, so that a template may be made of parts. ``values`` are the
    paths below ``.Values`` that are read; ``all_values`` is True if the values are read as a whole, or by a key that is not a
    literal.
    """

    functions: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    literals: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    asks_more: bool = False
    versions: bool = False
    kube: bool = False
    builds: bool = False
    values: set[tuple[str, ...]] = field(default_factory=set)
    all_values: bool = False
    tokens: int = 0

    @property
    def overflowed(self) -> bool:
        """True if there were more tokens than the limit."""
        return self.tokens > MAX_TOKENS

    def read(self, text: str) -> None:
        """Add the uses in all actions (``{{ … }}``) of one template's text."""
        at = text.find("{{")
        while at >= 0 and not self.overflowed:
            comment = _COMMENT.match(text, at + 2)
            end = comment.end() if comment is not None else self._read_action(text, at + 2)
            at = text.find("{{", end)

    def read_part(self, text: str) -> None:
        """Add every use that a text may have if it becomes part of an action.

        The word ``lookup`` counts as a call only if an argument follows it, to distinguish a call from prose.
        """
        self.read(text)
        if _CALL_IN_PROSE.search(text):
            self.functions.add("lookup")
        if CAPABILITIES in text:
            self.kube = self.versions = True
        self.literals.add(text)

    def _read_action(self, text: str, start: int) -> int:
        """Read up to the end of an action; return the position after it."""
        literals: list[str] = []
        others = 0
        asking = False
        values = _ValuesReader(self)
        for match in self._tokens(text, start):
            if match["close"] is not None:
                values.end()
                self._end_action(literals, others, asking=asking)
                return match.end()
            literal = _literal(match)
            values.read(match, literal)
            if literal is not None:
                literals.append(literal)
                if asking:
                    self.asked.add(literal)
                asking = False
            elif not match[0].isspace():
                others += match[0] != "-"
                self.asks_more = self.asks_more or asking
                asking = self._read_name(match)
        values.end()
        self._end_action(literals, others, asking=asking)
        return len(text)

    def _tokens(self, text: str, start: int) -> Iterator[re.Match[str]]:
        for match in _TOKEN.finditer(text, start):
            self.tokens += 1
            if self.overflowed:
                return
            yield match

    def _end_action(self, literals: list[str], others: int, *, asking: bool) -> None:
        self.asks_more = self.asks_more or asking
        self.literals.update(literals)
        # An action that consists of one literal prints it. Any other use of the literal may make a template of it.
        if any("{{" in literal for literal in literals) and (others or len(literals) > 1):
            self.builds = True

    def _read_name(self, match: re.Match[str]) -> bool:
        """Add a function or a chain of fields to the uses. Return whether it is ``.Capabilities.APIVersions.Has``, so that the
        next token is its argument.
        """
        if match["word"] is not None:
            if not match[0].startswith("$"):
                self.functions.add(match[0])
            return False
        if match["chain"] is None:
            return False
        names = tuple(name for name in match[0].split(".")[1:] if name)
        self.words.update(names)
        self.ends.update(names[-1:])
        if CAPABILITIES not in names:
            return False
        after = names[names.index(CAPABILITIES) + 1 :]
        if after == HAS:
            return True
        if not after or after[0] == HAS[0]:
            self.versions = True
        if not after or after[0] != HAS[0]:
            self.kube = True
        return False


@dataclass(slots=True)
class _ValuesReader:
    """The reader of paths below ``.Values`` in one action: field chains, and ``index .Values "a" "b"``."""

    use: TemplateUse
    function: str = ""
    keys: list[str] | None = None
    """The literals after ``index .Values`` or a similar call, such as ``get .Values``; None outside of such a call."""

    def read(self, match: re.Match[str], literal: str | None) -> None:
        """Process the next token of an action."""
        if match[0].isspace():
            return
        if literal is not None and self.keys is not None:
            self.keys.append(literal)
            return
        self.end()
        if match["word"] is not None:
            self.function = match["word"]
        if literal is not None or match["chain"] is None:
            return
        names = tuple(name for name in match[0].split(".")[1:] if name)
        if VALUES not in names:
            return
        path = names[names.index(VALUES) + 1 :]
        if path:
            self.use.values.add(path)
        elif self.function in _BY_KEY:
            self.keys = []
        else:
            self.use.all_values = True

    def end(self) -> None:
        """End a call such as ``get .Values "a"``, and record the value that its keys name. If no key is a literal, record that
        the call may read all values.
        """
        if self.keys:
            self.use.values.add(tuple(self.keys))
        elif self.keys is not None:
            self.use.all_values = True
        self.keys = None


def _literal(match: re.Match[str]) -> str | None:
    if match["raw"] is not None:
        return match["raw"]
    if match["string"] is None:
        return None
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), match["string"])
