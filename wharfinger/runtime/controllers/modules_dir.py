"""The controller of modules directories, which turns folders and a ConfigMap into Modules and PackageRepositories.

It translates addon-operator's way of installing (a directory of modules, a folder of global hooks, one ConfigMap with the
settings of all modules) into Wharfinger's own resources, so that no other part (scheduler, hooks, releases, status) needs to
know about modules directories.

Everything is level-triggered: after any change (of a folder, the ConfigMap, or a resource), all resources are compared with the
wanted ones, and the differences are applied. Folders are scanned every RESCAN_S. If a directory cannot be read or the ConfigMap
has a mistake at the start, the daemon does not start, like addon-operator. Later, the last valid state is used until the
mistake is fixed; meanwhile the log and the Module ``global`` name the mistake.

A Module is removed if its folder is gone, but not if the folder exists and cannot be read. A resource without the label of
managed resources belongs to another manager: it is not changed, and the folder's module of the same name is not installed.
"""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.watch.informer import Informer, open_informer, wait_listed
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, checksum, find, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.controllers.config_map import ConfigMapSettings, ModuleSettings, read_config_map
from wharfinger.runtime.controllers.managed_modules import (
    WantedModule,
    deviates,
    is_managed,
    module_object,
    repository_object,
    wanted_global,
    wanted_module,
)
from wharfinger.runtime.controllers.modules_scan import Scan, Scanner
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.resources.resources import MODULE, PACKAGE_REPOSITORY, is_deleting

log = logging.getLogger(__name__)

MANAGER: Final = "wharfinger-modules-dir"
RESCAN_S: Final = 30.0
SETTLE_S: Final = 0.5
"""After a change of a Module or a PackageRepository, the resources are compared with the modules directory after this delay, in
seconds. All changes in this time cause only one comparison.
"""
_COMPARE: Final = "compare"
_SCAN: Final = "scan"


