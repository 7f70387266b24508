"""Whom does which ordering policy make wait, on workloads that real people submitted to real computers?"""
