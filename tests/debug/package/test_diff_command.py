import json
from pathlib import Path

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from tests.debug.support.samples import DIFFERENCE
from wharfinger.debug.package.diff_command import EXIT_DIFFERENT, add_diff
from wharfinger.runtime.package_details import DifferenceSnapshot


async def test_the_exit_code_tells_differences_from_errors(tmp_path: Path) -> None:
    code, out, err = await typed(add_diff, ["prod.shop"], CannedInspector(), tmp_path)
    assert code == EXIT_DIFFERENT
    assert out.startswith("~ Deployment.apps prod/shop\n    ~ /spec/replicas: 1 -> 2\n")
    assert err == "objects: 1 created, 1 changed, 1 deleted, 4 unchanged\nnote: 2 hooks would run\n"
    same = CannedInspector(next_apply=DifferenceSnapshot("prod.shop", unchanged=3))
    assert await typed(add_diff, ["prod.shop"], same, tmp_path) == (0, "", "no differences\n")
    broken = CannedInspector(next_apply=DifferenceSnapshot("prod.shop", problem="the package is not loaded yet"))
    code, _, err = await typed(add_diff, ["prod.shop"], broken, tmp_path)
    assert (code, err) == (
        1,
        "error: package 'prod.shop': cannot tell what the next apply would change: the package is not loaded yet\n",
    )


async def test_the_difference_is_printed_as_json(tmp_path: Path) -> None:
    _, out, err = await typed(add_diff, ["prod.shop", "-o", "json"], CannedInspector(), tmp_path)
    document = json.loads(out)
    assert [each["change"] for each in document["changes"]] == [each.change for each in DIFFERENCE.changes]
    assert err == ""


@pytest.mark.parametrize(("name", "hint"), [("nope", "lists them\n"), ("/", "add --against FOLDER|REVISION\n")])
async def test_an_unknown_package_is_an_error(name: str, hint: str, tmp_path: Path) -> None:
    code, _, err = await typed(add_diff, [name], CannedInspector(), tmp_path)
    assert code == 1
    assert err.endswith(hint)
