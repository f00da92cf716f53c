"""Decides every pod of a live cluster beside its scheduler, and compares: `kschedfw shadow`."""
