"""Sweeps: many simulations that cross factors, on the processes of this machine or on a cluster."""
