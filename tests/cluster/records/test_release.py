"""Release records: round trips, refused hostile records, and members that only Helm uses."""

import base64
import gzip
import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.records.release import (
    BASE_FILE,
    FENCE_ANNOTATION,
    HOLDER_ANNOTATION,
    LEASE_ANNOTATION,
    MAX_RECORD_BYTES,
    Release,
    ReleaseRecordError,
    ReleaseStatus,
    check_name,
    from_secret,
    new_release,
    read_holder,
    to_secret,
)
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object, find_str

NOW = datetime(2026, 1, 2, 3, 4, 5, 678900, UTC)
CHART: JsonObject = {"apiVersion": "v2", "name": "web", "version": "1.2.3", "appVersion": "9"}


def release(manifest: str = "---\n", **labels: str) -> Release:
    return new_release(
        name="web",
        namespace="prod",
        revision=3,
        status=ReleaseStatus.DEPLOYED,
        description="Upgrade complete",
        chart=CHART,
        values={"a": 1},
        manifest=manifest,
        hooks=[],
        now=NOW,
        first_deployed="2025-01-01T00:00:00Z",
        labels=labels,
        holder="wharfinger",
    )


def secret_of(document: JsonValue, *, compress: bool = True) -> JsonObject:
    packed = json.dumps(document).encode()
    return wrap(gzip.compress(packed) if compress else packed)


def wrap(packed: bytes) -> JsonObject:
    data = base64.b64encode(base64.b64encode(packed)).decode()
    return {"metadata": {"name": "sh.helm.release.v1.web.v3", "namespace": "prod"}, "data": {"release": data}}


def test_a_secret_has_the_format_of_helm() -> None:
    secret = to_secret(release(team="x", owner="somebody"), NOW)
    assert secret["type"] == "helm.sh/release.v1"
    assert secret["metadata"] == {
        "name": "sh.helm.release.v1.web.v3",
        "namespace": "prod",
        "labels": {
            "team": "x",
            "name": "web",
            "owner": "helm",
            "status": "deployed",
            "version": "3",
            "modifiedAt": str(int(NOW.timestamp())),
        },
        "annotations": {HOLDER_ANNOTATION: "wharfinger"},
    }
    packed = base64.b64decode(base64.b64decode(find_str(secret, "data", "release")))
    document = json.loads(gzip.decompress(packed))
    assert document["info"] == {
        "first_deployed": "2025-01-01T00:00:00Z",
        "last_deployed": "2026-01-02T03:04:05.678900Z",
        "deleted": "",
        "description": "Upgrade complete",
        "status": "deployed",
    }
    assert document["chart"]["metadata"] == CHART
    assert (document["name"], document["namespace"], document["version"]) == ("web", "prod", 3)


def test_a_release_survives_a_round_trip() -> None:
    before = release(team="x")
    after = from_secret(to_secret(before, NOW))
    assert after == before
    assert (after.name, after.namespace, after.revision, after.status) == ("web", "prod", 3, ReleaseStatus.DEPLOYED)
    assert (after.chart, after.values, after.manifest, after.hooks) == (CHART, {"a": 1}, "---\n", [])
    assert (after.labels, after.holder) == ({"team": "x"}, "wharfinger")
    assert after.last_deployed == NOW
    assert (after.first_deployed, after.description) == ("2025-01-01T00:00:00Z", "Upgrade complete")
    assert repr(after) == "Release(labels={'team': 'x'}, holder='wharfinger', fence=0, lease='', whole=True)"


def test_the_base_of_a_manifest_is_stored_as_a_chart_file() -> None:
    before = new_release(
        name="web",
        namespace="prod",
        revision=1,
        status=ReleaseStatus.DEPLOYED,
        description="",
        chart=CHART,
        values={},
        manifest="---\n",
        hooks=[],
        now=NOW,
        base=b"\x00made",
    )
    assert from_secret(to_secret(before, NOW)).base == b"\x00made"
    assert release().base == b""
    others: list[JsonValue] = [None, "", [None], [{}], [{"name": "README.md", "data": "YQ=="}]]
    others += [[{"name": BASE_FILE}], [{"name": BASE_FILE, "data": "?"}], [{"name": BASE_FILE, "data": 1}]]
    for files in others:
        chart: JsonObject = {**find_object(before.document, "chart"), "files": files}
        assert replace(before, document={**before.document, "chart": chart}).base == b""


VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.text(max_size=50))
def test_any_values_and_manifest_survive_a_round_trip(values: JsonObject, manifest: str) -> None:
    before = new_release(
        name="web",
        namespace="prod",
        revision=1,
        status=ReleaseStatus.FAILED,
        description="x",
        chart={},
        values=values,
        manifest=manifest,
        hooks=[],
        now=NOW,
    )
    after = from_secret(to_secret(before, NOW))
    assert (after.values, after.manifest) == (values, manifest)


def test_changing_the_status_retains_the_rest() -> None:
    document: JsonObject = {
        "name": "web",
        "namespace": "prod",
        "version": 1,
        "info": {"status": "deployed", "notes": "Hello", "x": 1},
        "chart": {"metadata": CHART, "templates": [{"name": "templates/a.yaml", "data": "e30="}]},
        "something": "new",
    }
    changed = from_secret(secret_of(document)).with_status(ReleaseStatus.SUPERSEDED, "over", deleted="now")
    assert changed.document["chart"] == document["chart"]
    assert changed.document["something"] == "new"
    assert changed.document["info"] == {
        "status": "superseded",
        "notes": "Hello",
        "x": 1,
        "description": "over",
        "deleted": "now",
    }
    assert document["info"] == {"status": "deployed", "notes": "Hello", "x": 1}


def test_uncompressed_records_are_read() -> None:
    read = from_secret(secret_of({"name": "web", "version": 1, "info": {}, "config": None}, compress=False))
    assert (read.status, read.values, read.last_deployed) == (ReleaseStatus.UNKNOWN, {}, None)


def test_a_record_that_is_too_large_is_refused() -> None:
    noise = "".join(chr(0x4E00 + (number * 7919) % 20000) for number in range(900_000))
    with pytest.raises(
        ReleaseRecordError, match=r"prod/web: its record is \d+ bytes packed, .* split the package"
    ) as caught:
        to_secret(release(noise), NOW)
    assert not caught.value.transient


@pytest.mark.slow
def test_a_decompression_bomb_is_refused() -> None:
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(b" " * 10_000_000) for _ in range(9)) + packer.flush()
    with pytest.raises(ReleaseRecordError, match=r"prod/sh\.helm\.release\.v1\.web\.v3: over 67108864 bytes unpacked"):
        from_secret(wrap(packed))


GOOD = gzip.compress(b'{"name":"web","version":1}')


@pytest.mark.parametrize(
    "secret",
    [
        {},
        {"data": 5},
        {"data": {"release": 5}},
        {"data": {"release": "!!!"}},
        {"data": {"release": base64.b64encode(b"!!!").decode()}},
        {"data": {"release": "A" * (4 * MAX_RECORD_BYTES + 4)}},
        wrap(b""),
        wrap(b"garbage"),
        wrap(GOOD[:-12]),
        wrap(b"\x1f\x8b\x08garbage"),
        secret_of([]),
        secret_of({}),
        secret_of({"name": "web"}),
        secret_of({"name": "web", "version": 0}),
        secret_of({"name": "web", "version": "1"}),
        secret_of({"name": "web", "version": 1, "info": {"status": 5}}),
        secret_of({"name": "web", "version": 1, "manifest": []}),
        secret_of({"name": "web", "version": 1, "hooks": ["x"]}),
        secret_of({"name": "web", "version": 1, "hooks": [{"manifest": 1}]}),
        secret_of({"name": "web", "version": 1, "chart": {"metadata": 1}}),
        secret_of({"name": "web", "version": 1, "config": 1}),
        {**secret_of({"name": "web", "version": 1}), "metadata": {"labels": []}},
        {**secret_of({"name": "web", "version": 1}), "metadata": {"name": 1}},
    ],
)
def test_damaged_records_are_refused(secret: JsonObject) -> None:
    with pytest.raises(ReleaseRecordError):
        from_secret(secret)


