"""The desired state of a package, derived from its resource, its source and its settings."""

from dataclasses import fields, replace
from pathlib import Path

from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.packages.sources.source import FolderSource
from wharfinger.runtime.core.desired_states import desired_state, have_other_needs
from wharfinger.runtime.lifecycle.desired_state import DecisionKind, decide
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import Directives, PackageSpec, read_application
from wharfinger.runtime.resources.settings import ResolvedSettings

SPEC: PackageSpec = read_application(
    {
        "metadata": {"name": "shop", "namespace": "prod", "generation": 1},
        "spec": {"packageName": "web", "packageVersion": "1.0.0", "packageRepositoryName": "r"},
    }
)
SOURCE = FolderSource(Path("/packages"))
BEFORE = desired_state(SPEC, SOURCE, ResolvedSettings({"a": 1}))


def test_equal_inputs_give_equal_desired_states() -> None:
    assert desired_state(replace(SPEC, generation=2), SOURCE, ResolvedSettings({"a": 1})) == BEFORE
    assert (BEFORE.package, BEFORE.version, BEFORE.namespace) == ("web", "1.0.0", "prod")
    assert SPEC.id == AppId("prod", "shop")


def test_every_part_of_a_desired_state_is_compared() -> None:
    directives = SPEC.directives
    changed = [
        desired_state(replace(SPEC, version="2.0.0"), SOURCE, ResolvedSettings({"a": 1})),
        desired_state(SPEC, FolderSource(Path("/others")), ResolvedSettings({"a": 1})),
        desired_state(SPEC, SOURCE, ResolvedSettings({"a": 2})),
        *(
            desired_state(replace(SPEC, directives=replace(directives, **more)), SOURCE, ResolvedSettings({"a": 1}))
            for more in ({"requested": "x"}, {"forced": "x"}, {"reset": "x"}, {"suspended": True}, {"maintenance": "x"})
        ),
    ]
    assert len({*changed, BEFORE}) == len(changed) + 1
    assert all(decide(BEFORE, desired).kind is not DecisionKind.NONE for desired in changed)
    assert {field.name for field in fields(BEFORE)} >= {"source", "package", "settings_checksum"}


def test_needs_are_the_dependencies_and_the_default() -> None:
    plain = Directives()
    assert not have_other_needs(plain, replace(plain, requested="x"))
    assert have_other_needs(plain, replace(plain, default=True))
    assert have_other_needs(plain, replace(plain, depends_on=(depends("dns"),)))
    assert not have_other_needs(
        replace(plain, depends_on=(depends("dns"),)), replace(plain, depends_on=(depends("dns"),))
    )


def depends(name: str) -> DependsOn:
    (found,) = read_application(
        {
            "metadata": {"name": "shop", "namespace": "prod"},
            "spec": {
                "packageName": "web",
                "packageVersion": "1.0.0",
                "packageRepositoryName": "r",
                "dependsOn": [{"kind": "Module", "name": name}],
            },
        }
    ).directives.depends_on
    return found
