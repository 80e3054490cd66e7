"""A modules directory with seven modules whose enabled scripts depend on each other.

The scripts of ``alpha`` and ``epsilon`` demand nothing. Each other script demands that one other module is on: ``gamma`` demands
alpha, ``delta`` gamma, ``zeta`` delta, and ``eta`` epsilon. ``beta`` demands a module that does not exist, so it is never on.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.packages.support.charts import write

NEEDS: Final[Mapping[str, str]] = {
    "alpha": "",
    "beta": "nobody",
    "gamma": "alpha",
    "delta": "gamma",
    "epsilon": "",
    "zeta": "delta",
    "eta": "epsilon",
}
SCRIPT: Final = """\
#!/usr/bin/env bash
set -euo pipefail
needs={needs}
if [[ -z $needs ]] || jq -e --arg name "$needs" '.global.enabledModules | index($name)' "$VALUES_PATH" >/dev/null; then
  echo true >"$MODULE_ENABLED_RESULT"
else
  echo false >"$MODULE_ENABLED_RESULT"
  echo "there is no $needs" >"$MODULE_ENABLED_REASON"
fi
"""


def write_modules(folder: Path) -> Path:
    """Write the modules directory, in which all modules are enabled by their flags."""
    for number, (name, needs) in enumerate(NEEDS.items(), 1):
        place = write(folder / f"{number}00-{name}", {"enabled": SCRIPT.format(needs=f'"{needs}"'), "values.yaml": ""})
        (place / "enabled").chmod(0o755)
    write(folder, {"values.yaml": "".join(f"{name}Enabled: true\n" for name in NEEDS)})
    return folder
