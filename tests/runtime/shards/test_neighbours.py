"""Packages of other shards, as a scheduler sees them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.runtime.support.sharded import kept_by, label, open_shard, prepared
from tests.runtime.support.world import one_error, open_ground
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.shards.neighbours import Neighbour, read_neighbour
from wharfinger.runtime.why.gate_causes import KEPT_ELSEWHERE

NEVER_READY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: never, annotations: {wharfinger.dev/never-ready: "true"}}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
"""


async def test_packages_of_other_shards_satisfy_requirements(tmp_path: Path) -> None:
    """The main daemon owns a Module. An Application of another shard requires it, and follows a range of versions."""
    definition = "type: Application\nname: page\nrequirements: {modules: {mandatory: [{name: base}]}}\n"
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await label(main, "blue")
            await prepared(main)
            chart(tmp_path / "packages" / "base", "base", "1.0.0")
            chart(tmp_path / "packages" / "page", "page", "1.0.0", {"package.yaml": definition})
            await main.create(
                "prod", "app", package="page", version="", more={"packageVersion": None, "versionRange": "^1"}
            )
            await main.until_state("prod", "app", "Pending")
            assert blue.runtime.status("prod.app") is not None
            await main.create_module("base")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            assert "base" not in blue.runtime.instances
            shown = RuntimeInspector("test", datetime.now(UTC), blue.runtime)
            states = {node.name: (node.state, node.decision) for node in await shown.scheduler()}
            assert states == {"base": ("active", "Enable"), "prod.app": ("active", "Enable")}
            assert await shown.metrics()
            await main.delete("", "base")
            await main.until("prod", "app", lambda obj: find_str(obj, "status", "summary", "state") == "Suspended")


async def test_a_cause_in_another_shard_is_named(tmp_path: Path) -> None:
    """The main shard has a Module whose Deployment never becomes ready. An Application of another shard requires the Module.
    The explanation of the Application must name the Module as the cause.
    """
    definition = "type: Application\nname: page\nrequirements: {modules: {mandatory: [{name: base}]}}\n"
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await label(main, "blue")
            await prepared(main)
            chart(tmp_path / "packages" / "base", "base", "1.0.0", {"templates/never.yaml": NEVER_READY})
            chart(tmp_path / "packages" / "page", "page", "1.0.0", {"package.yaml": definition})
            await main.create_module("base")
            await main.until("", "base", lambda obj: find_str(obj, "status", "currentVersion", "version") == "1.0.0")
            await main.create("prod", "app", package="page")
            await blue.until_runtime(lambda: blue.runtime.scheduler.node("prod.app") is not None)
            told = await RuntimeInspector("test", datetime.now(UTC), blue.runtime).why("prod.app")
            assert told is not None
            assert [(cause.subject, cause.state) for cause in told.causes][-1] == ("base", KEPT_ELSEWHERE)


@pytest.mark.parametrize(
    ("status", "neighbour"),
    [
        ({}, None),
        ({"currentVersion": {"version": "1.0.0"}}, Neighbour("1.0.0", on=True, ready=False)),
        (
            {
                "currentVersion": {"version": "1.0.0"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "summary": {"state": "Ready"},
            },
            Neighbour("1.0.0", on=True, ready=True),
        ),
        (
            {"currentVersion": {"version": "2"}, "summary": {"state": "Removing"}},
            Neighbour("2", on=False, ready=False),
        ),
    ],
)
def test_a_neighbour_is_read_from_its_status(status: JsonObject, neighbour: Neighbour | None) -> None:
    assert read_neighbour({"status": status}) == neighbour