class ModulesDir:
    """The controller of modules directories; made by `open_modules_dir`."""

    def __init__(
        self,
        client: ClusterClient,
        dirs: Sequence[Path],
        global_hooks: Path | None,
        informers: tuple[Informer, Informer],
        config: tuple[Informer, ObjectKey] | None,
        rescan_s: float,
    ) -> None:
        self._client = client
        self._folders = (*dirs, *([global_hooks] if global_hooks is not None else []))
        self._global_hooks = global_hooks
        self._scanner = Scanner(dirs, global_hooks)
        self._modules, self._repositories = informers
        self._config = config
        self._rescan_s = rescan_s
        self._keys = WorkKeys()
        self._scan = Scan()
        self._settings = ConfigMapSettings()
        self._applied: dict[ObjectKey, tuple[JsonObject, str]] = {}
        self._said: dict[str, str] = {}
        self._scan_problem = ""
        self._config_problem = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why the present folders or the present ConfigMap are not used; empty if both are used."""
        return tuple(problem for problem in (self._scan_problem, self._config_problem) if problem)

    async def begin(self) -> None:
        """Read the folders and the ConfigMap, and apply the resulting resources; retry until all of them are applied. Raises
        StartError.
        """
        await self._look_at_folders()
        self._read_config()
        if self.problems:
            raise StartError("; ".join(self.problems))
        while True:
            if await self._compare():
                break
            await trio.sleep(self._keys.failed(_COMPARE))
        self._keys.succeeded(_COMPARE)
        self._keys.add_later(_SCAN, self._rescan_s)

    async def run(self) -> None:
        """Keep the resources up to date forever."""
        async with trio.open_nursery() as nursery:
            for informer in (self._modules, self._repositories):
                nursery.start_soon(self._follow, informer, SETTLE_S, name=f"follow {informer.resource.kind}")
            if self._config is not None:
                nursery.start_soon(self._follow, self._config[0], 0.0, name="follow the ConfigMap of settings")
            while True:
                key = await self._keys.take()
                if key == _SCAN:
                    await self._look_at_folders()
                    self._keys.add_later(_SCAN, self._rescan_s)
                self._read_config()
                if await self._compare():
                    self._keys.succeeded(_COMPARE)
                else:
                    self._keys.failed(_COMPARE)
                self._keys.done(key)

    async def _follow(self, informer: Informer, pause_s: float) -> None:
        with informer.changes() as changes:
            while True:
                await changes.wait()
                if pause_s:
                    self._keys.add_later(_COMPARE, pause_s)
                else:
                    self._keys.add(_COMPARE)

    async def _look_at_folders(self) -> None:
        try:
            self._scan = await trio.to_thread.run_sync(self._scanner.scan)
        except ArtifactError as error:
            self._scan_problem = str(error)
        else:
            self._scan_problem = ""
            for warning in self._scan.dirs.warnings:
                self._say(f"warning: {warning}", warning)
        self._say("folders", self._scan_problem)

    def _read_config(self) -> None:
        if self._config is None:
            return
        informer, key = self._config
        known = {module.name for module in self._scan.dirs.modules} | self._scan.dirs.broken
        try:
            read = read_config_map(find_object(informer.get(key), "data"), known)
        except FormatError as error:
            read = ConfigMapSettings(problems=(str(error),))
        self._config_problem = ""
        if read.problems:
            self._config_problem = f"{key}: {'; '.join(read.problems)}; the ConfigMap as a whole is not applied"
        else:
            self._settings = read
        for warning in read.warnings:
            self._say(f"warning: {warning}", f"{key}: {warning}")
        self._say("ConfigMap", self._config_problem)

    def _say(self, what: str, message: str) -> None:
        """Log a message about ``what``, unless the last message about ``what`` was the same."""
        if message and self._said.get(what) != message:
            log.warning("%s", message)
        self._said[what] = message

    def _wanted(self) -> list[WantedModule]:
        """Return the wanted state of all Modules, sorted by weight, with the Module ``global`` first."""
        dirs, settings = self._scan.dirs, self._settings
        wanted: list[WantedModule] = []
        if self._global_hooks is not None:
            content, problem = self._scan.global_content, "; ".join(self.problems)
            wanted.append(
                wanted_global(self._global_hooks, content, settings.global_settings, dirs.global_values, problem)
            )
        elif settings.global_settings or dirs.global_values:
            self._say(
                "global", "there are global values but no folder of global hooks; name one with --global-hooks-dir"
            )
        for module in dirs.modules:
            content_of = self._scan.contents[module.name]
            wanted.append(
                wanted_module(
                    module,
                    content_of.version,
                    content_of.digest,
                    settings.modules.get(module.name, ModuleSettings()),
                    dirs.static.get(module.name, {}),
                    enabled=dirs.enabled.get(module.name, False),
                )
            )
        return wanted

    async def _compare(self) -> bool:
        """Create or update every resource that differs from its wanted state, and delete resources whose folder is gone. Return
        False if this has to be retried.
        """
        repositories = {name_of(obj): obj for obj in map(repository_object, self._folders)}
        sound = True
        for name, obj in repositories.items():
            sound &= await self._bring_in_line(ObjectKey(PACKAGE_REPOSITORY, "", name), obj)
        wanted = self._wanted()
        for module in wanted:
            key = ObjectKey(MODULE, "", module.name)
            try:
                obj = module_object(module, self._modules.get(key), self._config[1] if self._config else None)
            except (ArtifactError, FormatError) as error:
                self._say(str(key), str(error))
                continue
            sound &= await self._bring_in_line(key, obj)
        sound &= await self._delete_gone(self._modules, {module.name for module in wanted} | self._scan.dirs.broken)
        sound &= await self._delete_gone(self._repositories, repositories.keys())
        return sound

    async def _bring_in_line(self, key: ObjectKey, obj: JsonObject) -> bool:
        live = self._informer(key.resource).get(key)
        if live is not None and (is_deleting(live) or not is_managed(live)):
            if not is_deleting(live):
                self._say(
                    str(key),
                    f"{key} is not changed, because somebody else made it (it lacks the label of managed resources); "
                    "delete it to install the folder",
                )
            return True
        before, checksum = self._applied.get(key, (None, ""))
        if live is not None and before == obj and (not deviates(live, obj) or checksum == _content_checksum(live)):
            return True
        try:
            applied = await self._client.apply(obj, field_manager=MANAGER, force=True)
        except ClusterError as error:
            self._say(str(key), f"{key} cannot be applied: {error}")
            return False
        self._said.pop(str(key), None)
        self._applied[key] = obj, _content_checksum(applied)
        return True

    async def _delete_gone(self, informer: Informer, wanted: Collection[str]) -> bool:
        """Delete the resources of folders that are gone. Return False if one of them cannot be deleted."""
        sound = True
        for key, live in sorted(informer.objects().items()):
            if key.name in wanted or not is_managed(live) or is_deleting(live):
                continue
            log.info("%s: its folder is gone, so the resource is deleted", key)
            self._applied.pop(key, None)
            try:
                await self._client.delete(key, uid=find_str(live, "metadata", "uid"))
            except (NotFoundError, ConflictError) as error:
                log.debug("%s: %s", key, error)
            except ClusterError as error:
                self._say(str(key), f"{key} cannot be deleted: {error}")
                sound = False
        return sound

    def _informer(self, resource: ResourceType) -> Informer:
        return self._modules if resource == MODULE else self._repositories


@asynccontextmanager
async def open_modules_dir(
    client: ClusterClient,
    dirs: Sequence[Path],
    *,
    global_hooks: Path | None = None,
    config_map: ObjectKey | None = None,
    rescan_s: float = RESCAN_S,
) -> AsyncIterator[ModulesDir]:
    """Keep resources up to date with folders while the body runs. The body begins once the resources are up to date. Raises
    StartError (in an exception group).

    ``dirs`` and ``global_hooks`` are absolute, and must be among the ``local_packages`` of the controller (`open_controller`).
    ``config_map`` is the ConfigMap of settings; while it does not exist, there are no settings.
    """
    async with open_informer(client, MODULE) as modules, open_informer(client, PACKAGE_REPOSITORY) as repositories:
        informers = modules, repositories
        if config_map is None:
            async with _running(
                ModulesDir(client, dirs, global_hooks, informers, None, rescan_s), informers
            ) as running:
                yield running
            return
        selector = f"metadata.name={config_map.name}"
        async with (
            open_informer(client, config_map.resource, config_map.namespace, field_selector=selector) as config,
            _running(
                ModulesDir(client, dirs, global_hooks, informers, (config, config_map), rescan_s), (*informers, config)
            ) as running,
        ):
            yield running


@asynccontextmanager
async def _running(modules_dir: ModulesDir, informers: Sequence[Informer]) -> AsyncIterator[ModulesDir]:
    await wait_listed(*informers)
    await modules_dir.begin()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(modules_dir.run, name="modules directories")
        yield modules_dir
        nursery.cancel_scope.cancel()


def _content_checksum(obj: JsonObject) -> str:
    """Return a checksum of an object without its status and the server's own metadata."""
    labels, annotations = (find(obj, "metadata", name) for name in ("labels", "annotations"))
    return checksum([labels, annotations, find(obj, "spec")])
