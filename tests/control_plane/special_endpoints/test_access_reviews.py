"""Refusals of invalid access reviews that no recording of a real API server covers."""

import httpx
import pytest

from wharfinger.control_plane.service import open_control_plane
from wharfinger.formats.json.value import JsonObject

GROUP = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("selfsubjectaccessreviews", {"spec": {}}, "exactly one of"),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}},
            "cannot be specified in combination with resourceAttributes",
        ),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": {}}}, "at least one of user or group"),
        (
            "subjectaccessreviews",
            {"metadata": {"name": "x"}, "spec": {"user": "a", "resourceAttributes": {}}},
            "must be empty",
        ),
        (
            "namespaces/a/localsubjectaccessreviews",
            {"metadata": {"namespace": "a"}, "spec": {"user": "a", "nonResourceAttributes": {"path": "/"}}},
            "disallowed on this kind of request",
        ),
        ("selfsubjectrulesreviews", {"spec": {}}, "no namespace on request"),
    ],
)
async def test_invalid_reviews_are_refused(path: str, body: JsonObject, words: str) -> None:
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        answer = await client.post(f"{GROUP}/{path}", json=body)
        assert words in answer.json()["message"]
        assert answer.status_code in {400, 422}
