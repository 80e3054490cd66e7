"""`wharfinger rollback`: its function, with a control plane in this process, and its command line."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.runtime.support.objects import application
from tests.runtime.support.world import open_ground
from wharfinger.__main__ import main
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.records.release import Release, ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.formats.json.value import JsonObject, find, find_int
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.daemon.rollback_command import NoRevisionError, check_revision, request_rollback
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.resources.upgrade_policy import ROLLBACK

AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def test_each_request_is_a_new_value_of_the_annotation(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await ground.client.create(application("prod", "shop"))
        key = ObjectKey(APPLICATION, "prod", "shop")
        assert await request_rollback(ground.client, "prod.shop", "3", lambda: AT) == "3@2026-01-02T03:04:05Z"
        assert find(await ground.client.get(key), "metadata", "annotations", ROLLBACK) == "3@2026-01-02T03:04:05Z"
        first, second = [await request_rollback(ground.client, "prod.shop", "former") for _ in range(2)]
        assert first != second
        with pytest.raises(NotFoundError):
            await request_rollback(ground.client, "prod.nothing", "1")


def record(revision: int, status: ReleaseStatus) -> Release:
    return new_release(
        name="shop",
        namespace="prod",
        revision=revision,
        status=status,
        description="",
        chart={"name": "web"},
        values={},
        manifest="",
        hooks=[],
        now=AT,
    )


async def test_a_package_without_a_former_revision_is_refused_at_once(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        client = ground.client
        created = await client.create(application("prod", "shop"))
        key, generation = ObjectKey(APPLICATION, "prod", "shop"), find_int(created, "metadata", "generation")
        with pytest.raises(NoRevisionError, match="no revision of the package was deployed yet"):
            await check_revision(client, "prod.shop", 0)
        store = ReleaseStore(client, lambda: AT)
        await store.create(record(1, ReleaseStatus.DEPLOYED))
        await check_revision(client, "prod.shop", 0)  # the resource may request a version that has no revision
        status: JsonObject = {"observedGeneration": generation, "conditions": [], "summary": {"state": "Ready"}}
        await client.merge_patch(key, {"status": status}, subresource="status")
        with pytest.raises(NoRevisionError, match="revision 1 is the only one") as refused:
            await check_revision(client, "prod.shop", 0)
        assert str(refused.value).endswith("change its resource")
        with pytest.raises(
            NoRevisionError, match="the package already runs revision 1; `helm history` lists the other revisions"
        ):
            await check_revision(client, "prod.shop", 1)
        with pytest.raises(
            NoRevisionError, match="there is no revision 7; deployed revisions that are still recorded: 1"
        ):
            await check_revision(client, "prod.shop", 7)
        await client.merge_patch(key, {"spec": {"packageVersion": "2.0.0"}})
        await check_revision(client, "prod.shop", 0)  # the change failed before it created a revision
        await check_revision(client, "prod.shop", 1)
        await store.create(record(2, ReleaseStatus.FAILED))
        with pytest.raises(NoRevisionError, match="revision 2 was never deployed"):
            await check_revision(client, "prod.shop", 2)


@pytest.mark.parametrize("revision", ["0", "00", "latest"])
def test_an_invalid_revision_is_refused(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "prod.shop", revision]) == 2
    assert "error: REVISION: expected the number of a revision or former" in capsys.readouterr().err


def test_a_missing_kubeconfig_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "prod.shop", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert "no such file" in capsys.readouterr().err
