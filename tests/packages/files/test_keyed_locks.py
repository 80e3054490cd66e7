import trio
import trio.testing

from wharfinger.packages.files.keyed_locks import KeyedLocks


async def test_a_key_is_locked_once_and_other_keys_do_not_wait() -> None:
    locks = KeyedLocks()
    inside: list[str] = []
    most: dict[str, int] = {}

    async def work(key: str) -> None:
        async with locks.held(key):
            inside.append(key)
            most[key] = max(most.get(key, 0), inside.count(key))
            most["all"] = max(most.get("all", 0), len(inside))
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            inside.remove(key)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(work, "a")
            nursery.start_soon(work, "b")
    assert most == {"a": 1, "b": 1, "all": 2}
    assert len(locks) == 0


async def test_a_cancelled_waiter_leaves_no_lock() -> None:
    locks = KeyedLocks()
    async with locks.held("a"):
        with trio.move_on_after(0):
            async with locks.held("a"):
                raise AssertionError("held twice")
        assert len(locks) == 1
    assert len(locks) == 0
    async with locks.held("a"):
        assert len(locks) == 1


async def test_a_free_lock_is_acquired_without_a_checkpoint() -> None:
    locks = KeyedLocks()
    with trio.testing.assert_no_checkpoints():
        async with locks.held("a"):
            pass
    assert len(locks) == 0
