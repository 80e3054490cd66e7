"""The functions of the shell library that read contexts. The values that they cache equal the output of jq."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hooks.support.shell_hooks import counting_jq, run_body, run_hook, write_shell_hook
from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, JsonValue

CONTEXT: JsonObject = {
    "binding": "pods",
    "type": "Event",
    "watchEvent": "Added",
    "object": {
        "metadata": {
            "name": "web-0",
            "labels": {"app.kubernetes.io/name": "web", "with-dash": "yes", "it's": "odd", "2nd": "b", "0": "zero"},
            "finalizers": ["a", "b"],
        },
        "spec": {"text": " two\nlines\n", "tab": "a\tb", "empty": "", "quote": 'say "hi" \\n $(echo no)', "uml": "ä"},
        "numbers": {"one": 1, "half": 0.5, "big": 12345678901234567890, "negative": -3, "zero": 0},
        "flags": {"on": True, "off": False, "none": None, "word": "true"},
        "empty": {"list": [], "object": {}},
    },
}

FORGET = "hook__small=0\n"
"""A line that a hook executes before ``hook::run``. It disables the cache, because it lowers the size limit of cached files to
zero.
"""
BOTH_WAYS = pytest.mark.parametrize("forget", ["", FORGET], ids=["cached", "uncached"])

GET: dict[str, str] = {
    "watchEvent": "Added\n",
    ".watchEvent": "Added\n",
    "object.metadata.name": "web-0\n",
    'object.metadata.labels."app.kubernetes.io/name"': "web\n",
    "object.metadata.labels.'app.kubernetes.io/name'": "web\n",
    "object.metadata.labels.with-dash": "yes\n",
    'object.metadata.labels."it\'s"': "odd\n",
    "object.metadata.labels.2nd": "b\n",
    'object.metadata.labels."0"': "zero\n",
    "object.metadata.finalizers.1": "b\n",
    "object.metadata.finalizers.9": "null\n",
    "object.spec.text": " two\nlines\n\n",
    "object.spec.tab": "a\tb\n",
    "object.spec.empty": "\n",
    "object.spec.quote": 'say "hi" \\n $(echo no)\n',
    "object.spec.uml": "ä\n",
    "object.numbers.one": "1\n",
    "object.numbers.half": "0.5\n",
    "object.numbers.negative": "-3\n",
    "object.flags.on": "true\n",
    "object.flags.off": "false\n",
    "object.flags.none": "null\n",
    "object.flags.none.deeper": "null\n",
    "object.nothing": "null\n",
    "object.nothing.at.all": "null\n",
    "object.nothing.0": "null\n",
    "object.empty": '{\n  "list": [],\n  "object": {}\n}\n',
    "object.metadata.finalizers": '[\n  "a",\n  "b"\n]\n',
    "object.metadata.finalizers[]": "a\nb\n",
    "object.metadata.labels['2nd']": "b\n",
    "object | [.][0].metadata.labels.with-dash": "yes\n",
    "object | [.][].metadata.with-dash[0].with-dash": "null\n",
    "object | [.][0].metadata.labels.with-dash | length": "3\n",
    'object | [.][0].metadata.labels["app.kubernetes.io/name"]': "web\n",
    'object | [.][0].metadata.labels["no.with-dash.here"]': "null\n",
    "object.numbers | .one - .negative": "4\n",
    "object.metadata.finalizers | length": "2\n",
    "object.flags | .on and .off": "false\n",
}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.sampled
@BOTH_WAYS
def test_context_get_prints_values_by_path(tmp_path: Path, forget: str) -> None:
    calls = "".join(f"  context::get {quoted(path)}; echo --\n" for path in GET)
    done = run_body(tmp_path, f"{forget}__main__() {{\n{calls}}}", CONTEXT)
    assert done.status == 0, done.err
    assert dict(zip(GET, done.out.split("--\n"), strict=False)) == GET


@BOTH_WAYS
def test_context_get_without_a_path_prints_the_whole_context(tmp_path: Path, forget: str) -> None:
    body = f"{forget}__main__() {{ context::get; context::get .; context::get ''; }}"
    assert run_body(tmp_path, body, {"a": [1]}).out == '{\n  "a": [\n    1\n  ]\n}\n' * 3


@pytest.mark.sampled(3)
@BOTH_WAYS
@pytest.mark.parametrize(
    "path", ["watchEvent.deeper", "object.metadata.name.0", "object.metadata.0", "object.spec | @"]
)
def test_context_get_with_an_invalid_path_ends_the_hook(tmp_path: Path, path: str, forget: str) -> None:
    done = run_body(tmp_path, f"{forget}__main__() {{ context::get {quoted(path)}; echo went on; }}", CONTEXT)
    assert done.status != 0
    assert done.out == ""
    assert "jq: " in done.err


@pytest.mark.sampled
@BOTH_WAYS
def test_context_get_required_fails_for_missing_values(tmp_path: Path, forget: str) -> None:
    there = [
        "watchEvent",
        "object.flags.none",
        "object.numbers.half",
        "object.metadata.finalizers.0",
        "object['flags'].on",
    ]
    calls = "".join(f"  context::get --required {quoted(path)}\n" for path in there)
    done = run_body(tmp_path, f"{forget}__main__() {{\n{calls}}}", CONTEXT)
    assert done.lines == ["Added", "null", "0.5", "a", "true"]
    for path in (
        "nothing",
        "object.nothing.at.all",
        "object.metadata.finalizers.2",
        "object['no']",
        "watchEvent.deeper",
    ):
        body = f"{forget}__main__() {{ value=$(context::get --required {quoted(path)}); echo went on; }}"
        done = run_body(tmp_path, body, CONTEXT)
        assert done.status != 0
        assert done.out == ""
        assert "  at __main__" in done.err
        if path != "watchEvent.deeper":
            assert f"context::get: {path} is required and not there" in done.err


TRUE: dict[str, list[str]] = {
    "has": [
        "watchEvent", "object.flags.none", "object.empty", "object.numbers.half", "object.numbers.big", "object.spec.text",
        "object.metadata.finalizers.1", 'object.metadata.labels."0"', "object.flags['none']", ".", "",
    ],
    "is_true": ["object.flags.on", "object.flags['on']"],
    "is_false": ["object.flags.off", "object.flags['off']"],
    "is_null": ["object.flags.none", "object.nothing", "object.nothing.at.all", "object.flags['none']"],
}  # fmt: skip
FALSE: dict[str, list[str]] = {
    "has": [
        "nothing", "object.nothing.at.all", "object.metadata.finalizers.2", "object.metadata.labels.0", "watchEvent.deeper",
        "object.flags['no']", "object.flags.none.deeper",
    ],
    "is_true": ["object.flags.off", "object.flags.word", "object.flags.none", "object.numbers.one", "nothing", "object"],
    "is_false": ["object.flags.on", "object.flags.none", "object.numbers.zero", "nothing", "watchEvent.deeper"],
    "is_null": ["object.flags.off", "object.empty", "object.spec.empty", "object.numbers.zero", "watchEvent.deeper"],
}  # fmt: skip


@BOTH_WAYS
@pytest.mark.sampled
@pytest.mark.parametrize("predicate", TRUE)
def test_context_predicates_return_their_result(tmp_path: Path, predicate: str, forget: str) -> None:
    calls = "".join(
        f"  if context::{predicate} {quoted(path)}; then echo yes; else echo no; fi\n"
        for path in TRUE[predicate] + FALSE[predicate]
    )
    done = run_body(tmp_path, f"{forget}__main__() {{\n{calls}}}", CONTEXT)
    assert done.lines == ["yes"] * len(TRUE[predicate]) + ["no"] * len(FALSE[predicate])
    assert done.err == ""


def test_a_false_predicate_as_a_statement_ends_the_hook(tmp_path: Path) -> None:
    done = run_body(tmp_path, "__main__() { context::is_true object.flags.off; echo went on; }", CONTEXT)
    assert (done.status, done.out) == (1, "")
    assert "ERROR: exit status 1" in done.err


@BOTH_WAYS
def test_context_jq_runs_jq_on_the_current_or_all_contexts(tmp_path: Path, forget: str) -> None:
    body = f"""{forget}
    __main__() {{
      context::jq -r .watchEvent
      context::jq --arg name web-0 -e '.object.metadata.name == $name'
      context::jq -c '.object.empty, .object.numbers.one'
      context::global::jq -c 'map(.binding)'
      context::global::jq length
    }}
    __on_startup() {{ context::jq -c .; }}
    """
    done = run_hook(write_shell_hook(tmp_path, body), [CONTEXT, {"binding": "onStartup"}])
    assert done.lines == [
        "Added", "true", '{"list":[],"object":{}}', "1", '["pods","onStartup"]', "2", '{"binding":"onStartup"}',
    ]  # fmt: skip


@BOTH_WAYS
@pytest.mark.parametrize("call", ["context::jq -e .nothing", "context::jq '.['", "context::global::jq -e 'length > 9'"])
def test_failing_jq_ends_the_hook(tmp_path: Path, call: str, forget: str) -> None:
    done = run_body(tmp_path, f"{forget}__main__() {{ {call} >/dev/null; echo went on; }}", CONTEXT)
    assert done.status != 0
    assert done.out == ""


def test_context_functions_fail_outside_of_a_handler(tmp_path: Path) -> None:
    done = run_body(tmp_path, "context::get a")
    assert done.status != 0
    assert "BINDING_CONTEXT_CURRENT_INDEX: it is set by hook::run" in done.err
    hook = write_shell_hook(tmp_path, "__config__() { context::global::jq .; }")
    done = run_hook(hook, argv=["--config"], before=("env", "-u", "BINDING_CONTEXT_PATH"))
    assert done.status != 0
    assert "only a hook that is run has contexts" in done.err


def test_values_are_looked_up_in_the_current_context_and_file(tmp_path: Path) -> None:
    """If a hook changes the index of the current context or the path of the context file, the next lookup uses the new ones."""
    other = tmp_path / "other.json"
    other.write_text('[{"n":"other"}]')
    body = f"""
    __on_startup() {{
      for BINDING_CONTEXT_CURRENT_INDEX in 1 0 2; do context::get n; context::jq -c .n; done
      BINDING_CONTEXT_PATH={other} BINDING_CONTEXT_CURRENT_INDEX=0
      context::get n
      context::jq -r .n
    }}
    __main__() {{ context::get n; }}
    """
    contexts: list[JsonObject] = [{"binding": "onStartup", "n": 0}, {"binding": "b", "n": 1}, {"binding": "c", "n": 2}]
    assert run_body(tmp_path, body, *contexts).lines == ["1", "1", "0", "0", "2", "2", "other", "other", "1", "2"]


def test_large_context_files_are_read_with_jq_and_not_cached(tmp_path: Path) -> None:
    objects: list[JsonValue] = [{"object": {"name": f"n{number}", "filler": "x" * 100}} for number in range(1_000)]
    body = """
    __main__() {
      context::get objects.999.object.name
      context::get --required binding
      context::has objects.1000 || context::jq '.objects | length'
      [[ "${#context__texts[@]} ${#context__values[@]}" == "0 0" ]]
    }
    """
    context: JsonObject = {"binding": "pods", "type": "Synchronization", "objects": objects}
    assert run_body(tmp_path, body, context).lines == ["n999", "pods", "1000"]


@pytest.mark.parametrize("filler", [1, 1_000_000], ids=["small", "large"])
def test_jq_that_does_not_read_its_input_does_not_fail(tmp_path: Path, filler: int) -> None:
    """If jq does not read a large context to its end, the broken pipe is not a failure. A context file that cannot be read is a
    failure.
    """
    body = """
    __main__() {
      context::jq --null-input 1
      context::jq --null-input input_line_number
      rm "$BINDING_CONTEXT_PATH"
      context__texts=()
      context::jq .binding
      echo went on
    }
    """
    done = run_body(tmp_path, body, {"binding": "a", "filler": "x" * filler})
    assert (done.status, done.out) == (2, "1\n0\n")


def test_values_beyond_the_cache_limit_are_still_found(tmp_path: Path) -> None:
    context: JsonObject = {"binding": "a", "values": list(range(2_000))}
    body = '__main__() { context::get values.3; context::get values.1999; [[ "${#context__values[@]}" == 1000 ]]; }'
    variables, starts = counting_jq(tmp_path)
    done = run_hook(write_shell_hook(tmp_path, body), [context], environment=variables)
    assert done.lines == ["3", "1999"]
    assert len(starts.read_text().splitlines()) == 2


TEXTS = st.text(st.characters(codec="utf-8", min_codepoint=1), max_size=6)
KEYS = st.sampled_from(["a", "b-c", "0", "1", "d.e", "f g", "it's", 'q"q', "ä", "\\", "]", "$x", "*", ""])
NUMBERS = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
CALLS = ("context::get", "context::get --required", "context::has", "context::is_true", "context::is_null")


def path_of(keys: list[str | int]) -> str:
    def shown(key: str | int) -> str:
        if isinstance(key, int):
            return str(key)
        return f"'{key}'" if '"' in key else f'"{key}"'

    return ".".join(shown(key) for key in keys)


@pytest.mark.slow
@settings(max_examples=scaled(25, 4), deadline=None)
@given(
    context=st.dictionaries(KEYS, VALUES, max_size=4),
    paths=st.lists(st.lists(KEYS | st.integers(0, 3), max_size=4), min_size=1, max_size=3),
)
def test_cached_values_equal_the_output_of_jq(
    tmp_path_factory: pytest.TempPathFactory, context: JsonObject, paths: list[list[str | int]]
) -> None:
    calls = "\n".join(
        f'{call} {quoted(path_of(keys))} 2>/dev/null && echo "= $?" || echo "= $?"' for keys in paths for call in CALLS
    )
    body = f"""
    asked() {{
    {calls}
    }}
    __main__() {{
      asked >remembered
      context__file=""
      asked >asked
    }}
    """
    folder = tmp_path_factory.mktemp("hook")
    done = run_hook(write_shell_hook(folder, body), [context], before=("env", "-C", str(folder)))
    assert done.status == 0, done.err
    remembered, asked = ((folder / name).read_bytes() for name in ("remembered", "asked"))
    assert remembered == asked, json.dumps(context)
    assert remembered.count(b"= ") >= len(CALLS) * len(paths)
