import base64

import pytest

from tests.control_plane.support.bench import (
    DEFINITIONS,
    OPTIONS,
    config_maps,
    made,
    new_backend,
    refused,
    served,
    thing,
)
from tests.control_plane.support.samples import SCHEMA, definition
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions, ListOptions
from wharfinger.control_plane.verbs.reading import Page, get, list_page, presented, read_token, selection, write_token
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import find, find_list, find_str


def names(page: Page) -> list[str]:
    return [find_str(obj, "metadata", "name") for obj in page.items]


def filled(backend: Backend, *wanted: str) -> Served:
    maps = config_maps(backend)
    for name in wanted:
        made(backend, maps, thing(maps, name, {"labels": {"odd": str(name in {"a", "c", "e"}).lower()}}))
    return maps


def test_an_existing_object_is_read() -> None:
    backend = new_backend()
    maps = filled(backend, "a")

    assert get(backend, maps, "default", "a") is backend.get(maps, "default", "a")
    with refused(404, "NotFound", 'configmaps "b" not found'):
        get(backend, maps, "default", "b")
    with refused(404, "NotFound"):
        get(backend, maps, "kube-public", "a")


def test_an_object_is_shown_at_the_requested_version() -> None:
    backend = new_backend()
    body = definition()
    find_list(body, "spec", "versions").append(
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}
    )
    made(backend, served(backend, *DEFINITIONS), body, namespace="")
    first, second = (served(backend, "example.com", version, "widgets") for version in ("v1", "v2"))
    obj = made(backend, first, thing(first))

    assert presented(first, obj) is obj
    assert get(backend, second, "default", "a")["apiVersion"] == "example.com/v2"
    assert [item["apiVersion"] for item in list_page(backend, second, "", ListOptions()).items] == ["example.com/v2"]


def test_a_list_of_one_or_of_all_namespaces_is_ordered() -> None:
    backend = new_backend()
    maps = filled(backend, "c", "a")
    made(backend, maps, thing(maps, "b"), namespace="kube-public")

    assert names(list_page(backend, maps, "default", ListOptions())) == ["a", "c"]
    assert names(list_page(backend, maps, "", ListOptions())) == ["a", "c", "b"]
    empty = list_page(backend, maps, "nosuch", ListOptions())
    assert empty == Page(maps, (), backend.storage.revision)


def test_labels_and_fields_select_objects() -> None:
    backend = new_backend()
    maps = filled(backend, "a", "b", "c")

    def listed(label: str = "", field: str = "") -> list[str]:
        return names(list_page(backend, maps, "", ListOptions(label_selector=label, field_selector=field)))

    assert listed("odd=true") == ["a", "c"]
    assert listed("odd notin (true)") == ["b"]
    assert listed(field="metadata.name!=b") == ["a", "c"]
    assert listed("odd", "metadata.name=a,metadata.namespace=default") == ["a"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (ListOptions(label_selector="a in"), "unable to parse requirement"),
        (ListOptions(field_selector="data.x=1"), '"data.x" is not a known field selector'),
        (ListOptions(field_selector="nothing"), "nothing"),
    ],
)
def test_invalid_selectors_are_refused(options: ListOptions, part: str) -> None:
    backend = new_backend()
    with refused(400, "BadRequest", part):
        list_page(backend, config_maps(backend), "", options)


def test_cluster_scoped_kinds_cannot_be_selected_by_namespace() -> None:
    backend = new_backend()
    nodes = served(backend, "", "v1", "nodes")
    with refused(400, "BadRequest", "field label not supported: metadata.namespace"):
        selection(nodes, ListOptions(field_selector="metadata.namespace=x"))


def test_a_name_and_field_selector_select_one_object() -> None:
    maps = config_maps(new_backend())
    chosen = selection(maps, ListOptions(field_selector="metadata.namespace=n,metadata.name=a"), name="a")

    assert not chosen.everything
    assert chosen.matches({"metadata": {"name": "a", "namespace": "n"}})
    assert not chosen.matches({"metadata": {"name": "b", "namespace": "n"}})
    assert selection(maps, ListOptions()).everything


def test_all_pages_show_the_same_revision() -> None:
    backend = new_backend()
    maps = filled(backend, "a", "b", "c", "d", "e")

    first = list_page(backend, maps, "", ListOptions(limit=2))
    delete(backend, maps, "default", "d", DeleteOptions())
    made(backend, maps, thing(maps, "cc"))
    second = list_page(backend, maps, "", ListOptions(limit=2, continue_token=first.continue_token))
    third = list_page(backend, maps, "", ListOptions(limit=2, continue_token=second.continue_token))

    assert [names(page) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.remaining for page in (first, second, third)] == [3, 1, None]
    assert {page.revision for page in (first, second, third)} == {first.revision}
    assert third.continue_token == ""


