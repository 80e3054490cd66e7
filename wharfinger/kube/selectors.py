"""Label and field selectors: parsed once, then matched against each object (apimachinery's ``labels`` and ``fields``).

Errors have the words of the kube-apiserver, since a selector is usually typed by a user.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.go_texts import read_number
from wharfinger.kube.names import KEY_PART, SUBDOMAIN

NAME_PART: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_PART: Final = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE_PART: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


_LONGEST_REMEMBERED: Final = 317
"""The length of the longest valid key (a domain, a slash and a name); longer keys are not cached."""


class SelectorError(Exception):
    """A text is not a valid selector; the message is kube-apiserver's."""


class Operator(StrEnum):
    """The operator of a requirement on a label."""

    EXISTS = "exists"
    ABSENT = "!"
    IN = "in"
    NOT_IN = "notin"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a label selector: the key of a label, an operator, and values."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, JsonValue]) -> bool:
        """Return whether labels meet the requirement; ``notin`` and ``!=`` hold if the label is absent."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return self.key in labels
            case Operator.ABSENT:
                return self.key not in labels
            case Operator.IN:
                return self.key in labels and value in self.values
            case Operator.NOT_IN:
                return self.key not in labels or value not in self.values
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)

    def _compares(self, value: JsonValue) -> bool:
        number, problem = read_number(value, signed=True) if isinstance(value, str) else (0, "none")
        if problem:
            return False
        bound, _ = read_number(next(iter(self.values)), signed=True)
        return number > bound if self.operator is Operator.GREATER else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements; the empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, obj: JsonObject) -> bool:
        """Return whether an object's labels meet all requirements."""
        labels = find(obj, "metadata", "labels")
        return all(term.holds(labels if isinstance(labels, dict) else {}) for term in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """A term of a field selector: ``spec.nodeName=a`` or ``spec.nodeName!=a``."""

    path: str
    value: str
    equal: bool
    absent: str = ""
    """The value that is used in place of an absent field."""


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of terms; the empty selector matches everything."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, obj: JsonObject) -> bool:
        """Return whether an object's fields meet all terms."""
        return all(((_field(obj, term.path) or term.absent) == term.value) == term.equal for term in self.terms)

    @property
    def name(self) -> str:
        """Return the one name that the selector requires, or ""."""
        return next((term.value for term in self.terms if term.equal and term.path == "metadata.name"), "")


def _field(obj: JsonObject, path: str) -> str:
    found = find(obj, *path.split("."))
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:(?P<symbol>!=|==|=|!|<|>|\(|\)|,)|(?P<word>[^ \t\r\n=!<>(),\0]+)\0?|(?P<end>\0|\Z))"
)
_END: Final = ""


class _Tokens:
    """The lexer. Its tokens are symbols, words, and "" at the end. A NUL also counts as the end, unless it follows a word."""

    def __init__(self, text: str) -> None:
        self._items: list[str] = []
        position = 0
        while (found := _TOKEN.match(text, position)) is not None and found["end"] is None:
            self._items.append(found["symbol"] or found["word"])
            position = found.end()

    def peek(self) -> str:
        return self._items[0] if self._items else _END

    def take(self) -> str:
        return self._items.pop(0) if self._items else _END


_SYMBOLS: Final = frozenset({"!=", "==", "=", "!", "<", ">", "(", ")", ",", _END})


def parse_label_selector(text: str) -> LabelSelector:
    """Parse a selector such as ``a=b,env in (x,y),!c,n>3``. Raises SelectorError."""
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    if tokens.peek() == _END:
        return LabelSelector()
    while True:
        requirements.append(_requirement(tokens))
        separator = tokens.take()
        if separator == _END:
            break
        if separator != ",":
            raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
        if tokens.peek() in _SYMBOLS - {"!"}:
            raise SelectorError(f"found '{tokens.peek()}', expected: identifier after ','")
    return LabelSelector(tuple(sorted(requirements, key=lambda term: term.key)))


def _requirement(tokens: _Tokens) -> Requirement:
    absent = tokens.peek() == "!"
    if absent:
        tokens.take()
    key = tokens.take()
    if key in _SYMBOLS and absent:
        raise SelectorError(f"unable to parse requirement: found '{key}', expected: identifier")
    if key in _SYMBOLS:
        raise SelectorError(f"found '{key}', expected: !, identifier, or 'end of string'")
    _check_key(key)
    if absent:
        return Requirement(key, Operator.ABSENT)
    if tokens.peek() in {_END, ","}:
        return Requirement(key, Operator.EXISTS)
    return _comparison(key, tokens)


