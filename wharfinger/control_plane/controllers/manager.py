"""The runner of the simulated controller manager, scheduler and kubelets, in the process of the server.

The order of the controllers is the order in which they work
(:mod:`~wharfinger.control_plane.controllers.framework.work_queue`): the controller of Pods runs before the controllers that count
Pods. All decisions depend on stored objects (level-triggered), so a later start completes unfinished work.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.controllers.api_service_availability import AvailabilityController
from wharfinger.control_plane.controllers.budgets import BudgetController
from wharfinger.control_plane.controllers.claims import ClaimController, VolumeController
from wharfinger.control_plane.controllers.flow_schemas import FlowSchemaController
from wharfinger.control_plane.controllers.framework.controller import Controller, Runner
from wharfinger.control_plane.controllers.framework.late_observation import observing_late
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.controllers.garbage import GarbageController
from wharfinger.control_plane.controllers.kubelet.nodes import NodeController
from wharfinger.control_plane.controllers.kubelet.pods import PodController
from wharfinger.control_plane.controllers.namespaces import NamespaceController
from wharfinger.control_plane.controllers.quotas import QuotaController
from wharfinger.control_plane.controllers.services import ServiceController
from wharfinger.control_plane.controllers.standing_objects import StandingController
from wharfinger.control_plane.controllers.workloads.cron_jobs import CronJobController
from wharfinger.control_plane.controllers.workloads.daemon_sets import DaemonSetController
from wharfinger.control_plane.controllers.workloads.deployments import DeploymentController
from wharfinger.control_plane.controllers.workloads.jobs import JobController
from wharfinger.control_plane.controllers.workloads.replica_sets import replica_set_controllers
from wharfinger.control_plane.controllers.workloads.stateful_sets import StatefulSetController


@asynccontextmanager
async def open_controllers(backend: Backend, *, root_ca: str = "") -> AsyncGenerator[None, None]:
    """Run all controllers for as long as the block runs.

    ``root_ca`` is the certificate (PEM) that each namespace's ``kube-root-ca.crt`` holds.
    """
    state = ClusterState(backend)
    runner = Runner(controllers(state, root_ca), backend.commit)
    async with trio.open_nursery() as nursery:
        state.open(runner.notice)
        nursery.start_soon(runner.run, name="controllers")
        try:
            yield
        finally:
            state.close()
        nursery.cancel_scope.cancel()


def controllers(state: ClusterState, root_ca: str) -> list[Controller]:
    """Return all controllers, the most urgent first."""
    return [
        NamespaceController(state, root_ca).controller(),
        NodeController(state).controller(),
        PodController(state).controller(),
        *replica_set_controllers(state),
        observing_late(state, StatefulSetController(state).controller()),
        observing_late(state, DaemonSetController(state).controller()),
        JobController(state).controller(),
        CronJobController(state).controller(),
        observing_late(state, DeploymentController(state).controller()),
        ServiceController(state).controller(),
        BudgetController(state).controller(),
        QuotaController(state).controller(),
        ClaimController(state).controller(),
        VolumeController(state).controller(),
        FlowSchemaController(state).controller(),
        AvailabilityController(state).controller(),
        StandingController(state).controller(),
        GarbageController(state).controller(),
    ]
