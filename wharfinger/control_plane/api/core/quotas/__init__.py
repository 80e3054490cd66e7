"""ResourceQuotas and LimitRanges: validation, the amounts that objects use, and the admission plugins that enforce both.

This package may import ``pod_specs``.
"""
