"""The choice of a package's version: why a newer version is not chosen, and when the content of the installed one is kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.support.world import World, open_world
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.depends_on import read_depends_on
from wharfinger.runtime.controllers.version_choices import NoVersionError, VersionChoices
from wharfinger.runtime.repositories.repository_controller import open_repositories
from wharfinger.runtime.repositories.version_nodes import needs_of
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import PackageSpec, read_application, read_module
from wharfinger.runtime.versions.package_index import ChannelTarget, PackageIndex, VersionDetails

OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def app(spec: JsonObject, status: JsonObject | None = None) -> PackageSpec:
    return read_application(
        {
            "metadata": {"namespace": "prod", "name": "shop"},
            "spec": {"packageName": "web", **spec},
            "status": status or {},
        }
    )


def installed(version: str, digest: str = OLD) -> JsonObject:
    return {"currentVersion": {"version": version, "digest": digest}}


class Asked:
    """A list of requests to check a package again, each with its delay."""

    def __init__(self) -> None:
        self.later: list[tuple[str, float]] = []

    def __call__(self, name: str, delay_s: float) -> None:
        self.later.append((name, delay_s))


async def settled(
    world: World, spec: PackageSpec, index: PackageIndex | None, asked: Asked | None = None
) -> tuple[str, str, str, str]:
    """Return the chosen version, its digest, the digest of content that must be kept, and the reason of the choice."""
    async with open_repositories(
        world.client, world.applications, (), world.runtime.tools.open_source, world.runtime.now, lambda _: None
    ) as repositories:
        if index is not None:
            repositories.objects.indexes[("default", "web")] = index
        choices = VersionChoices(world.runtime, repositories, asked or Asked())
        refused: NoVersionError | None = None
        try:
            found, note = choices.settle(spec)
        except NoVersionError as error:
            refused, found, note = error, spec, None
    if refused is not None:  # This is raised outside of the nursery, which would wrap it in a group.
        raise refused
    return found.version, found.directives.digest, found.directives.kept_digest, note.reason if note else ""


def details(digest: str = NEW, kubernetes: str = "", requirements: JsonObject | None = None) -> VersionDetails:
    return VersionDetails(digest, kubernetes=kubernetes, requirements=requirements or {})


async def test_the_chosen_version_depends_on_spec_and_status(tmp_path: Path) -> None:
    """All cases use the same `World`, in which no package is installed. They differ in the resource and in the index of the
    package.
    """
    async with open_world(tmp_path) as world:
        web = PackageIndex("default", "web", ("2.0.0", "1.0.0"), details={"2.0.0": details(), "1.0.0": details(OLD)})
        follows: JsonObject = {"versionRange": ">=1"}
        exact: JsonObject = {"packageVersion": "1.0.0"}
        assert await settled(world, app(exact), None) == ("1.0.0", "", "", "")
        assert await settled(world, app({**exact, "packageDigest": OLD}), None) == ("1.0.0", OLD, "", "")
        with pytest.raises(NoVersionError) as raised:
            await settled(world, app(follows), None)
        assert raised.value.scanning
        # Before the first scan of this process, the version chosen earlier is kept.
        assert await settled(world, app(follows, installed("1.0.0")), None) == ("1.0.0", "", "", "")
        chosen: JsonObject = {**installed("1.0.0"), "update": {"chosen": "1.5.0"}}
        assert await settled(world, app(follows, chosen), None) == ("1.5.0", "", "", "")
        assert await settled(world, app(follows), web) == ("2.0.0", "", "", "Update")
        # If 2.0.0 does not support the Kubernetes version of the cluster, the newest version that does is chosen.
        needy = replace(web, details={"2.0.0": details(kubernetes=">=99")})
        assert await settled(world, app(follows), needy) == ("1.0.0", "", "", "Update")
        needy = replace(web, details={"2.0.0": details(requirements={"kubernetes": ">=99"})})
        assert await settled(world, app(follows), needy) == ("1.0.0", "", "", "Update")
        needy = replace(web, details={"2.0.0": details(requirements={"kubernetes": 7})})
        assert await settled(world, app(follows), needy) == ("1.0.0", "", "", "Update")
        # Before the first installation, requirements that name other packages do not count, because those packages may be
        # installed later.
        needy = replace(web, details={"2.0.0": details(requirements={"modules": {"ingress": ">=1"}})})
        assert await settled(world, app(follows), needy) == ("2.0.0", "", "", "Update")


async def test_a_moved_tag_is_handled_by_the_policy(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        web = PackageIndex("default", "web", ("1.0.0",), details={"1.0.0": details(NEW)})
        for policy, expected in (
            ("report", ("1.0.0", "", "", "TagMoved")),
            ("refuse", ("1.0.0", "", OLD, "TagMoved")),
            ("follow", ("1.0.0", NEW, "", "Newest")),
        ):
            follows: JsonObject = {"versionRange": ">=1", "update": {"movedTag": policy}}
            assert await settled(world, app(follows, installed("1.0.0")), web) == expected
            # A tag has not moved if its digest is the same, or if the digest is unknown.
            kept = OLD if policy == "refuse" else ""
            pinned = NEW if policy == "follow" else ""
            same = PackageIndex("default", "web", ("1.0.0",))
            assert await settled(world, app(follows, installed("1.0.0")), same) == ("1.0.0", "", kept, "Newest")
            assert await settled(world, app(follows, installed("1.0.0", NEW)), web) == (
                "1.0.0",
                pinned,
                NEW if policy == "refuse" else "",
                "Newest",
            )
        exact: JsonObject = {"packageVersion": "1.0.0", "update": {"movedTag": "refuse"}}
        assert await settled(world, app(exact, installed("1.0.0")), web) == ("1.0.0", "", OLD, "TagMoved")
        assert await settled(world, app(exact, installed("0.9.0")), web) == ("1.0.0", "", "", "")
        exact = {"packageVersion": "1.0.0", "update": {"movedTag": "follow"}}
        assert await settled(world, app(exact, installed("1.0.0")), web) == ("1.0.0", NEW, "", "")


async def test_a_channel_has_its_own_digest(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        web = PackageIndex(
            "default",
            "web",
            ("1.0.0",),
            channels={"stable": ChannelTarget("1.0.0", NEW)},
            channel_names=("stable",),
            details={"1.0.0": details(OLD)},
        )
        follows: JsonObject = {"releaseChannel": "stable"}
        assert await settled(world, app(follows), web) == ("1.0.0", NEW, "", "Update")
        # The channel points at another digest of the installed version. That counts as a moved tag.
        assert await settled(world, app(follows, installed("1.0.0")), web) == ("1.0.0", OLD, "", "TagMoved")
        moving: JsonObject = {**follows, "update": {"movedTag": "follow"}}
        assert await settled(world, app(moving, installed("1.0.0")), web) == ("1.0.0", NEW, "", "Newest")


async def test_a_package_that_waits_for_a_window_is_checked_when_it_opens(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        web, asked = PackageIndex("default", "web", ("2.0.0", "1.0.0")), Asked()
        # The window opens only on a day that is not today, so it is closed.
        day = world.runtime.now().strftime("%a")
        other = next(each for each in ("Mon", "Thu") if each != day)
        update: JsonObject = {"mode": "windows", "windows": [{"days": [other]}]}
        spec = app({"versionRange": ">=1", "update": update}, installed("1.0.0"))
        found = await settled(world, spec, web, asked)
        if found[3] == "AwaitsWindow":  # the day may have changed meanwhile
            ((name, delay_s),) = asked.later
            assert name == "prod.shop"
            assert 1.0 <= delay_s <= 3600.0


def test_needs_are_those_of_the_package_and_of_the_resource() -> None:
    spec = replace(
        app({"packageVersion": "1.0.0"}),
        directives=replace(
            app({"packageVersion": "1.0.0"}).directives,
            depends_on=read_depends_on([{"kind": "Module", "name": "ingress"}], own="prod.shop", namespace="prod"),
        ),
    )
    needs = needs_of(spec, details(requirements={"applications": {"mandatory": [{"name": "db"}]}}, kubernetes=">=1.30"))
    assert {each.name for each in needs.mandatory} == {"prod.db", "ingress"}
    assert str(needs.kubernetes) == ">=1.30"
    assert isinstance(spec.id, AppId)
    module = read_module({"metadata": {"name": "web"}, "spec": {"packageVersion": "1.0.0"}})
    with pytest.raises(FormatError):
        needs_of(module, details(requirements={"applications": {"mandatory": [{"name": "db"}]}}))
