"""Predictions of installs and upgrades of charts of the corpus. The operation must then change exactly what was predicted.

The predicted changes are applied to the state before the install or upgrade. The result must be the state after it. Objects
that hooks create are not compared, because predictions do not cover them. If the server could not be asked about an object,
only its existence is checked.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.corpus.charts import NAMES, unpack
from tests.corpus.engines import open_engine, request
from tests.corpus.plainly import plainly
from tests.corpus.rendering import render
from tests.corpus.server import NAMESPACE, RELEASE, open_server
from tests.corpus.state import State, comparable, difference, names_of, without
from tests.scale import FULL
from wharfinger.cluster.releases.prediction import Change, ObjectChange, Source
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.rendering.subchart_crds import subchart_crds

pytestmark = pytest.mark.unmeasured

SAMPLE = ("bundled", "custom-resources", "hooked", "secretive", "tenants")
CHARTS = [name for name in (NAMES if FULL else SAMPLE) if name != "heavy"]


def foretold(before: State, changes: Iterable[ObjectChange]) -> State:
    """Return the state ``before``, with the predicted changes applied."""
    after = dict(before)
    for each in changes:
        if each.change in (Change.CREATE, Change.CHANGE) and each.by is Source.DRY_RUN:
            assert each.after is not None
            after[each.object] = comparable(each.after)
        elif each.change is Change.DELETE:
            del after[each.object]
        else:
            assert each.change is not Change.UNKNOWN, each
    return after


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
@plainly
async def test_an_upgrade_changes_what_was_predicted(name: str, tmp_path: Path) -> None:
    one, two = unpack(name, tmp_path / "charts")
    async with open_server(tmp_path / "server") as server, open_engine(server.client) as engine:
        hooks: list[JsonObject] = []
        for version in (one, two):
            crds = subchart_crds(version.folder, version.values, is_package=False)
            await engine.releases.ensure_crds(RELEASE, NAMESPACE, crds)
            rendered = await render(
                version, server.client, tmp_path / "scratch", server.kubeconfig, upgrade=version is two, program="helm"
            )
            hooks += rendered.hooks
            wanted = request(version, rendered)
            before = await server.settled()
            prediction = await engine.releases.predict(wanted)
            assert await server.settled() == before  # the prediction wrote nothing
            await engine.releases.upgrade(wanted)
            after = await server.settled()
            by_chart = {each.object for each in prediction.changes if each.by is Source.CHART}
            assert by_chart <= after.keys()  # the server was not asked, so their content may differ
            apart = names_of(hooks) | by_chart
            said = difference(without(foretold(before, prediction.changes), apart), without(after, apart))
            assert said == [], (version.number, said)
            kept = [each.object for each in prediction.changes if each.change is Change.KEEP]
            assert set(kept) <= after.keys()
            again = await engine.releases.predict(wanted)
            assert {each.change for each in again.changes} <= {Change.UNCHANGED}
