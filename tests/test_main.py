"""The command line as a whole: every way to start it, its help, and its exit codes."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import wharfinger
from tests.hooks.support.patience import PATIENT_FILTERS
from wharfinger.__main__ import build_parser, is_live_diff, main
from wharfinger.command_table import COMMANDS
from wharfinger.hooks.watching import jq_pool

pytestmark = pytest.mark.measured  # Most of __main__ runs in child processes.

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_the_module_and_the_script_start_from_any_folder(tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "wharfinger"
    for command in ([sys.executable, "-m", "wharfinger"], [str(script)]):
        for cwd in (ROOT, tmp_path):
            done = run(*command, "version", cwd=cwd)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith(f"wharfinger {wharfinger.__version__} (Python ")


def test_version_loads_no_part() -> None:
    code = (
        "import sys; from wharfinger.__main__ import main; main(['version']);"
        "of_the_command_line = ('__main__', 'command_table', 'completion', 'interruption', 'standard_streams');"
        "own = {'wharfinger.' + name for name in of_the_command_line};"
        "loaded = {m for m in sys.modules if m.startswith('wharfinger.')} - own;"
        "sys.exit(bool(loaded or {'trio', 'httpx', 'kubernetes', 'msgspec', 'yaml', 'argcomplete'} & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code).returncode == 0


def test_a_command_loads_its_own_part_only() -> None:
    code = (
        "import sys; from wharfinger.__main__ import build_parser; build_parser('get');"
        "loaded = ('wharfinger.runtime.daemon.daemon', 'wharfinger.cluster.api.client', 'kubernetes');"
        "sys.exit(any(m in sys.modules for m in loaded))"
    )
    assert run(sys.executable, "-c", code).returncode == 0


@pytest.mark.unmeasured  # Coverage imports further modules.
def test_a_query_does_not_import_slow_modules() -> None:
    code = (
        "import sys; from wharfinger.__main__ import main; code = main(['get', 'packages', '--socket', '/nowhere']);"
        "slow = {'asyncio', 'difflib', 'hashlib', 'http.client', 'jsonschema_rs', 'trio', 'yaml', 'zoneinfo',"
        " 'wharfinger.formats.schemas.problems', 'wharfinger.runtime.daemon_details', 'wharfinger.runtime.package_details',"
        " 'wharfinger.runtime.scheduler_details'};"
        "print(code, sorted(slow & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code).stdout == "1 []\n"


def test_only_the_parser_of_the_given_command_is_built() -> None:
    with pytest.raises(SystemExit):
        build_parser("get", only=("get",)).parse_args(["why", "prod.shop"])
    assert build_parser("get", only=("get",)).parse_args(["get", "packages"]).what == "packages"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "act",
    [
        "main(['run', '--help'])",
        "importlib.import_module('wharfinger.runtime.daemon.daemon')",
        "main(['package', 'lint', folder, '--no-templates'])",
    ],
    ids=["run-help", "daemon", "package-lint"],
)
def test_only_commands_that_serve_it_load_the_control_plane(act: str, tmp_path: Path) -> None:
    (tmp_path / "package.yaml").write_text("name: web\nversion: 1.0.0\ntype: Application\n")
    code = (
        f"import importlib, sys; from wharfinger.__main__ import main; folder = {str(tmp_path)!r}\n"
        f"try:\n    {act}\nexcept SystemExit:\n    pass\n"
        "sys.exit(any(m.startswith('wharfinger.control_plane') for m in sys.modules))"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stdout


def test_a_missing_command_prints_help_and_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out = capsys.readouterr().out
    assert all(command.name in out for command in COMMANDS)


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: wharfinger {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["frobnicate"], ["run", "--frobnicate"], ["completion", "elvish"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: wharfinger" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("gett packages", "did you mean 'get'?"),
        ("list", "did you mean 'get packages'?"),
        ("explain web", "did you mean 'why'?"),
        ("push web", "did you mean 'package push'?"),
        ("package pusch", "did you mean 'push'?"),
        ("hook rn", "did you mean 'run'?"),
        ("get package -o jsn", "did you mean 'json'?"),
        ("get repositores", "did you mean 'repositories'?"),
        ("get nonsense", "there is no 'nonsense'; known are 'packages', 'applications', 'modules'"),
        ("frobnicate", "there is no 'frobnicate'; known are 'run', 'doctor'"),
        (f"{'get' * 100}", "choose from 'run', 'doctor'"),
    ],
)
def test_a_wrong_command_gets_a_suggestion(arguments: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    assert caught.value.code == 2
    assert meant in capsys.readouterr().err


def test_every_suggestion_is_a_command() -> None:
    from wharfinger.__main__ import _MEANT

    known = {command.name for command in COMMANDS}
    assert {meant.split()[0] for meant in _MEANT.values()} <= known
    assert known.isdisjoint(_MEANT)


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback() -> None:
    # The reading end of this pipe is closed before anything is written.
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "wharfinger", "completion", "bash"],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=300,
    )
    os.close(writer)
    assert "Traceback" not in done.stderr


ANSWERS = [
    "get packages",
    "why web",
    "version",
    "--help",
    "get --help",
    "completion bash",
    "package check examples/web-service",
]


@pytest.mark.sampled
@pytest.mark.parametrize("arguments", ANSWERS)
@pytest.mark.parametrize("closed", [">&-", ">&- <&-"])
def test_a_closed_stdout_is_a_one_line_error(arguments: str, closed: str, tmp_path: Path) -> None:
    environment = f"WHARFINGER_SOCKET={tmp_path}/none"
    done = run("bash", "-c", f"{environment} {sys.executable} -m wharfinger {arguments} {closed}")
    assert done.returncode == 1
    assert done.stdout == ""
    reasons = ("error: the answer cannot be written to stdout: it is closed\n", "error: no daemon")
    assert done.stderr.startswith(reasons)
    assert done.stderr.count("\n") == 1


FULL = [
    "--help",
    "--version",
    "get --help",
    "version",
    "completion bash",
    "package check examples/web-service",
    "package lint --no-templates examples/web-service",
    "hook shell-lib",
    "hook config examples/namespace-defaults",
    "hook context examples/namespace-defaults/hooks/namespaces.py",
    "hook run HOOK",
    "plan --packages examples -f examples/application.yaml",
]


@pytest.mark.sampled
@pytest.mark.parametrize("arguments", FULL)
def test_a_full_stdout_is_a_one_line_error(arguments: str, tmp_path: Path) -> None:
    hook = tmp_path / "hook.sh"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    arguments = arguments.replace("HOOK", str(hook))
    done = run("bash", "-c", f"{sys.executable} -m wharfinger {arguments} >/dev/full")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the answer cannot be written to stdout: No space left on device\n"


def test_a_full_unbuffered_stdout_is_a_one_line_error() -> None:
    done = run("bash", "-c", f"PYTHONUNBUFFERED=1 {sys.executable} -m wharfinger version >/dev/full")
    said = "error: the answer cannot be written to stdout: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_unused_standard_streams_may_be_closed(closed: str) -> None:
    done = run("bash", "-c", f"{sys.executable} -m wharfinger version {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("wharfinger ")


@pytest.mark.slow
def test_a_daemon_answer_on_a_closed_stdout_is_a_one_line_error(tmp_path: Path) -> None:
    code = (
        "import trio, sys\nfrom pathlib import Path\nfrom tests.debug.support.canned import CannedInspector\n"
        "from wharfinger.debug.server.server import open_debug_server\n"
        "async def main():\n"
        f"    async with open_debug_server(Path({str(tmp_path / 'socket')!r}), CannedInspector()):\n"
        "        command = [sys.executable, '-m', 'wharfinger', *sys.argv[1:]]\n"
        "        closing = ['bash', '-c', '\"$@\" >&-', 'bash', *command]\n"
        "        done = await trio.run_process(closing, check=False, capture_stderr=True)\n"
        "    print(done.returncode, done.stderr.decode(), end='')\n"
        "trio.run(main)\n"
    )
    for command in (
        ["get", "packages"],
        ["get", "packages", "-o", "json"],
        ["dump"],
        ["queues", "dump"],
        ["scheduler", "dump"],
    ):
        done = run(sys.executable, "-c", code, *command, "--socket", str(tmp_path / "socket"))
        assert done.stdout == "1 error: the answer cannot be written to stdout: it is closed\n", (
            command,
            done.stderr,
        )


INTERRUPTED_WHILE_LOADING = """\
import os, signal, sys
from wharfinger.__main__ import main

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == "wharfinger.debug.listing.get_command":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may have been started with another handler
sys.meta_path.insert(0, CtrlC())
sys.exit(main(["get", "packages"]))
"""


def test_ctrl_c_during_imports_exits_with_130_without_a_traceback() -> None:
    done = run(sys.executable, "-c", INTERRUPTED_WHILE_LOADING)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


INTERRUPTED_BEFORE_MAIN = """\
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == "wharfinger.command_table":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
runpy.run_module("wharfinger", run_name="__main__")
"""


def test_ctrl_c_before_the_command_line_is_imported_ends_without_a_traceback() -> None:
    done = run(sys.executable, "-c", INTERRUPTED_BEFORE_MAIN)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_importing_the_command_line_keeps_the_handler_of_ctrl_c() -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, getattr(signal, sys.argv[1])); import wharfinger.__main__;"
        "sys.exit(signal.getsignal(signal.SIGINT) != getattr(signal, sys.argv[1]))"
    )
    for handler in ("default_int_handler", "SIG_IGN", "SIG_DFL"):
        assert run(sys.executable, "-c", code, handler).returncode == 0


ENDED_BY_A_SIGNAL = """\
import signal, sys, tempfile, trio
from wharfinger import __main__ as command_line

