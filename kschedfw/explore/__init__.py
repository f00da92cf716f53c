"""The page: a cluster as a map, decisions as matrices, what if by hand, and simulations over time.

`kschedfw explore` serves it (`app`); `kschedfw simulate --html` and `kschedfw explain --html` write it as one static
file (`static_page`). What both show comes as columns over nodes and pods (`cluster_map`, `decision_matrix`, `replay`).
"""
