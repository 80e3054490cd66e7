"""The warnings for clients about accepted workloads."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_warnings
from wharfinger.control_plane.api.core.pod_specs.warnings import pod_template_warnings
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_object

MAX_COMPLETIONS: Final = 100_000
MAX_PARALLELISM: Final = 10_000
_HOSTNAME: Final = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior;"
_INDEXED: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not "
    "be able to track completedIndexes when a big number of indexes fail"
)
_REVISIONS: Final = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_ZONE: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def template_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about an object that has its Pod template at ``spec.template``."""
    return _template_warnings(new, old, "spec", "template")


def pod_template_kind_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a PodTemplate."""
    return _template_warnings(new, old, "template")


def controller_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a ReplicationController.

    If the spec changes, the warnings are about the old template, as in upstream.
    """
    if old is None or _kept(new) == _kept(old):
        return named_template_warnings(new, old)
    return template_warnings(old, None)


def _template_warnings(new: JsonObject, old: JsonObject | None, *path: str) -> list[str]:
    """Return the warnings about a template if it is new or if the generation of its object increases."""
    if old is not None and _kept(new) == _kept(old):
        return []
    return pod_template_warnings(find_object(new, *path), ".".join(path))


def _kept(obj: JsonObject) -> JsonValue:
    """Return the part of an object that is compared to find out whether the object's generation increases. For DaemonSets, it
    is only the template.
    """
    kind = obj.get("kind")
    if kind == "DaemonSet":
        return find(obj, "spec", "template")
    annotations = find(obj, "metadata", "annotations") if kind == "Deployment" else None
    return [obj.get("spec"), obj.get("template"), annotations]


def named_template_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a workload whose Pods are named after it."""
    return _name_warnings(new, old) + template_warnings(new, old)


def _name_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    problems = [] if old is not None else dns_label_problems(text(new, "metadata", "name"))
    if not problems:
        return []
    return [f"{_HOSTNAME} a DNS label is recommended: [{' '.join(problems)}]"]


def stateful_set_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a StatefulSet."""
    warnings, inner = template_warnings(new, old), "" if old is None else ".Spec"
    for index, claim in enumerate(parts(new, "spec", "volumeClaimTemplates")):
        warnings += claim_spec_warnings(find_object(claim, "spec"), f"spec.volumeClaimTemplates[{index}]{inner}")
    return [*warnings, _REVISIONS] if number(new, "spec", "revisionHistoryLimit") < 0 else warnings


def job_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a Job."""
    if old is not None and new.get("spec") == old.get("spec"):
        return []
    return _name_warnings(new, old) + _job_spec_warnings(new, old, "spec")


def _job_spec_warnings(new: JsonObject, old: JsonObject | None, *path: str) -> list[str]:
    spec, warnings = find_object(new, *path), list[str]()
    many = number(spec, "completions") > MAX_COMPLETIONS and number(spec, "parallelism") > MAX_PARALLELISM
    if find(spec, "completionMode") == "Indexed" and many:
        warnings.append(f"{'.'.join(path)}: {_INDEXED}")
    return warnings + _template_warnings(new, old, *path, "template")


def cron_job_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a CronJob."""
    warnings = _name_warnings(new, old)
    if old is None or new.get("spec") != old.get("spec"):
        warnings += _job_spec_warnings(new, old, "spec", "jobTemplate", "spec")
    return [*warnings, _ZONE] if old is not None and "TZ" in text(new, "spec", "schedule") else warnings
