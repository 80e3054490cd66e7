"""Changes of a status: which listener is notified, and when a line is logged."""

import logging
from datetime import UTC, datetime

import pytest

from tests.runtime.support.notes import instance, put
from wharfinger.runtime.core.status_changes import StatusChanges
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_status_listener_replaces_the_listener_of_names() -> None:
    named, seen = list[str](), list[tuple[str, PackageStatus, PackageStatus]]()
    one = instance()
    before = one.status
    put(one, statuses.placed(before, "prod"))
    StatusChanges(lambda: NOW, named.append).report(one, before)
    assert named == ["prod.shop"]
    StatusChanges(lambda: NOW, named.append, lambda *change: seen.append(change)).report(one, before)
    assert (named, seen) == (["prod.shop"], [("prod.shop", before, one.status)])


def test_only_changed_states_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger")
    one, changes = instance(), StatusChanges(lambda: NOW, lambda _name: None)
    for message in ("one", "two"):
        before = one.status
        put(one, statuses.failed(before, Stage.FETCHED, "ArtifactNotFound", message, NOW, permanent=True))
        changes.report(one, before)
    assert [line.split(":")[0] for line in caplog.messages] == ["prod/shop"]
