"""Applications and Modules that a plan reads from files, from folders and from standard input."""

import io
import json
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.support.planned import API, resource, write_resources
from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml_all
from wharfinger.runtime.plan import input as plan_input
from wharfinger.runtime.plan.input import Inputs, PlanInputError, read_inputs


def read(*paths: Path, namespace: str = "default", bundled: bool = False) -> Inputs:
    return read_inputs(paths, namespace=namespace, bundled=bundled)


def wrong(*paths: Path) -> tuple[str, ...]:
    with pytest.raises(PlanInputError) as refused:
        read(*paths)
    assert str(refused.value) == "; ".join(refused.value.lines)
    return refused.value.lines


def names(found: Inputs) -> list[str]:
    return [each.spec.id.name for each in found.wanted]


def test_documents_are_sorted_and_know_their_place(tmp_path: Path) -> None:
    file = write_resources(tmp_path / "all.yaml", resource("web/shop", version="1.2.0"), resource("ingress"))
    found = read(file)
    assert names(found) == ["ingress", "web.shop"]
    assert [each.place for each in found.wanted] == [f"{file}, document 2", f"{file}, document 1"]
    assert (found.wanted[1].spec.package, found.wanted[1].spec.version) == ("shop", "1.2.0")
    assert found.wanted[0].spec.enabled is True


def test_a_folder_stands_for_its_yaml_and_json_files(tmp_path: Path) -> None:
    write_resources(tmp_path / "b.yml", resource("beta"))
    (tmp_path / "a.json").write_text(json.dumps(resource("alpha")))
    write_resources(tmp_path / "notes.txt", resource("gamma"))
    (tmp_path / "below").mkdir()
    write_resources(tmp_path / "below" / "c.yaml", resource("delta"))
    (tmp_path / "folder.yaml").mkdir()
    assert names(read(tmp_path)) == ["alpha", "beta"]
    assert names(read(tmp_path, tmp_path / "below")) == ["alpha", "beta", "delta"]


def test_a_path_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    file = write_resources(tmp_path / "all.yaml", resource("web/shop"))
    assert names(read(file, file)) == ["web.shop"]


def test_lists_are_replaced_by_their_items(tmp_path: Path) -> None:
    listed: JsonObject = {"apiVersion": "v1", "kind": "List", "items": [resource("web/shop"), resource("ingress")]}
    typed: JsonObject = {"apiVersion": API, "kind": "ModuleList", "items": [resource("db")]}
    file = write_resources(tmp_path / "all.yaml", listed, typed)
    found = read(file)
    assert names(found) == ["db", "ingress", "web.shop"]
    assert found.wanted[1].place == f"{file}, document 1, item 2"


def test_other_kinds_and_deleted_objects_are_ignored(tmp_path: Path) -> None:
    going = resource("web/going")
    metadata: JsonObject = {"namespace": "web", "name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    others: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}},
        {"apiVersion": API, "kind": "PackageRepository", "metadata": {"name": "default"}},
        {**going, "metadata": metadata},
    ]
    found = read(write_resources(tmp_path / "all.yaml", *others, resource("db")))
    assert (names(found), found.left_alone) == (["db"], 4)


def test_an_application_without_a_namespace_gets_the_given_one(tmp_path: Path) -> None:
    document = resource("web/shop")
    document["metadata"] = {"name": "shop"}
    file = write_resources(tmp_path / "all.yaml", document)
    assert names(read(file)) == ["default.shop"]
    assert names(read(file, namespace="team")) == ["team.shop"]


@pytest.mark.parametrize(("bundled", "wanted"), [(False, True), (True, None)])
def test_without_bundles_a_module_is_enabled_by_default(tmp_path: Path, bundled: bool, wanted: bool | None) -> None:
    file = write_resources(tmp_path / "all.yaml", resource("db"), resource("off", enabled=False))
    found = read(file, bundled=bundled)
    assert [each.spec.enabled for each in found.wanted] == [wanted, False]


def test_standard_input_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(write_yaml_all([resource("db")]).encode())))
    found = read(Path("-"))
    assert [(each.spec.id.name, each.place) for each in found.wanted] == [("db", "-, document 1")]


# --- errors -------------------------------------------------------------------------------------------------------------


def test_all_errors_are_reported_with_their_place(tmp_path: Path) -> None:
    first = write_resources(tmp_path / "a.yaml", resource("web/shop", version=""), resource("web/blog", dependOn=[]))
    second = tmp_path / "b.yaml"
    second.write_text("kind: [")
    lines = wrong(tmp_path, tmp_path / "gone.yaml")
    assert len(lines) == 4
    assert lines[0].startswith(f"{first}, document 1 (Application web/shop): spec.packageVersion: ")
    assert lines[1].startswith(f"{first}, document 2 (Application web/blog): spec.dependOn: ")
    assert lines[2].startswith(f"{second}: line ")
    assert lines[3] == f"{tmp_path}/gone.yaml: cannot be read: No such file or directory"


def test_a_duplicate_resource_is_reported_with_both_places(tmp_path: Path) -> None:
    file = write_resources(tmp_path / "a.yaml", resource("web/shop"), resource("web/shop"))
    assert wrong(file) == (
        (
            f"{file}, document 2 (Application web/shop): Application web/shop is also in {file}, document 1; "
            "remove one of the two"
        ),
    )


