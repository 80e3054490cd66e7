"""Objects kept as text. Their identity and version are read, and the text is passed on unchanged."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.support.client_contract import CONFIG_MAP, NAMESPACE
from tests.scale import scaled
from wharfinger.cluster.api.raw_object import RawObject, read_bookmark, read_raw_object, with_members
from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.kube.resource import ObjectKey

WEB = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"prod","uid":"u","resourceVersion":"7"}}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=scaled(20, 8),
)


def test_key_uid_and_resource_version_are_read() -> None:
    assert read_raw_object(WEB, CONFIG_MAP) == RawObject(ObjectKey(CONFIG_MAP, "prod", "web"), "u", "7", WEB)


def test_a_cluster_scoped_kind_ignores_a_namespace() -> None:
    text = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","namespace":"b"}}'
    assert read_raw_object(text, NAMESPACE).key == ObjectKey(NAMESPACE, "", "a")


def test_missing_and_null_members_are_empty() -> None:
    obj = read_raw_object(b'{"metadata":{"name":"a","namespace":null,"uid":null}}', CONFIG_MAP)
    assert (obj.key.namespace, obj.uid, obj.resource_version) == ("", "", "")


@given(
    st.dictionaries(st.text(), VALUES, max_size=4), st.booleans(), st.booleans(), st.sampled_from([b"", b" ", b"\n\t"])
)
def test_missing_apiversion_and_kind_are_added(
    rest: JsonObject, has_version: bool, has_kind: bool, space: bytes
) -> None:
    obj: JsonObject = {**rest, "metadata": {"name": "a"}}
    for name, has, value in (("apiVersion", has_version, "example/v1"), ("kind", has_kind, "Other")):
        obj.pop(name, None)
        if has:
            obj[name] = value
    text = space + msgspec.json.encode(obj) + space
    read = read_raw_object(text, CONFIG_MAP).text
    assert msgspec.json.decode(read) == {"apiVersion": "v1", "kind": "ConfigMap", **obj}
    assert (read is text) == (has_version and has_kind)


@given(st.dictionaries(st.text(), VALUES, max_size=3), st.sampled_from([b"", b" "]))
def test_members_are_inserted_at_the_front(members: JsonObject, space: bytes) -> None:
    text = space + b"{" + space + msgspec.json.encode(members)[1:]
    assert msgspec.json.decode(with_members(text, [("new", 'a"b')])) == {"new": 'a"b'} | members


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{}",
        b"5",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"metadata":{}}',
        b'{"metadata":{"name":""}}',
        b'{"metadata":{"name":5}}',
        b'{"metadata":{"name":"a","uid":5}}',
        b'{"metadata":[]}',
        b'{"kind":5,"metadata":{"name":"a"}}',
        b'{"data":{"a":"\xff"},"metadata":{"name":"a"}}',
        b'{"metadata":{"name":"a"}} x',
    ],
)
def test_texts_that_are_not_api_objects_are_refused(text: bytes) -> None:
    with pytest.raises(ShapeError, match=r"not an object|without metadata\.name"):
        read_raw_object(text, CONFIG_MAP)


def test_bookmarks_carry_the_resource_version() -> None:
    bookmark = read_bookmark(b'{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}', CONFIG_MAP)
    assert bookmark == RawObject(ObjectKey(CONFIG_MAP, "", ""), "", "9", b"")
    assert read_bookmark(b"{}", CONFIG_MAP).resource_version == ""
    with pytest.raises(ShapeError):
        read_bookmark(b"7", CONFIG_MAP)
