"""The possible places of the shell library, and the strict options that it sets."""

import os
from pathlib import Path

import pytest

from tests.hooks.support import contained
from tests.hooks.support.scripts import run_of, write_hook
from tests.hooks.support.shell_hooks import run_body, run_hook, sandbox, write_shell_hook
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.hook_files import hook_file
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.shell_library import FOLDER, FRAMEWORK_DIR, binds, environment, install, missing_library_advice

MAIN = "__main__() { echo handled; }"
FILES = [
    "framework/shell/context.sh",
    "framework/shell/hook.sh",
    "frameworks/shell/context.sh",
    "frameworks/shell/hook.sh",
    "shell_lib.sh",
]

# -- location


def test_library_paths_bound_into_a_sandbox_exist() -> None:
    assert sorted(binds()) == ["/framework", "/frameworks", "/shell_lib.sh"]
    assert binds()["/shell_lib.sh"].is_file()
    for fragments in ("/framework", "/frameworks"):
        assert sorted(path.name for path in (binds()[fragments] / "shell").iterdir()) == ["context.sh", "hook.sh"]


@pytest.mark.skipif(sandbox() is None, reason="no sandbox is allowed here")
@pytest.mark.parametrize("library", ["/shell_lib.sh", f"${FRAMEWORK_DIR}/shell_lib.sh"])
def test_hook_in_a_sandbox_command_finds_the_library_at_the_root(tmp_path: Path, library: str) -> None:
    command = sandbox()
    assert command is not None
    hook = write_shell_hook(tmp_path, MAIN, library=library)
    assert run_hook(hook, before=("env", "-u", FRAMEWORK_DIR, *command)).lines == ["handled"]


@pytest.mark.skipif(bool(contained.no_sandbox()), reason=contained.no_sandbox())
async def test_hook_run_by_the_runner_in_a_sandbox_finds_the_library() -> None:
    with contained.state_folder() as state:
        hook = write_shell_hook(
            contained.package_in(state), "__main__() { context::get binding; }", library="/shell_lib.sh"
        )
        containment = Containment(sandbox=contained.sandbox(), state_dir=state, extra_binds=binds())
        outcome = await contained.runner(state, containment).run(run_of(hook, contexts=({"binding": "onStartup"},)))
        assert (outcome.succeeded, outcome.log_lines) == (True, ("onStartup",)), outcome.exit_description


@pytest.mark.skipif(Path("/shell_lib.sh").exists(), reason="the library is on this machine")
async def test_missing_library_at_the_root_is_reported_with_a_remedy(tmp_path: Path) -> None:
    remedy = "/shell_lib.sh is not on this machine: put it there with `wharfinger hook shell-lib --install /`"
    hook = write_shell_hook(tmp_path, MAIN, library="/shell_lib.sh")
    with pytest.raises(HookError) as caught:
        await ProcessConfigReader().config_of(hook_file(hook))
    assert remedy in str(caught.value)
    assert "--hook-sandbox" in str(caught.value)
    outcome = await ProcessHookRunner(tmp_path / "scratch", contained.LIMITS).run(run_of(hook))
    assert remedy in outcome.exit_description


@pytest.mark.parametrize(
    ("said", "there", "advised"),
    [
        ("a.sh: line 2: /shell_lib.sh: No such file or directory", False, True),
        ("a.sh: Zeile 2: /shell_lib.sh: Datei oder Verzeichnis nicht gefunden", False, True),
        ("a.sh: line 3: /frameworks/shell/context.sh: No such file or directory", False, True),
        ("a.sh: line 2: /shell_lib.sh: No such file or directory", True, False),
        ("a.sh: line 2: /opt/shell_lib.sh: No such file or directory", False, False),
        ("no such pod", False, False),
    ],
)
def test_install_advice_is_given_only_for_a_missing_library(
    tmp_path: Path, said: str, there: bool, advised: bool
) -> None:
    if there:
        install(tmp_path)
    assert bool(missing_library_advice(said, tmp_path)) == advised


def test_framework_dir_names_the_folder_of_the_library() -> None:
    assert environment({"HOME": "/root"}) == {FRAMEWORK_DIR: str(FOLDER)}
    assert environment({FRAMEWORK_DIR: ""}) == {}
    assert (FOLDER / "shell_lib.sh").is_file()
    assert not FOLDER.is_symlink()


def test_install_writes_the_library_below_a_root(tmp_path: Path) -> None:
    written = install(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in written) == FILES
    assert written[0] == tmp_path / "shell_lib.sh"
    for path in written:
        assert path.stat().st_mode & 0o777 == 0o644
    (tmp_path / "frameworks/shell/own.sh").write_text("own::greet() { echo greeted; }\n")
    (tmp_path / "shell_lib.sh").write_text("an older one")
    assert install(tmp_path) == written
    hook = write_shell_hook(tmp_path, "__main__() { own::greet; }")
    assert run_hook(hook, environment={FRAMEWORK_DIR: str(tmp_path)}).lines == ["greeted"]


