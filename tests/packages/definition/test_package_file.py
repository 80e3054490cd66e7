"""The files package.yaml and module.yaml."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonValue, encode_json
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.package_file import (
    MAX_BYTES,
    MAX_WEIGHT,
    PackageFile,
    PackageType,
    read_module_file,
    read_package_file,
)
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.definition.requirements_reader import MAX_ENTRIES
from wharfinger.packages.errors import ArtifactError

WHOLE = b"""
apiVersion: v1
type: Module
name: sysctl-tuner
version: v1.2.3
stage: Preview
descriptions: {ru: moin, en: tunes nodes}
requirements: {kubernetes: {constraint: ">=1.30"}, applications: {mandatory: [{name: prod/db}]}}
subscriptions: [ingress, prod/db]
licensing:
  editions:
    ee: {available: true, enabledInBundles: [Default, " Minimal "]}
    fe: {available: false, enabledInBundles: [Default]}
    se: {enabledInBundles: [Default]}
    be: {available: true}
    ce:
disable: {confirmation: true, messages: {en: sure?}}
weight: 40
critical: true
exclusiveGroup: tuners
"""


def test_all_fields_of_a_package_file_are_read() -> None:
    found = read_package_file(WHOLE)
    assert (found.type, found.name, found.version) == (PackageType.MODULE, "sysctl-tuner", "v1.2.3")
    assert (found.stage, found.description) == ("Preview", "tunes nodes")
    assert found.requirements.kubernetes == parse_constraint(">=1.30")
    assert (found.weight, found.critical) == (40, True)
    assert found.requirements.applications is not None
    assert found.subscriptions == ("ingress", "prod.db")
    assert found.bundles == {("ee", "Default"), ("ee", "Minimal")}


@pytest.mark.parametrize("read", [read_package_file, read_module_file])
def test_batch_hooks_are_read(read: Callable[[bytes], PackageFile]) -> None:
    assert read(b"batchHooks: [hooks/main, hooks/a/b.py]").batch_hooks == ("hooks/main", "hooks/a/b.py")
    assert read(b"{batchHooks: }").batch_hooks == ()


@pytest.mark.parametrize(
    "path", ["", "main", "hooks", "hooks/", "hooks/../x", "/hooks/x", "hooks//x", "hooks/./x", "hooks/a\\n"]
)
def test_batch_hooks_outside_of_the_hooks_folder_are_refused(path: str) -> None:
    with pytest.raises(
        ArtifactError,
        match=r"package.yaml: batchHooks\[0\]: '.*' is not the path of a hook; write a path such as hooks/m",
    ):
        read_package_file(f'batchHooks: ["{path}"]'.encode())


def test_only_modules_must_give_the_namespace_of_an_application() -> None:
    text = "{type: %s, requirements: {applications: {mandatory: [{name: db}]}}}"
    assert read_package_file((text % "Application").encode()).requirements.applications is not None
    for written in (text % "Module", "requirements: {applications: {mandatory: [{name: db}]}}"):
        with pytest.raises(ArtifactError, match=r"applications\.mandatory\[0\]\.name: db: a Module has no namespace"):
            read_package_file(written.encode())


def test_an_empty_package_file_has_defaults() -> None:
    nothing = PackageFile(PackageType.MODULE, "", "", "", "", NO_REQUIREMENTS, None, critical=False)
    assert read_package_file(b"{}") == nothing
    assert read_module_file(b"{}") == nothing
    application = read_package_file(b"{type: Application, critical: false, exclusiveGroup: '', weight: }")
    assert application.type is PackageType.APPLICATION


def test_older_spellings_of_fields_are_read() -> None:
    found = read_package_file(
        b"{type: Application, requirements: {kubernetes: '>=1.30'}, disable: {confirmation: false, message: sure}}"
    )
    assert found.requirements.kubernetes == parse_constraint(">=1.30")


@pytest.mark.parametrize(
    ("descriptions", "shown"),
    [("{ru: moin}", "moin"), ("{ru: '', de: tach}", "tach"), ("{en: '', ru: moin}", "moin"), ("{}", "")],
)
def test_the_english_description_is_preferred(descriptions: str, shown: str) -> None:
    assert read_package_file(f"descriptions: {descriptions}".encode()).description == shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "^package.yaml: expected an object, found null"),
        ("[]", "^package.yaml: expected an object, found a list"),
        ("a: [", r"^package.yaml: line \d, column \d: "),
        ("a: 1\n---\nb: 1", "second document"),
        ("nmae: web", "^package.yaml: nmae: unknown key; did you mean 'name'"),
        ("description: x", "did you mean 'descriptions'"),
        ("kind: x", "kind: unknown key; known keys: apiVersion, type"),
        ("name: Web", "name: 'Web' cannot be a name"),
        ("name: 5", "name: expected a string, found an integer; put it in quotes"),
        ("version: 1.2", "version: expected a string, found a number; put it in quotes"),
        ("version: latest", "version: 'latest' is not a version"),
        ("type: app", "type: 'app' is neither Application nor Module"),
        ("apiVersion: 1", "apiVersion: expected a string"),
        ("stage: [x]", "stage: expected a string"),
        ("descriptions: text", "descriptions: expected an object"),
        ("descriptions: {en: 1}", r"descriptions\.en: expected a string"),
        ("weight: -1", "weight: expected an integer from 0 to"),
        (f"weight: {MAX_WEIGHT + 1}", "weight: expected an integer from 0 to"),
        ("critical: 'yes'", "critical: expected true or false"),
        ("{type: Application, weight: 5}", "weight: only a Module can have this field"),
        ("{type: Application, critical: true}", "critical: only a Module can have this field"),
        ("{type: Application, exclusiveGroup: a}", "exclusiveGroup: only a Module can have this field"),
        ("requirements: {kubernetes: '>>'}", r"requirements\.kubernetes: version constraint"),
        ("licensing: {edition: {}}", r"licensing\.edition: unknown key; did you mean 'editions'"),
        ("licensing: {editions: {ee: {enabled: true}}}", r"licensing\.editions\.ee\.enabled: unknown key"),
        ("licensing: {editions: {ee: {available: 1}}}", r"licensing\.editions\.ee\.available: expected true or false"),
        (
            "licensing: {editions: {ee: {enabledInBundles: [1]}}}",
            r"editions\.ee\.enabledInBundles\[0\]: expected a string",
        ),
        ("subscriptions: web", r"subscriptions: expected a list"),
        ("subscriptions: [1]", r"subscriptions\[0\]: expected a string, found an integer"),
        (
            "subscriptions: [a, '']",
            r"subscriptions\[1\]: '' cannot be a package; write the name of a Module, or an Appl",
        ),
        ("subscriptions: [a.b]", r"subscriptions\[0\]: 'a\.b' cannot be a package"),
        ("subscriptions: [/a]", r"subscriptions\[0\]: '/a' cannot be a package"),
        ("subscriptions: [a/b/c]", r"subscriptions\[0\]: 'a/b/c' cannot be a package"),
        ("subscriptions: [b, a/b.c, a/b.c]", r"subscriptions\[2\]: a/b\.c is listed twice"),
        (f"subscriptions: [{', '.join(f'm{n}' for n in range(MAX_ENTRIES + 1))}]", r"subscriptions: more than"),
        ("batchHooks: hooks/main", "batchHooks: expected a list"),
        ("batchHooks: [1]", r"batchHooks\[0\]: expected a string, found an integer"),
        ("batchHooks: [hooks/a, hooks/b, hooks/a]", r"batchHooks\[2\]: hooks/a is listed twice"),
        (f"batchHooks: [{', '.join(f'hooks/{n}' for n in range(MAX_ENTRIES + 1))}]", "batchHooks: more than"),
        ("batchHook: [hooks/a]", "did you mean 'batchHooks'"),
        ("subscription: [a]", "did you mean 'subscriptions'"),
        ("licensing: {editions: {'': {}}}", r"licensing\.editions\.: expected the name of an edition, found none"),
        (
            "licensing: {editions: {ee: {enabledInBundles: [' ']}}}",
            r"enabledInBundles\[0\]: expected the name of a bundle, found none",
        ),
        (
            f"licensing: {{editions: {{ee: {{enabledInBundles: [{', '.join(['a'] * (MAX_ENTRIES + 1))}]}}}}}}",
            r"enabledInBundles: more than",
        ),
        (
            f"licensing: {{editions: {{{', '.join(f'e{n}: ' for n in range(MAX_ENTRIES + 1))}}}}}",
            r"licensing\.editions: more than",
        ),
        ("disable: {mesage: x}", r"disable\.mesage: unknown key; did you mean 'message'"),
        ("disable: {confirmation: x}", r"disable\.confirmation: expected true or false"),
        ("disable: {messages: {en: []}}", r"disable\.messages\.en: expected a string"),
        ("#" * (MAX_BYTES + 1), "over the limit"),
    ],
)
def test_invalid_package_files_are_refused_with_file_and_field(text: str, why: str) -> None:
    with pytest.raises(ArtifactError, match=why) as caught:
        read_package_file(text.encode())
    assert str(caught.value).count("package.yaml") == 1
    assert not caught.value.transient
    assert "\n" not in str(caught.value)


def test_fields_of_module_yaml_are_read() -> None:
    found = read_module_file(b"""
