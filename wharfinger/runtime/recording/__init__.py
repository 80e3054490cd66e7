"""The recorder: it keeps what happened to each package in memory and in a log on disk, so that it can be replayed.

May import ``core`` and below. Only the shells are observed; no machine knows the recorder.
"""