def _comparison(key: str, tokens: _Tokens) -> Requirement:
    operator = tokens.take()
    match operator:
        case "=" | "==":
            return Requirement(key, Operator.IN, _checked_values(key, [_exact(tokens)]))
        case "!=":
            return Requirement(key, Operator.NOT_IN, _checked_values(key, [_exact(tokens)]))
        case "in" | "notin":
            return Requirement(key, Operator(operator), _checked_values(key, _values(tokens)))
        case ">" | "<":
            value = _exact(tokens)
            if read_number(value, signed=True)[1]:
                raise SelectorError(
                    f"unable to parse requirement: values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, "
                    "the value must be an integer"
                )
            return Requirement(key, Operator(operator), frozenset({value}))
        case _:
            raise SelectorError(
                f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
            )


def _exact(tokens: _Tokens) -> str:
    if tokens.peek() in {_END, ","}:
        return ""
    value = tokens.take()
    if value in _SYMBOLS:
        raise SelectorError(f"unable to parse requirement: found '{value}', expected: identifier")
    return value


def _values(tokens: _Tokens) -> list[str]:
    if (opening := tokens.take()) != "(":
        raise SelectorError(f"unable to parse requirement: found '{opening}' expected: '('")
    if tokens.peek() == ")":
        tokens.take()
        return [""]
    if tokens.peek() in _SYMBOLS - {","}:
        raise SelectorError(f"unable to parse requirement: found '{tokens.peek()}', expected: ',', ')' or identifier")
    values: list[str] = []
    while tokens.peek() != ")":
        if (word := tokens.take()) == ",":
            values += [""] if not values or tokens.peek() in {",", ")"} else []
        elif word in _SYMBOLS:
            raise SelectorError(f"unable to parse requirement: found '{word}', expected: ',', or identifier")
        else:
            values.append(word)
            if tokens.peek() not in {",", ")"}:
                found = tokens.peek()
                raise SelectorError(f"unable to parse requirement: found '{found}', expected: ',' or ')'")
    tokens.take()
    return values


def key_problems(key: str) -> list[str]:
    """Return the errors of a label's key in the server's words (``validation.IsQualifiedName``)."""
    return list(_key_problems(key)) if len(key) <= _LONGEST_REMEMBERED else _compute_key_problems(key)


@lru_cache(maxsize=1024)
def _key_problems(key: str) -> tuple[str, ...]:
    """Return the errors of a key; they are cached, because the same keys are checked again and again."""
    return tuple(_compute_key_problems(key))


def _compute_key_problems(key: str) -> list[str]:
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    if "/" in name:
        what = NAME_PART.removeprefix("name part ")
        return [f"a valid label key {what} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    if len(prefix.encode()) > 253:
        problems.append("prefix part must be no more than 253 bytes")
    if prefix and not re.fullmatch(SUBDOMAIN, prefix):
        problems.append(PREFIX_PART)
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(KEY_PART, name):
        problems.append(NAME_PART)
    return problems


def value_problems(value: str) -> list[str]:
    """Return the errors of a label's value."""
    problems = ["must be no more than 63 bytes"] if len(value.encode()) > 63 else []
    if value and not re.fullmatch(KEY_PART, value):
        problems.append(VALUE_PART)
    return problems


def _check_key(key: str) -> None:
    if problems := key_problems(key):
        raise SelectorError(f'unable to parse requirement: <nil>: Invalid value: "{key}": {"; ".join(problems)}')


def _checked_values(key: str, values: Sequence[str]) -> frozenset[str]:
    for index, value in enumerate(values):
        if problems := value_problems(value):
            raise SelectorError(
                f'unable to parse requirement: values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}'
            )
    return frozenset(values)


def _unsupported(path: str) -> str:
    return f"field label not supported: {path}"


def parse_field_selector(
    text: str, supported: Callable[[str], bool], refusal: Callable[[str], str] = _unsupported
) -> FieldSelector:
    r"""Parse a selector such as ``metadata.name=a,spec.nodeName!=b``. Raises SelectorError.

    ``\`` escapes ``\``, ``,`` and ``=`` in values. ``refusal`` returns the error for a field that selectors do not support.
    """
    terms = []
    for term in _split_terms(text):
        if not term:
            continue
        found = re.match(r"(?P<path>.*?)(?P<operator>!=|==|=)(?P<value>.*)\Z", term, re.DOTALL)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        terms.append(FieldTerm(found["path"], _unescaped(found["value"]), equal=found["operator"] != "!="))
    for checked in terms:
        if not supported(checked.path):
            raise SelectorError(refusal(checked.path))
    return FieldSelector(tuple(terms))


def _unescaped(value: str) -> str:
    if wrong := re.search(r"\\(?![\\,=]).?", _PAIRS.sub("", value), re.DOTALL):
        raise SelectorError(f"invalid field selector: invalid escape sequence: {wrong[0]}")
    if bare := re.search("[,=]", _PAIRS.sub("", value)):
        raise SelectorError(f"invalid field selector: unescaped character in value: {ord(bare[0])}")
    return _PAIRS.sub(r"\1", value)


_PAIRS: Final = re.compile(r"\\([\\,=])")


def _split_terms(text: str) -> list[str]:
    return re.findall(r"(?:\\.?|[^\\,])+", text, re.DOTALL) if text else []
