"""ResourceQuotas and LimitRanges: validation, what objects use of a quota, and the admission plugins that enforce both.

May import ``pod_specs``.
"""
