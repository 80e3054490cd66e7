"""The answers of an Inspector, as commands print them."""

import json
from dataclasses import replace

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES, package
from wharfinger.debug.client.command_output import (
    dump_text,
    queues_text,
    scheduler_text,
)
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.encoding.package import package_to_json
from wharfinger.runtime.inspector import PackageSnapshot


async def test_answers_of_any_inspector_are_printed() -> None:
    inspector = CannedInspector()
    assert json.loads(await dump_text(inspector, "ingress", "json")) == package_to_json(PACKAGES[0])
    assert "prod.shop" in await queues_text(inspector, None, "yaml", None)
    for question in (
        dump_text(inspector, "x", "json"),
        queues_text(inspector, "x", "json", None),
        scheduler_text(inspector, "x", "json", None),
    ):
        with pytest.raises(NoSuchPackageError):
            await question


async def test_a_loading_package_without_a_node_is_reported_with_its_state() -> None:
    loading = replace(package("quota"), state="Pending", message="reading the package")
    with pytest.raises(NoSuchPackageError) as raised:
        await scheduler_text(CannedInspector((loading,), nodes=()), "quota", "yaml", None)
    assert str(raised.value) == (
        "package 'quota' is not in the scheduler (Pending: reading the package); `wharfinger why quota` says why"
    )
    with pytest.raises(NoSuchPackageError, match=r"scheduler \(Pending\); "):
        await scheduler_text(CannedInspector((replace(loading, message=""),), nodes=()), "quota", "yaml", None)


async def test_the_hint_never_repeats_the_typed_command() -> None:
    """A package may be added after the first request, so that the second request lists it. Even then, the hint does not propose
    the command that the user has typed.
    """

    class Late(CannedInspector):
        async def package(self, name: str) -> PackageSnapshot | None:
            return None

    with pytest.raises(NoSuchPackageError, match=r"; `wharfinger get packages` lists them$"):
        await dump_text(Late((package("quota"),)), "quota", "json")
