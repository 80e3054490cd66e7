"""The content of pod specs, in a Pod or in the template of a workload: containers, volumes, probes, scheduling, security.

This package also contains the defaults, the total resources and the warnings of pod specs. It may import ``api.common``, but
no module of a kind that contains a pod spec.
"""
