import argparse

import pytest

from wharfinger.kube.version_option import DEFAULT, RELEASES, add_kubernetes_version


def parsed(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    add_kubernetes_version(parser, "with --embedded: ")
    found: str = parser.parse_args(arguments).kubernetes_version
    return found


def test_the_default_and_the_next_version() -> None:
    assert parsed() == DEFAULT == "1.36"
    assert parsed("--kubernetes-version", "1.37") == "1.37"
    assert [release.startswith(f"v{version}.") for version, release in RELEASES.items()] == [True, True]


def test_another_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--kubernetes-version", "1.20")
    assert "invalid choice: '1.20'" in capsys.readouterr().err
