"""The command-line options for intentional faults."""

import argparse

import pytest

from wharfinger.kube.chaos_options import add_chaos


def test_options_are_parsed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_chaos(parser, "with --embedded: ")
    assert vars(parser.parse_args([])) == {"chaos": None, "chaos_seed": 0}
    assert vars(parser.parse_args(["--chaos", "error code=503", "--chaos-seed", "7"])) == {
        "chaos": "error code=503",
        "chaos_seed": 7,
    }
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "with --embedded: inject faults into requests" in capsys.readouterr().out
