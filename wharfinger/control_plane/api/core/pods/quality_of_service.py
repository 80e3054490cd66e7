"""The quality of service class of a Pod: ``Guaranteed``, ``Burstable`` or ``BestEffort``, by its own resources
or, if it sets none, by the resources of its containers.
"""

from fractions import Fraction
from typing import Final

from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.quantities import ZERO, amount

_COUNTED: Final = ("cpu", "memory")


def quality_class(spec: JsonObject) -> str:
    """Return the class of a Pod with this spec."""
    whole = part(spec, "resources")
    if whole is not None:
        holders = [whole]
    else:
        containers = parts(spec, "containers") + parts(spec, "initContainers")
        holders = [part(container, "resources") or {} for container in containers]
    asked, most = dict[str, Fraction](), dict[str, Fraction]()
    guaranteed = True
    for holder in holders:
        requests, limits = part(holder, "requests") or {}, part(holder, "limits") or {}
        for name in _COUNTED:
            if amount(requests.get(name)) > 0:
                asked[name] = asked.get(name, ZERO) + amount(requests[name])
            if amount(limits.get(name)) > 0:
                most[name] = most.get(name, ZERO) + amount(limits[name])
            else:
                guaranteed = False
    if not asked and not most:
        return "BestEffort"
    same = guaranteed and all(most.get(name) == value for name, value in asked.items()) and len(asked) == len(most)
    return "Guaranteed" if same else "Burstable"
