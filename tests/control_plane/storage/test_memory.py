import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.control_plane.support.storage_contract import PODS, StorageContract, StorageMachine, pod
from tests.scale import scaled
from wharfinger.control_plane.storage.memory import MemoryStorage


class TestMemoryStorage(StorageContract):
    def new(self) -> MemoryStorage:
        return MemoryStorage()


class WholeHistory(StorageMachine):
    def __init__(self) -> None:
        super().__init__(MemoryStorage)


class ShortHistory(StorageMachine):
    def __init__(self) -> None:
        super().__init__(lambda: MemoryStorage(history_limit=3))


@pytest.mark.slow
def test_memory_storage_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        WholeHistory,
        settings=settings(max_examples=scaled(500, 40), stateful_step_count=40, deadline=None),
    )


@pytest.mark.slow
def test_memory_storage_with_a_short_history_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        ShortHistory,
        settings=settings(max_examples=scaled(500, 40), stateful_step_count=40, deadline=None),
    )


def test_the_history_is_bounded_and_drops_the_oldest_changes() -> None:
    storage = MemoryStorage(history_limit=2)
    changes = [storage.put(*pod("x", n=n)) for n in range(5)]

    assert storage.oldest == changes[2].revision
    assert list(storage.changes(PODS, changes[2].revision)) == changes[3:]
