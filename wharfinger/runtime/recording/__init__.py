"""The recorder: it keeps the events of each package in memory and in a log on disk, so that they can be replayed.

May import ``core`` and the folders below it in the layers of pyproject.toml. The recorder observes the code that
steps the state machines; the state machines do not know the recorder.
"""
