"""The child process of the fuzzer for the readers of packages. It runs its targets with random inputs as
`tests.formats.support.fuzz_child` does.

To run it by hand: ``python -m tests.packages.support.fuzz_child TARGET SEED FIRST LAST``.
"""

import contextlib
import shutil
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import Final

from tests.formats.support import fuzz_child, fuzz_inputs, fuzz_readers
from tests.formats.support.fuzz_readers import Target
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.conversions import CONVERSIONS_FOLDER, read_conversions
from wharfinger.packages.definition.crd_files import read_crds
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.definition.depends_on import depends_on_checksum, read_depends_on
from wharfinger.packages.definition.modules_dir import read_modules_dirs
from wharfinger.packages.definition.package_file import PackageFile, read_module_file, read_package_file
from wharfinger.packages.definition.requirements import (
    NO_REQUIREMENTS,
    Requirements,
    is_package_name,
    resolved,
    with_depends_on,
)
from wharfinger.packages.errors import ArtifactError, RenderError
from wharfinger.packages.files.package_files import open_files
from wharfinger.packages.rendering.render_entry import pack_rendered, read_entry, unpack_rendered, write_entry
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.packages.rendering.resource_overrides import override_rendered, read_overrides
from wharfinger.packages.settings.conversion_cases import read_cases

