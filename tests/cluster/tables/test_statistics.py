"""The statistics of a table."""

from tests.cluster.tables.samples import Row, a_table, drop, put
from wharfinger.cluster.tables.statistics import TableStatistics, TrackerStatistics


def test_statistics_count_rows_graves_and_watches() -> None:
    table = a_table()
    table.initializer("records")
    put(table, Row("a"), Row("b"), Row("a", 1))
    watch = table.watch_key("b")
    with table.changes("reader"), table.changes("other") as other:
        drop(table, "a")
        other.next()
        assert table.statistics() == TableStatistics(
            name="rows",
            revision=4,
            rows=1,
            graves=1,
            versions=3,
            trackers=(TrackerStatistics("reader", 0, 4), TrackerStatistics("other", 4, 0)),
            expired=(),
            pending_initializers=("records",),
            watches=1,
        )
    assert not watch.fired
