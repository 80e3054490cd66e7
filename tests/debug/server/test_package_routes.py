"""The routes about details of a package: requests that are refused, and answers, none of which contains a secret of the
package."""

import json
from dataclasses import replace

import pytest

from tests.debug.server.test_routes import get
from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import CLUSTER_EVENTS, DAEMON_TASKS, DIFFERENCE, LOG, RESOURCES, package
from wharfinger.debug.addresses import DIFFERENCE as DIFF
from wharfinger.debug.addresses import EVENTS, LOGS, SNAPSHOTS, TASKS, UNAVAILABLE
from wharfinger.debug.addresses import RESOURCES as OBJECTS
from wharfinger.debug.server.package_routes import PACKAGE_ROUTES
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DetailsUnavailableError,
    FieldChangeSnapshot,
    HookSnapshotsSnapshot,
)

SECRET = "hunter2-planted"
NAME = {"package": "prod.shop"}


def leaky() -> CannedInspector:
    """Return an Inspector whose texts all quote a secret of the package."""
    text = f"cannot use {SECRET}"
    change = replace(DIFFERENCE.changes[0], fields=(FieldChangeSnapshot("/a", f'"{SECRET}"', text),), note=text)
    return CannedInspector(
        contents=(replace(package(), secrets=(SECRET,)),),
        objects=(replace(RESOURCES[0], message=text, error=text, drift=text, labels=(f"a={SECRET}",)),),
        happened=(replace(CLUSTER_EVENTS[0], message=text),),
        logged=replace(LOG, lines=(replace(LOG.lines[0], message=text),)),
        next_apply=replace(DIFFERENCE, changes=(change,), notes=(text,), problem=text),
        seen_by_hooks=(HookSnapshotsSnapshot("hooks/001-config.sh", {"a": [{"filterResult": text}]}),),
        running=(replace(DAEMON_TASKS[0], name=text, cause=text),),
    )


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (OBJECTS, NAME),
        (EVENTS, NAME),
        (EVENTS, {}),
        (LOGS, NAME),
        (DIFF, NAME),
        (f"{SNAPSHOTS}prod.shop", {}),
        (TASKS, {}),
    ],
)
@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_no_secret_is_in_an_answer(path: str, query: dict[str, str], output: str) -> None:
    answer = await get(path, {**query, "output": output}, inspector=leaky())
    assert answer.status == 200
    assert SECRET not in answer.body.decode()
    assert "***" in answer.body.decode()


@pytest.mark.parametrize("path", [OBJECTS, LOGS, DIFF])
async def test_a_package_must_be_named(path: str) -> None:
    assert (await get(path)).status == 400
    answer = await get(path, {"package": "nope"})
    assert (answer.status, json.loads(answer.body)) == (200, None)


async def test_invalid_queries_are_refused() -> None:
    assert (await get(LOGS, {**NAME, "after": "-1"})).status == 400
    assert (await get(SNAPSHOTS)).status == 400
    missing = await get(f"{SNAPSHOTS}nope")
    assert (missing.status, missing.body) == (404, b"no package named 'nope'\n")
    assert (await get(OBJECTS, {**NAME, "name": "x"})).status == 400
    assert set(PACKAGE_ROUTES) == {OBJECTS, EVENTS, LOGS, DIFF, f"{SNAPSHOTS}{{name}}", TASKS}


async def test_only_lines_after_a_number_are_returned() -> None:
    document = json.loads((await get(LOGS, {**NAME, "after": "7"})).body)
    assert [line["number"] for line in document["lines"]] == [9]


@pytest.mark.parametrize("query", [{}, NAME])
async def test_a_cluster_that_does_not_answer_is_a_503(query: dict[str, str]) -> None:
    class Away(CannedInspector):
        async def events(self, name: str | None) -> tuple[ClusterEventSnapshot, ...] | None:
            raise DetailsUnavailableError("the Events cannot be read: https://user:hunter2hunter2@host/ is down")

    answer = await get(EVENTS, query, inspector=Away())
    assert answer.status == 503
    assert answer.body.startswith(UNAVAILABLE.encode())
    assert b"hunter2" not in answer.body
