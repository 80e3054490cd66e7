"""What is said about the platform on the command line."""

import argparse

import pytest

from wharfinger.runtime.plan.platform_options import add_platform, platform_problem, version_problem


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_platform(parser.add_argument_group("facts"))
    return parser.parse_args(words)


def test_nothing_need_be_said() -> None:
    args = parse()
    assert (args.platform_version, args.edition, args.bundle) == ("", "", "")
    assert platform_problem(args) == ""


def test_all_may_be_said() -> None:
    args = parse("--platform-version", "v1.60.2", "--edition", "ee", "--bundle", "Default")
    assert (args.platform_version, args.edition, args.bundle) == ("v1.60.2", "ee", "Default")
    assert platform_problem(args) == ""


@pytest.mark.parametrize("words", [("--edition", "ee"), ("--bundle", "Default")])
def test_an_edition_goes_together_with_a_bundle(words: tuple[str, str]) -> None:
    assert platform_problem(parse(*words)).startswith("--edition and --bundle are used only together")


def test_a_version_must_be_one() -> None:
    assert platform_problem(parse("--platform-version", "new")).startswith("--platform-version: 'new' is not a version")
    assert version_problem("--kubernetes-version", "") == ""
    assert version_problem("--kubernetes-version", "1.31.2+k3s1") == ""


@pytest.mark.parametrize("word", [" ee", "e\te", "x" * 65])
def test_a_name_is_a_name(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--edition", word)
    assert "is not a name of at most 64 characters" in capsys.readouterr().err
