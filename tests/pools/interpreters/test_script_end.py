"""The end of a script: its exit status, and the order in which names are deleted. An import of `script_end` has no side
effects.
"""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.pools.interpreters import script_end

END = str(Path(script_end.__file__))
LOADED = f"""
import gc, sys, types
part = types.ModuleType('script_end')
exec(compile(open({END!r}).read(), {END!r}, 'exec'), vars(part))
before = set(sys.modules)
end = part.ScriptEnd()
gc.collect()
gc.freeze()
"""


def run(text: str) -> subprocess.CompletedProcess[str]:
    """Run a program that first loads `script_end` as a zygote does."""
    return subprocess.run([sys.executable, "-c", LOADED + text], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "status"), [(None, 0), (0, 0), (3, 3), (-1, 255), (300, 44), (True, 1)])
def test_an_integer_passed_to_exit_is_the_exit_status(code: object, status: int) -> None:
    assert script_end.ScriptEnd().status_of(code) == status


def test_any_other_object_passed_to_exit_is_printed_and_the_status_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert script_end.ScriptEnd().status_of(["a"]) == 1
    assert capsys.readouterr().err == "['a']\n"


def test_names_end_in_the_order_of_the_interpreter() -> None:
    ended: list[str] = []

    class Kind:
        def __init__(self, name: str) -> None:
            self.name = name

        def __del__(self) -> None:
            ended.append(self.name)

    names: dict[str, object] = {
        name: Kind(name) for name in ("public", "_private", "__dunder", "__builtins__", "later")
    }
    script_end.clear(names)
    assert ended == ["_private", "public", "__dunder", "later"]
    assert isinstance(names.pop("__builtins__"), Kind)
    gc.collect()


@pytest.mark.parametrize(
    ("kept", "left"),
    [("[1]", False), ("{'a': object()}", False), ("open('/dev/null')", True), ("(each for each in [1])", True)],
)
def test_objects_with_an_end_of_their_own_are_found(kept: str, left: bool) -> None:
    found = run(f"import builtins\nbuiltins.kept = {kept}\nprint(part.has_finalizer_left())")
    assert found.stdout == f"{left}\n"


def test_exit_handlers_run_at_the_end_of_the_script() -> None:
    text = (
        "import builtins\nclass Kind:\n    def __del__(self): print('del')\nbuiltins.kept = Kind()\n"
        "import atexit\natexit.register(print, 'once')\nend.end(3)"
    )
    found = run(text)
    assert (found.returncode, found.stdout) == (3, "once\ndel\n")
    quick = run("import atexit\natexit.register(print, 'once')\nend.end(4)")
    assert (quick.returncode, quick.stdout, quick.stderr) == (4, "once\n", "")


def test_an_error_of_the_hook_for_errors_is_reported_with_the_first_one() -> None:
    found = run("def hook(*_): raise KeyError(2)\nsys.excepthook = hook\nprint(end.report(ValueError(1)))")
    assert found.stdout == "1\n"
    assert found.stderr.index("KeyError: 2") < found.stderr.index("Original exception was:\nValueError: 1")
