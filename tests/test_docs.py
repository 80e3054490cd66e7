"""The documentation says what the code says: reasons, fields, examples, links."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wharfinger.formats.json_value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.openapi_schema import compile_schema
from wharfinger.formats.yaml_reader import read_yaml, read_yaml_all
from wharfinger.runtime.own_crds import own_crds
from wharfinger.runtime.repositories import read_repository
from wharfinger.runtime.resources import read_application, read_module
from wharfinger.runtime.status import TIPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")])
RESOURCES = (ROOT / "docs" / "resources.md").read_text()
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
    "PackageRepository": read_repository,
}


def fields(schema: JsonObject, path: str) -> Iterator[str]:
    """Every field of a schema that has none below it: ``spec.registry.repo``, ``spec.settingsFrom[].key``."""
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
    """Every manifest of ours that a page shows, and those of the demo, each with the place it is from."""
    texts = [(page.name, block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    texts += [(page.name, block) for page in PAGES for block in HERE_DOCUMENT.findall(page.read_text())]
    texts.append(("application.yaml", (ROOT / "examples" / "application.yaml").read_text()))
    for name, text in texts:
        if "wharfinger.dev/v1alpha1" in text:
            for document in read_yaml_all(text, what=name):
                yield name, as_object(document, name)


@pytest.mark.parametrize("reason", sorted(TIPS))
def test_every_reason_is_explained(reason: str) -> None:
    rows = [line for line in RESOURCES.splitlines() if line.startswith("|")]
    assert [row for row in rows if re.search(rf"\b{reason}\b", row.split("|")[1])], reason


def test_no_reason_is_explained_that_is_not_there() -> None:
    listed = RESOURCES.partition("## Reasons\n")[2]
    rows = [
        line.split("|")[1]
        for line in listed.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| reason"))
    ]
    explained = {reason for row in rows for reason in re.findall(r"\w+", row)}
    assert explained == set(TIPS)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_field_is_explained_where_its_kind_is(kind: str) -> None:
    # A Module is as an Application, and more.
    section = "".join(RESOURCES.partition(f"## {name}\n")[2].partition("\n## ")[0] for name in {kind, *_like(kind)})
    spec = find_object(SCHEMAS[kind], "properties", "spec")
    assert [path for path in fields(spec, "spec") if f"`{path}`" not in section] == []


def _like(kind: str) -> tuple[str, ...]:
    return ("Application",) if kind == "Module" else ()


def test_every_manifest_shown_is_one_that_the_daemon_takes() -> None:
    found = list(examples())
    assert {find_str(manifest, "kind") for _, manifest in found} == set(SCHEMAS)
    for name, manifest in found:
        kind = find_str(manifest, "kind")
        schema = compile_schema(SCHEMAS[kind], what=kind)
        assert schema.problems(manifest) == (), name
        known = find_object(as_object(schema.pruned(manifest), name), "spec")
        assert known == find_object(manifest, "spec"), f"{name}: {kind} has a field that the definition does not know"
        READERS[kind](manifest)


def test_the_field_check_would_find_one() -> None:
    schema: JsonValue = read_yaml(
        b"{properties: {a: {properties: {b: {}}}, c: {items: {properties: {d: {}}}}}}", what="a schema"
    )
    assert list(fields(as_object(schema, ""), "spec")) == ["spec.a.b", "spec.c[].d"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in {_anchor(line) for line in file.read_text().splitlines() if line.startswith("#")}, target


def _anchor(heading: str) -> str:
    """As Git hosts make them: lower case, spaces to hyphens, punctuation left out."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")
