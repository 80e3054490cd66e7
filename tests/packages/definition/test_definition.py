"""The reader of a whole package. The tests read valid packages of three layouts, and check the errors for invalid packages."""

from pathlib import Path

import pytest

from tests.packages.support.charts import CONFIG_MAP, WEB_SERVICE, chart, write
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.definition import DEFAULT_WEIGHT, Definition, Layout, read_definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.definition.requirements import ApplicationNeeds, Dependency, Requirements
from wharfinger.packages.errors import ArtifactError, PackageError

DIGEST = "sha256:" + "5" * 64
CHART = "apiVersion: v2\nname: own\nversion: 9.9.9\n"
SETTINGS = """
type: object
properties:
  replicas: {type: integer, default: 2}
  password: {type: string, writeOnly: true}
"""
VALUES = """
x-extend: {schema: config-values.yaml}
x-required-for-helm: [internal]
type: object
properties:
  internal: {type: object, properties: {token: {type: string}}}
"""
APPLICATION = {
    "package.yaml": """
type: Application
name: web-shop
version: v1.2.3
stage: Preview
descriptions: {en: sells}
requirements: {kubernetes: ">=1.30", modules: {dns: ">1"}}
""",
    "values.yaml": "image: web\n",
    "openapi/settings.yaml": SETTINGS,
    "openapi/values.yaml": VALUES,
    "templates/config.yaml": CONFIG_MAP,
    "hooks/a.sh": "",
    "crds/a.yaml": "",
    "enabled": "",
    "images_digests.json": f'{{"web": "{DIGEST}"}}',
}
MODULE_FOLDER = {
    "values.yaml": "sysctlTuner: {sleep: 600}\nsysctlTunerEnabled: true\n",
    "openapi/config-values.yaml": SETTINGS,
    "hooks/a.sh": "",
    "enabled": "",
    "templates/config.yaml": CONFIG_MAP,
}


def read(folder: Path, files: dict[str, str], *, name: str = "web-shop", version: str = "1.2.3") -> Definition:
    return read_definition(write(folder, files), name=name, version=version)


def test_the_definition_of_an_application_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, APPLICATION)
    assert (found.layout, found.type, found.name, found.version) == (
        Layout.PACKAGE,
        PackageType.APPLICATION,
        "web-shop",
        "v1.2.3",
    )
    assert (found.description, found.stage, found.weight, found.critical) == ("sells", "Preview", DEFAULT_WEIGHT, False)
    assert found.requirements == Requirements(
        kubernetes=parse_constraint(">=1.30"), mandatory=(Dependency("dns", parse_constraint(">1")),)
    )
    assert (found.camel, found.static_values) == ("webShop", {"image": "web"})
    assert (found.hooks, found.crds, found.images) == (True, True, {"web": DIGEST})
    assert not found.enabled_script, "only a Module has an enabled script"
    synthetic: JsonObject = {"apiVersion": "v2", "name": "web-shop", "version": "0.2.0", "appVersion": "v1.2.3"}
    assert found.chart is not None
    assert (found.chart.name, found.chart.version, found.chart_file) == ("web-shop", "0.2.0", synthetic)
    assert found.recorded_chart == {**synthetic, "version": "v1.2.3"}


def test_schemas_of_a_package_are_closed_extended_and_stricter_for_helm(tmp_path: Path) -> None:
    found = read(tmp_path, APPLICATION)
    assert found.settings_schema is not None
    assert found.values_schema is not None
    assert found.helm_schema is not None
    assert found.settings_schema.problems({"replicas": 1}) == ()
    assert [each.path for each in found.settings_schema.problems({"replicass": 1})] == ["replicass"]
    assert found.settings_schema.write_only_paths({"password": "x"}) == (("password",),)
    assert found.values_schema.problems({"replicas": 1}) == ()
    assert found.values_schema.problems({"internal": {"other": 1}})
    assert found.helm_schema.problems({"replicas": 1})
    assert found.helm_schema.problems({"replicas": 1, "internal": {}}) == ()


