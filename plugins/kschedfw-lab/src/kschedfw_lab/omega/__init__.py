"""The experiments of Schwarzkopf et al., "Omega", EuroSys 2013, sections 4 and 5: several schedulers in virtual time.

Jobs are of two kinds, batch and service. A job has some tasks that are alike, and each task takes a part of a machine
for a while. As in the paper's lightweight simulator, tasks are placed by randomized first fit.
"""
