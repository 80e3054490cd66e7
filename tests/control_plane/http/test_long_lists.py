"""Objects with very long lists. They are validated in linear time, and the answer is not much larger than the request.

If a rule compares each item with every other item, these tests take minutes instead of seconds.
"""

import json
from typing import Final

import pytest

from tests.scale import scaled
from wharfinger.control_plane.service import open_control_plane
from wharfinger.control_plane.wire.status import MAX_ERROR_CHARS
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.httpd.messages import Request, Response

MANY: Final = scaled(12_000, 2_000)
CORE: Final = "/api/v1/namespaces/default"
POD: Final[JsonObject] = {"containers": [{"name": "a", "image": "i"}]}


def _template(**spec: JsonValue) -> JsonObject:
    return {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {**POD, **spec}}}


def _container(**fields: JsonValue) -> JsonObject:
    return _template(containers=[{"name": "a", "image": "i", **fields}])


def _volume(kind: str, name: str, items: list[JsonValue]) -> JsonObject:
    return _template(volumes=[{"name": "v", kind: {name: items}}])


def _owner(number: int) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"{number}", "controller": True}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("path", "obj"),
    [
        (f"{CORE}/podtemplates", _container(ports=[{"containerPort": 1}] * MANY)),
        (f"{CORE}/podtemplates", _container(ports=[{"containerPort": 1, "hostPort": n + 1} for n in range(MANY)])),
        (f"{CORE}/podtemplates", _volume("configMap", "items", [{"key": "k", "path": "p"}] * MANY)),
        (f"{CORE}/podtemplates", _volume("secret", "items", [{"key": "k", "path": f"p{n}"} for n in range(MANY)])),
        (f"{CORE}/podtemplates", _volume("projected", "sources", [{"serviceAccountToken": {"path": "p"}}] * MANY)),
        (f"{CORE}/podtemplates", _volume("configMap", "items", [{"key": "k", "path": "p/" * MANY * 10}])),
        (f"{CORE}/podtemplates", _template(imagePullSecrets=[{"name": "s"}] * MANY)),
        (f"{CORE}/podtemplates", _template(topologySpreadConstraints=[{"topologyKey": f"{n}"} for n in range(MANY)])),
        (f"{CORE}/resourcequotas", {"spec": {"scopes": [f"s{n}" for n in range(MANY)]}}),
        (f"{CORE}/configmaps", {"metadata": {"ownerReferences": [_owner(n) for n in range(MANY)]}}),
        (f"{CORE}/configmaps", {"metadata": {"ownerReferences": [_owner(n // 2) for n in range(MANY)]}}),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "provisioner": "a.b/c",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}] * MANY,
            },
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "provisioner": "a.b/c",
                "allowedTopologies": [
                    {"matchLabelExpressions": [{"key": "a", "values": [f"{n}" for n in range(MANY)]}]}
                ],
            },
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": f"{n}"}} for n in range(MANY)]}},
        ),
        (
            "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            {"spec": {"request": "", "signerName": "a.b/c", "usages": [f"u{n}" for n in range(MANY)]}},
        ),
        ("/apis/batch/v1/namespaces/default/cronjobs", {"spec": {"schedule": "@daily", "timeZone": "a/" * MANY}}),
    ],
)
async def test_the_answer_to_a_long_list_is_limited(path: str, obj: JsonObject) -> None:
    metadata = obj.get("metadata")
    body = json.dumps({**obj, "metadata": {"name": "a", **(metadata if isinstance(metadata, dict) else {})}}).encode()
    async with open_control_plane(simulate=False) as control_plane:
        answer = await control_plane.handler(Request("POST", path, {}, {"content-type": "application/json"}, body))

    assert isinstance(answer, Response)
    assert answer.status in {201, 422}
    assert len(answer.body) < 4 * (MAX_ERROR_CHARS + len(body))


async def test_a_patch_with_many_operations_is_answered() -> None:
    added = [{"op": "add", "path": f"/data/k{number}", "value": "v"} for number in range(9_000)]
    copied = [{"op": "copy", "from": "/data/k1", "path": "/data/copy"}] * 500
    moved = [
        {"op": "move", "from": f"/{one}", "path": f"/{other}"} for one, other in [("data", "b"), ("b", "data")] * 250
    ]
    headers = {"content-type": "application/json-patch+json"}
    async with open_control_plane(simulate=False) as control_plane:
        made = b'{"metadata": {"name": "a"}, "data": {"k": "v"}}'
        await control_plane.handler(Request("POST", f"{CORE}/configmaps", {}, {}, made))
        body = json.dumps([*added, *copied, *moved]).encode()
        answer = await control_plane.handler(Request("PATCH", f"{CORE}/configmaps/a", {}, headers, body))

    assert isinstance(answer, Response)
    assert answer.status == 200
    assert len(json.loads(answer.body)["data"]) == 9_002
