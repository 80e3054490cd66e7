"""The protocol between the daemon and a rule worker, a process that evaluates the CEL rules of schemas.

Each request and each answer is one line of JSON. A request to check that rules compile is ``{"rules": …}``
(:class:`~wharfinger.formats.schemas.validations.SchemaRules`). A request to evaluate rules also has the value as ``"self"``,
and the old value, if there is one, as ``"old"``. Before the answer, the worker writes a line for each rule that it starts
(``{"at": …}``), so that the daemon knows which rule was running if it has to kill the worker. The answer is
``{"findings": […]}``.

Rules are foreign programs, so the output of a worker is foreign data: its size is limited before it is read, and invalid output
is a CelProtocolError. Pure.
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
"""The maximum size of one line from a worker, in bytes."""
MAX_FINDINGS: Final = 100
"""The maximum number of findings in one answer."""


class CelProtocolError(FormatError):
    """A line from the worker or from the daemon violates the protocol."""


class FindingKind(enum.Enum):
    """The kind of a finding."""

    FAILED = "failed"
    """The value violates the rule."""
    ERROR = "error"
    """The rule could not be evaluated."""
    WARNING = "warning"
    """The value violates the rule, and the rule's messageExpression gave no usable message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a rule found at one place of a value, or a problem with the rule itself.

    ``at`` is the rule's place in the schema, and ``path`` is the place of the problem in the value. The rule was evaluated on the
    part of the value whose path is ``path`` without the last ``below`` steps. If the rule's messageExpression made ``message``
    from this part, ``static`` is the rule's fixed message, which must be shown instead if the part contains a secret. Otherwise
    ``static`` is empty.
    """

    kind: FindingKind
    path: ValuePath
    at: str
    message: str
    static: str = ""
    below: int = 0

    @property
    def made_of(self) -> ValuePath:
        """The path of the value that the rule was evaluated on."""
        return self.path[: max(len(self.path) - self.below, 0)]


@dataclass(frozen=True, slots=True)
class CelRequest:
    """A request about ``rules`` (the text of SchemaRules): evaluate them on ``value`` if ``has_self`` is true, otherwise only
    compile them.
    """

    rules: bytes
    has_self: bool = False
    value: JsonValue = None
    old: JsonValue = None


class _Request(msgspec.Struct):
    rules: msgspec.Raw
    value: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="self")
    old: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def encode_check(rules: SchemaRules) -> bytes:
    """Return the request to check that the rules compile."""
    return b'{"rules":%b}\n' % rules.text


def encode_evaluation(rules: SchemaRules, value: JsonValue, old: JsonValue) -> bytes:
    """Return the request to evaluate the rules. Raises ShapeError for a value without a JSON form."""
    parts = [b'{"rules":', rules.text, b',"self":', encode_json(value)]
    if old is not None:
        parts += [b',"old":', encode_json(old)]
    return b"".join([*parts, b"}\n"])


def decode_request(line: bytes) -> CelRequest:
    """Read a request; the rules are not parsed. Raises CelProtocolError."""
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
    """Return the line that reports the place of the next rule."""
    return encode_json({"at": place}) + b"\n"


def encode_findings(findings: Iterable[Finding]) -> bytes:
    """Return the line that answers a request with these findings."""
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
    """Return the content of a worker's line: the place of the rule that starts, or all findings. Raises CelProtocolError."""
    try:
        message = decode_json(line, max_bytes=MAX_ANSWER_BYTES, what="the answer")
        if find(message, "at") is not None:
            return find_str(message, "at")
        if not isinstance(find(message, "findings"), list):
            raise CelProtocolError("neither a place nor findings")
        return tuple(map(_finding, find_list(message, "findings")[:MAX_FINDINGS]))
    except (FormatError, ValueError) as error:
        raise CelProtocolError(f"cel: not an answer: {error}") from error


def _finding(value: JsonValue) -> Finding:
    path = find_list(value, "path")
    return Finding(
        FindingKind(find_str(value, "kind")),
        tuple(step for step in path if isinstance(step, str | int) and not isinstance(step, bool)),
        find_str(value, "at"),
        find_str(value, "message"),
        find_str(value, "static"),
        find_int(value, "below"),
    )