_SEEDS: Final = [
    b"""apiVersion: v1
type: Module
name: web
version: v1.2.3
stage: Preview
descriptions: {ru: moin, en: text}
requirements:
  kubernetes: {constraint: ">=1.30"}
  deckhouse: {constraint: "~1.60 || ^2"}
  modules:
    mandatory: [{name: ingress, constraint: ">=1.2, <2"}, {name: dns}]
    conditional: [{name: metrics, constraint: "^2"}]
    anyOf: [{name: storage, description: any, modules: [{name: ceph, constraint: ">1"}, {name: nfs}]}]
    noneOf: [{name: other, modules: [{name: old}]}]
  applications:
    mandatory: [{name: prod/db, constraint: "^3"}, {name: shared/mail}]
    conditional: [{name: prod/metrics, constraint: "^2"}]
    anyOf: [{name: cache, applications: [{name: prod/redis}, {name: shared/valkey, constraint: ">8"}]}]
    noneOf: [{name: old, applications: [{name: prod/shop}]}]
subscriptions: [ingress, prod/db]
licensing: {editions: {ee: {available: true, enabledInBundles: [Default]}}}
disable: {confirmation: true, messages: {en: sure}}
weight: 40
critical: true
exclusiveGroup: a
""",
    b"""type: Application
name: web
requirements:
  kubernetes: '>=1.30'
  modules: {dns: '>1 !optional', a: ''}
  applications: {mandatory: [{name: db}, {name: prod/mail}], noneOf: [{name: x, applications: [{name: prod/db}]}]}
""",
    b"name: web\nweight: 7\ntags: [a]\nrequirements: {bootstrapped: true, platform: '1.x'}\n",
    b"webShop: {a: 1, b: [1, {c: 2}]}\nwebShopEnabled: true\nglobal: {}\n",
    b"type: object\nproperties: {a: {type: integer, default: 1}, b: {type: array, items: {type: object}}}\n",
    b"""x-extend: {schema: a}
x-required-for-helm: a
type: object
properties: {a: {$ref: '#/definitions/d'}}
definitions: {d: {type: string, nullable: true, pattern: '^a+$', x-kubernetes-int-or-string: false}}
""",
    b'{"web": "sha256:' + b"5" * 64 + b'", "version": "v1.2.3"}\n',
    b"apiVersion: v1\nkind: K\nmetadata: {name: a}\n---\napiVersion: v1\nkind: L\n",
    b"apiVersion: v2\nname: web\nversion: 1.2.3\ndependencies: [{name: db, version: '1'}]\n",
]
_CONVERSION_SEEDS: Final = [
    b"""version: 2
conversions:
  - if .publishAPI.enable != null then .publishAPI.enabled = .publishAPI.enable | del(.publishAPI.enable) end
  - |
    .users |= with_entries(.value = (.value | tostring))
description: {ru: moin, en: a text that may be broken in many places without being wrong as YAML}
""",
    b"""testcases:
- name: what was called enable is called enabled, and everything else is left alone
  currentVersion: 1
  expectedVersion: 2
  settings: {auth: {enable: true, groups: [admin, everyone, nobody], message: 'a long text, to be cut'}}
  expected: {auth: {enabled: true, groups: [admin, everyone, nobody], message: 'a long text, to be cut'}}
""",
    b"cases: [{settings: {a: a long text in an object}, expected: {a: a long text in an object}}, {}]\n",
]
_CONVERSION_WORDS: Final = [
    *(
        b"version: ",
        b"version: 2\n",
        b"conversions: ",
        b"testcases: ",
        b"settings: ",
        b"expected: ",
        b"name",
        b"'",
        b'"',
    ),
    *(
        b"currentVersion: 1\n",
        b"expectedVersion: 2\n",
        b"[",
        b"]",
        b"{",
        b"}",
        b", ",
        b"- ",
        b"| ",
        b"null",
        b"1",
        b"-1",
    ),
]
_OVERRIDE_SEEDS: Final = [
    b"""- kind: Deployment
  name: web
  replicas: 3
  containers:
  - name: app
    resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {example.com/gpu: 1}}
""",
    b"[{kind: CronJob, name: night, containers: [{name: a, resources: {limits: {cpu: 0.5}}}]}]\n",
    b"[{kind: StatefulSet, name: db, replicas: 0}, {kind: Deployment, name: db, replicas: 1}]\n",
]
_OVERRIDE_WORDS: Final = [
    *(
        b"kind: Job",
        b"DaemonSet",
        b"name: ",
        b"replicas: ",
        b"containers: ",
        b"resources: ",
        b"requests: ",
        b"limits: ",
    ),
    *(
        b"cpu",
        b"1e3",
        b"-1",
        b"1Gi",
        b"1 Gi",
        b"\xff",
        b"null",
        b"[",
        b"]",
        b"{",
        b"}",
        b"- ",
        b": ",
        b", ",
        b"'",
        b"99999",
    ),
]
_DEPENDS_ON_SEEDS: Final = [
    b"""- {kind: Application, name: database, version: '^3 || >=4.1, <5'}
- {kind: Application, namespace: shared, name: mail.v2}
- {kind: Module, name: ingress, version: '>=1.2'}
""",
    b"[{kind: Module, name: dns}, {kind: Application, name: web, namespace: test, version: }]\n",
]
_DEPENDS_ON_WORDS: Final = [
    *(b"kind: Module", b"kind: Application", b"name: ", b"namespace: ", b"version: ", b"prod", b"web", b">=1", b"||"),
    *(b"[", b"]", b"{", b"}", b"- ", b": ", b", ", b"'", b"null", b"1", b"A", b"-", b".", b"/", b"\xff", b"\n"),
]
_KEY: Final = "a" * 64
_RENDER_SEEDS: Final = [
    (
        b"""{"crds":[{"kind":"CustomResourceDefinition","metadata":{"name":"piers.wharf.example"}}],"hooks":[{"kind":"Job","""
        b""""metadata":{"annotations":{"helm.sh/hook":"pre-install, test"}}}],"objects":[{"kind":"ConfigMap","data":{"a":"b"}},"""
        b"""{"kind":"Service","spec":{"ports":[{"port":80},{"port":1e2,"name":null}]}}],"manifest":"---\\nkind: ConfigMap\\n","""
        b""""notes":"read this, it is a text that may be cut anywhere"}"""
    ),
    b'{"manifest":"","objects":[],"hooks":[{}],"crds":[{"a":[1,2.5,true,null,{"b":"\\u00e9"}]}]}',
    b"{}",
    write_entry(_KEY, zlib.compress(b'{"notes":"whole"}')),
]
_RENDER_WORDS: Final = [
    *(b'"crds":', b'"hooks":', b'"objects":', b'"manifest":', b'"notes":', b"[", b"]", b"{", b"}", b",", b":", b'"'),
    *(
        b"null",
        b"1",
        b"-0.0",
        b"1e400",
        b"\\ud800",
        b"\xff",
        b"wharfinger-render 1 ",
        b"\n",
        b"[{}]",
        b"99999999999999999999",
    ),
]
_MODULES_DIR_SEEDS: Final = [
    b"global: {domain: a, map: {b: [1]}}\nwebShop: {size: 1, list: [a]}\nwebShopEnabled: true\nblogEnabled: false\n",
    b"webShopEnabled: false\nwebShop:\n  inner:\n    deep: a longer text that may well be cut somewhere\n",
    b"size: 3\ntext: flat\n",
]
_MODULES_DIR_WORDS: Final = [
    *(
        b"global: ",
        b"webShop: ",
        b"webShopEnabled: ",
        b"Enabled: true\n",
        b"true",
        b"false",
        b"yes",
        b"null",
        b"'",
        b"&a ",
    ),
    *(b"[", b"]", b"{", b"}", b"- ", b": ", b", ", b"1", b"\n", b"\xff", b"*a", b"<<: *a", b"  ", b"#"),
]
_WORDS: Final = [
    *(b"mandatory", b"conditional", b"anyOf", b"noneOf", b"modules", b"constraint", b"!optional", b"requirements"),
    *(b"applications", b"subscriptions: [a]\n", b"prod/db", b"/", b"enabledInBundles", b"licensing: "),
    *(b"{}", b"[]", b"null", b"~", b"true", b"-1", b"1.5", b"'", b'"', b"\n", b": ", b", ", b">=", b"||", b"^", b"x"),
    *(b"type: Application\n", b"type: Module\n", b"a-b", b"A", b"\xff", b"\0", b"&a ", b"*a", b"<<: *a", b"!!binary "),
    *(
        b"properties",
        b"$ref",
        b"'#/properties/a'",
        b"items",
        b"default",
        b"x-extend",
        b"additionalProperties",
        b"allOf",
    ),
]
FILES: Final = (
    "package.yaml",
    "module.yaml",
    "values.yaml",
    "openapi/settings.yaml",
    "openapi/config-values.yaml",
    "openapi/values.yaml",
    "images_digests.json",
    "version.json",
    "Chart.yaml",
    "crds/a.yaml",
    "openapi/conversions/v2.yaml",
)


