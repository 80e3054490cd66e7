"""The contract of every HookRunner. Each ``contract_*`` function takes a factory of runners and an empty folder."""

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.hooks.support.scripts import CONFIG_VALUES, CONTEXTS, VALUES, bash, python, run_of, write_hook
from tests.process.children import is_alive
from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.runner import HookRunner

MakeRunner = Callable[[float], HookRunner]
"""A factory of runners whose hooks may take this many seconds."""
Contract = Callable[[MakeRunner, Path], Awaitable[None]]

PATIENT = 100.0
LONG = 100_000


async def contract_a_hook_gets_its_inputs_as_files(make: MakeRunner, folder: Path) -> None:
    hook = python(
        folder,
        "for name in ('BINDING_CONTEXT_PATH', 'VALUES_PATH', 'CONFIG_VALUES_PATH'):\n"
        "    print(json.dumps(json.load(open(os.environ[name]))))",
    )
    outcome = await make(PATIENT).run(run_of(hook))
    assert outcome.succeeded
    assert [json.loads(line) for line in outcome.log_lines] == [list(CONTEXTS), VALUES, CONFIG_VALUES]


async def contract_a_hook_gets_no_arguments_no_input_and_the_folder_that_was_named(
    make: MakeRunner, folder: Path
) -> None:
    other = folder / "elsewhere"
    other.mkdir()
    outcome = await make(PATIENT).run(run_of(bash(folder, 'echo "$#:$(pwd -P):$(cat | wc -c)"'), cwd=other))
    assert outcome.log_lines == (f"0:{other.resolve()}:0",)


async def contract_results_of_a_bash_hook(make: MakeRunner, folder: Path) -> None:
    hook = bash(
        folder,
        """
        cat >>"$KUBERNETES_PATCH_PATH" <<'END'
---
operation: CreateOrUpdate
object: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: cm}, data: {a: "on"}}
---
operation: DeleteInBackground
kind: pod
namespace: default
name: p
END
        echo '{"name":"runs_total","action":"add","value":1}' >>"$METRICS_PATH"
        echo '{"group":"g","action":"expire"}' >>"$METRICS_PATH"
        echo '[{"op":"add","path":"/sysctlTuner/x","value":{"y":1}}]' >"$VALUES_JSON_PATCH_PATH"
        echo '{"op":"remove","path":"/sysctlTuner/sleep"}' >"$CONFIG_VALUES_JSON_PATCH_PATH"
        """,
    )
    outcome = await make(PATIENT).run(run_of(hook))
    config_map: JsonValue = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "cm"},
        "data": {"a": "on"},
    }
    assert outcome.object_patches == (
        {"operation": "CreateOrUpdate", "object": config_map},
        {"operation": "DeleteInBackground", "kind": "pod", "namespace": "default", "name": "p"},
    )
    assert outcome.metrics == (
        {"name": "runs_total", "action": "add", "value": 1},
        {"group": "g", "action": "expire"},
    )
    assert outcome.values_patch == ({"op": "add", "path": "/sysctlTuner/x", "value": {"y": 1}},)
    assert outcome.config_values_patch == ({"op": "remove", "path": "/sysctlTuner/sleep"},)


async def contract_results_of_a_python_hook(make: MakeRunner, folder: Path) -> None:
    hook = python(
        folder,
        "contexts = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\n"
        "with open(os.environ['VALUES_JSON_PATCH_PATH'], 'w') as patch:\n"
        "    for context in contexts:\n"
        "        json.dump({'op': 'add', 'path': '/global/' + context['binding'], 'value': context}, patch)",
    )
    outcome = await make(PATIENT).run(run_of(hook))
    assert outcome.values_patch == tuple(
        {"op": "add", "path": f"/global/{context['binding']}", "value": context} for context in CONTEXTS
    )


async def contract_a_silent_success_leaves_nothing(make: MakeRunner, folder: Path) -> None:
    outcome = await make(PATIENT).run(run_of(bash(folder, ":")))
    assert (outcome.succeeded, outcome.exit_description, outcome.log_lines) == (True, "exit status 0", ())
    assert outcome.values_patch == outcome.config_values_patch == outcome.object_patches == outcome.metrics == ()
    assert outcome.max_rss_bytes > 0
    assert outcome.user_s >= 0
    assert outcome.system_s >= 0


