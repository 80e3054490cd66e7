"""The reader of configurations, with real programs: caching, arguments, and failures."""

from pathlib import Path

import pytest

from tests.hooks.support.contained import IS_ROOT, package_in, state_folder, users
from tests.hooks.support.scripts import bash
from tests.process.children import PATH
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import config_reader
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.hook_files import HookFile, hook_file


@pytest.fixture
def reader() -> ProcessConfigReader:
    return ProcessConfigReader(environment={"PATH": PATH})


async def test_cached_answers_are_limited_in_bytes(
    tmp_path: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_reader, "_CACHE_BYTES", 20)
    count = tmp_path / "count"

    async def ask(name: str) -> int:
        path = tmp_path / name
        if not path.exists():
            bash(tmp_path, f"echo x >>{count}; echo 12345678", name=name)
        assert await reader.config_of(hook_file(path)) == b"12345678\n"
        return len(count.read_text().splitlines())

    assert [await ask(name) for name in ("a", "b", "a", "c", "a", "b")] == [1, 2, 2, 3, 3, 4]


async def test_cached_answers_are_limited_in_number_and_empty_ones_not_cached(
    tmp_path: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_reader, "_CACHE_ENTRIES", 2)
    count = tmp_path / "count"

    async def ask(name: str, said: str) -> int:
        if not (tmp_path / name).exists():
            bash(tmp_path, f"echo x >>{count}; printf '{said}'", name=name)
        assert await reader.config_of(hook_file(tmp_path / name)) == said.encode()
        return len(count.read_text().splitlines())

    assert [await ask(name, "x") for name in ("a", "b", "a", "c", "a", "b")] == [1, 2, 2, 3, 3, 4]
    assert [await ask("empty", "") for _ in range(2)] == [5, 6]


async def test_a_deleted_hook_file_is_a_transient_failure(tmp_path: Path, reader: ProcessConfigReader) -> None:
    gone = HookFile("hooks/x", tmp_path / "x", (), tmp_path, tmp_path)
    with pytest.raises(HookError, match="hook hooks/x: it cannot be read: No such file or directory") as caught:
        await reader.config_of(gone)
    assert caught.value.transient


@pytest.mark.parametrize(("several", "asked"), [(False, "--config"), (True, "hook config")])
async def test_config_run_has_the_arguments_and_environment_of_the_hook(
    several: bool,
    asked: str,
    tmp_path: Path,
    reader: ProcessConfigReader,
) -> None:
    path = bash(tmp_path, 'echo "$*/$A"')
    file = HookFile("hooks/x", path, (), tmp_path, tmp_path, {"A": "1"}, several)
    assert await reader.config_of(file) == f"{asked}/1\n".encode()


async def test_cached_answers_are_separate_by_environment_and_arguments(
    tmp_path: Path, reader: ProcessConfigReader
) -> None:
    path = bash(tmp_path, 'echo "$*/$A"')
    said = [
        await reader.config_of(HookFile("hooks/x", path, (), tmp_path, tmp_path, {"A": told}, several))
        for told, several in (("1", False), ("2", False), ("1", True), ("1", False))
    ]
    assert said == [b"--config/1\n", b"--config/2\n", b"hook config/1\n", b"--config/1\n"]


@pytest.mark.parametrize(("several", "advised"), [(False, False), (True, True)])
async def test_failed_batch_config_advises_a_file_name_extension(
    several: bool,
    advised: bool,
    tmp_path: Path,
    reader: ProcessConfigReader,
) -> None:
    file = HookFile("hooks/x", bash(tmp_path, "exit 3"), (), tmp_path, tmp_path, {}, several)
    with pytest.raises(HookError, match="ended with exit status 3") as caught:
        await reader.config_of(file)
    assert ("an extension" in str(caught.value)) == advised


async def test_config_runs_have_the_limits_of_a_run(tmp_path: Path) -> None:
    path = bash(tmp_path, "ulimit -n")
    reader = ProcessConfigReader(environment={"PATH": PATH}, containment=Containment(open_files=77))
    assert await reader.config_of(hook_file(path)) == b"77\n"


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a hook a user of its own")
async def test_config_run_has_its_own_user_and_its_files_are_removed() -> None:
    own = users()
    with state_folder() as state:
        path = bash(package_in(state), "mktemp; id -u")
        reader = ProcessConfigReader(environment={"PATH": PATH}, containment=Containment(users=own, state_dir=state))
        left, uid = (await reader.config_of(hook_file(path))).decode().split()
    assert uid == str(own.first)
    assert not Path(left).exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
async def test_hook_user_can_access_its_package_after_a_restart() -> None:
    """A starting daemon resets the mode of its state folder, so access to packages must be granted again."""
    with state_folder() as state:
        hook = hook_file(bash(package_in(state), "echo said"))
        containment = Containment(users=users(), state_dir=state)
        for _ in range(2):
            state.chmod(0o700)
            restarted = ProcessConfigReader(environment={"PATH": PATH}, containment=containment)
            assert await restarted.config_of(hook) == b"said\n"
