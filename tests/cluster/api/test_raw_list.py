"""Pages of lists whose items are not parsed, but kept as text."""

import random

import msgspec
import pytest

from tests.cluster.support.client_contract import CONFIG_MAP
from tests.scale import scaled
from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.cluster.api.raw_list import read_list_answer

PAGE = (
    b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"t1","remainingItemCount":1},'
    b'"items":[{"metadata":{"name":"a","namespace":"prod","uid":"u","resourceVersion":"3"},"data":{"x":"1"}},\n'
    b' {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}'
)


def test_a_page_is_split_into_raw_objects() -> None:
    answer = read_list_answer(PAGE, CONFIG_MAP, "list ConfigMap")
    one, two = answer.page.items
    assert (answer.token, answer.page.resource_version) == ("t1", "10")
    assert (one.key.namespace, one.key.name, one.uid, one.resource_version) == ("prod", "a", "u", "3")
    assert msgspec.json.decode(one.text) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "prod", "uid": "u", "resourceVersion": "3"},
        "data": {"x": "1"},
    }
    assert two.text == b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}'


@pytest.mark.parametrize(
    "body", [b"{}", b'{"items":null,"metadata":null}', b'{"items":[],"metadata":{"continue":null}}']
)
def test_empty_lists_have_no_items(body: bytes) -> None:
    answer = read_list_answer(body, CONFIG_MAP, "list ConfigMap")
    assert (answer.page.items, answer.page.resource_version, answer.token) == ((), "", "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"7",
        b"[" * 100_000,
        b'{"items":5}',
        b'{"items":[5]}',
        b'{"items":[{}]}',
        b'{"items":[{"metadata":{"name":"a"},"data":"\xff"}]}',
        b'{"metadata":{"continue":5}}',
        b'{"metadata":{"resourceVersion":5}}',
        b"\xff",
        PAGE[:-1],
    ],
)
def test_malformed_answers_are_refused(body: bytes) -> None:
    with pytest.raises(MalformedAnswerError, match="list ConfigMap"):
        read_list_answer(body, CONFIG_MAP, "list ConfigMap")


def test_damaged_answers_raise_only_the_typed_error() -> None:
    chance = random.Random(6)  # noqa: S311 - the same inputs each time
    refused = 0
    for _ in range(scaled(100_000, 2_000)):
        body = damaged(PAGE, chance)
        try:
            answer = read_list_answer(body, CONFIG_MAP, "list")
        except MalformedAnswerError:
            refused += 1
            continue
        for item in answer.page.items:
            assert item.key.name
            item.text.decode()
    assert refused


def damaged(text: bytes, chance: random.Random) -> bytes:
    """Return the text after one to four random changes. Each change replaces a byte, removes or doubles up to 20 bytes, or
    inserts a piece of JSON or an invalid byte.
    """
    body = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(body))
        match chance.randrange(4):
            case 0:
                body[at] = chance.randrange(256)
            case 1:
                del body[at : at + chance.randint(1, 20)]
            case 2:
                body[at:at] = bytes(body[at : at + chance.randint(1, 20)])
            case _:
                body[at:at] = chance.choice([b'"', b"{", b"}", b"[", b"\\u", b"null", b"\xff", b"9" * 30])
    return bytes(body)