DOCUMENTS: dict[str, tuple[JsonObject | str, str]] = {
    "no resource": ("a: b", ": expected a resource with apiVersion and kind"),
    "no object": ("[1, 2]", ": the document: expected an object"),
    "a text": ("text", ": the document: expected an object"),
    "another version": (
        {**resource("db"), "apiVersion": "wharfinger.dev/v2"},
        " (Module db): apiVersion: expected wharfinger.dev/v1alpha1, found wharfinger.dev/v2",
    ),
    "a bad module": (
        {**resource("db"), "metadata": {"name": "D.b"}},
        " (Module D.b): metadata.name: 'D.b' is not a valid name",
    ),
    "no name": ({**resource("web/x"), "metadata": {}}, ": metadata.name: '' is not a valid name of an Application"),
    "a bad namespace": (
        {**resource("web/x"), "metadata": {"namespace": "a.b", "name": "x"}},
        " (Application a.b/x): metadata.namespace: 'a.b' is not a valid name of a namespace",
    ),
    "metadata that are none": ({**resource("web/x"), "metadata": [1]}, ": metadata: "),
    "a name that is none": ({**resource("web/x"), "metadata": {"name": 7}}, ": metadata.name: "),
    "a spec that is none": ({**resource("web/x"), "spec": 7}, " (Application web/x): spec: "),
    "itself": (
        resource("db", dependsOn=[{"kind": "Module", "name": "db"}]),
        " (Module db): spec.dependsOn[0]: this names the Module itself; a package cannot depend on itself",
    ),
    "a bad version": (
        resource("db", dependsOn=[{"kind": "Module", "name": "x", "version": ">>1"}]),
        " (Module db): spec.dependsOn[0].version: ",
    ),
    "many things": (resource("db", a=1, b=2, c=3, d=4), "; and 1 more"),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_an_invalid_document_is_reported_in_one_line(tmp_path: Path, case: str) -> None:
    document, expected = DOCUMENTS[case]
    file = tmp_path / "a.yaml"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    (line,) = wrong(file)
    assert line.startswith(f"{file}, document 1")
    assert expected in line
    assert "\n" not in line


def test_a_folder_without_yaml_or_json_files_is_an_error(tmp_path: Path) -> None:
    (line,) = wrong(tmp_path)
    assert (
        line
        == f"{tmp_path}: no file in this folder has a name that ends in .yaml, .yml, .json; folders in it are not read"
    )


def test_the_number_of_reported_errors_is_bounded(tmp_path: Path) -> None:
    file = write_resources(tmp_path / "a.yaml", *(resource("db", version="") for _ in range(50)))
    lines = wrong(file)
    assert len(lines) == plan_input.MAX_TOLD + 1
    assert lines[-1] == "and 30 more"


@pytest.mark.parametrize(
    ("limit", "most", "expected"),
    [
        ("MAX_FILES", 1, "found 2 files, but at most 1 can be read"),
        ("MAX_BYTES", 300, "exceed the limit of 300 bytes together; plan a part of them"),
        ("MAX_RESOURCES", 2, "more than 2 Applications and Modules; plan a part of them"),
        ("MAX_FILE", 100, "bytes is over the limit"),
    ],
)
def test_the_size_of_the_input_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, expected: str
) -> None:
    for name in ("a", "b"):
        write_resources(tmp_path / f"{name}.yaml", *(resource(f"{name}{number}") for number in range(2)))
    monkeypatch.setattr(plan_input, limit, most)
    assert any(expected in line for line in wrong(tmp_path))


SAMPLE = write_yaml_all(
    [
        resource("web/shop", settings={"a": 1}, dependsOn=[{"kind": "Module", "name": "ingress", "version": "^1"}]),
        {"apiVersion": "v1", "kind": "List", "items": [resource("ingress", enabled=True)]},
    ]
).encode()


def test_any_bytes_are_read_or_refused_with_a_plan_input_error(tmp_path: Path) -> None:
    chance = random.Random(5)  # noqa: S311
    file = tmp_path / "a.yaml"
    taken = 0
    for _ in range(scaled(100_000, 400)):
        data = bytearray(SAMPLE)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 12)]
                case 2:
                    data[at:at] = chance.choice(
                        [b": ", b"- ", b"[", b"{}", b"null", b"\n---\n", b"'", b"&a ", b"*a", b"1"]
                    )
                case _:
                    other = chance.randrange(len(data))
                    data[at : at + 8] = data[other : other + 8]
        file.write_bytes(bytes(data))
        try:
            read(file)
        except PlanInputError:
            continue
        taken += 1
    assert taken


KEYS = st.sampled_from(
    ["apiVersion", "kind", "metadata", "spec", "name", "namespace", "items", "packageName", "packageVersion"]
)
LEAVES = st.sampled_from([None, True, 0, 1.5, "", "db", "Application", "Module", "List", "v1", API, "x" * 300])
VALUES = st.recursive(LEAVES, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=5))


@settings(max_examples=scaled(10_000, 80), deadline=None)
@given(st.lists(VALUES, max_size=3))
def test_documents_of_any_shape_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, documents: list[object]
) -> None:
    file = tmp_path_factory.getbasetemp() / "shapes.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))
    try:
        read(file)
    except PlanInputError as error:
        assert all("shapes.yaml" in line for line in error.lines)
