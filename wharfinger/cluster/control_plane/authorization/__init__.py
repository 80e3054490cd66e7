"""Who may do what: role-based access control, as kube-apiserver's, and the reviews that ask about it.

:mod:`.rules` is the language of rules (pure), :mod:`.rbac` finds what a user's bindings allow, :mod:`.requests` asks it of each
request, :mod:`.access_reviews` and :mod:`.identity_reviews` answer clients that ask, :mod:`.bootstrap` has the roles that every
server brings along.
"""
