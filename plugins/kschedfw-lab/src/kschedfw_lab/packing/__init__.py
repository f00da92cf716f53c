"""Packing and spreading on the OpenB trace, compared with statements of Borg's authors about their scoring policies.

Verma et al., "Large-scale cluster management at Google with Borg", EuroSys 2015, sections 3.2 and 5.1. The method of
compaction is that of Verma et al., "Evaluating job packing in warehouse-scale computing", CLUSTER 2014.
"""
