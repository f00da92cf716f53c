"""The experiments of Schwarzkopf et al., "Omega", EuroSys 2013, sections 4 and 5: several schedulers in virtual time.

There are two kinds of jobs, batch and service. A job has some equal tasks. Each task takes a part of a machine for a
while. As in the paper's lightweight simulator, tasks are placed by randomized first fit.
"""
