"""Instances of packages: masked secrets, results of tasks, the isolation of Applications in their namespaces, and signals."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.support.notes import SHOP, instance, put
from tests.runtime.tasks.test_hook_runs import hooked
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.runtime.package.instance import Signal
from wharfinger.runtime.resources.identity import ModuleId
from wharfinger.runtime.resources.settings import ResolvedSettings

WRITE_ONLY = "type: object\nproperties:\n  token: {type: string, writeOnly: true}\n  mode: {type: string}\n"


def defined(folder: Path) -> Definition:
    hooked(folder / "hooked", {}, files={"openapi/settings.yaml": WRITE_ONLY})
    return read_definition(folder / "hooked", name="hooked", version="1.0.0")


def test_results_of_a_task_are_unavailable_before_it() -> None:
    one = instance()
    with pytest.raises(AssertionError, match="prod/shop: it is not loaded"):
        one.loaded()
    with pytest.raises(AssertionError, match="prod/shop: nothing was downloaded"):
        one.fetched()
    assert one.patches == ()


def test_only_an_application_is_isolated_in_its_namespace() -> None:
    assert instance(SHOP).isolation == "prod"
    assert instance(ModuleId("web")).isolation is None


def test_without_secrets_nothing_is_masked() -> None:
    one = instance()
    assert one.secrets == ()
    assert one.hidden_paths == frozenset()
    assert one.masked("hunter2") == "hunter2"


def test_values_from_secrets_are_masked() -> None:
    one = instance()
    put(one, desired={"settings": ResolvedSettings({"a": "hunter2"}, ("hunter2",), frozenset({("a",)}))})
    assert one.secrets == ("hunter2",)
    assert one.hidden_paths == {("a",)}
    assert "hunter2" not in one.masked("cannot use hunter2")
    assert "cannot use" in one.masked("cannot use hunter2")


def test_converted_secrets_are_masked_before_they_are_adopted() -> None:
    one = instance()
    put(one, configuration={"newest": ResolvedSettings({"b": "hunter2"}, ("hunter2",), frozenset({("b",)}))})
    assert one.secrets == ("hunter2",)
    assert one.hidden_paths == {("b",)}


def test_secrets_are_found_again_when_anything_changes(tmp_path: Path) -> None:
    one, others = instance(), ("global1",)
    one.secrets_of_all = lambda: others
    put(one, desired={"settings": ResolvedSettings({"token": "hunter2"})}, files={"definition": defined(tmp_path)})
    assert [*one.secrets] == [*one.secrets] == ["global1", "hunter2"]
    others = ("global2",)
    assert [*one.secrets] == ["global2", "hunter2"]
    put(one, configuration={"values": {"token": "hunter3"}})
    assert [*one.secrets] == ["global2", "hunter2", "hunter3"]
    put(one, configuration={"values": {}, "configured": ResolvedSettings({"token": "hunter4"})})
    assert [*one.secrets] == ["global2", "hunter2", "hunter4"]


def test_an_instance_is_configured_only_by_its_loaded_definition(tmp_path: Path) -> None:
    one, loaded = instance(), defined(tmp_path)
    read_anew = defined(tmp_path)
    for definition, configured_by, wanted in (
        (None, None, False),
        (loaded, None, False),
        (loaded, read_anew, True),
        (replace(loaded, version="2.0.0"), read_anew, False),
        (None, read_anew, False),
    ):
        put(one, files={"definition": definition}, configuration={"configured_by": configured_by})
        assert one.is_configured is wanted


def test_write_only_settings_are_masked_once_the_schema_is_loaded(tmp_path: Path) -> None:
    one = instance()
    put(one, desired={"settings": ResolvedSettings({"token": "hunter2", "mode": "fast"})})
    assert not one.secrets
    put(one, files={"definition": defined(tmp_path)})
    assert one.loaded() is one.files.definition
    assert one.secrets == ("hunter2",)
    assert one.hidden_paths == {("token",)}
    assert one.masked("fast hunter2").startswith("fast ")


async def test_a_signal_wakes_all_waiting_tasks_each_time() -> None:
    signal, woken = Signal(), list[str]()
    signal.notify()  # no task waits for the signal, and it is not stored

    async def wait(name: str) -> None:
        for _ in range(2):
            await signal.wait()
            woken.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "a")
        nursery.start_soon(wait, "b")
        for count in (0, 2):
            await trio.testing.wait_all_tasks_blocked()
            assert len(woken) == count
            signal.notify()
    assert sorted(woken) == ["a", "a", "b", "b"]
