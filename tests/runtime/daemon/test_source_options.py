"""The options for mirrors and tokens, and the proxies from the environment."""

import argparse
from pathlib import Path

import pytest

from wharfinger.packages.network.proxies import read_proxies
from wharfinger.runtime.daemon.source_options import SourceOptions, SourceOptionsError, add_sources, source_options


def options(*arguments: str, **environ: str) -> SourceOptions:
    parser = argparse.ArgumentParser()
    add_sources(parser)
    return source_options(parser.parse_args(arguments), environ)


def test_no_source_options_are_set_by_default() -> None:
    assert options() == SourceOptions()


def test_all_source_options_are_read(tmp_path: Path) -> None:
    file = tmp_path / "registries.conf"
    file.write_text('[[registry]]\nlocation = "a.example"\n')
    environ = {"HTTPS_PROXY": "http://proxy.example:3128"}
    found = options("--registry-tokens", str(tmp_path), "--registries-conf", str(file), **environ)
    assert [rule.prefix for rule in found.rules.rules] == ["a.example"]
    assert (found.tokens, found.proxies) == ((tmp_path.resolve(),), read_proxies(environ))


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (("--registry-tokens", "/none"), {}, "--registry-tokens /none: not a folder; name an existing one"),
        (("--registries-conf", "/none"), {}, "--registries-conf /none: cannot be read: No such file or directory"),
        ((), {"HTTPS_PROXY": "socks5://a"}, "HTTPS_PROXY: expected the address of an HTTP proxy"),
    ],
)
def test_each_invalid_option_is_reported(arguments: tuple[str, ...], environ: dict[str, str], message: str) -> None:
    with pytest.raises(SourceOptionsError, match=message):
        options(*arguments, **environ)