@given(st.binary(max_size=60))
def test_any_bytes_raise_only_the_declared_error(packed: bytes) -> None:
    for secret in (wrap(packed), wrap(gzip.compress(packed)), wrap(GOOD[: len(packed)] + packed)):
        try:
            from_secret(secret)
        except ReleaseRecordError as error:
            assert "prod/sh.helm.release.v1.web.v3" in str(error)


@pytest.mark.parametrize("name", ["web", "a", "my-app.v2", "a" * 53])
def test_valid_release_names_are_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "Web", "-a", "a-", "a..b", "a_b", "a" * 54, "a/b", "a\n"])
def test_release_names_invalid_for_helm_are_refused(name: str) -> None:
    with pytest.raises(ReleaseError, match="at most 53"):
        check_name(name)


def test_pending_statuses_are_marked() -> None:
    assert {status.value for status in ReleaseStatus if status.pending} == {
        "pending-install",
        "pending-upgrade",
        "pending-rollback",
        "uninstalling",
    }


def test_the_holder_is_stored_in_annotations() -> None:
    holder = Holder("daemon-1", 7, "system/wharfinger/uid-1")
    before = replace(release(), holder=holder.identity, fence=holder.fence, lease=holder.lease)
    secret = to_secret(before, NOW)
    assert find_object(secret, "metadata", "annotations") == {
        HOLDER_ANNOTATION: "daemon-1",
        FENCE_ANNOTATION: "7",
        LEASE_ANNOTATION: "system/wharfinger/uid-1",
    }
    assert from_secret(secret) == before
    assert from_secret(secret).written_by == holder
    assert new_release_of(holder).written_by == holder


@pytest.mark.parametrize("fence", ["", "x", "-1", "99999999999", "1.5", 5, None])
def test_an_unreadable_fence_is_ignored(fence: JsonValue) -> None:
    assert read_holder({HOLDER_ANNOTATION: "a", FENCE_ANNOTATION: fence, LEASE_ANNOTATION: "b/c/d"}) == Holder("a")
    assert read_holder({HOLDER_ANNOTATION: 5}) == Holder("")


def new_release_of(holder: Holder) -> Release:
    return new_release(
        name="web",
        namespace="prod",
        revision=1,
        status=ReleaseStatus.DEPLOYED,
        description="x",
        chart=CHART,
        values={"secret": "s3cret"},
        manifest="---\n",
        hooks=[],
        now=NOW,
        holder=holder,
        notes="Hello\n",
    )


def test_a_summary_has_everything_that_a_history_shows() -> None:
    whole = new_release_of(Holder("a"))
    summary = whole.summary()
    shown = ("name", "namespace", "revision", "status", "description", "chart", "first_deployed", "last_deployed")
    assert [getattr(summary, name) for name in shown] == [getattr(whole, name) for name in shown]
    assert (summary.labels, summary.holder, summary.secret_name) == (whole.labels, whole.holder, whole.secret_name)
    assert "s3cret" not in json.dumps(summary.document)
    assert "Hello" not in json.dumps(summary.document)
    for name in ("manifest", "hooks", "values"):
        with pytest.raises(ReleaseRecordError, match="only the summary of revision 1 was read"):
            getattr(summary, name)
    assert find_object(whole.document, "info")["notes"] == "Hello\n"


def test_helms_own_labels_are_not_user_labels() -> None:
    secret = to_secret(release(), NOW)
    labels = find_object(secret, "metadata", "labels")
    labels |= {"createdAt": "1", "mine": "x", "odd": 5}
    assert from_secret(secret).labels == {"mine": "x"}
