"""The parser, which turns the text of an expression into a tree and expands macros.

A text that does not match the grammar raises :class:`NotAnExpressionError`; ``grammar_errors`` then finds the messages. All
other errors, such as the use of a reserved name, are collected in the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.cel.syntax.issues import Issue
from wharfinger.control_plane.cel.syntax.macros import MACROS, NO_MACROS, Macro, MacroError, MacroKey
from wharfinger.control_plane.cel.syntax.nodes import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from wharfinger.control_plane.cel.syntax.tokens import Token, TokenError, number, string, tokens
from wharfinger.control_plane.cel.values.schema_types import RESERVED_WORDS

MAX_DEPTH: Final = 60
"""The maximum depth of nested expressions; each pair of parentheses is one level."""
_RELATIONS: Final = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_LITERALS: Final = {"true": True, "false": False, "null": None}


class NotAnExpressionError(Exception):
    """The text does not match the grammar of expressions."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The tree of an expression, and the errors that were found while parsing it."""

    root: Node
    issues: tuple[Issue, ...]


def parse(text: str, more: Mapping[MacroKey, Macro] = NO_MACROS) -> Parsed:
    """Parse an expression, with ``more`` macros in addition to the standard ones. Raises NotAnExpressionError."""
    try:
        parser = _Parser(tokens(text), more)
        root = parser.whole()
    except (TokenError, RecursionError) as error:
        if isinstance(error, TokenError) and error.plain:
            return Parsed(Literal(error.at, None), (Issue(error.at, str(error)),))
        raise NotAnExpressionError from error
    return Parsed(root, tuple(parser.issues))


