"""Summaries of signed statements in one line."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.trust.envelopes import Statement
from wharfinger.packages.trust.predicates import MAX_LINE, summary

NONE: frozenset[str] = frozenset()
V1: JsonObject = {
    "runDetails": {"builder": {"id": "https://ci.example"}},
    "buildDefinition": {"resolvedDependencies": [{"uri": "git+https://git.example/web"}]},
}
V02: JsonObject = {"builder": {"id": "b"}, "invocation": {"configSource": {"uri": "git+x"}}}


@pytest.mark.parametrize(
    ("kind", "predicate", "line"),
    [
        ("https://slsa.dev/provenance/v1", V1, "built by https://ci.example from git+https://git.example/web"),
        ("https://slsa.dev/provenance/v1", {}, ""),
        ("https://slsa.dev/provenance/v0.2", V02, "built by b from git+x"),
        ("https://spdx.dev/Document", {"name": "web", "packages": [{}, {}]}, "SPDX of web: 2 packages"),
        ("https://spdx.dev/Document/v2.3", {}, "SPDX: 0 packages"),
        (
            "https://cyclonedx.org/bom",
            {"components": [1], "metadata": {"component": {"name": "a"}}},
            "CycloneDX of a: 1 package",
        ),
        ("https://cosign.sigstore.dev/attestation/v1", {"Data": "x"}, "a file"),
        ("https://else.example", {"a": 1}, ""),
        ("https://slsa.dev/provenance/v1", {"runDetails": 3}, ""),
        ("https://spdx.dev/Document", {"packages": 3}, ""),
        ("https://spdx.dev/Document", {"name": "n" * 1000}, "SPDX of " + "n" * (MAX_LINE - 8)),
    ],
)
def test_predicates_are_summarized_in_one_line(kind: str, predicate: JsonObject, line: str) -> None:
    assert summary(Statement(NONE, kind, predicate)) == line
