"""What turns objects of the cluster, a modules directory and a ConfigMap into wishes for the core, holds back what would
break dependents, and takes over what an earlier process left.

May import ``core`` and below.
"""
