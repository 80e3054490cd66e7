"""Records: decoded when they are read, and dropped again from the cache."""

from wharfinger.control_plane.storage.record import Collection, Key, Objects, Record, Warmth, record_of, stamped
from wharfinger.formats.json.value import JsonObject

KEY = Key(Collection("", "pods"), "a", "b")
OBJ: JsonObject = {"metadata": {"name": "b", "labels": {"x": "y"}}, "n": 1}


def cold(body: bytes = b'{"metadata":{"labels":{"x":"y"}},"n":1}') -> Record:
    return Record(KEY, 7, body, Warmth())


def test_a_record_has_its_revision_and_the_given_object_is_unchanged() -> None:
    record = record_of(KEY, OBJ, 7, Warmth())
    assert record.body == b'{"metadata":{"name":"b","labels":{"x":"y"},"resourceVersion":"7"},"n":1}'
    assert record.obj == stamped(OBJ, 7)
    assert "resourceVersion" not in str(OBJ)


def test_obj_stays_decoded_and_passing_does_not() -> None:
    record = cold()
    assert record.passing() is not record.passing()
    assert record.obj is record.obj
    assert record.passing() is record.obj


def test_the_oldest_decoded_objects_are_dropped() -> None:
    warmth = Warmth(limit=100)
    records = [Record(KEY, number, b'{"n":%d}' % number + b" " * 40, warmth) for number in range(4)]
    kept = [record.obj for record in records]
    assert [record.passing() is obj for record, obj in zip(records, kept, strict=True)] == [False, False, True, True]
    large = Record(KEY, 9, b'{"n":1}' + b" " * 500, warmth)
    assert large.obj is large.obj


def test_labels_need_no_decoding() -> None:
    record = cold()
    assert record.labels() == {"x": "y"}
    assert record.obj["n"] == 1
    assert record.labels() == {"x": "y"}
    for body in (b"{}", b'{"metadata":null}', b'{"metadata":{"labels":null}}'):
        assert cold(body).labels() == {}
        warm = cold(body)
        assert warm.obj is not None
        assert warm.labels() == {}


def test_objects_are_a_sequence() -> None:
    objects = Objects((cold(), cold(b"{}")))
    assert (len(objects), objects[1], list(objects[:1])) == (2, {}, [objects[0]])
    assert objects == (objects[0], {})
    assert objects == [objects[0], {}]
    assert objects != ({},)
    assert objects != 5
    assert hash(objects) == hash(Objects((cold(), cold(b"{}"))))
    assert "labels" in repr(objects)