def test_the_remaining_count_is_unknown_with_a_selector() -> None:
    backend = new_backend()
    maps = filled(backend, "a", "b", "c", "d", "e")

    page = list_page(backend, maps, "", ListOptions(label_selector="odd=true", limit=2))
    rest = list_page(
        backend, maps, "", ListOptions(label_selector="odd=true", limit=2, continue_token=page.continue_token)
    )

    assert (names(page), page.remaining) == (["a", "c"], None)
    assert (names(rest), rest.continue_token) == (["e"], "")


def test_a_page_that_fits_exactly_has_no_token() -> None:
    backend = new_backend()
    page = list_page(backend, filled(backend, "a", "b"), "", ListOptions(limit=2))
    assert (names(page), page.continue_token, page.remaining) == (["a", "b"], "", None)


def test_a_continue_token_expires_with_the_history() -> None:
    backend = new_backend()
    maps = filled(backend, "a", "b")
    token = list_page(backend, maps, "", ListOptions(limit=1)).continue_token
    filled(backend, "c")
    backend.storage.compact()

    with refused(410, "Expired", "The provided continue parameter is too old to display a consistent list result."):
        list_page(backend, maps, "", ListOptions(limit=1, continue_token=token))


def test_a_continue_token_excludes_a_resource_version() -> None:
    backend = new_backend()
    maps = filled(backend, "a", "b")
    token = list_page(backend, maps, "", ListOptions(limit=1)).continue_token

    with refused(400, "BadRequest", "specifying resource version is not allowed when using continue"):
        list_page(backend, maps, "", ListOptions(continue_token=token, revision=1))
    assert names(list_page(backend, maps, "", ListOptions(continue_token=token, revision=0))) == ["b"]


def test_lists_at_an_exact_or_a_minimum_revision_are_read() -> None:
    backend = new_backend()
    maps = filled(backend, "a")
    then = backend.storage.revision
    filled(backend, "b")
    replace(backend, maps, "default", "a", "", thing(maps, data={"x": "1"}), OPTIONS)

    exact = list_page(backend, maps, "", ListOptions(revision=then, match="Exact"))
    newer = list_page(backend, maps, "", ListOptions(revision=then, match="NotOlderThan"))
    unset = list_page(backend, maps, "", ListOptions(revision=0))

    assert (names(exact), exact.revision, find(exact.items[0], "data")) == (["a"], then, None)
    assert (names(newer), newer.revision) == (["a", "b"], backend.storage.revision)
    assert names(unset) == ["a", "b"]


def test_future_and_compacted_revisions_are_refused() -> None:
    backend = new_backend()
    maps = filled(backend, "a")
    then, now = backend.storage.revision - 1, backend.storage.revision
    backend.storage.compact()

    with refused(410, "Expired", "The resourceVersion for the provided list is too old."):
        list_page(backend, maps, "", ListOptions(revision=then, match="Exact"))
    with refused(504, "Timeout", f"Too large resource version: {now + 1}, current: {now}"):
        list_page(backend, maps, "", ListOptions(revision=now + 1))


def test_continue_tokens_round_trip() -> None:
    for name in ("a", "ab", "abc", "abcd"):
        assert read_token(write_token(17, f"n/{name}")) == (17, f"n/{name}")


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("token", "part"),
    [
        ("ab$cd", "illegal base64 data at input byte 2"),
        ("abc$", "illegal base64 data at input byte 3"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("é", "illegal base64 data at input byte 0"),
        (encoded("not json"), "continue key is not valid"),
        (encoded("[]"), "continue key is not valid"),
        (
            encoded('{"v":"meta.k8s.io/v2","rv":1,"start":"a/b"}'),
            "does not recognize this encoded version meta.k8s.io/v2",
        ),
        (encoded('{"v":"meta.k8s.io/v1","rv":0,"start":"a/b"}'), "incorrect encoded start resourceVersion (version"),
        (encoded('{"v":"meta.k8s.io/v1","rv":1}'), "encoded start key empty (version meta.k8s.io/v1)"),
        (encoded('{"v":"meta.k8s.io/v1","rv":1,"start":"../b"}'), "continue key is not valid: ../b"),
        (encoded('{"v":"meta.k8s.io/v1","rv":"x","start":"a/b"}'), "continue key is not valid"),
        (encoded('{"v":"meta.k8s.io/v1","rv":1,"start":5}'), "continue key is not valid"),
        (encoded("x" * 5000), "continue key is not valid"),
    ],
)
def test_invalid_continue_tokens_are_refused(token: str, part: str) -> None:
    with refused(400, "BadRequest", part):
        read_token(token)
