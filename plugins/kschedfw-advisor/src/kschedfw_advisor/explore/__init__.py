"""The page of `kschedfw explore`: a cluster as a map, decisions as matrices, what if by hand, simulations over time.

`app` serves it. What it has in common with the static pages is in `kschedfw_lab.pages`.
"""
