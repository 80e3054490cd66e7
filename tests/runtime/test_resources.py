"""Reading Applications and Modules that may be wrong in any way."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.objects import application, module
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.runtime.identity import SYSTEM_NAMESPACE, AppId, ModuleId
from wharfinger.runtime.resources import (
    CONFIG_MAP,
    FINALIZER,
    MAX_SETTINGS_SOURCES,
    REQUESTED,
    SECRET,
    Directives,
    PackageSpec,
    SettingsSource,
    SpecError,
    finalizers_of,
    is_deleting,
    read_application,
    read_module,
)

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def with_spec(obj: JsonObject, **fields: JsonValue) -> JsonObject:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return {**obj, "spec": {**spec, **fields}}


def test_an_application_is_read() -> None:
    app = read_application(application("prod", "web", version="1.2.3", settings={"replicas": 2}, generation=4))
    assert (app.id, app.package, app.version) == (AppId("prod", "web"), "web-service", "1.2.3")
    assert (app.repository, app.generation, app.settings) == ("default", 4, {"replicas": 2})
    assert (app.directives, app.status, app.enabled, app.settings_from) == (Directives(), {}, None, ())


def test_a_module_is_read_with_what_it_leaves_out() -> None:
    spec = read_module(module("ingress", version="2.0.0"))
    assert (spec.id, spec.package, spec.version) == (ModuleId("ingress", SYSTEM_NAMESPACE), "ingress", "2.0.0")
    assert spec.enabled is True


def test_a_module_says_itself_what_and_where_it_is() -> None:
    spec = read_module(module("ingress", package="nginx", spec={"namespace": "edge", "enabled": False}))
    assert (spec.id, spec.package, spec.enabled) == (ModuleId("ingress", "edge"), "nginx", False)


@pytest.mark.parametrize("field", ["packageName", "packageVersion"])
def test_a_missing_field_is_named(field: str) -> None:
    obj = application("prod", "web")
    spec = obj["spec"]
    assert isinstance(spec, dict)
    del spec[field]
    with pytest.raises(SpecError, match=f"spec.{field}: required"):
        read_application(obj)


FIELDS = ["packageName", "packageVersion", "packageRepositoryName", "settings", "settingsFrom", "enabled", "namespace"]


@pytest.mark.parametrize(
    ("read", "obj"), [(read_application, application("prod", "web")), (read_module, module("ingress"))]
)
@given(value=JSON, field=st.sampled_from(FIELDS))
def test_a_wrong_type_is_a_spec_error_and_nothing_else(
    read: Callable[[JsonObject], PackageSpec], obj: JsonObject, value: JsonValue, field: str
) -> None:
    try:
        spec = read(with_spec(obj, **{field: value}))
    except SpecError as error:
        assert "spec" in str(error)
    else:
        assert isinstance(spec.settings, dict)
        assert isinstance(spec.package, str)


def test_settings_come_from_secrets_and_config_maps_of_the_packages_namespace() -> None:
    entries: list[JsonValue] = [
        {"kind": "Secret", "name": "database", "key": "password", "path": "database.password", "optional": True},
        {"kind": "ConfigMap", "name": "defaults"},
    ]
    assert read_application(with_spec(application("prod", "web"), settingsFrom=entries)).settings_from == (
        SettingsSource(ObjectKey(SECRET, "prod", "database"), "password", ("database", "password"), optional=True),
        SettingsSource(ObjectKey(CONFIG_MAP, "prod", "defaults"), "settings.yaml", (), optional=False),
    )
    (first, _) = read_module(with_spec(module("m", spec={"namespace": "edge"}), settingsFrom=entries)).settings_from
    assert first.source.namespace == "edge"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "Pod", "name": "a"}, r"settingsFrom\[0\]\.kind: 'Pod' is neither Secret nor ConfigMap"),
        ({"kind": "Secret"}, r"settingsFrom\[0\]\.name: required"),
        ({"kind": "Secret", "name": "a", "path": "b"}, r"settingsFrom\[0\]\.key: required where a path is given"),
        ({"kind": "Secret", "name": "a", "key": "k", "path": "a..b"}, r"settingsFrom\[0\]\.path: 'a\.\.b' is no path"),
        ({"kind": "Secret", "name": "a", "optional": "yes"}, "optional: expected true or false"),
    ],
)
def test_a_wrong_source_of_settings_is_named(entry: JsonObject, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_application(with_spec(application("prod", "web"), settingsFrom=[entry]))


def test_sources_of_settings_are_bounded() -> None:
    entries: list[JsonValue] = [{"kind": "Secret", "name": f"s{n}"} for n in range(MAX_SETTINGS_SOURCES + 1)]
    with pytest.raises(SpecError, match=f"at most {MAX_SETTINGS_SOURCES}"):
        read_application(with_spec(application("prod", "web"), settingsFrom=entries))


def test_a_request_and_the_last_status_are_read() -> None:
    obj = application("prod", "web")
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    metadata["annotations"] = {REQUESTED: "now"}
    obj["status"] = {"observedGeneration": 1}
    app = read_application(obj)
    assert (app.directives.requested, app.status) == ("now", {"observedGeneration": 1})


def test_a_deleted_object_and_its_finalizers() -> None:
    obj = application("prod", "web", deleting=True)
    assert is_deleting(obj)
    assert finalizers_of(obj) == (FINALIZER,)
