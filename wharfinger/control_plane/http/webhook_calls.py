"""The calls of webhooks between two attempts of a request.

An attempt that lacks the answer of a webhook stores nothing, and names the calls that it needs
(:mod:`~wharfinger.control_plane.admission.webhooks`, :mod:`~wharfinger.control_plane.catalog.webhook_conversions`).
Each admission webhook has its own time limit; all webhooks that an attempt needs are called at the same time. Objects that one
webhook must convert to the same version are sent together.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import httpx
import trio

from wharfinger.control_plane.admission.webhook_reviews import (
    API_VERSION,
    KIND,
    MAX_ANSWER_BYTES,
    Verdict,
    read_verdict,
)
from wharfinger.control_plane.admission.webhooks import VERDICTS, VerdictsNeededError, WebhookCall
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.webhook_conversions import (
    CONVERTED,
    ConversionCall,
    ConversionsNeededError,
    answered,
)
from wharfinger.control_plane.http.webhook_client import CallFailedError, WebhookClient
from wharfinger.control_plane.wire import status
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, decode_json, find_object, find_str

MAX_ROUNDS: Final = 64
"""The maximum number of attempts of one request. A request may need several attempts, because its object may change between two
of them, or because it deletes many objects."""
CONVERSION_S: Final = 30
"""The time limit for a conversion webhook in seconds."""
MAX_CONVERTED_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of the answer of a conversion webhook, which may contain a whole list."""
CONVERSION_VERSION: Final = "apiextensions.k8s.io/v1"
CONVERSION_KIND: Final = "ConversionReview"
_OK: Final = range(200, 300)
Result = TypeVar("Result")


class WebhookCalls:
    """The caller of the webhooks of one control plane. ``transport`` replaces the network in tests."""

    def __init__(self, backend: Backend, transport: Callable[[], httpx.AsyncBaseTransport] | None = None) -> None:
        self._backend = backend
        self._client = WebhookClient(backend, transport)

    async def with_answers(self, attempt: Callable[[], Result]) -> Result:
        """Repeat an attempt until it has all answers of webhooks that it needs, and return its result. Raises StatusError."""
        verdicts: dict[str, Verdict] = {}
        converted: dict[str, JsonObject | str] = {}
        seed = self._backend.draw(2**63)
        for _ in range(MAX_ROUNDS):
            tokens = VERDICTS.set(verdicts), CONVERTED.set(converted)
            try:
                with self._backend.drawing_from(seed):  # each attempt generates the same names
                    return attempt()
            except VerdictsNeededError as needed:
                calls: Sequence[WebhookCall] = needed.calls
                groups: Sequence[Sequence[ConversionCall]] = ()
            except ConversionsNeededError as needed:
                calls, groups = (), _grouped(needed.calls)
            finally:
                VERDICTS.reset(tokens[0])
                CONVERTED.reset(tokens[1])
            async with trio.open_nursery() as nursery:
                for call in calls:
                    nursery.start_soon(self._judge, call, verdicts)
                for group in groups:
                    nursery.start_soon(self._convert, group, converted)
        raise status.internal_error("the object changes each time its webhooks are called; try again")

    async def _judge(self, call: WebhookCall, known: dict[str, Verdict]) -> None:
        known[call.key] = await self._verdict(call)

    async def _verdict(self, call: WebhookCall) -> Verdict:
        uid = str(uuid.uuid4())
        document: JsonObject = {"kind": KIND, "apiVersion": API_VERSION, "request": {**call.review, "uid": uid}}
        try:
            reply = await self._client.send(call.client, document, call.timeout_s, MAX_ANSWER_BYTES)
        except CallFailedError as error:
            return Verdict(failed=str(error))
        return read_verdict(reply.code, reply.body, uid, mutating=call.mutating)

    async def _convert(self, calls: Sequence[ConversionCall], known: dict[str, JsonObject | str]) -> None:
        found = await self._conversion(calls)
        for number, call in enumerate(calls):
            known[call.key] = found if isinstance(found, str) else found[number]

    async def _conversion(self, calls: Sequence[ConversionCall]) -> Sequence[JsonObject] | str:
        """Return the converted objects, or the reason why the conversion failed."""
        uid = str(uuid.uuid4())
        document: JsonObject = {
            "kind": CONVERSION_KIND,
            "apiVersion": CONVERSION_VERSION,
            "request": {
                "uid": uid,
                "desiredAPIVersion": calls[0].api_version,
                "objects": [call.obj for call in calls],
            },
        }
        try:
            reply = await self._client.send(calls[0].client(), document, CONVERSION_S, MAX_CONVERTED_BYTES)
            if reply.code not in _OK:
                return f"the server answered with {reply.code}"
            answer = decode_json(reply.body, max_bytes=MAX_CONVERTED_BYTES, what="the answer of a webhook")
            found = (find_str(answer, "apiVersion"), find_str(answer, "kind"))
            if found != (CONVERSION_VERSION, CONVERSION_KIND):
                return f"expected webhook response of {CONVERSION_VERSION}, Kind={CONVERSION_KIND}, got {' '.join(found)!r:.100}"
            return answered(find_object(answer, "response"), uid, calls)
        except (CallFailedError, FormatError) as error:
            return str(error)


def _grouped(calls: Sequence[ConversionCall]) -> list[list[ConversionCall]]:
    """Return the calls by webhook and version, each object once."""
    groups: dict[tuple[str, str], dict[str, ConversionCall]] = {}
    for call in calls:
        groups.setdefault((call.converter, call.api_version), {})[call.key] = call
    return [[*group.values()] for group in groups.values()]