async def contract_a_failed_run_is_an_outcome_with_its_reason_and_its_results(make: MakeRunner, folder: Path) -> None:
    hook = bash(
        folder,
        """
        echo working
        echo '{"operation":"MergePatch","kind":"CronTab","name":"x","mergePatch":{"a":1}}' >"$KUBERNETES_PATCH_PATH"
        echo '{"op":"add","path":"/a/b","value":1}' >"$VALUES_JSON_PATCH_PATH"
        echo 'no such pod' >&2
        exit 3
        """,
    )
    outcome = await make(PATIENT).run(run_of(hook))
    assert (outcome.succeeded, outcome.exit_description) == (False, "exit status 3: no such pod")
    assert sorted(outcome.log_lines) == ["no such pod", "working"]
    assert len(outcome.object_patches) == 1
    assert len(outcome.values_patch) == 1


async def contract_a_killed_hook_says_by_what(make: MakeRunner, folder: Path) -> None:
    outcome = await make(PATIENT).run(run_of(bash(folder, "kill -SEGV $$")))
    assert (outcome.succeeded, outcome.exit_description) == (False, "killed by SIGSEGV")


async def contract_huge_output_is_bounded_and_its_end_is_kept(make: MakeRunner, folder: Path) -> None:
    hook = python(
        folder,
        f"for number in range({LONG}):\n    print(f'{{number:0100}}')\nprint('x' * 100_000)\nprint('the end', file=sys.stderr)",
    )
    outcome = await make(PATIENT).run(run_of(hook))
    assert outcome.succeeded
    assert sum(map(len, outcome.log_lines)) <= 2 * 1024 * 1024
    assert "the end" in outcome.log_lines[-2:]
    assert f"{LONG - 1:0100}" in outcome.log_lines
    assert outcome.log_lines[0].endswith("earlier lines are left out)")


async def contract_a_hook_that_hangs_is_ended(make: MakeRunner, folder: Path) -> None:
    outcome = await make(0.5).run(run_of(bash(folder, "echo begun; sleep 1000")))
    assert not outcome.succeeded
    assert outcome.exit_description.startswith("deadline passed")


async def contract_cancelling_kills_the_hook_and_all_it_started(make: MakeRunner, folder: Path) -> None:
    with fifo(folder / "ready") as ready:
        hook = bash(folder, 'sleep 1000 & echo "$$ $!" >ready; wait')
        async with trio.open_nursery() as nursery:
            nursery.start_soon(make(PATIENT).run, run_of(hook))
            await trio.lowlevel.wait_readable(ready)
            pids = [int(pid) for pid in os.read(ready, 100).split()]
            assert len(pids) == 2
            assert all(is_alive(pid) for pid in pids)
            nursery.cancel_scope.cancel()
    assert not any(is_alive(pid) for pid in pids)


async def contract_runs_at_the_same_time_do_not_see_each_other(make: MakeRunner, folder: Path) -> None:
    hook = bash(
        folder,
        'number=$(tr -dc 0-9 <"$BINDING_CONTEXT_PATH"); echo "{\\"name\\":\\"$number\\",\\"add\\":1}" >"$METRICS_PATH"',
    )
    runner, seen = make(PATIENT), dict[int, tuple[JsonValue, ...]]()

    async def one(number: int) -> None:
        seen[number] = (await runner.run(run_of(hook, contexts=({"binding": str(number)},)))).metrics

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(one, number)
    assert seen == {number: ({"name": str(number), "add": 1},) for number in range(5)}


UNREADABLE = {
    "no document": ('echo "{" >"$FILE"', "does not end"),
    "another kind of document": ('echo "[[[]]]" >"$FILE"', "found a list"),
    "a pipe": ('rm "$FILE"; mkfifo "$FILE"', "something that is not a plain file"),
    "a folder": ('rm "$FILE"; mkdir "$FILE"', "something that is not a plain file"),
    "a link": ('rm "$FILE"; ln -s /etc/passwd "$FILE"', "; write into the existing file"),
    "a device": ('rm "$FILE"; ln -s /dev/zero "$FILE"', "; write into the existing file"),
    "nothing": ('rm "$FILE"', "; write into the existing file"),
    "too much": ('truncate -s 5T "$FILE"', "limit"),
}
FILES = ("KUBERNETES_PATCH_PATH", "METRICS_PATH", "VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH")


async def contract_results_that_cannot_be_read_are_an_error_after_a_success(make: MakeRunner, folder: Path) -> None:
    for number, (script, why) in enumerate(UNREADABLE.values()):
        file = FILES[number % len(FILES)]
        hook = bash(folder, script.replace("$FILE", f"${file}"))
        with pytest.raises(HookError, match=why) as caught:
            await make(PATIENT).run(run_of(hook))
        assert (caught.value.hook, caught.value.file) == (hook.name, file)