def test_the_definition_of_a_module_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, {"package.yaml": "{weight: 5, critical: true}", "enabled": ""}, version="v2")
    assert (found.layout, found.type, found.name, found.version) == (
        Layout.PACKAGE,
        PackageType.MODULE,
        "web-shop",
        "v2",
    )
    assert (found.weight, found.critical, found.enabled_script) == (5, True, True)
    assert (found.chart, found.chart_file, found.static_values, found.images) == (None, None, {}, {})
    assert (found.settings_schema, found.values_schema, found.helm_schema) == (None, None, None)
    assert read(tmp_path, {"package.yaml": "weight: 5"}).weight == DEFAULT_WEIGHT
    assert read(tmp_path, {"package.yaml": "critical: true"}).weight == DEFAULT_WEIGHT


def test_subscriptions_bundles_and_requirements_are_read(tmp_path: Path) -> None:
    said = (
        "subscriptions: [dns, prod/db]\nrequirements: {applications: {mandatory: [{name: prod/db}]}}\n"
        "licensing: {editions: {ee: {available: true, enabledInBundles: [Default]}, ce: {enabledInBundles: [Default]}}}\n"
    )
    found = read(tmp_path, {"package.yaml": said})
    assert (found.subscriptions, found.bundles) == (("dns", "prod.db"), frozenset({("ee", "Default")}))
    needs = ApplicationNeeds(mandatory=(Dependency("prod/db", parse_constraint("")),))
    assert found.requirements == Requirements(applications=needs)


def test_module_yaml_is_read_unless_package_yaml_exists(tmp_path: Path) -> None:
    files = {"module.yaml": "{name: web-shop, weight: 7, critical: true, tags: [a]}", "templates/a.yaml": ""}
    found = read(tmp_path, files, name="007-web-shop")
    assert (found.layout, found.type, found.name, found.weight) == (Layout.PACKAGE, PackageType.MODULE, "web-shop", 7)
    assert read(tmp_path, {"package.yaml": "stage: new"}).stage == "new", "package.yaml must win over module.yaml"


def test_batch_hooks_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, {"package.yaml": "batchHooks: [hooks/main]"}).batch_hooks == ("hooks/main",)
    (tmp_path / "package.yaml").unlink()
    assert read(tmp_path, {"module.yaml": "batchHooks: [hooks/old]"}).batch_hooks == ("hooks/old",)
    (tmp_path / "module.yaml").unlink()
    assert read(tmp_path, {"hooks/main": ""}).batch_hooks == ()


def test_the_definition_of_a_module_folder_is_read(tmp_path: Path) -> None:
    found = read_definition(write(tmp_path, MODULE_FOLDER), name="modules/002-sysctl-tuner", version="1.0.0")
    assert (found.layout, found.type, found.name, found.version) == (
        Layout.MODULE_FOLDER,
        PackageType.MODULE,
        "sysctl-tuner",
        "1.0.0",
    )
    assert (found.weight, found.static_values) == (2, {"sleep": 600})
    assert (found.hooks, found.enabled_script, found.crds) == (True, True, False)
    assert found.chart is not None
    assert found.chart_file == {
        "apiVersion": "v2",
        "name": "sysctl-tuner",
        "version": "0.2.0",
        "appVersion": "1.0.0",
    }
    assert found.settings_schema is not None
    assert found.values_schema is None
    unnumbered = read_definition(tmp_path, name="sysctl-tuner", version="")
    assert (unnumbered.weight, unnumbered.version) == (DEFAULT_WEIGHT, "")


def test_a_module_folder_with_its_own_chart_is_read(tmp_path: Path) -> None:
    write(chart(tmp_path, name="tuner", version="9.9.9"), {"hooks/a.sh": "", "version.json": '{"version": "v1.0.1"}'})
    found = read_definition(tmp_path, name="sysctl-tuner", version="latest")
    assert (found.layout, found.version, found.description) == (Layout.MODULE_FOLDER, "v1.0.1", "for tests")
    assert found.chart is not None
    assert (found.chart.name, found.chart.version) == ("tuner", "9.9.9")
    assert found.chart_file is found.chart.metadata
    assert found.recorded_chart == {**found.chart.metadata, "version": "v1.0.1"}


