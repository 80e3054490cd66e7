"""The objects that `wharfinger install` creates."""

import base64

import pytest

from wharfinger.formats.json.value import find, find_list, find_object, find_str
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.sources.archives import ArchiveFile
from wharfinger.runtime.installing.made_objects import PART_BYTES, SettingError, made_objects, read_settings
from wharfinger.runtime.installing.target import Carried, InRegistry, InRepository
from wharfinger.runtime.resources.repositories import read_repository, with_secrets
from wharfinger.runtime.resources.resources import read_application


def test_an_archive_is_split_into_secrets_that_the_repository_lists() -> None:
    data = bytes(range(256)) * 4000
    made = made_objects(Carried("web", "1.0.0", data), "prod", "shop", {"a": 1})
    assert [len(base64.b64decode(find_str(each, "data", "archive"))) for each in made.secrets] == [
        PART_BYTES,
        len(data) - PART_BYTES,
    ]
    assert made.repository is not None
    repository = read_repository(made.repository)
    source = with_secrets(repository, dict(zip(repository.secrets.values(), made.secrets, strict=True)))
    assert [(each.data, each.version) for each in source.files if isinstance(each, ArchiveFile)] == [(data, "1.0.0")]  # type: ignore[union-attr]
    assert find(made.application, "spec", "packageRepositoryName") == find_str(made.repository, "metadata", "name")
    other = made_objects(Carried("web", "1.0.0", b"x"), "prod", "shop", {})
    assert find(other.application, "spec", "packageRepositoryName") != find(
        made.application, "spec", "packageRepositoryName"
    )


def test_a_registry_gets_a_repository_with_a_name_of_its_own() -> None:
    address = RepositoryAddress(RegistryAddress("r.example", 5000), "team/a", "http")
    made = made_objects(InRegistry(address, "web", "", ">=1"), "prod", "shop", {})
    assert made.repository is not None
    assert find_object(made.repository, "spec", "registry") == {"repo": "r.example:5000/team/a", "scheme": "HTTP"}
    name = find_str(made.repository, "metadata", "name")
    assert name.startswith("r-example-5000-team-a-")
    spec = read_application(made.application)
    assert (spec.repository, spec.package, spec.version) == (name, "web", "")
    used = made_objects(InRegistry(address, "web", "1.0.0"), "prod", "shop", {}, "theirs")
    assert used.repository is None
    assert find(used.application, "spec", "packageRepositoryName") == "theirs"


def test_a_package_of_a_repository_needs_only_an_application() -> None:
    made = made_objects(InRepository("web", "1.0.0"), "prod", "shop", {"a": {"b": 2}})
    assert (made.repository, made.secrets) == (None, ())
    assert made.application["spec"] == {
        "packageRepositoryName": "default",
        "packageName": "web",
        "packageVersion": "1.0.0",
        "settings": {"a": {"b": 2}},
    }
    assert find_list(made.application, "spec", "absent") == []


def test_settings_are_read_from_paths_and_yaml_values() -> None:
    assert read_settings(["a.b=2", "a.c=true", "d=x=y", "e=[1, two]", "f=", "g=null"]) == {
        "a": {"b": 2, "c": True},
        "d": "x=y",
        "e": [1, "two"],
        "f": "",
        "g": None,
    }


@pytest.mark.parametrize(
    "texts", [["a"], ["=1"], ["a..b=1"], ["a=1", "a.b=hush"], ["a=[hush"], ["a.b.c" * 40 + "=hush"]]
)
def test_wrong_settings_are_refused_without_their_value(texts: list[str]) -> None:
    with pytest.raises(SettingError, match="--set") as caught:
        read_settings(texts)
    assert "expected path.to.key=value" in str(caught.value) or "hush" not in str(caught.value)
