"""The table of cluster-scoped kinds, compared with the kinds that the embedded control plane serves."""

import json

import wharfinger.control_plane.catalog
from tests.programs import ROOT
from wharfinger.kube.cluster_scoped import CLUSTER_SCOPED
from wharfinger.kube.version_option import RELEASES

FOLDER = ROOT.joinpath(*wharfinger.control_plane.catalog.__name__.split("."))


def test_the_table_agrees_with_the_kinds_of_every_version() -> None:
    tables = sorted(FOLDER.glob("builtin_kinds*.json"))
    assert len(tables) == len(RELEASES)
    rows = [row for path in tables for row in json.loads(path.read_text())]
    found = {(row["api"].rpartition("/")[0], row["kind"]) for row in rows if row.get("cluster")}
    assert found == CLUSTER_SCOPED
