"""Flags of Modules that global hooks set, read from stored patches."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.running.values_patch import ValuesPatchError, apply_values_patch, compacted
from wharfinger.runtime.scheduler.global_flags import flag_document, flag_of, flags_in, may_be_flagged, module_of


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def test_only_flags_are_read_from_patches() -> None:
    patches: list[JsonValue] = [
        add("/global/sysctlTunerEnabled", value=True),
        add("/sysctlTunerEnabled", "true"),
        add("/otherEnabled", value=False),
        {"op": "remove", "path": "/goneEnabled"},
        add("/oddEnabled", "maybe"),
    ]
    assert flags_in(patches) == {"sysctl-tuner": True, "other": False}
    assert flag_document(patches) == {"sysctlTunerEnabled": "true", "otherEnabled": False, "oddEnabled": "maybe"}


def test_global_hooks_flag_only_other_modules() -> None:
    """Global hooks can flag neither Applications nor their own Module. If they could disable their own Module, they would not
    run any more, and so could never enable it again.
    """
    assert flags_in([add("/globalEnabled", value=False), add("/prod.webEnabled", value=False)]) == {}
    assert [may_be_flagged(name) for name in ("web", "global", "prod.web")] == [True, False, False]


def test_the_last_flag_is_retained_by_compaction() -> None:
    before: JsonObject = {"global": {}}
    kept = compacted([], [add("/webEnabled", value=True), add("/global/a", 1)], before)
    assert flags_in(kept) == {"web": True}
    now: JsonObject = {"global": {"a": 1}, "webEnabled": True}
    assert flags_in(compacted(kept, [{"op": "remove", "path": "/webEnabled"}], now)) == {}


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("false", False), ("yes", None), (1, None), (None, None)])
def test_flags_are_booleans_or_their_texts(value: JsonValue, *, flag: bool | None) -> None:
    assert flag_of(value) is flag


def test_module_names_are_restored_from_their_keys() -> None:
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
def test_invalid_flags_are_refused(operation: JsonObject) -> None:
    with pytest.raises(ValuesPatchError):
        apply_values_patch({"global": {}}, [operation], root="global", flags=True)


def test_only_global_hooks_may_set_flags() -> None:
    with pytest.raises(ValuesPatchError, match="not below /web"):
        apply_values_patch({"web": {}}, [add("/otherEnabled", value=True)], root="web")
    patched = apply_values_patch({"global": {}}, [add("/otherEnabled", value=True)], root="global", flags=True)
    assert patched == {"global": {}, "otherEnabled": True}
