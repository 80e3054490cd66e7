"""Reading Applications and PackageRepositories that may be wrong in any way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.objects import application, repository
from wharfinger.formats.json_value import JsonValue
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.resources import (
    FINALIZER,
    REQUESTED,
    SpecError,
    finalizers_of,
    is_deleting,
    read_application,
    read_repository,
)

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_an_application_is_read() -> None:
    app = read_application(application("prod", "web", version="1.2.3", settings={"replicas": 2}, generation=4))
    assert (app.id, app.package, app.version) == (AppId("prod", "web"), "web-service", "1.2.3")
    assert (app.repository, app.generation, app.settings) == ("default", 4, {"replicas": 2})
    assert (app.requested, app.status) == ("", {})


def test_absent_and_empty_settings_are_the_same() -> None:
    absent = read_application(application("prod", "web"))
    empty = read_application(application("prod", "web", settings={}))
    assert absent.settings_checksum == empty.settings_checksum


@pytest.mark.parametrize("field", ["packageName", "packageVersion"])
def test_a_missing_field_is_named(field: str) -> None:
    obj = application("prod", "web")
    spec = obj["spec"]
    assert isinstance(spec, dict)
    del spec[field]
    with pytest.raises(SpecError, match=f"spec.{field}: required"):
        read_application(obj)


@given(JSON, st.sampled_from(["packageName", "packageVersion", "packageRepositoryName", "settings"]))
def test_a_wrong_type_is_a_spec_error_and_nothing_else(value: JsonValue, field: str) -> None:
    obj = application("prod", "web")
    spec = obj["spec"]
    assert isinstance(spec, dict)
    spec[field] = value
    try:
        app = read_application(obj)
    except SpecError as error:
        assert "spec" in str(error)
    else:
        assert isinstance(app.settings, dict)
        assert isinstance(app.package, str)


def test_a_request_and_the_last_status_are_read() -> None:
    obj = application("prod", "web")
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    metadata["annotations"] = {REQUESTED: "now"}
    obj["status"] = {"observedGeneration": 1}
    app = read_application(obj)
    assert (app.requested, app.status) == ("now", {"observedGeneration": 1})


def test_a_deleted_object_and_its_finalizers() -> None:
    obj = application("prod", "web", deleting=True)
    assert is_deleting(obj)
    assert finalizers_of(obj) == (FINALIZER,)


@pytest.mark.parametrize(
    ("scheme", "reached_by"), [("HTTP", "http"), ("http", "http"), ("HTTPS", "https"), (None, "https")]
)
@pytest.mark.parametrize("host", ["r.example", "127.0.0.1:5000"])
def test_a_repository_says_how_it_is_reached(host: str, scheme: str | None, reached_by: str) -> None:
    address = read_repository(repository(f"{host}/p/", scheme=scheme))
    assert (str(address), address.scheme) == (f"{host}/p", reached_by)


@pytest.mark.parametrize(
    ("address", "scheme", "message"),
    [("", "HTTP", "registry.repo"), ("r.example/p", "FTP", "neither HTTP"), ("r.example", "HTTP", "correct the Pack")],
)
def test_a_wrong_repository_is_refused(address: str, scheme: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_repository(repository(address, scheme=scheme))


def test_a_repository_of_another_shape_is_refused() -> None:
    with pytest.raises(SpecError, match="correct the PackageRepository"):
        read_repository({"spec": {"registry": {"repo": 3}}})
