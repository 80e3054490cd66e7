"""The parsing of Applications and Modules, with valid and with invalid fields."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support.objects import application, module
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.depends_on import MAX_DEPENDS_ON
from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId
from wharfinger.runtime.resources.resources import (
    CONFIG_MAP,
    FINALIZER,
    IGNORE_DEPENDENTS,
    MAX_SETTINGS_SOURCES,
    REQUESTED,
    SECRET,
    Directives,
    PackageSpec,
    SettingsSource,
    SpecError,
    finalizers_of,
    ignores_dependents,
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


def test_a_module_is_read_with_its_defaults() -> None:
    spec = read_module(module("ingress", version="2.0.0"))
    assert (spec.id, spec.package, spec.version) == (ModuleId("ingress", SYSTEM_NAMESPACE), "ingress", "2.0.0")
    assert spec.enabled is True


def test_a_module_is_read_with_package_and_namespace() -> None:
    spec = read_module(module("ingress", package="nginx", spec={"namespace": "edge", "enabled": False}))
    assert (spec.id, spec.package, spec.enabled) == (ModuleId("ingress", "edge"), "nginx", False)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("packageName", "spec.packageName: required"),
        ("packageVersion", "spec: expected exactly one of packageVersion,"),
    ],
)
def test_a_missing_field_is_reported(field: str, said: str) -> None:
    obj = application("prod", "web")
    spec = obj["spec"]
    assert isinstance(spec, dict)
    del spec[field]
    with pytest.raises(SpecError, match=said):
        read_application(obj)


FIELDS = [
    "dependsOn",
    "packageName",
    "packageVersion",
    "packageRepositoryName",
    "settings",
    "settingsFrom",
    "enabled",
    "namespace",
]


@pytest.mark.parametrize(
    ("read", "obj"), [(read_application, application("prod", "web")), (read_module, module("ingress"))]
)
@given(value=JSON, field=st.sampled_from(FIELDS))
def test_a_wrong_type_is_a_spec_error(
    read: Callable[[JsonObject], PackageSpec], obj: JsonObject, value: JsonValue, field: str
) -> None:
    try:
        spec = read(with_spec(obj, **{field: value}))
    except SpecError as error:
        assert "spec" in str(error)
    else:
        assert isinstance(spec.settings, dict)
        assert isinstance(spec.package, str)


def test_sources_of_settings_are_in_the_namespace_of_the_package() -> None:
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
        ({"kind": "Secret", "name": "a", "path": "b"}, r"settingsFrom\[0\]\.key: required if path is set"),
        (
            {"kind": "Secret", "name": "a", "key": "k", "path": "a..b"},
            r"settingsFrom\[0\]\.path: 'a\.\.b' is not a path",
        ),
        ({"kind": "Secret", "name": "a", "optional": "yes"}, "optional: expected true or false"),
    ],
)
def test_an_invalid_source_of_settings_is_reported(entry: JsonObject, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_application(with_spec(application("prod", "web"), settingsFrom=[entry]))


def test_the_number_of_sources_of_settings_is_bounded() -> None:
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


def test_deletion_and_finalizers_are_read() -> None:
    obj = application("prod", "web", deleting=True)
    assert is_deleting(obj)
    assert finalizers_of(obj) == (FINALIZER,)


def annotated(obj: JsonObject, value: JsonValue) -> JsonObject:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return {**obj, "metadata": {**metadata, "annotations": {IGNORE_DEPENDENTS: value}}}


@pytest.mark.parametrize(
    ("said", "default", "enabled"),
    [
        ({}, True, True),
        ({}, None, None),
        ({"enabled": None}, None, None),
        ({"enabled": True}, None, True),
        ({"enabled": False}, None, False),
        ({"enabled": False}, True, False),
    ],
)
def test_spec_enabled_of_a_module_is_read(said: JsonObject, default: bool | None, enabled: bool | None) -> None:
    assert read_module(module("ingress", spec=said), enabled_by_default=default).enabled is enabled


def test_dependencies_of_an_application_are_read() -> None:
    entries: list[JsonValue] = [
        {"kind": "Application", "name": "db", "version": "^3"},
        {"kind": "Application", "name": "web", "namespace": "shared"},
        {"kind": "Module", "name": "ingress"},
    ]
    assert read_application(with_spec(application("prod", "web"), dependsOn=entries)).directives.depends_on == (
        DependsOn("Application", "prod", "db", parse_constraint("^3")),
        DependsOn("Application", "shared", "web", parse_constraint("")),
        DependsOn("Module", "", "ingress", parse_constraint("")),
    )


def test_dependencies_of_a_module_are_read() -> None:
    # The namespace of a Module's release is not a namespace of the Module itself.
    in_edge = module("m", spec={"namespace": "edge"})
    entries: list[JsonValue] = [{"kind": "Application", "name": "db", "namespace": "prod"}]
    (found,) = read_module(with_spec(in_edge, dependsOn=entries)).directives.depends_on
    assert found.package == "prod.db"
    with pytest.raises(SpecError, match=r"spec\.dependsOn\[0\]\.namespace: required.*; correct the Module's spec"):
        read_module(with_spec(in_edge, dependsOn=[{"kind": "Application", "name": "db"}]))


def test_a_dependency_on_the_resource_itself_is_refused() -> None:
    with pytest.raises(SpecError, match=r"spec\.dependsOn\[0\]: this names the Application itself"):
        read_application(with_spec(application("prod", "web"), dependsOn=[{"kind": "Application", "name": "web"}]))
    with pytest.raises(SpecError, match=r"spec\.dependsOn\[0\]: this names the Module itself"):
        read_module(with_spec(module("web"), dependsOn=[{"kind": "Module", "name": "web"}]))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, r"spec\.dependsOn: expected a list"),
        ([{"kind": "Pod", "name": "a"}], r"spec\.dependsOn\[0\]\.kind: 'Pod' is neither Application nor Module"),
        (
            [{"kind": "Module", "name": "a", "version": "new"}],
            r"spec\.dependsOn\[0\]\.version: version constraint 'new'",
        ),
        ([{"kind": "Module", "name": "a", "versions": "1"}], r"versions: unknown key; did you mean 'version'"),
    ],
)
def test_an_invalid_dependency_is_reported(entries: JsonValue, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_application(with_spec(application("prod", "web"), dependsOn=entries))


def test_the_number_of_dependencies_is_bounded() -> None:
    entries: list[JsonValue] = [{"kind": "Module", "name": f"m{n}"} for n in range(MAX_DEPENDS_ON + 1)]
    with pytest.raises(SpecError, match=f"at most {MAX_DEPENDS_ON}"):
        read_application(with_spec(application("prod", "web"), dependsOn=entries))


@pytest.mark.parametrize(("value", "ignored"), [("true", True), ("false", False), ("", False), (None, False)])
def test_the_annotation_to_ignore_dependents_is_read(value: JsonValue, ignored: bool) -> None:
    obj = annotated(application("prod", "web"), value)
    assert read_application(obj).directives.ignore_dependents is ignored
    assert ignores_dependents(obj) is ignored
    assert ignores_dependents({**obj, "spec": "broken"}) is ignored


@pytest.mark.parametrize("value", ["yes", "True", 1, True, ["true"]])
def test_an_annotation_that_is_neither_true_nor_false_is_refused(value: JsonValue) -> None:
    obj = annotated(module("web"), value)
    for read in (read_module, ignores_dependents):
        with pytest.raises(SpecError, match=r"ignore-dependents: .* is neither true nor false|expected"):
            read(obj)


@given(JSON)
def test_any_annotations_give_a_flag_or_a_spec_error(value: JsonValue) -> None:
    for obj in (annotated(module("web"), value), {**module("web"), "metadata": {"annotations": value}}):
        try:
            assert ignores_dependents(obj) in (True, False)
        except SpecError as error:
            assert IGNORE_DEPENDENTS in str(error)