def _package_file(data: bytes, _: Path) -> None:
    try:
        try:
            found = read_package_file(data)
        except ArtifactError:
            found = read_module_file(data)
    except ArtifactError as error:
        assert "\n" not in str(error)
        raise FormatError(str(error)) from error
    assert isinstance(found, PackageFile)
    assert not found.name or is_package_name(found.name)
    try:
        needs = resolved(found.requirements, "prod")
    except ShapeError as error:
        assert "in namespace prod" in str(error)
        raise
    assert all(is_package_name(name.partition(".")[0]) for name in (*found.subscriptions, *_named(needs)))
    _once(needs)


def _named(needs: Requirements) -> tuple[str, ...]:
    groups = (*needs.any_of, *needs.none_of)
    members = [*needs.mandatory, *needs.conditional, *(member for group in groups for member in group.members)]
    return tuple(member.name for member in members)


def _once(needs: Requirements) -> None:
    """Check that no package is in more than one kind of requirement."""
    groups = tuple(
        {member.name for group in some for member in group.members} for some in (needs.any_of, needs.none_of)
    )
    buckets = ([each.name for each in needs.mandatory], [each.name for each in needs.conditional], *map(sorted, groups))
    names = [name for bucket in buckets for name in bucket]
    assert len(names) == len(set(names))
    for some in (needs.any_of, needs.none_of):
        assert len({group.name for group in some}) == len(some)


def _depends_on(data: bytes, _: Path) -> None:
    value = read_yaml(data, what="dependsOn")
    found = read_depends_on(value, own="test.web", namespace="prod")
    assert len({each.package for each in found}) == len(found)
    assert with_depends_on(NO_REQUIREMENTS, found) == with_depends_on(
        with_depends_on(NO_REQUIREMENTS, found), reversed(found)
    )
    depends_on_checksum(found)


def _package(data: bytes, folder: Path) -> None:
    """Use the input as one file of a package whose other files are valid."""
    tree = folder / "tree"
    file = tree / FILES[len(data) % len(FILES)]
    try:
        file.parent.mkdir(parents=True)
        (tree / "package.yaml").write_text("{}")
        if file.name == "module.yaml":
            (tree / "package.yaml").unlink()
        file.write_bytes(data)
        found = read_definition(tree, name="web-shop", version="1.2.3")
        assert isinstance(found, Definition)
        read_crds(tree)
    except (ArtifactError, RenderError) as error:
        assert str(folder) not in str(error)
        raise FormatError(str(error)) from error
    finally:
        shutil.rmtree(tree)


