from wharfinger.queue.dump import PARKED_CAUSE, QueueDump, TaskDump, dump_queue, merge
from wharfinger.queue.events import Enqueued
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.state import BackingOff, Completing, Ending, Head, History, Lane, Parked, QueueState, Running

FAILED = History(3, 3, "registry does not answer")


def lane(head: Head, *waiting: Enqueued) -> Lane:
    return Lane(head, Fifo.of(waiting))


STATE = QueueState(
    lanes={
        "main": lane(
            BackingOff(Enqueued(1, "Download", 1, 90.0), 112.5, FAILED),
            Enqueued(2, "Install", 1, 95.0),
        ),
        "events": lane(Running(Enqueued(3, "Hook a", 2, 99.0, "events"), 7)),
        "ending": lane(Ending(Enqueued(4, "Hook b", 2, 99.0, "ending"), 8, "removal started")),
        "parked": lane(Parked(Enqueued(5, "Hook c", 2, 101.0, "parked"), History(1, 1, "bad YAML"))),
        "done": lane(Completing(Enqueued(6, "Hook d", 2, 99.0, "done"), 9)),
    }
)


def task(index: int, name: str, lane: str, ago: float, **other: object) -> TaskDump:
    plain: dict[str, object] = {
        "attempt": 1,
        "running": False,
        "retry_in_s": None,
        "error": "",
        "cause": "",
        "parked": False,
    }
    return TaskDump(index=index, name=name, lane=lane, enqueued_s_ago=ago, **(plain | other))  # type: ignore[arg-type]


def test_a_dump_shows_every_phase_with_relative_times() -> None:
    assert dump_queue("shop.web", STATE, now=100.0, executing={7, 8}) == QueueDump(
        "shop.web",
        (
            task(1, "Download", "main", 10.0, attempt=3, retry_in_s=12.5, error="registry does not answer"),
            task(2, "Install", "main", 5.0, attempt=0),
            task(3, "Hook a", "events", 1.0, running=True),
            task(4, "Hook b", "ending", 1.0, running=True, cause="removal started"),
            task(5, "Hook c", "parked", 0.0, error="bad YAML", cause=PARKED_CAUSE, parked=True),
            task(6, "Hook d", "done", 1.0),
        ),
    )


def test_a_started_run_that_does_not_execute_yet_is_not_dumped_as_running() -> None:
    assert not any(found.running for found in dump_queue("q", STATE, now=100.0, executing=set()).tasks)


def test_a_retry_that_is_overdue_is_due_now() -> None:
    assert dump_queue("q", STATE, now=200.0, executing=set()).tasks[0].retry_in_s == 0.0


def test_tasks_of_merged_dumps_are_numbered_across_queues() -> None:
    first, second = dump_queue("q", STATE, 100.0, set()), dump_queue("q", STATE, 100.0, set())
    merged = merge("q", (first, second))
    assert [found.index for found in merged.tasks] == list(range(1, 13))
    assert [found.name for found in merged.tasks] == [found.name for found in first.tasks + second.tasks]
    assert merge("q", ()) == QueueDump("q", ())
