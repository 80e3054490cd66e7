from dataclasses import replace

from tests.debug.support.samples import WAITING, task
from wharfinger.debug.printing.task import doing_text, task_state_text
from wharfinger.runtime.inspector import QueueSnapshot


def test_the_state_of_a_task_is_printed() -> None:
    states = [task(1), WAITING, task(1, running=False), replace(task(1, running=False), parked=True)]
    assert [task_state_text(each) for each in states] == ["running", "again in 14.2s", "waiting", "parked"]


def test_the_activity_of_a_queue_is_its_first_active_task() -> None:
    assert doing_text(QueueSnapshot("a", ())) == ""
    assert doing_text(QueueSnapshot("a", (WAITING, task(2)))) == "Task2"
    assert doing_text(QueueSnapshot("a", (WAITING,))) == "Task1 (again in 14.2s)"
