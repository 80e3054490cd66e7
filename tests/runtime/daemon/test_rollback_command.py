"""`wharfinger rollback`, in one process with a control plane, and as a command."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.runtime.support.objects import application
from tests.runtime.support.world import open_ground
from wharfinger.__main__ import main
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import find
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.daemon.rollback_command import request_rollback
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.resources.upgrade_policy import ROLLBACK


async def test_each_request_is_a_new_value_of_the_annotation(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await ground.client.create(application("prod", "shop"))
        key = ObjectKey(APPLICATION, "prod", "shop")
        at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert await request_rollback(ground.client, "prod.shop", "3", lambda: at) == "3@2026-01-02T03:04:05Z"
        assert find(await ground.client.get(key), "metadata", "annotations", ROLLBACK) == "3@2026-01-02T03:04:05Z"
        first, second = [await request_rollback(ground.client, "prod.shop", "former") for _ in range(2)]
        assert first != second
        with pytest.raises(NotFoundError):
            await request_rollback(ground.client, "prod.nothing", "1")


@pytest.mark.parametrize("revision", ["0", "00", "latest"])
def test_what_is_no_revision_is_refused(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "prod.shop", revision]) == 2
    assert "error: REVISION: expected the number of a revision or former" in capsys.readouterr().err


def test_without_a_cluster_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "prod.shop", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert "no such file" in capsys.readouterr().err
