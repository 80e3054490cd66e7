"""Users who run helm on releases of our engine. The engine reports each revision that they make, and does not undo it.

The next upgrade by the engine makes the revision after the user's one.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.corpus.charts import NAMES, unpack
from tests.corpus.engines import Engine, open_engine
from tests.corpus.plainly import plainly
from tests.corpus.rendered import Charts
from tests.corpus.rendering import render
from tests.corpus.server import NAMESPACE, RELEASE, open_server
from tests.corpus.simulated import simulate
from tests.corpus.state import difference, names_of, records_of, without, without_marks
from tests.scale import FULL
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import from_secret, to_secret
from wharfinger.cluster.releases.request import Outcome
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey

pytestmark = pytest.mark.unmeasured

NOT_ROLLED_BACK = {"heavy", "keepsakes"}
"""The first chart is too large for helm. Helm 3 cannot roll the second one back to an object that was retained."""
PATIENCE_S = 300
FROM_TEXT = {"secretive": {"Secret shop/text"}}
"""A key removed from ``stringData`` stays in ``data``, except if a user's helm rewrote ``data`` in between."""
CHARTS = [name for name in NAMES if name not in NOT_ROLLED_BACK] if FULL else ["assorted"]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("helm", ["helm", "helm3"])
@pytest.mark.parametrize("name", CHARTS)
@plainly
async def test_a_user_rolls_back_and_upgrades(name: str, helm: str, tmp_path: Path) -> None:
    one, two = unpack(name, tmp_path / "charts")
    differences: list[str] = []
    async with open_server(tmp_path / "server") as server, open_engine(server.client) as engine:

        async def rendered_for(number: int) -> None:
            """Render a version, and install or upgrade it."""
            version = (one, two)[number - 1]
            made = await render(
                version, server.client, tmp_path / "scratch", server.kubeconfig, upgrade=number == 2, program=helm
            )
            apart.update(names_of([*made.crds, *made.hooks]))
            result = await engine.bring(version, made)
            assert result.outcome is not Outcome.UNCHANGED

        apart: set[str] = set(FROM_TEXT.get(name, ()))
        await rendered_for(1)
        first = await server.settled()
        await rendered_for(2)
        second = await server.settled()

        await server.helm(helm, "rollback", RELEASE, "1")
        back = await server.settled()
        stays = {obj: second[obj] for obj in second.keys() - first.keys() if obj in back}
        said = difference(without(without_marks(back), apart), without(without_marks({**stays, **first}), apart))
        differences += [f"after the person's rollback: {line}" for line in said]
        await noticed(engine, 3)

        await rendered_for(2)
        again = await server.settled()
        differences += [f"after ours: {line}" for line in difference(without(again, apart), without(second, apart))]
        assert [from_secret(record).revision for record in records_of(server.plane.backend, RELEASE)] == [1, 2, 3, 4]

        await server.helm_brings(helm, "upgrade", one)
        await noticed(engine, 5)
        await server.helm(helm, "uninstall", RELEASE)
        assert records_of(server.plane.backend, RELEASE) == []
    assert not differences, "\n".join(["", *differences])


@plainly
async def test_what_a_user_did_is_not_fought(charts: Charts, autojump_clock: MockClock) -> None:
    _, two = charts("assorted")
    async with simulate("assorted") as at:
        await at.bring(two)
        await trio.sleep(60)
        at.network.arm()
        (ours,) = (from_secret(record) for record in records_of(at.plane.backend, "assorted"))
        theirs = replace(ours, document={**ours.document, "version": 2}, holder="")
        await at.other.create(to_secret(theirs, datetime.now(UTC)))
        deployment = ObjectKey(await at.other.resource_type("apps/v1", "Deployment"), "assorted", "assorted")
        by_hand: JsonObject = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "else"}
        await at.other.json_patch(deployment, [by_hand])
        await trio.sleep(30 * 60)
        assert (at.network.writes, at.engine.told.foreign) == ([], [(Owner("assorted", "assorted"), 2)])

        result = await at.bring(two)
        assert result.revision in {2, 3}
        live = await at.other.get(deployment)
        assert find_str(live, "spec", "template", "spec", "containers", 0, "image") == "registry.example/assorted:2"


async def noticed(engine: Engine, revision: int) -> None:
    """Wait until the engine reports that somebody else has made a revision."""
    with trio.fail_after(PATIENCE_S):
        while (Owner(RELEASE, NAMESPACE), revision) not in engine.told.foreign:
            await engine.told.news.wait()