in_trio, number = sys.argv[1] == "trio", signal.Signals[sys.argv[2]]

def act(_args):
    with tempfile.TemporaryDirectory(dir=sys.argv[3]):
        trio.run(wait) if in_trio else signal.raise_signal(number)

async def wait():
    with tempfile.TemporaryDirectory(dir=sys.argv[3]):
        signal.raise_signal(number)
        await trio.sleep_forever()

signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may have been started with another handler
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # or coverage has its own
signal.signal(signal.SIGHUP, signal.SIG_DFL)
command_line._print_version = act
sys.exit(command_line.main(["version"]))
"""


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("loop", ["trio", "none"])
def test_a_signal_ends_a_command_after_its_temporary_files_are_removed(
    loop: str, number: str, code: int, tmp_path: Path
) -> None:
    done = run(sys.executable, "-c", ENDED_BY_A_SIGNAL, loop, number, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_is_kept_if_ctrl_c_ended_code_made_from_a_text(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import sys; from wharfinger import __main__ as command_line\n"
        "command_line._print_version = lambda _args: exec('raise KeyboardInterrupt')\n"
        "sys.exit(command_line.main(['version']))\n"
    )
    done = run(sys.executable, "-m", "interrupted", cwd=tmp_path)  # Python ends -c in another way.
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("ignored", ["SIGINT", "SIGTERM"])
def test_ignored_signals_stay_ignored(ignored: str) -> None:
    code = (
        "import signal, sys; from wharfinger.interruption import Interruption\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.Signals[sys.argv[1]], signal.SIG_IGN); before = signal.getsignal(signal.SIGTERM)\n"
        "with Interruption():\n    sys.exit(signal.getsignal(signal.SIGTERM) != before)\n"
    )
    assert run(sys.executable, "-c", code, ignored).returncode == 0


def test_a_command_that_ctrl_c_ends_at_once_is_ended_at_once_by_sigterm() -> None:
    code = (
        "import signal; from wharfinger.interruption import Interruption\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with Interruption():\n    signal.signal(signal.SIGINT, signal.SIG_DFL); signal.raise_signal(signal.SIGTERM)\n"
    )
    assert run(sys.executable, "-c", code).returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    "raised",
    [KeyboardInterrupt(), BaseExceptionGroup("nursery", [BaseExceptionGroup("nursery", [KeyboardInterrupt()])])],
    ids=["bare", "from a nursery"],
)
def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> None:
    def interrupted(_args: object) -> int:
        raise raised

    monkeypatch.setattr("wharfinger.__main__._print_version", interrupted)
    assert main(["version"]) == 130


def test_ctrl_c_hides_no_simultaneous_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_args: object) -> int:
        raise BaseExceptionGroup("nursery", [KeyboardInterrupt(), ValueError("lost")])

    monkeypatch.setattr("wharfinger.__main__._print_version", interrupted)
    with pytest.raises(BaseExceptionGroup) as caught:
        main(["version"])
    assert caught.group_contains(ValueError, match="lost")


@pytest.mark.parametrize(
    ("words", "is_live"),
    [
        ("diff prod.shop", True),
        ("diff prod.shop -o json --help", True),
        ("diff", False),
        ("diff --help", False),
        ("diff ./tree --against main", False),
        ("diff --against=main ./tree", False),
        ("diff ./tree --ag main", False),
        ("why diff", False),
    ],
)
def test_diff_queries_the_daemon_unless_against_is_given(words: str, is_live: bool) -> None:
    assert is_live_diff(words.split()) is is_live


def test_parsers_of_commands_are_built_on_demand() -> None:
    assert "--kubeconfig" not in build_parser(None).format_help()


@pytest.mark.parametrize(
    "words",
    [
        ("dump", "-o", "json", "demo.web"),
        ("get", "packages", "-o", "yaml", "demo.web"),
        ("get", "packages", "demo.web"),
    ],
)
def test_a_name_may_come_after_the_options(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line is accepted, and the command fails because no daemon answers."""
    assert main([*words, "--socket", str(tmp_path / "none.sock")]) == 1
    assert "none.sock" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("diff", "a.b", "--odd"), ("diff", "tree", "--against"), ("diff", "--against", "main"), ("diff", "a", "-o", "x")],
)
def test_wrong_usage_of_diff_is_not_reported_as_a_difference(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    assert caught.value.code == 1


@pytest.mark.parametrize(
    "words", [("get", "packages", "a.b", "c.d"), ("version", "more"), ("get", "packages", "--odd")]
)
def test_surplus_arguments_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert f"unrecognized arguments: {words[-1]}" in err
    assert f"usage: wharfinger {words[0]} " in err  # This is the usage of the command, not of the whole program.


def test_a_namespace_option_beside_a_name_is_refused_with_an_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["rollback", "shop", "-n", "prod"])
    assert "unrecognized arguments: -n prod; an Application is named NAMESPACE.NAME here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("run --embeded", "--embeded; did you mean --embedded?"),
        ("run --state-dri=x", "--state-dri=x; did you mean --state-dir?"),
        ("run --frobnicate", "--frobnicate\n"),
        ("diff a b", "b; to compare trees: `wharfinger diff a --against b`"),
    ],
)
def test_unrecognized_arguments_get_a_suggestion(words: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    assert f"unrecognized arguments: {hint}" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "argument"), [("get", "LIST"), ("completion", "SHELL")])
def test_a_missing_argument_has_the_name_of_the_usage_text(
    command: str, argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command])
    usage, error = capsys.readouterr().err.split("error:")
    assert argument in usage
    assert error == f" the following arguments are required: {argument}\n"


def test_package_check_starts_its_own_jq(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jq_pool, "open_jq_pool", partial(jq_pool.open_jq_pool, limits=PATIENT_FILTERS))
    conversions = tmp_path / "web" / "openapi" / "conversions"
    conversions.mkdir(parents=True)
    (tmp_path / "web" / "package.yaml").write_text("{}")
    (conversions / "v2.yaml").write_text("{version: 2, conversions: [.b = .a | del(.a)]}")
    (conversions / "testcases.yaml").write_text("testcases: [{settings: {a: 1}, expected: {b: 2}}]")
    assert main(["package", "check", str(tmp_path / "web")]) == 1
    assert 'expected {"b":2}, got {"b":1}' in capsys.readouterr().out
