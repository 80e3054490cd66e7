"""Record Secrets from a daemon's first list. Each is kept in memory until its release is restored, or until it is too old."""

from wharfinger.cluster.records.listed_records import FRESH_S, MAX_BYTES, ListedRecords


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def records(*names: str, clock: _Clock | None = None) -> ListedRecords:
    listed = ListedRecords(clock or _Clock())
    for name in names:
        listed.keep(("prod", name), "1", name.encode())
    return listed


def test_records_are_taken_only_once() -> None:
    listed = records("a.v1", "a.v2", "b.v1")
    assert listed.take("prod", {"a.v1": "1", "a.v2": "1"}) == (b"a.v1", b"a.v2")
    assert listed.take("prod", {"a.v1": "1", "a.v2": "1"}) == ()
    assert len(listed) == 1


def test_a_release_is_taken_completely_or_not_at_all() -> None:
    assert records("a.v1").take("prod", {"a.v1": "1", "a.v2": "1"}) == ()
    assert records("a.v1").take("prod", {}) == ()
    assert records("a.v1").take("test", {"a.v1": "1"}) == ()


def test_a_record_that_changed_is_not_used() -> None:
    listed = records("a.v1", "a.v2")
    assert listed.take("prod", {"a.v1": "1", "a.v2": "2"}) == ()
    assert len(listed) == 0


def test_a_namespace_with_an_unknown_record_is_read_from_the_cluster() -> None:
    listed = records("a.v1")
    listed.keep(("test", "a.v1"), "1", b"x")
    listed.refuse("prod")
    assert listed.take("prod", {"a.v1": "1"}) == ()
    assert listed.take("test", {"a.v1": "1"}) == (b"x",)


def test_stored_bytes_are_bounded() -> None:
    listed = records()
    half = bytes(MAX_BYTES // 2)
    for name in ("a", "b", "c"):
        listed.keep(("prod", name), "1", half)
    assert [len(listed.take("prod", {name: "1"})) for name in ("c", "a")] == [0, 1]
    listed.keep(("prod", "c"), "1", half)
    listed.keep(("prod", "c"), "2", half)
    assert listed.take("prod", {"c": "2"}) == (half,)


def test_records_expire_soon() -> None:
    clock = _Clock()
    listed = records("a", "b", clock=clock)
    clock.now = FRESH_S - 1
    assert listed.take("prod", {"a": "1"}) == (b"a",)
    clock.now = FRESH_S
    assert listed.take("prod", {"b": "1"}) == ()
    assert len(listed) == 0
