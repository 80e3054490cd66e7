"""ResourceQuotas and LimitRanges: validation, the amounts that objects use, and the admission plugins that enforce both.

May import ``pod_specs``.
"""
