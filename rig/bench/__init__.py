"""The bench: a plan, carried through the seams into a session on disk."""

from rig.bench.plan import BenchPlan, draw_spacing, plan_runs
from rig.bench.runner import run_plan

__all__ = ["BenchPlan", "draw_spacing", "plan_runs", "run_plan"]
