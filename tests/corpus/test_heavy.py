"""A release whose record is too large for a Secret. Helm cannot install it. Our engine can, and helm can then show it."""

from pathlib import Path

import msgspec
import pytest

from tests.corpus.charts import LOADS, Version, unpack
from tests.corpus.engines import open_engine
from tests.corpus.plainly import plainly
from tests.corpus.rendering import render
from tests.corpus.server import NAMESPACE, RELEASE, HelmFailedError, Server, open_server
from tests.corpus.state import everything, marked
from wharfinger.formats.json.value import JsonValue, find, find_str

pytestmark = pytest.mark.unmeasured


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm", "helm3"])
@plainly
async def test_more_than_a_mebibyte(helm: str, tmp_path: Path) -> None:
    one, two = unpack("heavy", tmp_path / "charts")
    async with open_server(tmp_path / "server") as server, open_engine(server.client) as engine:
        with pytest.raises(HelmFailedError, match=r"too large|Too long"):
            await server.helm_brings(helm, "install", one)
        for version, count, revision in ((one, LOADS, "one"), (two, LOADS - 1, "two"), (one, LOADS, "one")):
            rendered = await render(version, server.client, tmp_path / "scratch", server.kubeconfig, program=helm)
            assert len(rendered.manifest) > 1024 * 1024
            await engine.bring(version, rendered)
            await check(server, version, count, revision)

        async def asked(*argv: str) -> JsonValue:
            answer: JsonValue = msgspec.json.decode(await server.helm(helm, *argv, "-o", "json"))
            return answer

        listed, history, status = await asked("list"), await asked("history", RELEASE), await asked("status", RELEASE)
        assert [find(listed, 0, part) for part in ("name", "revision", "status")] == [RELEASE, "3", "deployed"]
        assert isinstance(history, list)
        assert [find(entry, "status") for entry in history] == ["superseded", "superseded", "deployed"]
        assert find(status, "info", "status") == "deployed"

        await engine.uninstall()
        await check(server, one, 0, "")
        left = [name for name, obj in everything(server.plane.backend).items() if "release" in find_str(obj, "type")]
        assert left == []


async def check(server: Server, version: Version, count: int, revision: str) -> None:
    """Check that only the ConfigMaps ``load-0`` to ``load-(count - 1)`` exist, with the content of the chart's files."""
    state = await server.settled()
    names = {f"ConfigMap {NAMESPACE}/load-{number}" for number in range(count)}
    assert marked(state) == names == {name for name in state if name.startswith("ConfigMap ")}
    for number in range(count):
        load = state[f"ConfigMap {NAMESPACE}/load-{number}"]
        assert find(load, "binaryData", "load") == (version.folder / "loads" / str(number)).read_text()
        assert find(load, "metadata", "annotations", "revision") == revision