name: web
weight: 7
stage: General Availability
critical: true
descriptions: {en: a web}
requirements: {kubernetes: '>1', bootstrapped: 'true', modules: {dns: '>1 !optional'}}
tags: [a, b]
subsystems: [c]
namespace: d8-web
accessibility: {editions: {}}
disable: {confirmation: true, message: why}
""")
    assert (found.type, found.name, found.weight, found.critical) == (PackageType.MODULE, "web", 7, True)
    assert [each.name for each in found.requirements.conditional] == ["dns"]
    for text, why in [
        (b"type: Application", "module.yaml: type: unknown key"),
        (b"subscriptions: [a]", "module.yaml: subscriptions: unknown key"),
        (b"weigth: 5", "module.yaml: weigth: unknown key; did you mean 'weight'"),
        (b"weight: a", "module.yaml: weight: expected an integer"),
        (b"a: [", "module.yaml: line"),
    ]:
        with pytest.raises(ArtifactError, match=why):
            read_module_file(text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
KEYS = st.sampled_from([
    "apiVersion", "type", "name", "version", "stage", "descriptions", "requirements", "licensing", "disable", "weight",
    "critical", "exclusiveGroup", "kubernetes", "platform", "deckhouse", "modules", "mandatory", "conditional", "anyOf",
    "noneOf", "applications", "subscriptions", "constraint", "description", "editions", "available", "enabledInBundles",
    "confirmation", "messages", "en",
])  # fmt: skip
WORDS = st.sampled_from(["Application", "Module", "web", "1.2.3", ">=1", ">1 !optional", "!optional", ""])
DOCUMENTS: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=6),
)


@given(st.dictionaries(KEYS, DOCUMENTS, max_size=8))
def test_any_document_is_read_or_refused(document: dict[str, JsonValue]) -> None:
    data = encode_json(document)
    for read in (read_package_file, read_module_file):
        try:
            found = read(data)
        except ArtifactError:
            continue
        assert isinstance(found, PackageFile)
