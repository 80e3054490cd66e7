"""The recorded changes of a status. If they are applied to the earlier status, the result is the later one."""

import pytest

from tests.runtime.support.recorded import Story
from tests.runtime.support.statuses import T0, T1, T2, ready
from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.recording.canonical import CanonicalError, normal, unmasked
from wharfinger.runtime.recording.status_form import status_after, status_changes
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage


def again(before: PackageStatus | None, after: PackageStatus) -> JsonValue:
    form = normal(status_changes(before, after, unmasked))
    assert status_after(before, form) == after
    return form


def test_only_changed_fields_are_in_the_form() -> None:
    failed = statuses.failed(ready(), Stage.APPLIED, "ApplyFailed", "no", T1, permanent=False)
    match again(ready(), failed):
        case [{"ManifestsApplied": ["False", "ApplyFailed", "no", _, False], **stages}, _, dict() as told]:
            assert not stages
            assert told
        case form:
            raise AssertionError(form)
    assert again(ready(), statuses.released(ready(), "2.0.0", "sha256:bb", 7)) == [
        {}, {"version": "2.0.0", "digest": "sha256:bb", "revision": 7}, {},
    ]  # fmt: skip


def test_a_new_status_replaces_another() -> None:
    again(ready(), statuses.uninstalled(ready(), T2))
    again(ready(), statuses.restored(5, statuses.external(ready()), T2))
    again(ready(), statuses.fresh(1, T0))
    again(None, ready())


def test_each_status_of_many_stories_survives_a_round_trip() -> None:
    for seed in range(6):
        for instance in Story(seed).tell(120).instances.values():
            again(None, instance.status)


def test_texts_are_masked_and_names_are_not() -> None:
    status = statuses.failed(ready(), Stage.APPLIED, "ApplyFailed", "no secret", T1, permanent=False)
    form = str(status_changes(None, status, lambda _: "***1"))
    assert "no secret" not in form
    assert status.version in form


@pytest.mark.parametrize(
    "form", [None, [], [{}, {}, 1], [{"x": []}, {}, {}], [{}, {"nothing": 1}, {}], [{}, {}, {"Ready": [1]}]]
)
def test_invalid_forms_are_refused(form: JsonValue) -> None:
    with pytest.raises(CanonicalError):
        status_after(ready(), form)
