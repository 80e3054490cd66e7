"""Mirrors and rewrite rules, in the format of containers-registries.conf(5)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.address import parse_repository
from wharfinger.packages.sources.registry_rules import (
    NO_RULES,
    Place,
    RegistryRules,
    Rule,
    RulesFileError,
    read_registry_rules,
)

FILE = """
unqualified-search-registries = ["docker.io"]

[[registry]]
prefix = "ghcr.example/org"
location = "registry.corp.example/ghcr"
[[registry.mirror]]
location = "mirror.corp.example:5000/ghcr"
insecure = true
[[registry.mirror]]
location = "far.corp.example/ghcr"
pull-from-mirror = "digest-only"

[[registry]]
location = "ghcr.example"
[[registry]]
prefix = "ghcr.example/org/secret"
blocked = true

[[registry]]
prefix = "*.cloud.example"
[[registry.mirror]]
location = "mirror.corp.example/cloud"

[[registry]]
location = "once.example/packages"
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.corp.example"
"""


def rules(folder: Path, text: str = FILE) -> RegistryRules:
    file = folder / "registries.conf"
    file.write_text(text)
    return read_registry_rules(file)


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        (
            "ghcr.example/org/web",
            [
                ("http://mirror.corp.example:5000/ghcr/web", "all"),
                ("https://far.corp.example/ghcr/web", "digest-only"),
                ("https://registry.corp.example/ghcr/web", "all"),
            ],
        ),
        ("ghcr.example/organ/web", [("https://ghcr.example/organ/web", "all")]),
        ("other.example/web", [("https://other.example/web", "all")]),
        (
            "eu.cloud.example/team/web",
            [("https://mirror.corp.example/cloud/team/web", "all"), ("https://eu.cloud.example/team/web", "all")],
        ),
        ("cloud.example/team/web", [("https://cloud.example/team/web", "all")]),
        (
            "once.example/packages/web",
            [("https://mirror.corp.example/web", "digest-only"), ("https://once.example/packages/web", "all")],
        ),
        (
            "http://once.example/packages/web",
            [("https://mirror.corp.example/web", "digest-only"), ("http://once.example/packages/web", "all")],
        ),
    ],
)
def test_rules_give_the_candidate_addresses_of_a_repository(
    asked: str, places: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = rules(tmp_path).candidates(parse_repository(asked))
    assert [(f"{each.address.scheme}://{each.address}", each.pull) for each in found] == places


def test_a_repository_without_rules_is_its_only_candidate() -> None:
    repository = parse_repository("ghcr.example/org/web")
    assert [each.address for each in NO_RULES.candidates(repository)] == [repository]


def test_a_blocked_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegistryError) as caught:
        rules(tmp_path).candidates(parse_repository("ghcr.example/org/secret/web"))
    assert str(caught.value) == (
        f"ghcr.example/org/secret/web: blocked by the rule for ghcr.example/org/secret in {tmp_path / 'registries.conf'}; "
        "remove the rule, or name another repository"
    )
    assert not caught.value.transient


def test_hosts_are_compared_case_insensitively(tmp_path: Path) -> None:
    text = '[[registry]]\nprefix = "GHCR.example/evil"\nblocked = true\n'
    with pytest.raises(RegistryError, match="blocked by the rule"):
        rules(tmp_path, text).candidates(parse_repository("ghcr.example/evil/web"))


def test_a_rule_with_an_invalid_result_is_refused(tmp_path: Path) -> None:
    found = rules(tmp_path, '[[registry]]\nprefix = "a.example/team"\nlocation = "b.example"\n')
    with pytest.raises(RegistryError, match=r"leads to b\.example/, which is not a valid repository; correct the rule"):
        found.candidates(parse_repository("a.example/team"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[registry]]", r"registry 1: expected host\[:port\]\[/path\], found ''"),
        ("[registry]", r"expected at most 1000 tables \[\[registry\]\]"),
        ('[[registry]]\nlocation = "a b"', "registry 1: expected host"),
        ('[[registry]]\nlocation = "a.example/B"', "found 'a.example/B': 'B' is not a valid repository"),
        ("[[registry]]\nlocation = 3", "location: expected text, found int; put it in quotes"),
        ('[[registry]]\nlocation = "a"\nblocked = "yes"', "blocked: expected true or false, found str"),
        (
            '[[registry]]\nlocation = "a"\nblock = true',
            "registry 1: 'block' is not known; remove it, or correct it: blocked",
        ),
        ('[[registry]]\nprefix = "*.a"\nlocation = "b"', r"expected a prefix like \*\.example\.com without location"),
        ('[[registry]]\nlocation = "a"\n[[registry.mirror]]', "registry 1: mirror 1: expected host"),
        (
            '[[registry]]\nlocation = "a"\n[[registry.mirror]]\nlocation = "b"\npull-from-mirror = "no"',
            "pull-from-mirror: expected one of all, digest-only, tag-only, found 'no'",
        ),
        ('[[registry]]\nlocation = "a.example/b"\n[[registry]]', r"registries\.conf: registry 2: expected host"),
        ("[[registry", "not TOML: "),
    ],
)
def test_invalid_rules_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RulesFileError, match=message):
        rules(tmp_path, text)


def test_missing_and_oversized_rules_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RulesFileError, match="cannot be read: No such file"):
        read_registry_rules(tmp_path / "none")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(RulesFileError, match="expected at most"):
        read_registry_rules(tmp_path / "large")


@given(st.from_regex(r"[a-z0-9]{1,5}(\.[a-z]{1,5})?(:[1-9][0-9]{0,3})?(/[a-z]{1,4}){1,3}", fullmatch=True))
def test_a_mirror_address_retains_the_rest_of_the_path(text: str) -> None:
    host, _, path = text.partition("/")
    found = RegistryRules((Rule(host, Place("b.example/x")),)).candidates(parse_repository(text))
    assert [str(each.address) for each in found] == [f"b.example/x/{path}"]
