"""ResourceQuotas and LimitRanges: validation, the use of a quota by objects, and the admission plugins that enforce both.

May import ``pod_specs``.
"""
