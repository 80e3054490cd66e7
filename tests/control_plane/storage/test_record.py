"""Records of stored objects. An object is decoded when it is read. A cache of limited size keeps the objects decoded last."""

from wharfinger.control_plane.storage.record import Collection, DecodedCache, Key, Objects, Record, record_of, stamped
from wharfinger.formats.json.value import JsonObject

KEY = Key(Collection("", "pods"), "a", "b")
OBJ: JsonObject = {"metadata": {"name": "b", "labels": {"x": "y"}}, "n": 1}


def undecoded(body: bytes = b'{"metadata":{"labels":{"x":"y"}},"n":1}') -> Record:
    return Record(KEY, 7, body, DecodedCache())


def test_a_record_stores_its_revision_in_a_copy_of_the_object() -> None:
    record = record_of(KEY, OBJ, 7, DecodedCache())
    assert record.body == b'{"metadata":{"name":"b","labels":{"x":"y"},"resourceVersion":"7"},"n":1}'
    assert record.obj == stamped(OBJ, 7)
    assert "resourceVersion" not in str(OBJ)


def test_obj_is_cached_and_decode_is_not() -> None:
    record = undecoded()
    assert record.decode() is not record.decode()
    assert record.obj is record.obj
    assert record.decode() is record.obj


def test_the_oldest_decoded_objects_are_dropped() -> None:
    cache = DecodedCache(limit=100)
    records = [Record(KEY, number, b'{"n":%d}' % number + b" " * 40, cache) for number in range(4)]
    kept = [record.obj for record in records]
    assert [record.decode() is obj for record, obj in zip(records, kept, strict=True)] == [False, False, True, True]
    large = Record(KEY, 9, b'{"n":1}' + b" " * 500, cache)
    assert large.obj is large.obj


def test_labels_need_no_decoding() -> None:
    record = undecoded()
    assert record.labels() == {"x": "y"}
    assert record.obj["n"] == 1
    assert record.labels() == {"x": "y"}
    for body in (b"{}", b'{"metadata":null}', b'{"metadata":{"labels":null}}'):
        assert undecoded(body).labels() == {}
        decoded = undecoded(body)
        assert decoded.obj is not None
        assert decoded.labels() == {}


def test_objects_are_a_sequence() -> None:
    objects = Objects((undecoded(), undecoded(b"{}")))
    assert (len(objects), objects[1], list(objects[:1])) == (2, {}, [objects[0]])
    assert objects == (objects[0], {})
    assert objects == [objects[0], {}]
    assert objects != ({},)
    assert objects != 5
    assert hash(objects) == hash(Objects((undecoded(), undecoded(b"{}"))))
    assert "labels" in repr(objects)
