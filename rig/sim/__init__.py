"""A bench with known truth behind the same seams as a real one. Supplies bytes and samples, never results.

Nothing here may import `rig.analyse`: truth and estimator must not share a mistake.
"""
