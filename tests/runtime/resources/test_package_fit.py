"""Packages that do not fit their resource: they require themselves, contradict themselves, or are of another type."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.errors import FormatError
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId
from wharfinger.runtime.resources.package_fit import check_kind, check_needs


def needing(folder: Path, text: str) -> Definition:
    return read_definition(write(folder, {"package.yaml": text}), name="web", version="1.0.0")


def test_a_package_that_requires_itself_is_refused(tmp_path: Path) -> None:
    wanted = (
        "{type: Application, requirements: {applications: {mandatory: [{name: db}]}}, subscriptions: [shared/mail]}"
    )
    package = needing(tmp_path, wanted)
    check_needs(package, AppId("prod", "web"))
    with pytest.raises(
        IdentityError,
        match=r"package web 1\.0\.0 requires Application prod/db, and is itself installed under this name; install it under",
    ):
        check_needs(package, AppId("prod", "db"))
    with pytest.raises(
        IdentityError, match="subscribes to Application shared/mail, and is itself installed under this name"
    ):
        check_needs(package, AppId("shared", "mail"))
    with pytest.raises(IdentityError, match="requires Module dns, and is itself installed under this name"):
        check_needs(needing(tmp_path, "requirements: {modules: {dns: '>1 !optional'}}"), ModuleId("dns"))


def test_requirements_may_contradict_only_in_the_installed_namespace(tmp_path: Path) -> None:
    buckets = "{mandatory: [{name: db}], noneOf: [{name: old, applications: [{name: prod/db}]}]}"
    package = needing(tmp_path, f"{{type: Application, requirements: {{applications: {buckets}}}}}")
    check_needs(package, AppId("test", "web"))
    with pytest.raises(FormatError, match=r"in namespace prod\.noneOf: prod\.db is also in mandatory"):
        check_needs(package, AppId("prod", "web"))


def test_a_package_of_another_type_is_refused(tmp_path: Path) -> None:
    package = needing(tmp_path, "type: Application")
    check_kind(package, AppId("prod", "web"))
    with pytest.raises(IdentityError, match="is of type Application, and a Module asks for it; use a resource of kind"):
        check_kind(package, ModuleId("web"))
