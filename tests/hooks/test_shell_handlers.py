"""The handler of a context. The shell library has a list of candidate functions for each context, and calls the first one that
the hook defines.
"""

from pathlib import Path

import pytest

from tests.hooks.support.shell_hooks import counting_jq, run_body, run_hook, write_shell_hook
from wharfinger.formats.json.value import JsonObject


def event(kind: str, binding: str = "pods") -> JsonObject:
    return {"binding": binding, "type": "Event", "watchEvent": kind, "object": {"kind": "Pod"}}


CANDIDATES: dict[str, tuple[JsonObject, list[str]]] = {
    "onStartup": ({"binding": "onStartup"}, ["__on_startup"]),
    "Synchronization": (
        {"binding": "pods", "type": "Synchronization", "objects": []},
        ["__on_kubernetes::pods::synchronization", "__on_kubernetes::pods"],
    ),
    "Added": (
        event("Added"),
        ["__on_kubernetes::pods::added", "__on_kubernetes::pods::added_or_modified", "__on_kubernetes::pods"],
    ),
    "Modified": (
        event("Modified"),
        ["__on_kubernetes::pods::modified", "__on_kubernetes::pods::added_or_modified", "__on_kubernetes::pods"],
    ),
    "Deleted": (event("Deleted"), ["__on_kubernetes::pods::deleted", "__on_kubernetes::pods"]),
    "Group": (
        {"binding": "secret", "type": "Group", "groupName": "main", "snapshots": {"secret": []}},
        ["__on_group::main"],
    ),
    "Schedule": ({"binding": "every-5m", "type": "Schedule"}, ["__on_schedule::every-5m"]),
    "Validating": (
        {"binding": "private-repo.example.com", "type": "Validating", "review": {"request": {"uid": "u"}}},
        ["__on_validating::private-repo.example.com"],
    ),
    "Mutating": (
        {"binding": "change.crontab.resources", "type": "Mutating", "review": {"request": {"uid": "u"}}},
        ["__on_mutating::change.crontab.resources"],
    ),
    "Conversion": (
        {
            "binding": "alpha1_to_alpha2",
            "type": "Conversion",
            "fromVersion": "stable.example.com/v1alpha1",
            "toVersion": "v1alpha2",
            "review": {"request": {"objects": []}},
        },
        [
            "__on_conversion::alpha1_to_alpha2::stable.example.com.v1alpha1::v1alpha2",
            "__on_conversion::alpha1_to_alpha2",
        ],
    ),
    # The only handler for contexts without a known type is ``__main__``.
    "beforeHelm": ({"binding": "beforeHelm", "snapshots": {}}, []),
    "afterAll": ({"binding": "afterAll", "snapshots": {"pods": []}}, []),
    "v0": ({"binding": "monitor pods", "resourceEvent": "add", "resourceKind": "Pod", "resourceName": "a"}, []),
    "unknown type": ({"binding": "x", "type": "Later"}, []),
    "unknown event": (event("Relisted"), []),
    # The binding's name decides, whatever the type is.
    "onStartup with a type": ({"binding": "onStartup", "type": "Schedule"}, ["__on_startup"]),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CANDIDATES)
def test_the_first_existing_candidate_function_handles_a_context(tmp_path: Path, case: str) -> None:
    context, named = CANDIDATES[case]
    candidates = [*named, "__main__"]
    for number, expected in enumerate(candidates):
        functions = "\n".join(f"{name}() {{ echo '{name}'; }}" for name in reversed(candidates[number:]))
        assert run_body(tmp_path, functions, context).lines == [expected]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CANDIDATES)
def test_a_context_without_a_handler_fails_the_run(tmp_path: Path, case: str) -> None:
    context, named = CANDIDATES[case]
    done = run_body(tmp_path, "__on_something_else() { echo no; }", context)
    assert done.status == 1
    assert done.out == ""
    expected = "\n".join([*named, "__main__"])
    assert done.err.startswith(
        f"ERROR: the hook has no function for the binding {context['binding']}; it may be one of:\n{expected}\n"
    )


def test_programs_and_variables_are_not_handlers(tmp_path: Path) -> None:
    """A variable, an alias or a program with the name of a handler is not used."""
    hook = write_shell_hook(tmp_path, "__main__=1\nalias __main__=true")
    program = tmp_path / "__main__"
    program.write_text("#!/bin/sh\necho no\n")
    program.chmod(0o755)
    done = run_hook(hook, before=("env", f"PATH={tmp_path}:/usr/local/bin:/usr/bin:/bin"))
    assert (done.status, done.out) == (1, "")
    assert "no function for the binding onStartup" in done.err


@pytest.mark.parametrize("name", ["every 10 sec", "it's", "a*b", "$(echo no)", "a\nb", "", "ä"])
def test_binding_names_unusable_as_function_names_use_the_main_handler(tmp_path: Path, name: str) -> None:
    body = '__main__() { echo "main $BINDING_CONTEXT_CURRENT_INDEX"; }'
    context: JsonObject = {"binding": name, "type": "Schedule"}
    assert run_body(tmp_path, body, context, {"binding": "onStartup"}).lines == ["main 0", "main 1"]


def test_unnamed_bindings_use_the_default_names(tmp_path: Path) -> None:
    body = "__on_kubernetes::kubernetes() { echo kubernetes; }\n__on_schedule::schedule() { echo schedule; }"
    contexts: list[JsonObject] = [event("Added", "kubernetes"), {"binding": "schedule", "type": "Schedule"}]
    assert run_body(tmp_path, body, *contexts).lines == ["kubernetes", "schedule"]


