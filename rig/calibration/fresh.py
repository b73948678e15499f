"""Which record of a quantity holds today, and what a new one supersedes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rig.calibration.choose import Circumstances, same_device, unusable
from rig.calibration.store import sequence
from rig.domain.calibration import Used


def of_kind(records: Sequence[Used], quantity: str, channel: int | None, where: Circumstances) -> Used | None:
    """The newest record of this device, quantity and channel that was found under the same circumstances, however old
    it is; None where there is none. A block length that is not known yet is taken to be the record's."""
    found = [
        used
        for used in records
        if used.record.quantity.name == quantity
        and used.record.channel == channel
        and same_device(used.record.device, where.device)
        and unusable(used.record, _at_any_time(used, where)) is None
    ]
    return max(found, key=sequence, default=None)


def holds(used: Used, where: Circumstances) -> bool:
    """Whether a record found by `of_kind` is not stale."""
    return unusable(used.record, replace(_at_any_time(used, where), on=where.on)) is None


def _at_any_time(used: Used, where: Circumstances) -> Circumstances:
    if where.block_frames is not None:
        return replace(where, on=None)
    blocks = used.record.condition("block_frames")
    return replace(where, on=None, block_frames=int(blocks) if isinstance(blocks, float) else None)
