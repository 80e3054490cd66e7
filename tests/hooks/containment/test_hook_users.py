"""Users of hooks: each concurrent run has its own user, which is checked between runs and can access only its package."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.hooks.support.contained import IS_ROOT, package_in, state_folder, users
from tests.process.children import is_alive
from wharfinger.hooks.containment import hook_users
from wharfinger.hooks.containment.hook_users import HookUsers, allow_traversal, open_tree, package_tree, remove_files_of
from wharfinger.hooks.errors import HookError
from wharfinger.process.sweep import SweepResult

AS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("first", "last"), [(0, 5), (-1, 5), (5, 4)])
def test_invalid_user_ranges_and_root_are_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="is not a range of users"):
        HookUsers(first, last)


async def test_concurrent_runs_have_different_users() -> None:
    pool = users(2)
    seen: list[int] = []
    together: set[int] = set()

    async def run() -> None:
        async with pool.lease("h") as lease:
            assert lease.user.uid == lease.user.gid
            assert lease.user.uid not in together
            together.add(lease.user.uid)
            seen.append(lease.user.uid)
            await trio.testing.wait_all_tasks_blocked()
            together.remove(lease.user.uid)

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(run)
    assert len(seen) == 6
    assert set(seen) == {pool.first, pool.last}


async def test_user_is_checked_before_its_first_run_and_when_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(hook_users, "_end_all_of", lambda _hook, uid: looked.append(uid))
    pool = users()
    for _ in range(2):
        async with pool.lease("h"):
            pass
    assert looked == [pool.first]
    async with pool.lease("h") as lease:
        lease.suspect = True
    async with pool.lease("h"):
        pass
    assert looked == [pool.first] * 2
    with pytest.raises(RuntimeError, match="its run failed"):
        async with pool.lease("h"):
            raise RuntimeError("its run failed")
    async with pool.lease("h"):
        pass
    assert looked == [pool.first] * 3


@pytest.mark.slow
@AS_ROOT
async def test_processes_left_by_another_daemon_are_ended_before_the_first_run() -> None:
    pool = users()
    as_user = f"setpriv --reuid={pool.first} --regid={pool.first} --clear-groups --"
    script = f"{as_user} sh -c 'echo $$; exec sleep 1000' &"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
    assert is_alive(pid)
    async with pool.lease("h"):
        assert not is_alive(pid)


async def test_user_with_unkillable_processes_is_a_transient_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_users, "sweep", lambda _marks, _limit: SweepResult(0, 2))
    pool = users()
    for _ in range(2):
        with pytest.raises(HookError, match=f"2 processes still run as user {pool.first}") as caught:
            async with pool.lease("h"):
                raise AssertionError("never handed out")
        assert caught.value.transient


@AS_ROOT
def test_files_of_a_user_are_removed_from_shared_folders(tmp_path: Path) -> None:
    uid = users().first
    deep = tmp_path / "deep" / "er"
    deep.mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "others").write_text("")
    for path in (deep.parent, tmp_path / "file", tmp_path / "link"):
        os.chown(path, uid, uid, follow_symlinks=False)
    deep.chmod(0)
    remove_files_of(uid, (tmp_path / "missing", tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["others"]
    assert Path("/etc").is_dir()


def test_package_tree_is_found_by_any_file_in_it() -> None:
    state = Path("/state")
    trees = state / "store" / "trees"
    assert package_tree(trees / "ab" / "package" / "hooks" / "x", state) == trees / "ab"
    assert package_tree(trees / "ab", state) == trees / "ab"
    assert package_tree(trees, state) is None
    assert package_tree(Path("/elsewhere/x"), state) is None


def test_package_is_made_readable_and_its_neighbours_are_not() -> None:
    with state_folder() as state:
        hooks, other = package_in(state), package_in(state, "1" * 64)
        for name, bits in (("hook.sh", 0o500), ("notes.txt", 0o400)):
            (hooks / name).write_text("")
            (hooks / name).chmod(bits)
        (hooks / "link").symlink_to("/etc/shadow")
        before = Path("/etc/shadow").stat().st_mode
        (state / "journal.db").write_text("")
        (state / "journal.db").chmod(0o600)
        for _ in range(2):
            open_tree(hooks / "hook.sh", state)
            assert mode(state) == 0o701
            state.chmod(0o700)  # A starting daemon does this.
        open_tree(hooks / "hook.sh", state)
        tree = hooks.parents[1]
        assert [mode(path) for path in (state, state / "store", tree.parent)] == [0o701, 0o701, 0o701]
        assert [mode(path) for path in (tree, tree / "package", hooks)] == [0o705] * 3
        assert (mode(hooks / "hook.sh"), mode(hooks / "notes.txt")) == (0o505, 0o404)
        assert (mode(other), mode(state / "journal.db")) == (0o700, 0o600)
        assert Path("/etc/shadow").stat().st_mode == before
        open_tree(Path("/usr/bin/env"), state)


def test_traversal_is_allowed_down_to_the_folder_only(tmp_path: Path) -> None:
    way = tmp_path / "a" / "b"
    (way / "c").mkdir(parents=True)
    for folder in (tmp_path, way.parent, way, way / "c"):
        folder.chmod(0o700)
    allow_traversal(way, way.parent)
    assert [mode(folder) for folder in (tmp_path, way.parent, way, way / "c")] == [0o700, 0o701, 0o701, 0o700]
