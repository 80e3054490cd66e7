"""The documentation agrees with the code: reasons, fields, examples, and links."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.programs import run
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.pools.pods.resources import read_claim, read_pool
from wharfinger.runtime.resources.apply_options import add_apply
from wharfinger.runtime.resources.custom_resources import own_crds
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.resources import read_application, read_module
from wharfinger.runtime.status.conditions import KINDS
from wharfinger.runtime.status.reasons import Again, Reason
from wharfinger.runtime.status.summary import State
from wharfinger.runtime.versions.package_index import read_index

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")])
RESOURCES = (ROOT / "docs" / "resources.md").read_text()
STATUS = RESOURCES.partition("## Status\n")[2].partition("\n## ")[0]
REASONS = RESOURCES.partition("## Reasons\n")[2]
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<'?END'?\n(.*?)^END$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SCHEMAS = {
    find_str(crd, "spec", "names", "kind"): as_object(
        find(find_list(crd, "spec", "versions")[0], "schema", "openAPIV3Schema"), ""
    )
    for crd in own_crds()
}
READERS: dict[str, Callable[[JsonObject], object]] = {
    "Application": read_application,
    "Module": read_module,
    "PackageRepository": partial(read_repository, local_roots=[Path("/")], token_roots=[Path("/")]),
    "PackageIndex": lambda obj: read_index("default", "web-shop", find_object(obj, "status")),
    "WorkerPool": read_pool,
    "WorkerClaim": read_claim,
}


def fields(schema: JsonObject, path: str) -> Iterator[str]:
    """Yield every leaf field of a schema, such as ``spec.registry.repo`` or ``spec.settingsFrom[].key``."""
    below = find_object(schema, "properties")
    items = find_object(schema, "items")
    if items:
        yield from fields(items, f"{path}[]")
    elif below:
        for name in below:
            yield from fields(find_object(schema, "properties", name), f"{path}.{name}")
    else:
        yield path


def examples() -> Iterator[tuple[str, JsonObject]]:
    """Yield every manifest of Wharfinger's kinds in the pages and in examples/application.yaml, with the name of the file."""
    texts = [(page.name, block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    texts += [(page.name, block) for page in PAGES for block in HERE_DOCUMENT.findall(page.read_text())]
    texts.append(("application.yaml", (ROOT / "examples" / "application.yaml").read_text()))
    for name, text in texts:
        if "wharfinger.dev/v1alpha1" in text:
            for document in read_yaml_all(text, what=name):
                yield name, as_object(document, name)


def reason_rows() -> dict[str, str]:
    """Return the reasons in the table of reasons, each with its text in the column about the next attempt."""
    rows = [
        line.split("|")
        for line in REASONS.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| reason"))
    ]
    return {reason: again.strip() for _, reasons, _, again, _ in rows for reason in re.findall(r"\w+", reasons)}


def test_exactly_the_existing_reasons_are_explained() -> None:
    assert set(reason_rows()) == {reason for reason in Reason if reason.again is not Again.NOTHING}
    named = set(re.findall(r"`(\w+)`", REASONS.rpartition("|\n")[2]))
    assert named == {reason for reason in Reason if reason.again is Again.NOTHING}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.again is not Again.NOTHING])
def test_the_table_of_reasons_agrees_with_their_tips(reason: Reason) -> None:
    said = reason_rows()[reason]
    match reason.again:
        case Again.ITSELF:
            assert said.startswith(reason.again)
            assert not said.startswith(Again.BY_ERROR)
        case Again.BY_ERROR:
            assert said == reason.again
        case _:
            assert said
            assert not said.startswith(Again.ITSELF)


def test_exactly_the_existing_states_and_conditions_are_explained() -> None:
    states, conditions = (
        re.findall(r"\w+", " ".join(re.findall(r"^\| ([\w, ]+) \|", table, re.MULTILINE)))
        for table in (
            STATUS.partition("| state | meaning |\n")[2].partition("\n\n")[0],
            STATUS.partition("| condition | ")[2].partition("\n\n")[0],
        )
    )
    assert sorted(states) == sorted(State)
    assert conditions == list(KINDS)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_field_is_explained_in_the_section_of_its_kind(kind: str) -> None:
    # A Module has all fields of an Application, and some more.
    section = "".join(RESOURCES.partition(f"## {name}\n")[2].partition("\n## ")[0] for name in {kind, *_like(kind)})
    spec = find_object(SCHEMAS[kind], "properties", "spec")
    assert [path for path in fields(spec, "spec") if f"`{path}`" not in section] == []


def _like(kind: str) -> tuple[str, ...]:
    return ("Application",) if kind == "Module" else ()


def test_every_shown_manifest_is_valid() -> None:
    found = list(examples())
    assert {find_str(manifest, "kind") for _, manifest in found} == set(SCHEMAS)
    for name, manifest in found:
        kind = find_str(manifest, "kind")
        schema = compile_schema(SCHEMAS[kind], what=kind)
        assert schema.problems(manifest) == (), name
        known = find_object(as_object(schema.pruned(manifest), name), "spec")
        assert known == find_object(manifest, "spec"), f"{name}: {kind} has a field that the definition does not know"
        READERS[kind](manifest)


@pytest.mark.sampled
@pytest.mark.parametrize("page", ["reconciler.md", "tables.md", "offline.md"])
def test_the_program_of_a_page_prints_the_shown_output(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    [(program, said)] = PROGRAM.findall(text)
    assert run(sys.executable, "-c", program) == said


def test_every_option_of_the_reconciler_is_explained() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_apply(parser)
    page = (ROOT / "docs" / "reconciler.md").read_text()
    flags = [flag for action in parser._actions for flag in action.option_strings]
    assert flags
    assert [flag for flag in flags if f"`{flag}`" not in page] == []


def test_the_field_check_finds_nested_fields() -> None:
    schema: JsonValue = read_yaml(
        b"{properties: {a: {properties: {b: {}}}, c: {items: {properties: {d: {}}}}}}", what="a schema"
    )
    assert list(fields(as_object(schema, ""), "spec")) == ["spec.a.b", "spec.c[].d"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in {_anchor(line) for line in file.read_text().splitlines() if line.startswith("#")}, target


def _anchor(heading: str) -> str:
    """Return the anchor that Git hosts make of a heading: lower case, hyphens for spaces, and no punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")
