"""The changes that `spec.patches` makes to rendered objects, as a plan shows them, with the real helm and kubectl."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.runtime.support.planned import inputs, spec
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.kustomizing.patches import Patch
from wharfinger.runtime.plan.packages import open_package_folder
from wharfinger.runtime.plan.patch_changes import PatchTools, find_patch_tools, with_patch_changes
from wharfinger.runtime.plan.plan import judged_plan
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.rules import Facts

MAPS = "".join(
    f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{size: '{{{{ .Values.size | default 1 }}}}'}}\n---\n"
    for name in ("a", "b", "c")
)
CHANGE = Patch("[{op: replace, path: /data/size, value: '7'}, {op: add, path: /data/more, value: x}]", (("name", "a"),))
REMOVE = Patch("$patch: delete\nkind: ConfigMap\nmetadata: {name: b}\n", (("kind", "ConfigMap"), ("name", "b")))


def patched_spec(*patches: Patch) -> PackageSpec:
    wanted = replace(spec("web.shop", package="web"), settings={})
    return replace(wanted, directives=replace(wanted.directives, patches=patches))


async def notes(folder: Path, *patches: Patch, tools: bool = True) -> tuple[str, ...]:
    chart(folder / "packages" / "web", "web", "1.0.0", {"templates/maps.yaml": MAPS})
    wanted = patched_spec(*patches)
    async with open_package_folder(folder / "packages") as packages:
        plan, _ = await judged_plan(inputs(wanted), packages.definition, Facts())
        found = find_patch_tools(packages.scratch, "1.31.0") if tools else None
        assert not tools or isinstance(found, PatchTools)
        plan = await with_patch_changes(plan, {"web.shop": wanted}, found, packages.tree)
    return plan.packages[0].notes


@pytest.mark.slow
async def test_changed_fields_are_shown_as_notes(tmp_path: Path) -> None:
    assert await notes(tmp_path, CHANGE, REMOVE) == (
        'spec.patches: ConfigMap web/a: /data/more nothing → "x", /data/size "1" → "7"',
        "spec.patches: ConfigMap web/b is left out",
    )


@pytest.mark.slow
async def test_a_patch_without_a_target_is_reported(tmp_path: Path) -> None:
    (note,) = await notes(tmp_path, Patch("[]", (("name", "gone"),)))
    assert note.startswith("spec.patches: the changes are not shown: spec.patches[0]: ")


async def test_changes_are_not_shown_without_patches_or_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await notes(tmp_path / "a", tools=False) == ()
    assert await notes(tmp_path / "b", CHANGE, tools=False) == (
        "spec.patches: the changes are not shown, because helm or kubectl is not on PATH; install both",
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_patch_tools(tmp_path, "") is None


async def test_a_missing_package_is_reported(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "web", "web", "1.0.0", {})
    wanted = patched_spec(CHANGE)

    async def gone(package: str, version: str) -> tuple[Definition, Path]:
        raise ArtifactNotFoundError(f"{package} {version}: not found")

    async with open_package_folder(tmp_path / "packages") as packages:
        plan, _ = await judged_plan(inputs(wanted), packages.definition, Facts())
        plan = await with_patch_changes(plan, {"web.shop": wanted}, find_patch_tools(packages.scratch, ""), gone)
    assert plan.packages[0].notes == ("spec.patches: the changes are not shown: web 1.0.0: not found",)
