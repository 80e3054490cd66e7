"""The package of a trial, read from its folder, and copies of the folder with another version."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import ROOT
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.receipts.subject import next_version, place, read_subject, repository
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.resources import read_application, read_module

EXAMPLES = ROOT / "examples"


def test_applications_and_modules_are_read_from_their_folder() -> None:
    app = read_subject(EXAMPLES / "reloader", "", {"maxTargets": 5})
    assert (app.id, app.version) == (AppId("default", "reloader"), "1.0.0")
    assert app.account.user == "system:serviceaccount:default:package"
    spec = read_application(app.resource("1.0.1"))
    assert (spec.version, spec.directives.account, spec.settings) == ("1.0.1", "package", {"maxTargets": 5})
    module = read_subject(EXAMPLES / "namespace-defaults", "", {})
    assert module.id == ModuleId("namespace-defaults")
    asked = read_module(module.resource("1.0.0"))
    assert (asked.id, asked.enabled, asked.directives.account) == (module.id, True, "package")


def test_a_chart_is_read_as_the_requested_kind(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.2.3")
    assert read_subject(folder, "shop", {}).id == AppId("shop", "web")
    assert read_subject(folder, "shop", {}, as_module=True).id == ModuleId("web", "shop")


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no such folder"):
        read_subject(tmp_path / "absent", "", {})


def test_a_copy_has_the_given_version_and_replaces_an_earlier_copy(tmp_path: Path) -> None:
    folder, target = chart(tmp_path / "web", "web", "1.2.3"), tmp_path / "packages" / "web"
    place(folder, target, "1.2.4")
    (target / "left-over").write_text("")
    place(folder, target, "1.2.5")
    assert not (target / "left-over").exists()
    assert read_subject(target, "", {}).version == "1.2.5"
    assert read_subject(folder, "", {}).version == "1.2.3"
    assert repository(target.parent)["spec"] == {"folder": {"path": str(target.parent)}}


def test_a_failed_copy_is_reported_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be copied"):
        place(tmp_path / "absent", tmp_path / "target", "1.0.0")


def test_the_next_version_increments_the_patch_number() -> None:
    assert next_version("v1.2.3-rc.1") == "1.2.4"
    with pytest.raises(ArtifactError, match="is not a version"):
        next_version("latest")
