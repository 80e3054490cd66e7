"""What a pod spec may hold, in a Pod or in the template of a workload: containers, volumes, probes, scheduling, security; its
defaults, amounts and warnings.

May import ``api.common``; never a kind that carries a pod spec.
"""
