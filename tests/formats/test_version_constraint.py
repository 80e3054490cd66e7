"""Version constraints: the documented cases of the dialect, invalid texts, and a comparison with the real Helm."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import semver
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.version_constraint import (
    MAX_CHARACTERS,
    MAX_COMPARATORS,
    MAX_VERSION_CHARACTERS,
    ConstraintError,
    combine_constraints,
    parse_constraint,
    parse_version,
)

ALLOWS: Final[dict[str, tuple[str, str]]] = {
    # Each constraint has the versions that it allows, and versions that it does not allow.
    "": ("0 1 4.5.6 1.2.3-alpha.1", ""),
    "*": ("0 1 4.5.6 1.2.3-alpha.1", ""),
    "=2.0.0": ("2.0.0", "1.2.3 2.0.1"),
    "= 2.0": ("2.0.0 2.0.1", "1.2.3 2.1.0"),
    "2": ("2.1.1", "1 3.4.5"),
    "2.1": ("2.1.1", "2.2.1"),
    "2.*": ("2.1.1", "1 3.4.5"),
    "2.1.X": ("2.1.1", "2.2.1"),
    "v4.1": ("4.1.0", "4.2.0"),
    "!=4.1.0": ("4.1.1", "4.1.0"),
    "!=4.1": ("5.1.0 4.2.0", "4.1.0 4.1.1"),
    "!=4.x": ("5.1.0", "4.1.0"),
    "!=4.1-alpha": ("4.1.0 4.1.0-alpha", ""),
    "<11": ("0.1.0 10.9.9", "11.0.0 11.1.0"),
    "<1.1": ("0.1.0 1.0.9", "1.1.0 1.1.1"),
    "<1.1.x": ("1.0.500", "1.1.500 1.2.1"),
    "<=11": ("1.2.3 11.2.3", "12.2.3"),
    "=<1.1": ("0.1.0 1.1.0 1.1.1", "1.2.3"),
    "<=1.1-a": ("0.1.0-alpha", "1.2.0"),
    ">1.1": ("4.1.0 1.2.0", "1.1.0 1.1.1"),
    ">0": ("1", "0 0.0.1-alpha 0.9.0"),
    ">11.1": ("11.2.1", "11.1.0 11.1.1"),
    ">1.2.3-alpha.1": ("1.2.3 1.3.3", "1.2.2"),
    ">=11.1": ("11.1.2", "11.0.2"),
    "=> 1.1": ("1.1.0 4.1.0", "0.0.9"),
    "~1.2.3": ("1.2.3 1.2.5", "1.2.2 1.3.2 2.2.3"),
    "~1.2": ("1.2.0 1.2.4", "1.3.4"),
    "~>1": ("1.2.4", "0.9.0 2.3.4"),
    "~0.2.3": ("0.2.5", "0.3.5"),
    "~0.0.0": ("0.0.0 1.2.3", ""),
    "~*": ("2.1.1", ""),
    "~1.1.1-beta": ("1.1.1", "1.1.0 1.2.0"),
    "^1.2.3": ("1.2.3 1.8.9", "1.2.1 2.8.9"),
    "^1.2": ("1.2.0 1.8.9", "1.1.9 2.8.9"),
    "^1": ("1.0.0 1.8.9", "2.8.9"),
    "^1.x": ("1.1.1", "2.1.1"),
    "^0.2.3": ("0.2.5", "0.2.2 0.5.6"),
    "^0.2": ("0.2.5", "0.5.6"),
    "^0.0.3": ("0.0.3", "0.0.2 0.0.4"),
    "^0.0": ("0.0.3", "0.1.4 1.0.4"),
    "^0": ("0.2.3", "1.1.4"),
    "^0.0.0": ("0.0.0", "0.0.1 1.2.3"),
    "0.x.x": ("0.9.9", "1.2.3"),
    ">1.1, <2": ("1.2.1", "1.1.1 2.0.0"),
    ">=1.1    < 2    != 1.2.3": ("1.2.4", "1.2.3 2.0.0"),
    ">=1.1, <2, !=1.2.3 || > 3": ("1.2.1 4.1.2", "3.0.0 3.1.2 1.2.3"),
    ">= 1.1 <2 != 1.2.3||>= 3": ("3.0.0", "1.2.3 2.5.0"),
    "1.1 - 2": ("1.1.1 2.9.9", "1.0.9 3.0.0"),
    "1.5.0 - 4.5": ("1.5.0 3.7.0 4.5.9", "1.4.9 4.6.0"),
    "1.1-3": ("1.1.0", "1.0.9 4.3.2"),
    "1.0.0 - 2.0.0 <=1.9": ("1.5.0", "2.0.0"),
    "3 - 4, 2 - 3 || 7": ("3.5.0 7.1.0", "2.5.0 4.0.0"),
    "1.2 - x": ("1.2.0 9.0.0", "1.1.9"),
    # The installed version counts without its prerelease and build metadata.
    ">=1.2.0": ("1.2.0-rc1 v1.2.0+build", "1.1.9-rc1"),
    "<1.2.0": ("1.1.9-rc1", "1.2.0-rc1"),
    # Masterminds/semver compares with 0.0.0. Here, a bare wildcard is taken literally.
    "<=*": ("0.0.0 5.0.0", ""),
    "^*": ("0.0.0 5.0.0", ""),
    ">=*": ("0.0.0 5.0.0", ""),
    ">*": ("", "0.0.0 5.0.0"),
    "<*": ("", "0.0.0 5.0.0"),
    "!=*": ("", "0.0.0 5.0.0"),
}
REFUSED: Final = [
    *("foo", ">= bar", "BAR >= 1.2.3", "12.3.4.1234", "12.3.34~ 1.2.3", "x1", "1x", "1.2-", "1.", ".1", "1.2.3-a_b"),
    *("<>1", "==1", "> =1", ">=1,", ",", ",>=1", ">=1,,<2", ">=1<2", "1||", "||1", "1 || || 2", "|", "v 1"),
    *(">1 - 2", "1 - ~2", "1 - 2 - 3", "1.2.3 -2", "1 -2", "2- 3", "- 3", "1 - ", "1.2.3-01", "1 - 2.0.0-01", "\u0661"),
    *("1.2.3\u00a0<2", "18446744073709551616", "1 - 18446744073709551616", ">=1\x00"),
]


@pytest.mark.parametrize("text", ALLOWS)
def test_constraints_allow_and_refuse_versions(text: str) -> None:
    constraint = parse_constraint(text)
    allowed, refused = ALLOWS[text]

    assert [version for version in allowed.split() if not constraint.allows(version)] == []
    assert [version for version in refused.split() if constraint.allows(version)] == []
    assert str(constraint) == text


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_constraints_are_refused(text: str) -> None:
    with pytest.raises(ConstraintError, match="version constraint"):
        parse_constraint(text)


def test_the_message_shows_the_position_of_the_error() -> None:
    with pytest.raises(ConstraintError, match=r"'>=1, <bad': not understood at '<bad'; write one like"):
        parse_constraint(">=1, <bad")


def test_constraints_over_the_limits_are_refused() -> None:
    assert parse_constraint(" ".join([">1"] * MAX_COMPARATORS)).allows("2")
    with pytest.raises(ConstraintError, match="more than 64 comparators"):
        parse_constraint(" || ".join([">1"] * (MAX_COMPARATORS + 1)))
    assert parse_constraint(">1".ljust(MAX_CHARACTERS)).allows("2")
    with pytest.raises(ConstraintError, match="1025 characters"):
        parse_constraint(">1".ljust(MAX_CHARACTERS + 1))
    with pytest.raises(ConstraintError) as caught:
        parse_constraint("x" * MAX_CHARACTERS)
    assert len(str(caught.value)) < 300


def test_parsed_versions_are_allowed_and_invalid_versions_are_refused() -> None:
    constraint = parse_constraint("^1.2")
    assert constraint.allows(semver.Version(1, 3, 0, "rc.1"))
    assert not constraint.allows(semver.Version(2))
    with pytest.raises(ConstraintError, match="'latest' is not a version"):
        constraint.allows("latest")


def test_constraints_with_the_same_text_are_equal() -> None:
    assert parse_constraint("^1") == parse_constraint("^1")
    assert hash(parse_constraint("^1")) == hash(parse_constraint("^1"))
    assert parse_constraint("^1") != parse_constraint("^1.0")
    assert repr(parse_constraint("^1")) == "VersionConstraint(text='^1')"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2", "1.2.0"),
        ("1", "1.0.0"),
        ("v1.2-rc.1", "1.2.0-rc.1"),
        ("1-0+b.01", "1.0.0-0+b.01"),
        ("1.2.3-rc1+build.5", "1.2.3-rc1+build.5"),
        ("18446744073709551615.0.0", "18446744073709551615.0.0"),
    ],
)
def test_versions_are_completed_to_three_parts(text: str, version: str) -> None:
    assert str(parse_version(text)) == version


@pytest.mark.parametrize(
    "text",
    [
        *("", "v", "V1.2", "01.2.3", "1.02.3", "1.2.3.4", "1.2.3-", "1.2.3-a..b", "1.2.3-01", "x", "1.x", "=1.2.3"),
        *(" 1.2.3", "1.2.3\n", "18446744073709551616.0.0", "\u0661.0.0", "1" * (MAX_VERSION_CHARACTERS + 1)),
    ],
)
def test_invalid_versions_are_refused(text: str) -> None:
    with pytest.raises(ConstraintError, match="is not a version"):
        parse_version(text)


_PARTS: Final = st.integers(0, 3).map(str) | st.sampled_from("xX*")
_WRITTEN: Final = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "=", "!=", ">", "<", ">=", "<=", "=>", "=<", "~", "~>", "^"]),
    st.sampled_from(["", " ", "v"]),
    st.lists(_PARTS, min_size=1, max_size=3).map(".".join),
    st.sampled_from(["", "", "-rc.1", "+build"]),
)
_INSTALLED: Final = st.tuples(*[st.integers(0, 4)] * 3).map(lambda parts: ".".join(map(str, parts)))


@given(st.lists(st.lists(_WRITTEN, min_size=1, max_size=3), min_size=1, max_size=3), _INSTALLED, st.sampled_from(" ,"))
def test_a_constraint_needs_all_comparators_of_one_alternative(
    written: list[list[str]], version: str, between: str
) -> None:
    whole = parse_constraint("||".join(between.join(together) for together in written))
    assert whole.allows(version) == any(
        all(parse_constraint(one).allows(version) for one in together) for together in written
    )


@given(_WRITTEN.filter(lambda text: text[0] not in "!=<>~^"), _INSTALLED)
def test_an_unequal_comparator_allows_other_versions(text: str, version: str) -> None:
    if (
        "-" not in text
    ):  # A release never equals a prerelease, and the two parsers read a partial prerelease differently.
        assert parse_constraint(text).allows(version) is not parse_constraint(f"!={text}").allows(version)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (">=1", "<3", ">=1, <3"),
        (" 1.2 - 2 ", "!=2", "1.2 - 2, !=2"),
        ("1 || 3", "<3", "(1 || 3) and (<3)"),
        ("", "<3", "<3"),
        ("<3", " ", "<3"),
        ("", "", ""),
        ("^1 || 2", "^1 || 2", "^1 || 2"),
    ],
)
def test_combined_constraints_have_a_readable_text(first: str, second: str, text: str) -> None:
    together = combine_constraints(parse_constraint(first), parse_constraint(second))
    assert str(together) == text
    if " and " not in text:
        assert [parse_constraint(text).allows(version) for version in ("1.5.0", "2.0.1", "3.0.0")] == [
            together.allows(version) for version in ("1.5.0", "2.0.1", "3.0.0")
        ]


@given(
    st.sampled_from(sorted(ALLOWS)),
    st.sampled_from(sorted(ALLOWS)),
    st.sampled_from(["0.1.0", "1.2.3", "2.1.1", "4.1.0"]),
)
def test_combined_constraints_allow_only_versions_that_both_allow(first: str, second: str, version: str) -> None:
    one, other = parse_constraint(first), parse_constraint(second)
    assert combine_constraints(one, other).allows(version) is (one.allows(version) and other.allows(version))


def test_constraints_agree_with_helm(tmp_path: Path) -> None:
    assert shutil.which("helm") is not None, "helm is not on PATH: `make setup` brings it"
    operators = ["", "=", "!=", ">", "<", ">=", "<=", "=>", "=<", "~", "~>", "^"]
    numbers = ["0", "1", "1.x", "0.0", "0.1", "1.2", "1.2.x", "0.0.0", "0.0.2", "0.1.2", "1.0.0", "1.2.3", "01.02"]
    suffixes = ["", "-rc.1", "+b"]
    single = ["".join(parts) for parts in itertools.product(operators, numbers, suffixes)]
    ranges = [f"{low} - {high}" for low, high in itertools.product(numbers, numbers)]
    listed = [text for text in ALLOWS if text.strip() and text.lstrip("<>=!^ ") != "*" and "- x" not in text]
    versions = [
        "0.0.0",
        "0.0.1",
        "0.0.2",
        "0.0.3",
        "0.1.0",
        "0.1.2",
        "0.1.3",
        "1.0.0",
        "1.0.1",
        "1.2.2",
        "1.2.3",
        "1.2.4",
    ]
    versions += ["1.3.0", "2.0.0", "2.1.1", "11.1.1"]
    cases = list(itertools.product([*single, *ranges, *listed], versions))

    answers = _ask_helm(tmp_path, cases)

    assert len(answers) == len(cases) > 8_000
    wrong = [
        case for case, said in zip(cases, answers, strict=True) if parse_constraint(case[0]).allows(case[1]) is not said
    ]
    assert wrong == []


def _ask_helm(folder: Path, cases: list[tuple[str, str]]) -> list[bool]:
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: asked\nversion: 0.1.0\n")
    (chart / "templates/answers.yaml").write_text(
        'answers: "{{ range .Values.cases }}{{ ternary 1 0 (semverCompare (index . 0) (index . 1)) }}{{ end }}"\n'
    )
    (folder / "cases.json").write_text(json.dumps({"cases": cases}))
    printed = subprocess.run(
        ["helm", "template", "asked", chart, "--values", folder / "cases.json"],
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    ).stdout
    return [answer == "1" for answer in printed.split('"')[1]]
