"""The admission plugins for Pods: accounts and tokens, priorities, tolerations, runtime classes, security levels."""

from typing import Final

from wharfinger.control_plane.api.common.admission import Operation, Plugin
from wharfinger.control_plane.api.core.pods.account_admission import give_account
from wharfinger.control_plane.api.core.pods.placement_admission import (
    check_default_class,
    check_overhead,
    give_overhead,
    give_priority,
    give_tolerations,
)
from wharfinger.control_plane.api.core.pods.resize_admission import check_node_features, check_node_size
from wharfinger.control_plane.api.core.pods.security_admission import TEMPLATES, check_security

_PODS: Final = frozenset({"Pod"})
_WRITES: Final = frozenset({Operation.CREATE, Operation.UPDATE})
_CREATES: Final = frozenset({Operation.CREATE})
_UPDATES: Final = frozenset({Operation.UPDATE})

POD_PLUGINS: Final[tuple[Plugin, ...]] = (
    Plugin("ServiceAccount", _CREATES, _PODS, mutate=give_account),
    Plugin("PodSecurity", _WRITES, frozenset({"Pod", "Namespace", *TEMPLATES}), check=check_security),
    Plugin("Priority", _WRITES, _PODS, mutate=give_priority),
    Plugin("Priority", _WRITES, frozenset({"PriorityClass.scheduling.k8s.io"}), check=check_default_class),
    Plugin("DefaultTolerationSeconds", _WRITES, _PODS, mutate=give_tolerations),
    Plugin("RuntimeClass", _CREATES, _PODS, mutate=give_overhead, check=check_overhead),
    Plugin("NodeDeclaredFeatureValidator", _UPDATES, _PODS, check=check_node_features),
    Plugin("PodResizeValidator", _UPDATES, _PODS, check=check_node_size),
)
