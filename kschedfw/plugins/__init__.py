"""The in-tree plugins, one module or package each, found through the entry-point group `kschedfw` like all others.

Modules whose names begin with an underscore hold what several of them share; they are no plugins.
"""
