"""Nothing that the control plane says it takes makes it fail or hang, fitting or not."""

import json
import random
from typing import Final

import trio

from tests.cluster.control_plane.openapi_requests import Operation, drawn, operations
from tests.scale import scaled
from wharfinger.cluster.control_plane.openapi_data import version_3_names
from wharfinger.cluster.control_plane.service import open_control_plane
from wharfinger.httpd.messages import Request, Response, StreamingResponse

REQUESTS: Final = scaled(20_000, 1_000)
MEANT: Final = (
    "resourceVersion should not be set on objects to be created",
    "resourceVersion: Invalid value",
    "target.",
)
"""Failures (500) that a kube-apiserver has too."""


async def test_no_request_fails() -> None:
    draw = random.Random(8)  # noqa: S311 - a run that can be had again
    async with open_control_plane(simulate=False) as control_plane:
        for name in ("a", "b"):
            body = f'{{"metadata": {{"name": "{name}"}}}}'.encode()
            await control_plane.handler(Request("POST", "/api/v1/namespaces", {}, {}, body))
        documents = control_plane.handler.documents.openapi
        known: list[Operation] = []
        for name in version_3_names():
            document = documents.version_3(name)
            assert document is not None
            known += operations(json.loads(document.body))
        failed = []
        for _ in range(REQUESTS):
            request = drawn(draw.choice(known), draw)
            with trio.fail_after(10):
                answer = await control_plane.handler(request)
            if _fails(answer):
                failed.append(_described(request, answer))

    assert failed == []


def _fails(answer: Response | StreamingResponse) -> bool:
    return (
        isinstance(answer, Response)
        and answer.status == 500
        and not any(text.encode() in answer.body for text in MEANT)
    )


def _described(request: Request, answer: Response | StreamingResponse) -> str:
    said = answer.body[:300] if isinstance(answer, Response) else b""
    return f"{request.method} {request.path} {dict(request.query)} {request.headers} {request.body[:500]!r}: {said!r}"
