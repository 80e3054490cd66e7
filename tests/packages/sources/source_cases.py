"""The case table of sources: for each kind of source and each property, the test that covers it.

A property that does not apply has a reason instead of a test. The reason begins with a dash.
"""

from typing import Final

from wharfinger.packages.sources.archives import ArchiveSource
from wharfinger.packages.sources.git_repository import GitSource
from wharfinger.packages.sources.source import FolderSource, HelmSource, LayoutSource, RegistrySource, Source

INSTALLED: Final = "a package is installed end to end"
MISSING: Final = "a missing version is named"
LOGIN: Final = "a login is used"
TAMPERED: Final = "changed content is noticed"
HOSTILE: Final = "hostile content stays inside"
POLICY: Final = "spec.verify is honoured or refused"
QUESTIONS: Final = (INSTALLED, MISSING, LOGIN, TAMPERED, HOSTILE, POLICY)

_HERE: Final = "tests/packages/sources"
_STORIES: Final = "tests/runtime/test_sources.py"
_REPOSITORIES: Final = "tests/runtime/resources/test_repositories.py"
_LOCAL: Final = "- a folder of the daemon's machine has no login"
_REFUSED: Final = f"{_REPOSITORIES}::test_a_source_without_signatures_refuses_a_policy"
_ARCHIVE: Final = "tests/packages/charts/test_chart_archive.py"

CASES: Final[dict[type[Source], dict[str, str]]] = {
    RegistrySource: {
        INSTALLED: "tests/runtime/test_versions.py::test_a_range_follows_a_new_tag_within_one_scan",
        MISSING: f"{_HERE}/test_source.py::test_a_registry_source_uses_its_login_and_authority",
        LOGIN: f"{_HERE}/test_source.py::test_a_registry_source_uses_its_login_and_authority",
        TAMPERED: "tests/packages/test_fuzz.py",
        HOSTILE: _ARCHIVE,
        POLICY: f"{_HERE}/test_source.py::test_a_source_with_a_policy_returns_only_signed_packages",
    },
    HelmSource: {
        INSTALLED: f"{_HERE}/test_helm_repository.py::test_a_chart_has_the_digest_under_which_it_would_be_pushed",
        MISSING: f"{_HERE}/test_helm_repository.py",
        LOGIN: f"{_HERE}/test_helm_repository.py",
        TAMPERED: f"{_HERE}/test_helm_repository.py",
        HOSTILE: _ARCHIVE,
        POLICY: _REFUSED,
    },
    GitSource: {
        INSTALLED: f"{_STORIES}::test_a_range_follows_the_tags_of_a_git_repository",
        MISSING: f"{_HERE}/test_git_repository.py::test_a_tagged_folder_has_the_digest_of_a_local_folder",
        LOGIN: f"{_HERE}/test_git_repository.py::test_a_login_is_used_and_never_printed",
        TAMPERED: "tests/packages/git/test_remote.py::test_a_tag_moved_during_the_read_is_a_transient_error",
        HOSTILE: "tests/packages/git/test_remote.py::test_a_repository_with_exponentially_many_files_is_refused",
        POLICY: _REFUSED,
    },
    ArchiveSource: {
        INSTALLED: f"{_STORIES}::test_an_archive_is_installed_only_with_the_expected_digest",
        MISSING: f"{_HERE}/test_archives.py::test_an_archive_from_a_url_has_the_digest_of_its_folder",
        LOGIN: f"{_HERE}/test_archives.py::test_a_login_is_sent_only_to_the_named_server",
        TAMPERED: f"{_HERE}/test_archives.py::test_bytes_with_another_digest_are_never_unpacked",
        HOSTILE: f"{_HERE}/test_archives.py::test_hostile_archives_are_refused",
        POLICY: _REFUSED,
    },
    LayoutSource: {
        INSTALLED: f"{_HERE}/test_source.py::test_a_layout_source_is_read",
        MISSING: "tests/packages/registry/test_oci_layout.py",
        LOGIN: _LOCAL,
        TAMPERED: "tests/packages/registry/test_oci_layout.py",
        HOSTILE: _ARCHIVE,
        POLICY: f"{_HERE}/test_source.py::test_a_source_with_a_policy_returns_only_signed_packages",
    },
    FolderSource: {
        INSTALLED: f"{_STORIES}::test_a_folder_of_manifests_is_installed_changed_and_removed",
        MISSING: f"{_HERE}/test_source.py::test_a_folder_source_is_read",
        LOGIN: _LOCAL,
        TAMPERED: "- its files change as their author likes; each change is another digest",
        HOSTILE: "tests/packages/definition/test_manifest_folder.py::test_a_link_out_of_the_package_is_refused",
        POLICY: _REFUSED,
    },
}