def test_a_tag_that_is_not_a_version_is_not_recorded_as_chart_version(tmp_path: Path) -> None:
    found = read(tmp_path, {"package.yaml": "{}", "templates/a.yaml": ""}, version="latest")
    assert found.version == "latest"
    assert found.chart is not None
    assert found.recorded_chart == found.chart.metadata


def test_a_package_with_only_crds_has_a_chart(tmp_path: Path) -> None:
    found = read(tmp_path, {"crds/a.yaml": ""})
    assert found.chart is not None
    assert found.crds


def test_a_plain_chart_is_read(tmp_path: Path) -> None:
    found = read_definition(WEB_SERVICE, name="other", version="9.9.9")
    assert (found.layout, found.type, found.name, found.version) == (Layout.CHART, None, "web-service", "1.0.0")
    assert (found.static_values, found.settings_schema, found.chart_file) == ({}, None, None)
    assert found.chart is not None
    assert found.chart.folder == WEB_SERVICE.resolve()
    assert found.recorded_chart == found.chart.metadata
    write(chart(tmp_path), {"crds/a.yaml": "", "values.yaml": "web: {a: 1}"})
    with_crds = read_definition(tmp_path, name="web", version="")
    assert (with_crds.layout, with_crds.crds, with_crds.hooks) == (Layout.CHART, True, False)


@pytest.mark.parametrize(
    ("values", "static"),
    [
        ("image: web", {"image": "web"}),
        ("webShop: {image: web}", {"image": "web"}),
        ("{webShop: {image: web}, webShopEnabled: true, global: {a: 1}}", {"image": "web"}),
        ("{webShop: {image: web}, other: 1}", {"webShop": {"image": "web"}, "other": 1}),
        ("webShop: text", {"webShop": "text"}),
        ("", {}),
    ],
)
def test_static_values_can_be_flat_or_in_a_section(values: str, static: JsonObject, tmp_path: Path) -> None:
    assert read(tmp_path, {"package.yaml": "{}", "values.yaml": values}).static_values == static


@pytest.mark.parametrize(
    ("files", "version", "found"),
    [
        ({"package.yaml": "version: 1.2.3"}, "v1.2.3", "1.2.3"),
        ({"package.yaml": "version: v1.2"}, "1.2.0", "v1.2"),
        ({"package.yaml": "version: 1.2.3"}, "", "1.2.3"),
        ({"package.yaml": "version: 1.2.3"}, "stable", "1.2.3"),
        ({"package.yaml": "{}", "version.json": '{"version": "v1.2.3"}'}, "1.2.3", "v1.2.3"),
        ({"package.yaml": "version: 1.2.3", "version.json": '{"version": "v1.2.3"}'}, "1.2.3", "1.2.3"),
        ({"package.yaml": "{}", "version.json": "{}"}, "stable", "stable"),
        ({"package.yaml": "{}", "Chart.yaml": CHART}, "", "9.9.9"),
        ({"package.yaml": "{}", "Chart.yaml": CHART}, "stable", "9.9.9"),
        ({"package.yaml": "{}", "Chart.yaml": CHART}, "1.2.3", "1.2.3"),
        ({"package.yaml": "version: 1.2.3", "Chart.yaml": CHART}, "", "1.2.3"),
        ({"hooks/a.sh": "", "Chart.yaml": CHART}, "", "9.9.9"),
    ],
)
def test_the_version_in_the_package_wins_over_the_requested_one(
    files: dict[str, str], version: str, found: str, tmp_path: Path
) -> None:
    assert read(tmp_path, files, version=version).version == found