def test_install_below_an_unwritable_root_fails(tmp_path: Path) -> None:
    (tmp_path / "frameworks").write_text("")
    with pytest.raises(OSError, match="frameworks"):
        install(tmp_path)


def test_library_sourced_without_a_folder_is_found_in_the_working_folder(tmp_path: Path) -> None:
    install(tmp_path)
    hook = write_shell_hook(tmp_path, MAIN, library="shell_lib.sh")
    done = run_hook(hook, before=("env", "-C", str(tmp_path)), environment={"PATH": os.environ["PATH"]})
    assert done.lines == ["handled"]


# -- strictness


def test_library_sets_strict_shell_options(tmp_path: Path) -> None:
    body = """
    __main__() {
      for option in errexit errtrace nounset pipefail; do [[ -o $option ]] && echo "$option"; done
      for option in inherit_errexit failglob; do shopt -q "$option" && echo "$option"; done
    }
    """
    assert run_body(tmp_path, body).lines == [
        "errexit", "errtrace", "nounset", "pipefail", "inherit_errexit", "failglob",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "failing",
    ["false", "false | cat", "text=$(false; echo on)", 'echo "$unheard_of"', "ls *.nothing-like-it", "(exit 3)"],
)
def test_a_failing_command_ends_the_hook(tmp_path: Path, failing: str) -> None:
    done = run_body(tmp_path, f"__main__() {{\n  {failing}\n  echo went on\n}}")
    assert done.status != 0
    assert done.out == ""
    assert done.err


def test_a_failure_prints_the_call_stack(tmp_path: Path) -> None:
    body = """
    inner() { grep --quiet nothing /dev/null; }
    outer() {
      inner
    }
    __main__() { outer; }
    """
    done = run_body(tmp_path, body)
    assert done.status == 1
    hook = tmp_path / "10-hook.sh"
    lines = done.err.splitlines()
    assert lines[:4] == [
        "ERROR: exit status 1 from: grep --quiet nothing /dev/null",
        f"  at inner ({hook}:4)",
        f"  at outer ({hook}:6)",
        f"  at __main__ ({hook}:8)",
    ]
    assert lines[-1] == f"  at main ({hook}:10)"
    assert sum(line.startswith("ERROR") for line in lines) == 1


def test_a_failure_before_the_handlers_prints_the_call_stack(tmp_path: Path) -> None:
    done = run_body(tmp_path, "cat /nothing/there")
    assert done.status == 1
    assert f"ERROR: exit status 1 from: cat /nothing/there\n  at main ({tmp_path / '10-hook.sh'}:3)\n" in done.err


def test_the_hooks_own_error_trap_replaces_the_librarys(tmp_path: Path) -> None:
    body = """
    trap 'echo "mine: $?"' ERR
    __main__() { (exit 7); }
    """
    done = run_body(tmp_path, body)
    assert (done.status, done.err) == (7, "")
    assert set(done.out.splitlines()) == {"mine: 7"}
    assert run_body(tmp_path, "trap - ERR\n__main__() { (exit 7); }").err == ""


def test_loading_the_library_sets_only_prefixed_variables(tmp_path: Path) -> None:
    hook = write_hook(
        tmp_path,
        "#!/usr/bin/env bash\nbefore=$(compgen -v)\n"
        f'source ${FRAMEWORK_DIR}/shell_lib.sh\ncomm -13 <(sort <<<"$before") <(compgen -v | sort)\n',
    )
    # The library's own variables have a prefix; the rest belong to bash or to the test.
    own = [line for line in run_hook(hook).lines if not line.startswith(("context__", "hook__"))]
    assert set(own) <= {"before", "PIPESTATUS", "_", "FUNCNAME", "BASH_REMATCH"}


def test_loading_the_library_twice_is_harmless(tmp_path: Path) -> None:
    hook = write_shell_hook(tmp_path, f"source ${FRAMEWORK_DIR}/shell_lib.sh\n{MAIN}")
    assert run_hook(hook).lines == ["handled"]


def test_an_old_bash_is_refused(tmp_path: Path) -> None:
    library = (FOLDER / "shell_lib.sh").read_text().replace("BASH_VERSINFO[0] * 100", "3 * 100")
    (tmp_path / "shell_lib.sh").write_text(library)
    done = run_hook(write_shell_hook(tmp_path, MAIN), environment={FRAMEWORK_DIR: str(tmp_path)})
    assert done.status == 1
    assert "is too old, 4.4 or newer is needed" in done.err
