import json

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from tests.debug.support.samples import BUSY, WAITING, package, task
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.encoding.encoding import queue_to_json


async def test_queues_are_listed_with_their_tasks() -> None:
    inspector = CannedInspector((package("a.b", tasks=(WAITING, task(2, running=False))), package("c")))
    lines = (await listed(inspector, "queues", None, "wide")).splitlines()
    assert lines[0].split() == ["NAME", "TASKS", "RUNNING", "RETRYING", "PARKED", "DOING", "ERROR"]
    assert lines[1].split() == [
        *["a.b", "2", "0", "1", "0", "Task1", "(again", "in", "14.2s)", "connection", "refused"]
    ]
    assert lines[2].split() == ["c", "0", "0", "0", "0"]
    document = json.loads(await listed(inspector, "queues", "a.b", "json"))
    assert document == {"queues": {"a.b": queue_to_json((await inspector.queues())[0])}}


async def test_hooks_and_watches_are_listed() -> None:
    inspector = CannedInspector((BUSY,))
    first, second = (await listed(inspector, "hooks", None, "wide", headers=False)).splitlines()
    assert first.split()[:6] == ["prod.busy", "hooks/001-config.sh", "3", "2026-05-17T12:30:45Z", "0", "0"]
    assert first.endswith("exit 1")
    assert second.split() == ["prod.busy", "hooks/002-later.py", "0", "never", "0", "0"]
    (watch,) = (await listed(inspector, "watches", None, "wide", headers=False)).splitlines()
    assert watch.split()[:8] == ["prod.busy", "hooks/001-config.sh", "configmaps", "watching", "7", "1", "2", "40"]
    assert json.loads(await listed(inspector, "watches", None, "json"))["watches"][0]["package"] == "prod.busy"
    assert await listed(inspector, "watches", None, "name") == "prod.busy/hooks/001-config.sh/configmaps\n"


async def test_resources_are_listed_with_their_status() -> None:
    inspector = CannedInspector()
    text = await listed(inspector, "resources", None, "wide", headers=False)
    assert text.splitlines()[0].split()[:6] == ["prod.shop", "Deployment.apps", "prod", "shop", "InProgress", "Done"]
    assert "no quota\\x1b[31m" in text
    assert len((await listed(inspector, "resources", "prod.shop", "name")).splitlines()) == 2
    assert (await listed(inspector, "resources", None, "name")).splitlines()[-1] == (
        "ClusterRole.rbac.authorization.k8s.io/shop"
    )
    with pytest.raises(NoSuchPackageError):
        await listed(inspector, "resources", "nope")
