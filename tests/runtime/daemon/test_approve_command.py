"""`wharfinger approve`: its function, with a control plane in this process, and its command line."""

from pathlib import Path

import pytest

from tests.runtime.support.objects import application, module
from tests.runtime.support.world import open_ground
from wharfinger.__main__ import main
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.daemon.approve_command import NothingToApproveError, approve
from wharfinger.runtime.resources.resources import APPLICATION, MODULE
from wharfinger.runtime.versions.version_policy import APPROVED


async def test_the_waiting_or_the_given_version_is_approved(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:  # There is no daemon here, because it would correct the status.
        await ground.client.create(application("prod", "shop"))
        key = ObjectKey(APPLICATION, "prod", "shop")
        for version in ("", "1.1.0"):
            with pytest.raises(NothingToApproveError, match="exact version"):
                await approve(ground.client, "prod.shop", version)
        followed: JsonObject = {"spec": {"packageVersion": None, "versionRange": ">=1"}}
        await ground.client.merge_patch(key, followed)
        update: JsonObject = {"chosen": "1.0.0", "pending": "1.1.0", "message": "1.1.0 is available"}
        await ground.client.merge_patch(key, {"status": {"update": update}}, subresource="status")
        assert await approve(ground.client, "prod.shop", "") == "1.1.0"
        assert find(await ground.client.get(key), "metadata", "annotations", APPROVED) == "1.1.0"
        assert await approve(ground.client, "prod.shop", "1.0.5") == "1.0.5"
        await ground.client.create(module("ingress"))
        await ground.client.merge_patch(ObjectKey(MODULE, "", "ingress"), followed)
        await approve(ground.client, "ingress", "2.0.0")
        obj = await ground.client.get(ObjectKey(MODULE, "", "ingress"))
        assert find(obj, "metadata", "annotations", APPROVED) == "2.0.0"
        with pytest.raises(NotFoundError):
            await approve(ground.client, "prod.nothing", "")


def test_an_invalid_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approve", "prod.shop", "a b"]) == 2
    assert "error: VERSION: version 'a b' cannot be a tag" in capsys.readouterr().err


def test_a_missing_kubeconfig_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approve", "prod.shop", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert "no such file" in capsys.readouterr().err
