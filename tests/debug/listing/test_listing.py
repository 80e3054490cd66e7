from dataclasses import replace

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from tests.debug.support.samples import HOSTILE, PACKAGES, package
from wharfinger.debug.listing.listing import NotListedError, read_output
from wharfinger.formats.json_path.path import JsonPathError
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.inspector import PackageSnapshot


async def test_rows_are_selected_by_namespace_and_labels() -> None:
    inspector = CannedInspector()
    assert await listed(inspector, "packages", None, "name", namespace="prod") == "prod.shop\n"
    assert await listed(inspector, "packages", None, "name", namespace="none") == ""
    labelled = CannedInspector((*PACKAGES[:2], _labelled("test.shop", team="web", tier="two")))
    assert await listed(labelled, "packages", None, "name", labels="team=web,tier!=one") == "test.shop\n"
    assert await listed(labelled, "hooks", None, "name", labels="team") == (
        "test.shop/hooks/001-config.sh\ntest.shop/hooks/002-later.py\n"
    )
    assert await listed(inspector, "resources", None, "name", labels="tier=web") == "Deployment.apps/prod/shop\n"


def _labelled(name: str, **labels: str) -> PackageSnapshot:
    return replace(package(name), labels=dict(labels))


@pytest.mark.parametrize(
    ("what", "choice", "said"),
    [
        ("repositories", {"namespace": "a"}, "the rows of `get repositories` have no namespaces; leave -n out"),
        ("versions", {"labels": "a"}, "versions have no labels to select by; leave -l out"),
        ("pools", {"labels": "a"}, "pools have no labels"),
    ],
)
async def test_impossible_selections_are_refused(what: str, choice: dict[str, str], said: str) -> None:
    with pytest.raises(NotListedError, match=said):
        await listed(
            CannedInspector(),
            what,
            None,
            "name",
            namespace=choice.get("namespace", ""),
            labels=choice.get("labels", ""),
        )


async def test_headers_can_be_omitted_and_jsonpath_templates_used() -> None:
    inspector = CannedInspector()
    whole = await listed(inspector, "packages")
    assert await listed(inspector, "packages", headers=False) == "".join(whole.splitlines(keepends=True)[1:])
    path = "jsonpath={range .apps.*}{.name}{'\\t'}{.status.state}{'\\n'}{end}"
    assert await listed(inspector, "packages", None, path) == "prod.shop\tReady\ntest.shop\tReady\n"
    assert await listed(inspector, "packages", "prod.shop", "jsonpath={.definition.version}") == "1.2.3"


async def test_control_characters_are_escaped_in_every_format() -> None:
    inspector = CannedInspector((package(message=HOSTILE),))
    for output in ("table", "wide", "json", "yaml", "jsonpath={.apps.*.status.message}"):
        assert is_safe(await listed(inspector, "packages", None, output), allow="\n\t"), output


def test_unknown_formats_are_refused() -> None:
    assert read_output("wide") == "wide"
    assert read_output("jsonpath={.a}") == "jsonpath={.a}"
    for wrong in ("xml", "jsonpath", "jsonpath="):
        with pytest.raises((ValueError, JsonPathError)):
            read_output(wrong)
    with pytest.raises(JsonPathError):
        read_output("jsonpath={.a")
