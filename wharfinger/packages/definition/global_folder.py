"""The folder of global hooks, in addon-operator's layout. These hooks belong to no module, and set values for all modules.

It has hooks (in ``hooks/``, or directly in the folder if there is no ``hooks/``) and the schemas of the global values in
``openapi/{config-values,values}.yaml``. It is read as a package named ``global`` that has nothing to install, so its hooks
run, its settings are checked and its values are patched like those of any module. The runtime makes its values the
``.Values.global`` of all packages. Static values below ``global`` are not in this folder, but in ``values.yaml`` of the modules
directories; the caller provides them.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Final

from wharfinger.packages.definition.definition import DEFAULT_WEIGHT, Definition, Layout, read_schemas
from wharfinger.packages.definition.module_folder import GLOBAL_NAME
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.files.package_files import open_files

GLOBAL_PACKAGE: Final = "global-hooks"
"""The name under which a folder repository offers a folder of global hooks as a package."""


def read_global_definition(tree: Path, *, version: str) -> Definition:
    """Read the folder of global hooks in ``tree``, which may be empty. Blocking.

    Raises ArtifactError naming a file relative to the folder.
    """
    settings, values, helm = read_schemas(open_files(tree, GLOBAL_NAME))
    return Definition(
        layout=Layout.MODULE_FOLDER,
        type=PackageType.MODULE,
        name=GLOBAL_NAME,
        version=version,
        description="",
        stage="",
        requirements=NO_REQUIREMENTS,
        weight=DEFAULT_WEIGHT,
        critical=False,
        chart=None,
        static_values={},
        settings_schema=settings,
        values_schema=values,
        helm_schema=helm,
        hooks=True,
        enabled_script=False,
        crds=False,
        images=MappingProxyType({}),
    )