class _Parser:
    def __init__(self, words: list[Token], more: Mapping[MacroKey, Macro] = NO_MACROS) -> None:
        self._words = words
        self._more = more
        self._next = 0
        self._depth = 0
        self.issues: list[Issue] = []

    def whole(self) -> Node:
        """Parse the expression up to the end of the text."""
        root = self._expression()
        if self._peek().kind != "end":
            raise NotAnExpressionError
        return root

    def _peek(self) -> Token:
        return self._words[self._next]

    def _take(self, *kinds: str) -> Token | None:
        """Consume and return the next token if its kind is one of ``kinds``, else return None."""
        token = self._words[self._next]
        if token.kind in kinds:
            self._next += 1
            return token
        return None

    def _expect(self, kind: str) -> Token:
        token = self._take(kind)
        if token is None:
            raise NotAnExpressionError
        return token

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotAnExpressionError
        result = self._or()
        mark = self._take("?")
        if mark is not None:
            then = self._or()
            self._expect(":")
            result = Call(mark.at, "_?_:_", [result, then, self._expression()])
        self._depth -= 1
        return result

    def _or(self) -> Node:
        terms, ops = [self._and()], []
        while (op := self._take("||")) is not None:
            ops.append(op.at)
            terms.append(self._and())
        return _balanced("_||_", terms, ops)

    def _and(self) -> Node:
        terms, ops = [self._relation()], []
        while (op := self._take("&&")) is not None:
            ops.append(op.at)
            terms.append(self._relation())
        return _balanced("_&&_", terms, ops)

    def _relation(self) -> Node:
        left = self._sum()
        while True:
            token = self._peek()
            op = token.text if token.kind == "name" else token.kind
            if op not in _RELATIONS:
                return left
            self._next += 1
            left = Call(token.at, "@in" if op == "in" else f"_{op}_", [left, self._sum()])

    def _sum(self) -> Node:
        left = self._product()
        while (op := self._take("+", "-")) is not None:
            left = Call(op.at, f"_{op.kind}_", [left, self._product()])
        return left

    def _product(self) -> Node:
        left = self._unary()
        while (op := self._take("*", "/", "%")) is not None:
            left = Call(op.at, f"_{op.kind}_", [left, self._unary()])
        return left

    def _unary(self) -> Node:
        first = self._peek()
        count = 0
        if first.kind == "!":
            while self._take("!"):
                count += 1
            inner = self._member()
            return Call(first.at, "!_", [inner]) if count % 2 else inner
        if first.kind == "-":
            if _is_signed(self._words[self._next + 1]):
                return self._member()
            while self._take("-"):
                count += 1
            inner = self._member()
            return Call(first.at, "-_", [inner]) if count % 2 else inner
        return self._member()

    def _member(self) -> Node:
        result = self._primary()
        while True:
            if (dot := self._take(".")) is not None:
                result = self._selected(result, dot)
            elif (bracket := self._take("[")) is not None:
                optional = self._take("?") is not None
                index = self._expression()
                self._expect("]")
                result = Call(bracket.at, "_[?_]" if optional else "_[_]", [result, index])
            else:
                return result

    def _selected(self, operand: Node, dot: Token) -> Node:
        if self._take("?"):
            name = self._take("name", "quoted")
            if name is None:
                raise NotAnExpressionError
            return Call(dot.at, "_?._", [operand, Literal(name.at, name.text.strip("`"))])
        name = self._take("name", "quoted")
        if name is None or name.text in {"in", "true", "false", "null"}:
            raise NotAnExpressionError
        if name.kind == "quoted":
            self.issues.append(Issue(name.at, "unsupported syntax: '`'"))
        opening = self._take("(")
        if opening is None:
            return Select(dot.at, operand, name.text.strip("`"))
        return self._called(Call(opening.at, name.text, self._arguments(")"), operand))

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        if self._take(end):
            return found
        while True:
            found.append(self._expression())
            if self._take(end):
                return found
            self._expect(",")

    def _called(self, call: Call) -> Node:
        """Return a call, or its expansion if it calls a macro."""
        key = (call.function, len(call.arguments), call.target is not None)
        macro = MACROS.get(key) or self._more.get(key)
        if macro is None:
            return call
        try:
            return macro(call) or call
        except MacroError as error:
            self.issues.append(Issue(error.at, str(error)))
            return Literal(call.at, None)

    def _primary(self) -> Node:
        token = self._peek()
        self._next += 1
        if token.kind == "-" and _is_signed(self._peek()):
            word = self._peek()
            self._next += 1
            return Literal(token.at, number(Token(word.kind, word.text, token.at), negative=True))
        if token.kind in {"int", "float"}:
            return Literal(token.at, number(token, negative=False))
        if token.kind == "string":
            return Literal(token.at, string(token))
        if token.kind == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token.kind == "[":
            return self._list(token)
        if token.kind == "{":
            return self._map(token)
        if token.kind == "." or token.kind == "name":
            return self._named(token)
        raise NotAnExpressionError

    def _list(self, opening: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._take("]"):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._take(","):
                self._expect("]")
                break
        return ListNode(opening.at, elements, frozenset(optional))

    def _map(self, opening: Token) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._take("}"):
            optional = self._take("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if not self._take(","):
                self._expect("}")
                break
        return MapNode(opening.at, entries)

    def _named(self, token: Token) -> Node:
        prefix = ""
        if token.kind == ".":
            prefix, token = ".", self._expect("name")
        if token.text in _LITERALS and not prefix:
            return Literal(token.at, _LITERALS[token.text])
        if token.text == "in":
            raise NotAnExpressionError
        if token.text in RESERVED_WORDS:
            self.issues.append(Issue(token.at, f"reserved identifier: {token.text}"))
        opening = self._take("(")
        if opening is not None:
            return self._called(Call(opening.at, prefix + token.text, self._arguments(")")))
        struct = self._struct(prefix + token.text)
        return struct or Ident(token.at, prefix + token.text)

    def _struct(self, name: str) -> Node | None:
        """Parse ``a.b.Name{field: value}``; return None if something else follows."""
        at = self._next
        while self._words[at].kind == "." and self._words[at + 1].kind == "name":
            at += 2
        if self._words[at].kind != "{":
            return None
        name += "".join(word.text for word in self._words[self._next : at])
        opening = self._words[at]
        self._next = at + 1
        fields: list[tuple[str, Node, bool]] = []
        places: dict[str, int] = {}
        while not self._take("}"):
            optional = self._take("?") is not None
            field = self._expect("name")
            places[field.text] = self._expect(":").at
            fields.append((field.text, self._expression(), optional))
            if not self._take(","):
                self._expect("}")
                break
        return StructNode(opening.at, name, fields, places)


def _is_signed(word: Token) -> bool:
    """Return whether a token is a number that can be negative, so that a minus before it belongs to the number."""
    return word.kind == "float" or (word.kind == "int" and word.text[-1] not in "uU")


def _balanced(function: str, terms: list[Node], ops: list[int]) -> Node:
    """Return a balanced tree for a chain of terms that are joined by the same operator, such as ``a && b && c``."""

    def built(low: int, high: int) -> Node:
        if low == high:
            return terms[low]
        middle = (low + high + 1) // 2
        return Call(ops[middle - 1], function, [built(low, middle - 1), built(middle, high)])

    return built(0, len(terms) - 1)
