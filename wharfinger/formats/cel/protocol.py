"""What the daemon and a rule worker say to each other: one line of JSON each way, and signs of life in between.

A request is ``{"rules": …}`` (:class:`~wharfinger.formats.schemas.validations.SchemaRules`), to check that they compile, or has
``"self"`` and perhaps ``"old"`` beside them, to evaluate them on. While it works, a worker says before each rule which one
it is at (``{"at": …}``), so that whoever has to kill it knows why. The last line is the answer: ``{"findings": […]}``.

Rules are foreign programs, so what comes out of a worker is foreign data: bounded before it is read, and a CelProtocolError
where it is no answer. Pure.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, decode_json, encode_json, find, find_int, find_list, find_str
from wharfinger.formats.schemas.document import ValuePath
from wharfinger.formats.schemas.validations import SchemaRules

MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Of one line from a worker."""
MAX_FINDINGS: Final = 100
"""In one answer."""


class CelProtocolError(FormatError):
    """The other side does not keep to the protocol."""


class FindingKind(enum.Enum):
    """What a rule has to say of a value."""

    FAILED = "failed"
    """The rule is not kept."""
    ERROR = "error"
    """Whether it is kept could not be found out."""
    WARNING = "warning"
    """It is not kept; besides, its messageExpression gave no message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule and one place of a value. ``at`` is the rule's place in the schema, ``path`` where the problem is.

    ``static`` is said in place of ``message`` where that may be made of a secret; ``message`` was made of what is at the place
    of the rule, which is ``below`` steps above ``path``.
    """

    kind: FindingKind
    path: ValuePath
    at: str
    message: str
    static: str = ""
    below: int = 0

    @property
    def made_of(self) -> ValuePath:
        """Where the value is that the rule was evaluated on."""
        return self.path[: max(len(self.path) - self.below, 0)]


@dataclass(frozen=True, slots=True)
class CelRequest:
    """What a worker is to do; without ``has_self`` only to compile. ``rules`` is the text of SchemaRules; no ``old``: None."""

    rules: bytes
    has_self: bool = False
    value: JsonValue = None
    old: JsonValue = None


class _Request(msgspec.Struct):
    rules: msgspec.Raw
    value: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="self")
    old: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def encode_check(rules: SchemaRules) -> bytes:
    """The line that asks whether the rules compile."""
    return b'{"rules":%b}\n' % rules.text


def encode_evaluation(rules: SchemaRules, value: JsonValue, old: JsonValue) -> bytes:
    """The line that asks for an evaluation. Raises ShapeError for a value without a form in JSON."""
    parts = [b'{"rules":', rules.text, b',"self":', encode_json(value)]
    if old is not None:
        parts += [b',"old":', encode_json(old)]
    return b"".join([*parts, b"}\n"])


def decode_request(line: bytes) -> CelRequest:
    """Read a request; the rules are not looked into. Raises CelProtocolError."""
    try:
        request = msgspec.json.decode(line, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CelProtocolError(f"cel: not a request: {error}") from error
    return CelRequest(
        bytes(request.rules),
        not isinstance(request.value, msgspec.UnsetType),
        _decoded(request.value),
        _decoded(request.old),
    )


def _decoded(text: msgspec.Raw | msgspec.UnsetType) -> JsonValue:
    if isinstance(text, msgspec.UnsetType):
        return None
    data = bytes(text)
    try:
        return decode_json(data, max_bytes=len(data), what="the value")
    except FormatError as error:
        raise CelProtocolError(f"cel: not a request: {error}") from error


def encode_at(place: str) -> bytes:
    """The line that says which rule is next."""
    return encode_json({"at": place}) + b"\n"


def encode_findings(findings: Iterable[Finding]) -> bytes:
    """The line that answers."""
    listed: list[JsonValue] = [
        {
            "kind": finding.kind.value,
            "path": list(finding.path),
            "at": finding.at,
            "message": finding.message,
            "static": finding.static,
            "below": finding.below,
        }
        for finding in findings
    ]
    return encode_json({"findings": listed}) + b"\n"


def decode_line(line: bytes) -> str | tuple[Finding, ...]:
    """Which rule a worker is at, or its answer. Raises CelProtocolError."""
    try:
        said = decode_json(line, max_bytes=MAX_ANSWER_BYTES, what="the answer")
        if find(said, "at") is not None:
            return find_str(said, "at")
        if not isinstance(find(said, "findings"), list):
            raise CelProtocolError("neither a place nor findings")
        return tuple(map(_finding, find_list(said, "findings")[:MAX_FINDINGS]))
    except (FormatError, ValueError) as error:
        raise CelProtocolError(f"cel: not an answer: {error}") from error


def _finding(said: JsonValue) -> Finding:
    path = find_list(said, "path")
    return Finding(
        FindingKind(find_str(said, "kind")),
        tuple(step for step in path if isinstance(step, str | int) and not isinstance(step, bool)),
        find_str(said, "at"),
        find_str(said, "message"),
        find_str(said, "static"),
        find_int(said, "below"),
    )
