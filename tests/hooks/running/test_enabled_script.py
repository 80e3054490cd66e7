"""The ``enabled`` script, with which a package decides whether it is enabled. The real runner runs real scripts."""

import logging
from pathlib import Path

import pytest

from tests.hooks.support.scripts import bash, python, write_hook
from tests.process.children import PATH
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import enabled_script
from wharfinger.hooks.running.enabled_script import EnabledAnswer, run_enabled_script
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.process.command import Limits

VALUES: JsonObject = {"global": {"enabledModules": ["alpha"]}, "beta": {"a": 1}}
CONFIG_VALUES: JsonObject = {"beta": {"a": 1}}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    folder.mkdir()
    return folder


@pytest.fixture
def runner(tmp_path: Path) -> ProcessHookRunner:
    limits = Limits(wall_s=100.0, stdout_bytes=100_000, term_grace_s=0.05, drain_s=0.05)
    return ProcessHookRunner(tmp_path / "scratch", limits, environment={"PATH": PATH})


async def ask(runner: ProcessHookRunner, package: Path) -> EnabledAnswer | None:
    answer = await run_enabled_script(runner, package, VALUES, CONFIG_VALUES, masked=str)
    assert list((package.parent / "scratch").glob("*/*")) == []
    return answer


async def refused(runner: ProcessHookRunner, package: Path) -> HookError:
    with pytest.raises(HookError) as caught:
        await run_enabled_script(runner, package, VALUES, CONFIG_VALUES, masked=str)
    assert list((package.parent / "scratch").glob("*/*")) == []
    return caught.value


@pytest.mark.parametrize(
    ("said", "reason", "answer"),
    [
        ("true", "", EnabledAnswer(enabled=True, reason="")),
        ("false", "", EnabledAnswer(enabled=False, reason="")),
        (" false\\n\\n", "needs\\n  alpha\\n", EnabledAnswer(enabled=False, reason="needs alpha")),
        ("true\\n", "x" * 5000, EnabledAnswer(enabled=True, reason="x" * 1024)),
        ("true", "\\xff", EnabledAnswer(enabled=True, reason="\N{REPLACEMENT CHARACTER}")),
    ],
)
async def test_enabled_script_answers_are_read(
    said: str, reason: str, answer: EnabledAnswer, runner: ProcessHookRunner, package: Path
) -> None:
    bash(
        package,
        f"printf '{said}' >\"$MODULE_ENABLED_RESULT\"; printf '{reason}' >\"$MODULE_ENABLED_REASON\"",
        name="enabled",
    )
    assert await ask(runner, package) == answer


async def test_enabled_script_gets_values_in_private_files(runner: ProcessHookRunner, package: Path) -> None:
    python(
        package,
        "import stat\n"
        "files = [os.environ[name] for name in\n"
        "         ('VALUES_PATH', 'CONFIG_VALUES_PATH', 'MODULE_ENABLED_RESULT', 'MODULE_ENABLED_REASON')]\n"
        "values, config = (json.load(open(path)) for path in files[:2])\n"
        "private = all(stat.S_IMODE(os.stat(path).st_mode) == 0o600 for path in files) and len(set(files)) == 4\n"
        "right = ['alpha'] == values['global']['enabledModules'] and config == {'beta': {'a': 1}} and not sys.argv[1:]\n"
        "open(files[2], 'w').write(json.dumps(private and right))\n"
        "open(files[3], 'w').write(os.getcwd())\n",
        name="enabled",
    )
    assert await ask(runner, package) == EnabledAnswer(enabled=True, reason=str(package))


async def test_package_without_enabled_script_has_no_answer(runner: ProcessHookRunner, package: Path) -> None:
    assert await ask(runner, package) is None


async def test_enabled_script_that_is_not_executable_is_ignored_with_a_warning(
    runner: ProcessHookRunner, package: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_hook(package, "#!/bin/sh\nexit 1\n", name="enabled", mode=0o644)
    with caplog.at_level(logging.WARNING):
        assert await ask(runner, package) is None
    assert "chmod +x to use it" in caplog.text


async def test_folder_named_enabled_is_ignored(runner: ProcessHookRunner, package: Path) -> None:
    (package / "enabled").mkdir()
    assert await ask(runner, package) is None


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (":", "found nothing"),
        ("echo yes >$MODULE_ENABLED_RESULT", "found 'yes'"),
        ("echo True >$MODULE_ENABLED_RESULT", "found 'True'"),
        ("echo 'true false' >$MODULE_ENABLED_RESULT", "found 'true false'"),
        ("echo true", "found nothing"),
        ("rm $MODULE_ENABLED_RESULT", "(No such file or directory); write into the existing file"),
        (
            "ln -sf $VALUES_PATH $MODULE_ENABLED_RESULT",
            "the hook replaced it with a link; write into the existing file",
        ),
    ],
)
async def test_invalid_answers_of_an_enabled_script_are_refused(
    script: str, shown: str, runner: ProcessHookRunner, package: Path
) -> None:
    bash(package, script, name="enabled")
    error = await refused(runner, package)
    assert str(error).startswith("hook enabled: MODULE_ENABLED_RESULT: ")
    assert shown in str(error)
    assert (error.file, error.transient) == ("MODULE_ENABLED_RESULT", False)


async def test_answer_of_a_failed_enabled_script_is_ignored(runner: ProcessHookRunner, package: Path) -> None:
    bash(package, "echo false >$MODULE_ENABLED_RESULT; echo 'no values' >&2; exit 2", name="enabled")
    error = await refused(runner, package)
    assert str(error) == "hook enabled: the script failed: exit status 2: no values"
    assert error.transient


async def test_enabled_script_without_a_shebang_fails(runner: ProcessHookRunner, package: Path) -> None:
    write_hook(package, "echo true\n", name="enabled")
    assert "exec format error" in str(await refused(runner, package))


async def test_enabled_script_is_ended_before_the_runner_limit(
    runner: ProcessHookRunner, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enabled_script, "WALL_S", 0.3)
    bash(package, "sleep 1000", name="enabled")
    error = await refused(runner, package)
    assert "deadline passed" in str(error)


async def test_unreadable_enabled_script_is_a_transient_failure(runner: ProcessHookRunner, package: Path) -> None:
    (package / "enabled").symlink_to("enabled")
    error = await refused(runner, package)
    assert "it cannot be read: Too many levels of symbolic links" in str(error)
    assert error.transient


@pytest.mark.parametrize("said", ["false", "no\n$SECRET"])
async def test_multi_line_secrets_are_masked_before_messages_are_truncated(
    said: str, runner: ProcessHookRunner, package: Path
) -> None:
    secret = "\n".join(f"k{number}" for number in range(300))
    bash(
        package,
        f"SECRET=$(for at in {{0..299}}; do echo k$at; done)\n"
        f'echo "{said}" >"$MODULE_ENABLED_RESULT"; echo "the key is $SECRET, no more" >"$MODULE_ENABLED_REASON"',
        name="enabled",
    )

    def masked(text: str) -> str:
        return text.replace(secret, "***")

    try:
        answer = await run_enabled_script(runner, package, VALUES, CONFIG_VALUES, masked=masked)
    except HookError as error:
        shown = str(error)
    else:
        assert answer is not None
        shown = answer.reason
        assert shown == "the key is ***, no more"
    assert "***" in shown
    assert "k1" not in shown
