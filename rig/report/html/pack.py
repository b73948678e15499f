"""The curves of chosen trials as compact JSON for the viewer: 16-bit samples, and envelopes in steps of 0.25 dB."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from rig.domain.exhibits import Curve, Exhibits, TrialCurves

Json = dict[str, Any]

BUDGET_BYTES = 1_900_000
"""What the curves may take of a page that stays under 3 MB."""

DB_STEPS = 4.0
"""Steps to a dB: a byte reaches from 0 to -63.75 dB."""

FIGURES = ("latency_s", "u_s", "unconfirmed_s", "dominant_s", "snr_db", "z", "decoy_db", "coherence", "split_s", "note")


def pack(document: Json, exhibits: Exhibits, budget_bytes: int = BUDGET_BYTES) -> tuple[str, int]:
    """(JSON text, number of trials in it). Chosen are those that tell most, until the budget is spent; in order.

    The text holds no `<`, so that it can stand inside a script element.
    """
    figures = {(r["run"], t["index"]): t for r in document["runs"] for t in r["trials"]}
    chosen, spent = {}, 0
    for curves in _by_interest(document, exhibits):
        text = json.dumps(_trial(curves, figures[curves.run, curves.index]), separators=(",", ":"), allow_nan=False)
        if spent + len(text) > budget_bytes:
            break
        chosen[curves.run, curves.index] = text.replace("<", "\\u003c")
        spent += len(text)
    return "[" + ",\n".join(chosen[key] for key in sorted(chosen)) + "]", len(chosen)


def _by_interest(document: Json, exhibits: Exhibits) -> Iterable[TrialCurves]:
    """First of each run its first trial, its extremes and its median; then refused ones; then the rest, evenly."""
    kept = {(c.run, c.index): c for run in exhibits.runs for c in run.trials}
    order: dict[tuple[int, int], None] = {}
    for run in document["runs"]:
        there = [t for t in run["trials"] if (run["run"], t["index"]) in kept]
        good = sorted((t for t in there if t["valid"]), key=lambda t: t["latency_s"])
        for t in [*there[:1], *good[:1], *good[-1:], *good[len(good) // 2 :][:1]]:
            order[run["run"], t["index"]] = None
    refused = [(r["run"], t["index"]) for r in document["runs"] for t in r["trials"] if not t["valid"]]
    order |= dict.fromkeys(_evenly([key for key in refused if key in kept]))
    order |= dict.fromkeys(_evenly(sorted(kept)))
    return [kept[key] for key in order]


def _evenly(keys: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The keys so that any beginning of them is spread over the whole: every 64th, then those half-way between."""
    found: dict[tuple[int, int], None] = {}
    for stride in (64, 32, 16, 8, 4, 2, 1):
        found |= dict.fromkeys(keys[::stride])
    return list(found)


def _trial(curves: TrialCurves, figures: Json) -> Json:
    return {
        "run": curves.run,
        "index": curves.index,
        "valid": figures["valid"],
        "reason": figures["reason"],
        **{name: figures[name] for name in FIGURES},
        "band_hz": curves.band_hz,
        "reference": _samples(curves.reference),
        "ear": _samples(curves.ear),
        "matched": _decibels(curves.matched),
        "response": _decibels(curves.response),
        "matched_near": _decibels(curves.matched_near),
        "response_near": _decibels(curves.response_near),
        "timed": [_samples(c) for c in curves.timed],
    }


def _samples(curve: Curve) -> Json:
    """Little-endian 16-bit integers; `scale` is what 32767 stands for."""
    top = float(np.max(np.abs(curve.values), initial=0.0))
    integers = np.rint(curve.values * (32767.0 / top)) if top > 0.0 else np.zeros(len(curve.values))
    return {**_place(curve), "scale": top, "i16": _text(integers.astype("<i2"))}


def _decibels(curve: Curve | None) -> Json | None:
    """Bytes: 255 is the top, each step less is a quarter of a dB."""
    if curve is None:
        return None
    level = 20.0 * np.log10(np.maximum(curve.values, 1e-6))
    return {**_place(curve), "u8": _text(np.clip(np.rint(255.0 + DB_STEPS * level), 0, 255).astype(np.uint8))}


def _place(curve: Curve) -> Json:
    return {"start_s": round(curve.start_s, 10), "step_s": round(curve.step_s, 12)}


def _text(values: Any) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")
