from pathlib import Path

import yaml

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from wharfinger.debug.package.describe_command import add_describe


async def test_describe_prints_text_and_documents(tmp_path: Path) -> None:
    code, out, err = await typed(add_describe, ["prod.shop"], CannedInspector(), tmp_path)
    assert (code, err) == (0, "")
    assert out.startswith("Name:         prod.shop\n")
    _, out, _ = await typed(add_describe, ["prod.shop", "-o", "yaml"], CannedInspector(), tmp_path)
    assert yaml.safe_load(out)["package"]["name"] == "prod.shop"
    code, _, err = await typed(add_describe, ["shop"], CannedInspector(), tmp_path)
    assert (code, err) == (1, "error: no package named 'shop'; did you mean prod.shop or test.shop?\n")