def _conversions(data: bytes, folder: Path) -> None:
    """Use the input as a conversion, or as the examples of conversions."""
    tree = folder / "conversions"
    cases = b"ases" in data
    name = "testcases.yaml" if cases else "v2.yaml"
    try:
        (tree / CONVERSIONS_FOLDER).mkdir(parents=True)
        (tree / CONVERSIONS_FOLDER / "v2.yaml").write_text("{version: 2, conversions: [.]}")
        (tree / CONVERSIONS_FOLDER / name).write_bytes(data)
        files = open_files(tree, "web")
        chain = read_conversions(files, {"x-config-version": 2}, "openapi/settings.yaml")
        assert [each.version for each in chain.conversions] == [2]
        assert all(program.strip() for program in chain.conversions[0].programs)
        for case in read_cases(files, chain):
            assert 0 < case.from_version < case.to_version == 2
    except ArtifactError as error:
        assert str(folder) not in str(error)
        raise FormatError(str(error)) from error
    finally:
        shutil.rmtree(tree)


def _overrides(data: bytes, _: Path) -> None:
    found = read_overrides(read_yaml(data, what="overrides"))
    documents: list[JsonValue] = [each.document for each in found]
    assert read_overrides(documents) == found
    objects: list[JsonObject] = [
        {"apiVersion": "apps/v1", "kind": each.kind, "metadata": {"name": each.name}, "spec": {}} for each in found
    ]
    after, unmatched = override_rendered(Rendered((), tuple(objects), (), ""), found)
    assert len(after.hooks) == len(found)
    assert len(set(unmatched)) == len(unmatched)


def _modules_dir(data: bytes, folder: Path) -> None:
    """Use the input as ``values.yaml`` of a modules directory, and of a module in that directory."""
    tree = folder / "modules"
    try:
        (tree / "010-web-shop").mkdir(parents=True)
        (tree / "values.yaml").write_bytes(data)
        (tree / "010-web-shop" / "values.yaml").write_bytes(data)
        found = read_modules_dirs([tree])
        assert [module.name for module in found.modules] == ["web-shop"]
        assert found.enabled.keys() <= found.static.keys() == {"web-shop"}
        assert not any("\n" in warning for warning in found.warnings)
    except ArtifactError as error:
        raise FormatError(str(error)) from error
    finally:
        shutil.rmtree(tree)


def _render_entry(data: bytes, _: Path) -> None:
    """Use the input in three ways: as a cache file, as compressed text, and as the text in a valid cache file."""
    for read in (partial(read_entry, _KEY), unpack_rendered):
        with contextlib.suppress(FormatError):
            read(data)
    rendered = unpack_rendered(read_entry(_KEY, write_entry(_KEY, zlib.compress(data, 1))))
    assert unpack_rendered(pack_rendered(rendered)) == rendered
    assert all(isinstance(obj, dict) for obj in (*rendered.crds, *rendered.hooks, *rendered.objects))


TARGETS: Final = {
    "render-entry": Target("render-entry", _render_entry),
    "package-file": Target("package-file", _package_file),
    "package": Target("package", _package),
    "conversions": Target("conversions", _conversions),
    "overrides": Target("overrides", _overrides),
    "modules-dir": Target("modules-dir", _modules_dir),
    "depends-on": Target("depends-on", _depends_on),
}

if __name__ == "__main__":
    fuzz_inputs._CORPORA["render-entry"] = fuzz_inputs._of(_RENDER_SEEDS, _RENDER_WORDS)
    fuzz_inputs._CORPORA["package"] = fuzz_inputs._of(_SEEDS, _WORDS)
    fuzz_inputs._CORPORA["modules-dir"] = fuzz_inputs._of(_MODULES_DIR_SEEDS, _MODULES_DIR_WORDS)
    fuzz_inputs._CORPORA["conversions"] = fuzz_inputs._of(_CONVERSION_SEEDS, _CONVERSION_WORDS)
    fuzz_inputs._CORPORA["overrides"] = fuzz_inputs._of(_OVERRIDE_SEEDS, _OVERRIDE_WORDS)
    fuzz_inputs._CORPORA["depends-on"] = fuzz_inputs._of(_DEPENDS_ON_SEEDS, _DEPENDS_ON_WORDS)
    fuzz_inputs._CORPORA["package-file"] = fuzz_inputs._of(_SEEDS[:3], _WORDS)
    fuzz_readers.TARGETS.update(TARGETS)
    sys.exit(fuzz_child.main(sys.argv[1:]))
