"""The common parts of all controllers: the work queue, the view of the cluster, helpers, and simulation annotations.

All other folders of ``controllers`` may import this folder; it imports none of them.
"""
