"""The recorder: it keeps the last events of each package in memory. With ``--flight-recorder``, it also writes all events to a
log on disk, from which they can be replayed.

The recorder observes the code that steps the state machines; the state machines do not know the recorder. This folder may
import ``core`` and the folders below it in the layers of pyproject.toml.
"""
