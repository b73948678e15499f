"""rig measures the true mouth-to-ear latency of a real-time voice system and says who owns each millisecond.

Reading order: errors, domain (clocks, records, seams), acquire (wire, link), bench, session and recording, analyse,
report, cli. `sim` is a bench with known truth behind the same seams. docs/architecture.md follows one trial through.
"""

__version__ = "0.1.0"
