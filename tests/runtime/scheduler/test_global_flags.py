"""What global hooks say of Modules, read from the patches that are kept."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.running.values_patch import ValuesPatchError, apply_values_patch, compacted
from wharfinger.runtime.scheduler.global_flags import flag_document, flag_of, flags_in, may_be_flagged, module_of


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def test_flags_are_read_from_patches_and_nothing_else_is() -> None:
    patches: list[JsonValue] = [
        add("/global/sysctlTunerEnabled", value=True),
        add("/sysctlTunerEnabled", "true"),
        add("/otherEnabled", value=False),
        {"op": "remove", "path": "/goneEnabled"},
        add("/oddEnabled", "maybe"),
    ]
    assert flags_in(patches) == {"sysctl-tuner": True, "other": False}
    assert flag_document(patches) == {"sysctlTunerEnabled": "true", "otherEnabled": False, "oddEnabled": "maybe"}


def test_of_whom_global_hooks_have_a_say() -> None:
    """Not of Applications, and not of the Module whose hooks they are: it could never take that back."""
    assert flags_in([add("/globalEnabled", value=False), add("/prod.webEnabled", value=False)]) == {}
    assert [may_be_flagged(name) for name in ("web", "global", "prod.web")] == [True, False, False]


def test_the_last_word_counts_also_after_compaction() -> None:
    before: JsonObject = {"global": {}}
    kept = compacted([], [add("/webEnabled", value=True), add("/global/a", 1)], before)
    assert flags_in(kept) == {"web": True}
    now: JsonObject = {"global": {"a": 1}, "webEnabled": True}
    assert flags_in(compacted(kept, [{"op": "remove", "path": "/webEnabled"}], now)) == {}


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("false", False), ("yes", None), (1, None), (None, None)])
def test_what_a_flag_may_be(value: JsonValue, *, flag: bool | None) -> None:
    assert flag_of(value) is flag


def test_the_name_is_restored_from_its_key() -> None:
    assert module_of("l2LoadBalancerEnabled") == "l2-load-balancer"


@pytest.mark.parametrize(
    "operation",
    [
        add("/webEnabled", "maybe"),
        add("/webEnabled/x", value=True),
        add("/Enabled", value=True),
        add("/web", value=True),
    ],
)
def test_what_is_no_flag_is_refused(operation: JsonObject) -> None:
    with pytest.raises(ValuesPatchError):
        apply_values_patch({"global": {}}, [operation], root="global", flags=True)


def test_flags_are_the_global_hooks_own() -> None:
    with pytest.raises(ValuesPatchError, match="not below /web"):
        apply_values_patch({"web": {}}, [add("/otherEnabled", value=True)], root="web")
    patched = apply_values_patch({"global": {}}, [add("/otherEnabled", value=True)], root="global", flags=True)
    assert patched == {"global": {}, "otherEnabled": True}