async def contract_results_that_cannot_be_read_are_a_log_line_after_a_failure(make: MakeRunner, folder: Path) -> None:
    for script, why in UNREADABLE.values():
        hook = bash(
            folder,
            'echo \'{"name":"a","add":1}\' >"$METRICS_PATH";'
            + script.replace("$FILE", "$VALUES_JSON_PATCH_PATH")
            + "; printf last; exit 4",
        )
        outcome = await make(PATIENT).run(run_of(hook))
        assert (outcome.succeeded, outcome.exit_description) == (False, "exit status 4")
        assert (outcome.values_patch, outcome.metrics) == ((), ({"name": "a", "add": 1},))
        assert outcome.log_lines[0] == "last"
        assert "VALUES_JSON_PATCH_PATH" in outcome.log_lines[1]
        assert why in outcome.log_lines[1]


async def contract_a_hook_that_cannot_be_started_is_an_error_that_says_what_to_do(
    make: MakeRunner, folder: Path
) -> None:
    cases = (
        (write_hook(folder, "echo hello\n", name="no-first-line.sh"), "first line like #!/bin/sh"),
        (write_hook(folder, "#!/bin/bash\n", name="not-executable.sh", mode=0o644), r"chmod \+x"),
        (write_hook(folder, "#!/no/such/interpreter\n", name="interpreter.sh"), "install the interpreter"),
        (folder / "missing.sh", "there is no such file"),
    )
    for hook, remedy in cases:
        with pytest.raises(HookError, match=remedy) as caught:
            await make(PATIENT).run(run_of(hook, cwd=folder))
        assert str(caught.value).startswith(f"hook {hook.name}: cannot start ")
        assert (caught.value.file, caught.value.transient) == ("", False)


async def contract_arguments_and_environment_of_the_run_are_handed_over(make: MakeRunner, folder: Path) -> None:
    hook = bash(folder, 'echo "$#" "$@"; echo "$OWN"; test -f "$METRICS_PATH" && echo file')
    run = replace(run_of(hook), argv=("a b", ""), environment={"OWN": "yes", "METRICS_PATH": "/no/such/file"})
    assert (await make(PATIENT).run(run)).log_lines == ("2 a b", "yes", "file")


async def contract_answers_are_handed_back_as_they_are(make: MakeRunner, folder: Path) -> None:
    hook = bash(folder, r"""printf '\0\377' >"$ONE"; stat -c '%a %s' "$OTHER"; [ "$ONE" != "$OTHER" ]""")
    outcome = await make(PATIENT).run(replace(run_of(hook), answers=("ONE", "OTHER")))
    assert outcome.succeeded
    assert outcome.answers == {"ONE": b"\0\xff", "OTHER": b""}
    assert outcome.log_lines == ("600 0",)


async def contract_answers_of_a_failed_run_are_not_looked_at(make: MakeRunner, folder: Path) -> None:
    hook = bash(folder, 'rm "$ONE"; exit 1')
    outcome = await make(PATIENT).run(replace(run_of(hook), answers=("ONE",)))
    assert (outcome.succeeded, outcome.answers) == (False, {})


async def contract_an_answer_that_cannot_be_read_is_an_error(make: MakeRunner, folder: Path) -> None:
    hook = bash(folder, 'rm "$ONE"; mkfifo "$ONE"')
    with pytest.raises(HookError, match="ONE: the hook replaced it with something") as caught:
        await make(PATIENT).run(replace(run_of(hook), answers=("ONE",)))
    assert caught.value.file == "ONE"


async def contract_a_run_may_have_a_shorter_limit_of_its_own(make: MakeRunner, folder: Path) -> None:
    outcome = await make(PATIENT).run(replace(run_of(bash(folder, "sleep 1000")), wall_s=0.2))
    assert not outcome.succeeded
    assert outcome.exit_description.startswith("deadline passed")


async def contract_a_run_has_no_longer_limit_than_the_runner(make: MakeRunner, folder: Path) -> None:
    outcome = await make(0.2).run(replace(run_of(bash(folder, "sleep 1000")), wall_s=PATIENT))
    assert outcome.exit_description.startswith("deadline passed")


CONTRACT: tuple[Contract, ...] = tuple(
    function for name, function in sorted(globals().items()) if name.startswith("contract_")
)


@contextmanager
def fifo(path: Path) -> Iterator[int]:
    """Make a named pipe, and yield its descriptor. A hook writes to the pipe to report that it has reached a certain point."""
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield fd
    finally:
        os.close(fd)
