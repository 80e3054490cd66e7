"""The command-line options for the platform: its version, its edition and its bundle."""

import argparse

import pytest

from wharfinger.runtime.plan.platform_options import add_platform, platform_problem, version_problem


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_platform(parser.add_argument_group("facts"))
    return parser.parse_args(words)


def test_platform_options_are_optional() -> None:
    args = parse()
    assert (args.platform_version, args.edition, args.bundle) == ("", "", "")
    assert platform_problem(args) == ""


def test_all_platform_options_can_be_given() -> None:
    args = parse("--platform-version", "v1.60.2", "--edition", "ee", "--bundle", "Default")
    assert (args.platform_version, args.edition, args.bundle) == ("v1.60.2", "ee", "Default")
    assert platform_problem(args) == ""


@pytest.mark.parametrize("words", [("--edition", "ee"), ("--bundle", "Default")])
def test_edition_and_bundle_are_required_together(words: tuple[str, str]) -> None:
    assert platform_problem(parse(*words)).startswith("--edition and --bundle are used only together")


def test_invalid_versions_are_refused() -> None:
    assert platform_problem(parse("--platform-version", "new")).startswith("--platform-version: 'new' is not a version")
    assert version_problem("--kubernetes-version", "") == ""
    assert version_problem("--kubernetes-version", "1.31.2+k3s1") == ""


@pytest.mark.parametrize("word", [" ee", "e\te", "x" * 65])
def test_invalid_names_are_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--edition", word)
    assert "expected at most 64 printable characters, without spaces at the ends" in capsys.readouterr().err
