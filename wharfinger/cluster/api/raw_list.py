"""One page of a list, its objects kept as the text that was received.

Pure. The server leaves ``apiVersion`` and ``kind`` out of the items of a built-in kind's list; they are added here.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.cluster.api.raw_object import RawPage, read_raw_object
from wharfinger.formats.json.value import ShapeError
from wharfinger.kube.resource import ResourceType


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """A page, and the token for requesting the next page ("" after the last page)."""

    page: RawPage
    token: str


class _Metadata(msgspec.Struct):
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")
    token: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    metadata: _Metadata | None = None
    items: list[msgspec.Raw] | None = None


_LIST: Final = msgspec.json.Decoder(_List)


def read_list_answer(body: bytes, resource: ResourceType, what: str) -> ListAnswer:
    """Parse the answer to one list request; ``what`` describes the request in words. Raises MalformedAnswerError."""
    try:
        answer = _LIST.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswerError(f"{what}: the answer is not a list: {error}") from error
    try:
        items = tuple(read_raw_object(bytes(item), resource) for item in answer.items or ())
    except ShapeError as error:
        raise MalformedAnswerError(f"{what}: {error}") from error
    metadata = answer.metadata or _Metadata()
    return ListAnswer(RawPage(items, metadata.resource_version or ""), metadata.token or "")
