"""Redaction of secrets. They leave the daemon neither in settings nor in quoted errors."""

from dataclasses import replace

import pytest
from hypothesis import given

from tests.debug.support.samples import (
    BUSY,
    CLUSTER_EVENTS,
    DAEMON,
    DAEMON_TASKS,
    DIFFERENCE,
    JSON_OBJECTS,
    LOG,
    MONITOR,
    NODES,
    PACKAGES,
    POOLS,
    REPOSITORIES,
    RESOURCES,
    WAITING_NODE,
    WHY,
    package,
    packages,
    task,
)
from wharfinger.debug.encoding.package import package_to_json
from wharfinger.debug.printing.output import render_json
from wharfinger.debug.printing.redacting import (
    redact_daemon,
    redact_difference,
    redact_events,
    redact_explanation,
    redact_log,
    redact_node,
    redact_package,
    redact_pool,
    redact_queue,
    redact_repository,
    redact_resource,
    redact_snapshots,
    redact_tasks,
    secrets_in,
    secrets_of,
)
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.redaction.redaction_text import MARK
from wharfinger.runtime.inspector import HookSnapshot, OperationSnapshot, PackageSnapshot, ProgressSnapshot
from wharfinger.runtime.package_details import FieldChangeSnapshot, HookSnapshotsSnapshot
from wharfinger.runtime.scheduler_details import LackSnapshot, VoteSnapshot

SETTINGS: JsonObject = {
    "replicas": 2,
    "database": {"host": "db", "password": "hunter2"},
    "users": [{"name": "a", "token": "first-token"}, {"name": "b", "token": 73310452}],
    "note": "uses hunter2 too",
}


def test_settings_are_redacted_by_key_and_other_texts_by_value() -> None:
    told = package(
        settings=SETTINGS,
        message="cannot log in with hunter2 at db",
        tasks=(task(1, error="401 for first-token"), task(2, error="pin 73310452", running=False)),
    )
    told = replace(
        told, tip="change hunter2", conditions=(replace(told.conditions[0], message="https://a:hunter2@db/ is down"),)
    )
    safe = redact_package(told)
    assert safe.settings == {
        "replicas": 2,
        "database": {"host": "db", "password": MARK},
        "users": [{"name": "a", "token": MARK}, {"name": "b", "token": MARK}],
        "note": f"uses {MARK} too",
    }
    assert safe.message == f"cannot log in with {MARK} at db"
    assert safe.tip == f"change {MARK}"
    assert [each.error for each in safe.queue.tasks] == [f"401 for {MARK}", f"pin {MARK}"]
    for secret in ("hunter2", "first-token", "73310452"):
        assert secret not in render_json(package_to_json(safe))


def test_values_hooks_and_names_of_tasks_are_redacted() -> None:
    told = replace(
        package(settings={}, tasks=(replace(task(1), name="Run hunter2"),)),
        values={"db": {"password": "hunter2"}},
        hooks=(HookSnapshot("h", ("schedule hunter2 0 * * * *",), 1, None, "hunter2 is wrong"),),
    )
    safe = redact_package(told)
    assert safe.values == {"db": {"password": MARK}}
    assert safe.hooks[0] == HookSnapshot("h", (f"schedule {MARK} 0 * * * *",), 1, None, f"{MARK} is wrong")
    assert safe.queue.tasks[0].name == f"Run {MARK}"


def test_secrets_that_the_runtime_names_are_masked_in_every_text() -> None:
    told = replace(package(message="a write-only one", settings={"greeting": "write-only"}), secrets=("write-only",))
    safe = redact_package(told)
    assert (safe.message, safe.settings, safe.secrets) == (f"a {MARK} one", {"greeting": MARK}, ())
    assert secrets_of(told) == secrets_in([told]) == {"write-only"}
    assert "write-only" not in repr(safe)
    assert "secrets" not in repr(told)


def test_operations_and_progress_are_redacted() -> None:
    said = "not hunter2"
    told = replace(
        BUSY,
        queue=replace(BUSY.queue, tasks=(replace(task(1), waits_for=said),)),
        progress=ProgressSnapshot(1, 1, (said,)),
        warnings=(said,),
        unmatched=(said,),
        urls=(said,),
        drift=(said,),
        failing=(said,),
        operations=(OperationSnapshot("update", (said,), (said,), (said,), earlier=True),),
        monitors=(replace(MONITOR, binding=said, last_error=said),),
        secrets=("hunter2",),
    )
    safe = redact_package(told)
    masked = f"not {MARK}"
    assert safe.queue.tasks[0].waits_for == masked
    assert safe.progress == ProgressSnapshot(1, 1, (masked,))
    assert (safe.warnings, safe.unmatched, safe.urls, safe.drift, safe.failing) == ((masked,),) * 5
    assert safe.operations == (OperationSnapshot("update", (masked,), (masked,), (masked,), earlier=True),)
    assert safe.monitors == (replace(MONITOR, binding=masked, last_error=masked),)
    assert "hunter2" not in repr(safe)


def test_messages_of_enabled_scripts_are_redacted() -> None:
    node = replace(NODES[0], message="the package's enabled script gave no answer: bad hunter2 and password=abcdef")
    safe = redact_node(node, {"hunter2"})
    assert safe == replace(node, message=f"the package's enabled script gave no answer: bad {MARK} and password={MARK}")


