"""The desired state of a package, from its resource, its source and its settings."""

from dataclasses import fields
from typing import Final

from wharfinger.formats.json.value import checksum, to_json
from wharfinger.packages.definition.depends_on import depends_on_checksum
from wharfinger.packages.kustomizing.patches import patches_checksum
from wharfinger.packages.rendering.resource_overrides import overrides_checksum
from wharfinger.packages.sources.source import Source, source_text
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.resources.resources import Directives, PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings

_ASKED: Final = tuple(each.name for each in fields(DesiredState))


def desired_state(spec: PackageSpec, source: Source, settings: ResolvedSettings) -> DesiredState:
    """Return the wanted state in the form of the lifecycle store, which compares it with the former wanted state."""
    directives = spec.directives
    return DesiredState(
        source=source_text(source),
        package=spec.package,
        version=spec.version,
        settings_checksum=settings.checksum,
        requested=directives.requested,
        namespace=spec.id.namespace,
        settings_version=directives.settings_version,
        maintenance=directives.maintenance,
        resources=overrides_checksum(directives.overrides),
        upkeep=directives.release_policy.digest,
        forced=directives.forced,
        reset=directives.reset,
        digest=directives.digest,
        suspended=directives.suspended,
        cluster_scope=directives.cluster_scope,
        patches=patches_checksum(directives.patches),
        upgrade=directives.upgrade.digest,
        account=directives.account,
    )


def asked_checksum(desired: DesiredState) -> str:
    """Return a checksum of the wanted state. Suspension and maintenance do not change the checksum."""
    asked: dict[str, object] = {name: getattr(desired, name) for name in _ASKED}
    return checksum(to_json({**asked, "suspended": False, "maintenance": ""}))


def have_other_needs(before: Directives, after: Directives) -> bool:
    """Return whether ``before`` and ``after`` differ in the requirements or in the default (on or off). The package's node in
    the scheduler contains both, so it must then be offered again.
    """
    judged = ((depends_on_checksum(one.depends_on), one.default) for one in (before, after))
    return len(set(judged)) > 1
