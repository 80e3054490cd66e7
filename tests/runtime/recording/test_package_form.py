"""The recorded form of a package's state: it has all fields, and the form of a step has the changed fields."""

from pathlib import Path

import pytest
from msgspec import structs

from tests.runtime.support.recorded import DEFINITION, T0, Story
from wharfinger.formats.json.value import JsonValue
from wharfinger.packages.rendering.chart_use import ChartUse
from wharfinger.packages.sources.source import FolderSource
from wharfinger.runtime.package.facts import DesiredGiven, HookRan
from wharfinger.runtime.package.findings import CrdsEstablished, PackageRead, ValuesPatched
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.recording.canonical import CanonicalError, normal, unmasked
from wharfinger.runtime.recording.marks import plain
from wharfinger.runtime.recording.package_form import marked_objects, package_changes, package_of
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.status import transitions as statuses

FRESH = Package(AppId("shop", "web"), statuses.fresh(1, T0))


def changes(before: Package | None, after: Package) -> JsonValue:
    codec = PACKAGE_CODEC.writer()
    return normal(package_changes(codec, before, after, unmasked, codec.mark))


def test_each_state_of_many_stories_survives_a_round_trip() -> None:
    for seed in range(6):
        for instance in Story(seed).tell(150).instances.values():
            form = changes(None, instance.state)
            reader = PACKAGE_CODEC.reader()
            found = package_of(reader, form)
            assert normal(package_changes(reader, None, found, unmasked, reader.mark)) == plain(form)
            assert found.status == instance.status
            assert found.warnings == instance.warnings


def test_only_changed_fields_are_written() -> None:
    assert changes(FRESH, FRESH) == {}
    assert changes(FRESH, applied(FRESH, CrdsEstablished(("v1/A",)))) == {"crds": {"established": ["()", "v1/A"]}}
    ran = applied(FRESH, HookRan("a.sh", "", T0))
    again = applied(ran, HookRan("b.sh", "broken", T0))
    assert changes(ran, again) == {"hooks": {"history": {"b.sh": [1, "2026-01-01T00:00:00Z", "broken"]}}}
    assert changes(FRESH, structs.replace(FRESH, warnings={"drift": ("x",)})) == {"warnings": [["drift", ["x"]]]}


def test_no_content_of_settings_values_or_files_is_written() -> None:
    settings = ResolvedSettings({"password": "hunter2"}, ("hunter2",))
    given = DesiredGiven("web", "1.0.0", FolderSource(Path("/x")), settings, Directives(), first=True)
    known = applied(applied(FRESH, given), ValuesPatched({"token": "hunter2"}))
    known = applied(known, PackageRead(DEFINITION, ()))
    assert "hunter2" not in str(changes(None, known))
    assert {id(settings), id(DEFINITION), id(known.configuration.values)} <= {
        id(each) for each in marked_objects(known)
    }


@pytest.mark.parametrize("form", [None, {}, {"wish": {}}, {"wish": 1}])
def test_invalid_forms_are_refused(form: JsonValue) -> None:
    with pytest.raises(CanonicalError):
        package_of(PACKAGE_CODEC.reader(), form)


def test_objects_in_tuples_are_marked() -> None:
    """If an object in a tuple were not marked, a later record of the whole state would give it another number."""
    use = ChartUse()
    package = structs.replace(FRESH, files=structs.replace(FRESH.files, chart_use=("sha256:a", use)))
    assert any(each is use for each in marked_objects(package))
