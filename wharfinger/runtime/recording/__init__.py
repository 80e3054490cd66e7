"""The recorder: what happened to each package, kept in memory and in a log on disk, and stepped again from there.

May import ``core`` and below. Only the shells are observed; no machine knows the recorder.
"""
