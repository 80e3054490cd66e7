"""The options of the reconciler: valid values are passed on, and invalid values are refused."""

import argparse
from dataclasses import replace

import pytest

from wharfinger.__main__ import main
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.runtime.resources.apply_options import add_apply, apply_options

DEFAULTS = EngineOptions().reconciler


def parse(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_apply(parser)
    return parser.parse_args(options)


def test_without_options_the_defaults_of_the_engine_are_used() -> None:
    assert apply_options(parse()) == DEFAULTS


@pytest.mark.parametrize(
    ("flag", "field"),
    [
        ("--apply-workers", "concurrency"),
        ("--apply-release-workers", "owner_concurrency"),
        ("--apply-slow-workers", "slow_concurrency"),
        ("--apply-round-size", "round_size"),
        ("--apply-round-gap", "round_gap_s"),
        ("--apply-patience", "patience_s"),
        ("--apply-timeout", "operation_s"),
        ("--apply-retry-first", "first_retry_s"),
        ("--apply-retry-max", "max_retry_s"),
        ("--refresh-interval", "refresh_s"),
        ("--refresh-rate", "refresh_per_s"),
        ("--prune-interval", "prune_s"),
    ],
)
def test_each_option_sets_one_field(flag: str, field: str) -> None:
    assert apply_options(parse(flag, "3")) == replace(DEFAULTS, **{field: 3})


def test_refused_applies_may_have_a_long_retry_interval() -> None:
    assert apply_options(parse("--apply-retry-refused", "3600")).permanent_retry_s == 3600


@pytest.mark.parametrize("flag", ["--apply-round-gap", "--refresh-interval", "--prune-interval"])
def test_options_can_be_switched_off_with_zero(flag: str) -> None:
    assert 0.0 in vars(parse(flag, "0")).values()


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--apply-workers", "0", "from 1 to 100000"),
        ("--apply-workers", "many", "from 1 to 100000"),
        ("--apply-timeout", "0", "not a number above 0"),
        ("--apply-timeout", "nan", "not a number from 0"),
        ("--prune-interval", "-1", "not a number from 0"),
        ("--refresh-rate", "soon", "not a number from 0"),
    ],
)
def test_invalid_values_are_refused(flag: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(f"{flag}={value}")
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--apply-retry-first", "90"), "found 90, 60 and 600; change one of them"),
        (("--apply-retry-max", "3600"), "--apply-retry-first <= --apply-retry-max <= --apply-retry-refused, found"),
        (("--apply-timeout", "1"), "--apply-patience 2 is more than --apply-timeout 1"),
    ],
)
def test_contradicting_options_are_refused(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *options]) == 2
    assert said in capsys.readouterr().err