def test_contexts_are_handled_in_order_each_in_its_own_subshell(tmp_path: Path) -> None:
    body = """
    count=0
    __on_startup() { count=5; cd /; set +o errexit; echo "startup $count"; }
    __main__() {
      count=$((count + 1))
      [[ -o errexit && $PWD != / ]] && echo "$BINDING_CONTEXT_CURRENT_INDEX $BINDING_CONTEXT_CURRENT_BINDING $count"
    }
    """
    contexts: list[JsonObject] = [
        {"binding": "onStartup"},
        {"binding": "a", "type": "Schedule"},
        {"binding": "b", "type": "Schedule"},
    ]
    assert run_body(tmp_path, body, *contexts).lines == ["startup 5", "1 a 1", "2 b 1"]


def test_handlers_export_name_and_index_of_the_current_context(tmp_path: Path) -> None:
    body = "__main__() { env | grep ^BINDING_CONTEXT_CURRENT_ | sort; }"
    assert run_body(tmp_path, body, {"binding": "every 10 sec", "type": "Schedule"}).lines == [
        "BINDING_CONTEXT_CURRENT_BINDING=every 10 sec",
        "BINDING_CONTEXT_CURRENT_INDEX=0",
    ]


def test_a_failing_handler_ends_the_run_with_its_exit_status(tmp_path: Path) -> None:
    body = '__main__() { echo "$BINDING_CONTEXT_CURRENT_INDEX"; [[ $BINDING_CONTEXT_CURRENT_INDEX == 0 ]] || exit 42; }'
    context: JsonObject = {"binding": "a", "type": "Schedule"}
    done = run_body(tmp_path, body, context, context, context)
    assert (done.status, done.out) == (42, "0\n1\n")


def test_a_handler_sees_only_the_variables_of_its_hook(tmp_path: Path) -> None:
    """The variables of the library's functions are not visible in a handler, and words are split as usual."""
    names = "index names line lines keys printed small on_error bindings candidates required path found"
    body = f"""
    for each in {names}; do declare "$each=mine"; done
    __main__() {{
      for each in {names}; do [[ "${{!each}}" == mine ]] || echo "$each"; done
      words="a b c"
      set -- $words
      echo "$# $-"
    }}
    """
    (line,) = run_body(tmp_path, body).lines
    count, _, options = line.partition(" ")
    assert count == "3"
    assert "f" not in options


def test_handlers_get_no_arguments(tmp_path: Path) -> None:
    hook = write_shell_hook(tmp_path, '__main__() { echo "$#"; }')
    assert run_hook(hook, argv=["a", "b"]).lines == ["0"]


def test_config_option_prints_the_output_of_the_config_function(tmp_path: Path) -> None:
    body = """
    __config__() { cat <<'END'
configVersion: v1
onStartup: 1
END
    }
    __main__() { echo no; }
    """
    hook = write_shell_hook(tmp_path, body)
    done = run_hook(hook, argv=["--config"], before=("env", "-u", "BINDING_CONTEXT_PATH"))
    assert done.lines == ["configVersion: v1", "onStartup: 1"]
    assert run_hook(write_shell_hook(tmp_path, "__config__() { return 4; }"), argv=["--config"]).status == 4
    assert run_hook(write_shell_hook(tmp_path, ""), argv=["--config"]).status == 127


@pytest.mark.parametrize("contexts", ['{"binding":"onStartup"}', "[{", "null"])
def test_invalid_context_files_fail_the_run(tmp_path: Path, contexts: str) -> None:
    (tmp_path / "broken.json").write_text(contexts)
    hook = write_shell_hook(tmp_path, "__main__() { echo no; }")
    done = run_hook(hook, before=("env", f"BINDING_CONTEXT_PATH={tmp_path / 'broken.json'}"))
    assert done.status != 0
    assert done.out == ""
    assert "ERROR: exit status" in done.err
    assert "hook::run" in done.err


def test_missing_context_file_fails_the_run(tmp_path: Path) -> None:
    hook = write_shell_hook(tmp_path, "__main__() { echo no; }")
    done = run_hook(hook, before=("env", "-u", "BINDING_CONTEXT_PATH"))
    assert done.status != 0
    assert "BINDING_CONTEXT_PATH: a hook is run with a file of contexts" in done.err
    done = run_hook(hook, before=("env", f"BINDING_CONTEXT_PATH={tmp_path / 'none'}"))
    assert done.status != 0
    assert "No such file or directory" in done.err


def test_jq_is_started_once_for_all_contexts(tmp_path: Path) -> None:
    """``hook::run`` starts jq once, to read the values of all contexts. Lookups do not start jq again."""
    body = """
    __on_validating::a.b.c() {
      image=$(context::get review.request.object.spec.image)
      context::has review.request.uid && context::is_null review.request.oldObject
      echo "$image $(context::get --required review.request.uid)"
    }
    """
    context: JsonObject = {
        "binding": "a.b.c",
        "type": "Validating",
        "review": {"request": {"uid": "u", "object": {"spec": {"image": "c:1"}}, "oldObject": None}},
    }
    variables, starts = counting_jq(tmp_path)
    done = run_hook(write_shell_hook(tmp_path, body), [context, context], environment=variables)
    assert done.lines == ["c:1 u", "c:1 u"]
    assert starts.read_text().splitlines() == ["started"]
