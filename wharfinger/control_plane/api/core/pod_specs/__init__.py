"""The content of pod specs, in a Pod or in the template of a workload: containers, volumes, probes, scheduling, security;
also their defaults, amounts and warnings.

May import ``api.common``; never a kind that carries a pod spec.
"""
