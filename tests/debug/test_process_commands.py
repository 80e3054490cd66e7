"""The commands `wharfinger profile` and `wharfinger memory`."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import captured, parsed, typed
from tests.debug.support.samples import MEMORY
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.process_commands import add_memory, add_profile


async def test_profile_prints_a_text(tmp_path: Path) -> None:
    code, out, err = await typed(add_profile, ["--seconds", "0.05"], CannedInspector(), tmp_path)
    assert (code, err) == (0, "")
    assert "waiting for I/O and timers" in out
    assert str(tmp_path) not in out


async def test_profile_prints_every_format(tmp_path: Path) -> None:
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load), ("speedscope", json.loads)):
        code, out, _ = await typed(add_profile, ["--seconds", "0.02", "-o", output], CannedInspector(), tmp_path)
        assert code == 0
        assert isinstance(read(out), dict)
    _, out, _ = await typed(add_profile, ["--seconds", "0.02", "-o", "collapsed"], CannedInspector(), tmp_path)
    assert all(line.rpartition(" ")[2].isdigit() and ";" in line for line in out.splitlines())


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "61"], ["--seconds", "x"], ["-o", "svg"]])
async def test_wrong_arguments_are_usage_errors(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        await typed(add_profile, words, CannedInspector(), tmp_path)
    assert raised.value.code == 2
    if words[0] == "--seconds":
        assert f"expected a number over 0 and up to 60, found {words[1]!r}" in capsys.readouterr().err


async def test_memory_prints_every_format(tmp_path: Path) -> None:
    code, out, _ = await typed(add_memory, [], CannedInspector(), tmp_path)
    assert code == 0
    assert out.splitlines()[2].split() == ["chart-engine", "2", "60", "MiB"]
    _, out, _ = await typed(add_memory, ["-o", "json"], CannedInspector(), tmp_path)
    assert json.loads(out) == record_to_json(MEMORY)
    _, out, _ = await typed(add_memory, ["--output", "yaml"], CannedInspector(), tmp_path)
    assert yaml.safe_load(out) == record_to_json(MEMORY)


def test_profile_and_memory_report_a_missing_daemon(tmp_path: Path) -> None:
    for add in (add_profile, add_memory):
        args = parsed(add, [], tmp_path / "s")
        code, out, err = captured(partial(args.handler, args))
        assert (code, out) == (1, "")
        assert err.startswith("error: no daemon answers on ")