def test_votes_and_missing_conditions_of_a_node_are_redacted() -> None:
    votes = (VoteSnapshot("Disable", "ByScript", "said hunter2"), VoteSnapshot("Enable", "ByDefault", ""))
    node = replace(WAITING_NODE, votes=votes, lacks=(LackSnapshot("vote", "prod.web", "failed: hunter2"),))
    safe = redact_node(node, {"hunter2"})
    assert safe.votes == (VoteSnapshot("Disable", "ByScript", f"said {MARK}"), VoteSnapshot("Enable", "ByDefault", ""))
    assert safe.lacks == (LackSnapshot("vote", "prod.web", f"failed: {MARK}"),)
    assert redact_node(WAITING_NODE, {"hunter2"}) == WAITING_NODE


def test_secrets_outside_settings_are_found_by_their_form() -> None:
    told = package(settings={}, message="GET https://user:pa55word@registry/v2: 401")
    assert "pa55word" not in redact_package(told).message


def test_texts_without_secrets_are_unchanged() -> None:
    for each in (*PACKAGES, BUSY):
        assert redact_package(each) == each


def test_secrets_of_all_packages_are_masked_in_every_queue() -> None:
    secrets = secrets_in([package(settings=SETTINGS), package("test.shop", settings={"apiKey": "abcdef"})])
    assert secrets == {"hunter2", "first-token", "73310452", "abcdef"}
    queue = package(tasks=(replace(task(1, error="abcdef!"), cause="because hunter2"),)).queue
    safe = redact_queue(queue, secrets)
    assert (safe.tasks[0].error, safe.tasks[0].cause) == (f"{MARK}!", f"because {MARK}")


@pytest.mark.parametrize("value", ["", None, True, [], {}, MARK, "abc"])
def test_trivial_secrets_are_not_masked(value: JsonValue) -> None:
    told = package(settings={"password": value}, message="true abc none []")
    assert redact_package(told).message == told.message


def test_deeply_nested_settings_are_redacted() -> None:
    deep: JsonValue = {"password": "hunter2"}
    for _ in range(250):
        deep = {"a": deep}
    assert isinstance(deep, dict)
    assert "hunter2" not in render_json(package_to_json(redact_package(package(settings=deep))))


@pytest.mark.slow
@given(packages(), JSON_OBJECTS)
def test_redacting_any_package_is_idempotent(told: PackageSnapshot, settings: JsonObject) -> None:
    once = redact_package(replace(told, settings={**settings, "password": told.message}))
    assert redact_package(once) == once
    assert once.name == told.name


def test_explanations_are_redacted_except_for_names() -> None:
    said, masked = "not hunter2", f"not {MARK}"
    told = replace(
        WHY, causes=(replace(WHY.causes[0], state=said, message=said),), remedy=said, also=(said, "password=abcdef")
    )
    safe = redact_explanation(told, {"hunter2"})
    assert safe.causes == (replace(WHY.causes[0], state=masked, message=masked),)
    assert (safe.remedy, safe.also) == (masked, (masked, f"password={MARK}"))
    assert redact_explanation(WHY, {"hunter2"}) == WHY


def test_details_of_a_package_are_redacted() -> None:
    secrets, text = ("hunter2222",), "cannot use hunter2222"
    change = replace(DIFFERENCE.changes[0], fields=(FieldChangeSnapshot("/a", text, text),), note=text)
    told = (
        redact_resource(replace(RESOURCES[0], message=text, error=text, drift=text, labels=(text,)), secrets),
        redact_events([replace(CLUSTER_EVENTS[0], message=text)], secrets),
        redact_log(replace(LOG, lines=(replace(LOG.lines[0], message=text),)), secrets),
        redact_difference(replace(DIFFERENCE, changes=(change,), notes=(text,), problem=text), secrets),
        redact_snapshots([HookSnapshotsSnapshot("a", {"b": [{"filterResult": text}]})], secrets),
        redact_tasks([replace(DAEMON_TASKS[0], name=text, cause=text)], secrets),
    )
    for each in told:
        assert "hunter2222" not in repr(each)
        assert "cannot use ***" in repr(each)


def test_repositories_pools_and_the_daemon_are_redacted() -> None:
    """Texts of repositories, pools and the daemon quote answers of registries, programs and API servers, which may contain
    secrets.
    """
    quoted = "401 for hunter2 at https://a:b-secret@registry.example/"
    indexed = next(each for each in REPOSITORIES if each.packages and each.packages[0].detailed)
    index = indexed.packages[0]
    version = replace(index.detailed[0], description=quoted, changelog=(quoted,), deprecated=quoted, unreadable=quoted)
    repository = replace(
        indexed,
        source=quoted,
        message=quoted,
        labels=(f"a={quoted}",),
        packages=(replace(index, problem=quoted, detailed=(version,)),),
    )
    shown = [redact_repository(repository, ["hunter2"]), redact_pool(replace(POOLS[0], problem=quoted), ["hunter2"])]
    for each in shown:
        assert "hunter2" not in str(each)
        assert "b-secret" not in str(each)
        assert "401 for" in str(each)
    waiting = replace(DAEMON, standby=quoted, cluster="https://a:b-secret@127.0.0.1")
    assert "b-secret" not in str(redact_daemon(waiting))
