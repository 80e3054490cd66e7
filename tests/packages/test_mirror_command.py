"""``wharfinger repository mirror`` as people run it."""

from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.registry_server import open_registry_server
from wharfinger.__main__ import main
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package


async def run(*arguments: str) -> int:
    return await trio.to_thread.run_sync(lambda: main(["repository", "mirror", *arguments]))


async def test_from_a_folder_to_a_registry_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = await load_package(chart(tmp_path / "web", "web", "1.0.0"))
    pushed = await push_package(package, OciLayout(tmp_path / "one"), "web", "1.0.0")
    source, back = f"oci-layout:{tmp_path}/one", f"oci-layout:{tmp_path}/two"
    async with open_registry_server(tmp_path) as address:
        there = f"{address}/packages"
        assert await run(source, there, "--dry-run") == 0
        planned = capsys.readouterr().out.splitlines()
        assert planned[0].startswith(f"would copy web:1.0.0 {pushed.digest} ")
        assert planned[1].startswith("would copy 1 artifacts, ")
        assert await run(source, there) == 0
        assert capsys.readouterr().out.splitlines()[1] == planned[1].replace("would copy", "copied")
        async with open_registry(address, scheme="http") as registry:
            assert await registry.resolve("packages/web", "1.0.0") == pushed
        assert await run(there, back) == 1
        assert "does not list its packages" in capsys.readouterr().err
        assert await run(there, back, "--package", "web") == 0
    assert await OciLayout(tmp_path / "two").resolve("web", "1.0.0") == pushed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.example/b", "a.example/c", "--package", "Web"), "expected NAME or NAME:TAG, such as web:1.2.0"),
        (("a", "a.example/c", "--package", "web"), "expected host/path"),
        (("oci-layout:/none", "oci-layout:/none2", "--package", "web"), "not found"),
    ],
)
async def test_one_line_says_what_is_wrong(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run(*arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
