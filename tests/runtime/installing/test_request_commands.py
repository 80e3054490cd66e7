"""`wharfinger reconcile`, `retry`, `suspend` and `resume`: functions with a control plane in this process, and command lines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.runtime.support.objects import application, module
from tests.runtime.support.world import open_ground
from wharfinger.__main__ import build_parser, main
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import find
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.installing.request_commands import request, suspend
from wharfinger.runtime.resources.resources import APPLICATION, FORCED, MODULE, REQUESTED, RESET

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""
NOW = datetime(2026, 5, 17, 12, 30, 45, tzinfo=UTC)


async def test_requests_are_written_into_the_resource(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        await ground.client.create(application("prod", "shop"))
        await ground.client.create(module("ingress"))
        shop, ingress = ObjectKey(APPLICATION, "prod", "shop"), ObjectKey(MODULE, "", "ingress")
        await request(ground.client, "prod.shop", REQUESTED, NOW)
        await request(ground.client, "ingress", FORCED, NOW)
        written = "2026-05-17T12:30:45.000000Z"
        assert find(await ground.client.get(shop), "metadata", "annotations", REQUESTED) == written
        assert find(await ground.client.get(ingress), "metadata", "annotations", FORCED) == written
        for suspended, is_new in ((True, True), (True, False), (False, True), (False, False)):
            assert await suspend(ground.client, "prod.shop", suspended=suspended) is is_new
            assert find(await ground.client.get(shop), "spec", "suspend") is suspended
        with pytest.raises(NotFoundError):
            await suspend(ground.client, "prod.nothing", suspended=True)
        with pytest.raises(NotFoundError):
            await request(ground.client, "prod.nothing", REQUESTED, NOW)


@pytest.mark.parametrize(
    ("words", "annotation"),
    [
        ("reconcile prod.shop", REQUESTED),
        ("reconcile prod.shop --force", FORCED),
        ("reconcile --reset prod.shop", RESET),
        ("retry prod.shop", REQUESTED),
    ],
)
def test_each_request_has_its_annotation(words: str, annotation: str) -> None:
    assert build_parser(words.split(maxsplit=1)[0]).parse_args(words.split()).annotation == annotation


@pytest.mark.parametrize("command", ["reconcile", "retry", "suspend", "resume"])
def test_a_missing_kubeconfig_is_reported(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "prod.shop", "--kubeconfig", str(tmp_path / "none"), "--context", "other"]) == 1
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["reconcile", "retry", "suspend", "resume", "approve"])
def test_an_invalid_package_name_is_wrong_usage(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    assert main([command, "prod.", "--kubeconfig", str(tmp_path / "config")]) == 2
    assert capsys.readouterr().err == "error: 'prod.' is neither <namespace>.<instance> nor the name of a Module\n"
