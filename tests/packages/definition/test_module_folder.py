"""Addon-operator's module folders: how they are recognized, their names and weights, and their section of values.yaml."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.charts import write
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.module_folder import (
    camel_name,
    check_module_name,
    enabled_flag,
    is_module_folder,
    kebab_name,
    own_section,
    section_of,
    split_weight,
)
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import open_files

CHART = {"Chart.yaml": "apiVersion: v2\nname: web-shop\nversion: 1.0.0\n"}


@pytest.mark.parametrize(
    ("kebab", "camel"),
    [
        ("web", "web"),
        ("module-one", "moduleOne"),
        ("module-one01", "moduleOne01"),
        ("2-module-name", "2ModuleName"),
        ("a-b-c", "aBC"),
    ],
)
def test_module_names_are_converted_to_camel_case_and_back(kebab: str, camel: str) -> None:
    assert camel_name(kebab) == camel
    assert kebab_name(camel) == kebab
    check_module_name(kebab)


@pytest.mark.parametrize(
    "name", ["module_one", "module-1", "a--b", "a-", "-a", "moduleOne", "", "A", "a" * 64, "a.b", "ä"]
)
def test_module_names_that_cannot_be_restored_are_refused(name: str) -> None:
    with pytest.raises(ArtifactError, match=r"expected a name in kebab-case"):
        check_module_name(name)


@given(st.from_regex(r"[a-z0-9]+(-[a-z][a-z0-9]*){0,4}", fullmatch=True).filter(lambda name: len(name) < 64))
def test_every_kebab_name_can_be_restored(name: str) -> None:
    check_module_name(name)
    assert "-" not in camel_name(name)


@pytest.mark.parametrize(
    ("folder", "weight", "name"),
    [
        ("002-sysctl-tuner", 2, "sysctl-tuner"),
        ("sysctl-tuner", None, "sysctl-tuner"),
        ("2-module-name", 2, "module-name"),
        ("7", None, "7"),
        ("7-", None, "7-"),
        ("1234567-web", None, "1234567-web"),
        ("web-2", None, "web-2"),
    ],
)
def test_a_number_before_the_module_name_is_its_weight(folder: str, weight: int | None, name: str) -> None:
    assert split_weight(folder) == (weight, name)


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        ({"hooks/a.sh": ""}, True),
        ({"openapi/values.yaml": ""}, True),
        ({"enabled": ""}, True),
        ({"templates/a.yaml": ""}, True),
        ({"crds/a.yaml": ""}, True),
        ({"values.yaml": "webShop: {a: 1}"}, True),
        ({"values.yaml": "webShop:"}, True),
        ({"values.yaml": "web-shop: {a: 1}"}, False),
        ({"values.yaml": ""}, False),
        ({"README.md": ""}, False),
        ({"hooks": "", "openapi": ""}, False),
        ({"enabled/a": ""}, False),
        ({}, False),
    ],
)
def test_module_folders_are_recognized_by_their_files(files: dict[str, str], is_one: bool, tmp_path: Path) -> None:
    assert is_module_folder(open_files(write(tmp_path, files), "web-shop"), "web-shop") is is_one


@pytest.mark.parametrize(
    ("files", "is_one"),
    [
        ({"hooks/a.sh": ""}, True),
        ({"openapi/config-values.yaml": ""}, True),
        ({"enabled": ""}, True),
        ({"templates/a.yaml": "", "crds/a.yaml": "", "values.yaml": "webShop: {a: 1}"}, False),
        ({"values.yaml": "a: ["}, False),
        ({}, False),
    ],
)
def test_module_folders_with_a_chart_file_are_recognized(files: dict[str, str], is_one: bool, tmp_path: Path) -> None:
    assert is_module_folder(open_files(write(tmp_path, files | CHART), "web-shop"), "web-shop") is is_one


def test_the_section_of_a_module_is_extracted_from_values() -> None:
    assert own_section({"webShop": {"a": 1}, "webShopEnabled": True, "other": 2}, "web-shop") == {"a": 1}
    assert own_section({"webShop": None}, "web-shop") == {}
    assert own_section({}, "web-shop") == {}
    with pytest.raises(ArtifactError, match=r"^values\.yaml: webShop: expected an object, found a list"):
        own_section({"webShop": []}, "web-shop")


@pytest.mark.parametrize(
    ("values", "own"),
    [
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 2}}),
        ({"web-shop": 1, "blogEnabled": True}, {"web-shop": 1, "blogEnabled": True}),
        ({"a": 1, "webShop": {"b": 2}}, {"b": 2}),
        ({"a": 1, "webShop": None}, {}),
        ({"a": 1, "webShopEnabled": False}, {}),
        ({"a": 1, "global": {}}, {}),
        ({}, {}),
    ],
)
def test_values_without_section_flag_and_global_are_flat(values: JsonObject, own: JsonObject) -> None:
    assert own_section(values, "web-shop") == own


def test_the_enabled_flag_of_a_module_is_read() -> None:
    assert enabled_flag({"webShopEnabled": True}, "web-shop") is True
    assert enabled_flag({"webShopEnabled": False}, "web-shop") is False
    assert enabled_flag({"webShopEnabled": None, "web-shopEnabled": True}, "web-shop") is None
    with pytest.raises(ArtifactError, match=r"^somewhere: webShopEnabled: expected true or false, found a string"):
        enabled_flag({"webShopEnabled": "true"}, "web-shop", "somewhere")


def test_a_section_must_be_an_object() -> None:
    assert section_of({"global": {"a": 1}}, "global") == {"a": 1}
    assert section_of({}, "global") == {}
    with pytest.raises(ArtifactError, match=r"^there: global: expected an object, found a string"):
        section_of({"global": ""}, "global", "there")
