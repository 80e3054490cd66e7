"""What the daemon is asked for: the fields of Applications, Modules and PackageRepositories, the names of packages, their
settings, and where their charts may reach.

Reads objects of the API into values of the domain and checks them. May import ``inspector`` and ``paths``; knows nothing of
what runs.
"""