@pytest.mark.parametrize("images", [f'{{"web": "{DIGEST}"}}', f'{{"webShop": {{"web": "{DIGEST}"}}}}'])
def test_image_digests_are_read(images: str, tmp_path: Path) -> None:
    found = read(tmp_path, {"package.yaml": "{}", "images_digests.json": images})
    assert found.images == {"web": DIGEST}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {},
            "^package 'web-shop': expected package.yaml, a Helm chart .* add a package.yaml$",
        ),
        ({"README.md": ""}, "expected package.yaml"),
        ({"package.yaml": "a: ["}, "^package.yaml: line"),
        ({"package.yaml": "nmae: a"}, "^package.yaml: nmae: unknown key; did you mean 'name'"),
        ({"package.yaml": "name: shop"}, "^package.yaml: name: shop was published as 'web-shop'; rename one of them$"),
        ({"module.yaml": "name: shop"}, "^module.yaml: name: shop was published as"),
        ({"package.yaml": "version: 1.2.4"}, "^package.yaml: version: 1.2.4 was published as 1.2.3"),
        (
            {"package.yaml": "{}", "version.json": '{"version": "v2.0.0"}'},
            "^version.json: version: v2.0.0 was published",
        ),
        ({"package.yaml": "{}", "version.json": '{"version": 2}'}, "^version.json: version: expected a string"),
        (
            {"package.yaml": "{}", "version.json": '{"version": "two"}'},
            "^version.json: version: 'two' is not a version",
        ),
        ({"package.yaml": "{}", "version.json": "[]"}, "^version.json: expected an object"),
        ({"package.yaml": "{}", "values.yaml": "[]"}, "^values.yaml: expected an object, found a list"),
        ({"package.yaml": "{}", "values.yaml": "a: ["}, "^values.yaml: line"),
        ({"hooks/a": "", "values.yaml": "webShop: 1"}, "^values.yaml: webShop: expected an object, found an integer"),
        ({"package.yaml": "{}", "Chart.yaml": "name: a"}, "^Chart.yaml: version: required"),
        ({"Chart.yaml": "apiVersion: v2\nname: a\n"}, "^Chart.yaml: version: required"),
        ({"package.yaml": "{}", "openapi/settings.yaml": "type: text"}, "^openapi/settings.yaml: .*text"),
        ({"package.yaml": "{}", "openapi/values.yaml": "properties: []"}, "^openapi/values.yaml: .*properties"),
        (
            {"package.yaml": "{}", "openapi/values.yaml": "x-extend: {schema: a}"},
            "^openapi/values.yaml: x-extend: there is",
        ),
        (
            {"package.yaml": "{}", "openapi/values.yaml": "{type: object, x-required-for-helm: 5}"},
            "^openapi/values.yaml: x-required-for-helm: expected a name or a list",
        ),
        ({"package.yaml": "{}", "images_digests.json": '{"web": 1}'}, "^images_digests.json: web: expected a digest"),
        (
            {"package.yaml": "{}", "images_digests.json": '{"web": "latest"}'},
            "^images_digests.json: web: digest 'latest'",
        ),
    ],
)
def test_invalid_packages_are_refused_with_the_file(files: dict[str, str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=why) as caught:
        read(tmp_path, files)
    assert str(tmp_path) not in str(caught.value)
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("files", "name", "why"),
    [
        ({"package.yaml": "{}"}, "Web", "expected a name of lower-case letters"),
        ({"hooks/a": ""}, "web-1", "expected a name in kebab-case"),
        ({"module.yaml": "{}"}, "a_b", "expected a name of lower-case letters"),
    ],
)
def test_invalid_package_names_are_refused(files: dict[str, str], name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=why):
        read(tmp_path, files, name=name)


def test_too_many_images_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.definition.definition.MAX_IMAGES", 0)
    with pytest.raises(ArtifactError, match="more than 0 images"):
        read(tmp_path, APPLICATION)


def test_links_that_leave_the_package_are_refused(tmp_path: Path) -> None:
    host = write(tmp_path / "host", {"package.yaml": "", "values.yaml": "a: 1", "settings.yaml": ""})
    for name, target in [
        ("package.yaml", host / "package.yaml"),
        ("values.yaml", host / "values.yaml"),
        ("openapi", host),
        ("hooks", host),
        ("templates", Path("..")),
    ]:
        tree = tmp_path / f"in-{name}"
        tree.mkdir()
        write(tree, {} if name == "package.yaml" else {"package.yaml": "{}"})
        (tree / name).symlink_to(target)
        with pytest.raises(PackageError, match="a link that leaves the package"):
            read_definition(tree, name="web", version="")


def test_a_missing_package_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="package web: its folder is missing"):
        read_definition(tmp_path / "no", name="web", version="")
