"""A dump of chrome://webrtc-internals to claims: what the browser's own statistics say of delays, and who says it.

A dump holds totals, once a second. No moment of a single frame is in it, so nothing in here becomes a mark.
Method: identifiers of W3C webrtc-stats; a delay is the growth of its total over the growth of its count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rig.imports.found import MARK_NAMES, Figure, Found, FoundPart
from rig.imports.opened import wrong
from rig.imports.series import Course, Report, course, reports_of

MOST_CONNECTIONS = 200
CLOCK = "webrtc-internals, totals without moments"
NO_MARKS = (
    f"{', '.join(MARK_NAMES)}: webrtc-internals keeps totals, one snapshot a second, and no moment of a single frame."
    " With claims alone there are no stages"
)
NO_CAPTURE = "input_latency: the delay of the microphone is not in getStats; a page reads MediaTrackSettings.latency"


def is_dump(document: Any) -> bool:
    """Is this the JSON that webrtc-internals saves?"""
    return isinstance(document, dict) and "PeerConnections" in document


def read_dump(document: dict[str, Any], name: str) -> Found:
    """Everything of use in a dump. Raises BadInput with the file and the place where it is no dump after all."""
    connections = document["PeerConnections"]
    if not isinstance(connections, dict):
        raise wrong(name, "PeerConnections", connections, "an object of connections as webrtc-internals writes it")
    browser = document.get("UserAgent")
    browser = browser[:200] if isinstance(browser, str) else None
    parts, notes = [], []
    for ident, connection in list(connections.items())[:MOST_CONNECTIONS]:
        if not isinstance(connection, dict):
            raise wrong(name, f"PeerConnections {ident[:40]}", connection, "an object of a connection")
        parts.append(_part(ident[:40], connection, browser, name))
    if len(connections) > MOST_CONNECTIONS:
        notes.append(f"of {len(connections)} connections the first {MOST_CONNECTIONS} are read")
    if not connections:
        notes.append("no connection is in it: the dump was made before the call, or after its page was closed")
    kind = "dump of webrtc-internals" + ("" if browser is None else f", {browser}")
    return Found(kind, tuple(parts), (NO_MARKS, NO_CAPTURE), tuple(notes))


@dataclass(slots=True)
class _Reading:
    """What is gathered from one connection."""

    reports: Sequence[Report]
    figures: list[Figure] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, kind: str, audio: bool = True) -> list[Report]:
        return [r for r in self.reports if r.kind == kind and (not audio or r.is_audio())]

    def delay(self, report: Report, total: str, count: str, claim: str | None) -> None:
        """A total over its count: a figure, and a claim of this name; or what is missing."""
        source = f"{report.kind} {total}/{count}"
        found = course(report, total, report, count)
        if found is None:
            self.missing.append(f"{report.kind} {total}, or its {count}")
            return
        self._figure(source, found, None if claim is None else f"claim {claim}")
        if claim is not None:
            self.lines.append({"claim": claim, "value": 1e3 * found.mean, "source": f"{report.kind} {total}"})

    def buffer(self, report: Report) -> None:
        """The jitter buffer's running totals, as the marks hold them."""
        total, count = "jitterBufferDelay", "jitterBufferEmittedCount"
        found = course(report, total, report, count)
        if found is None:
            self.missing.append(f"{report.kind} {total}, or its {count}")
            return
        self._figure(f"{report.kind} {total}/{count}", found, "stats")
        self.lines += [{"stats": {total: t, count: n}} for t, n in found.totals]

    def seen(self, report: Report, member: str, in_seconds: bool) -> None:
        """A member that is what it says each second."""
        values = [v for v in report.numbers(member) if v is not None]
        if not values:
            self.missing.append(f"{report.kind} {member}")
            return
        mean, source = sum(values) / len(values), f"{report.kind} {member}"
        self.figures.append(Figure(source, mean, min(values), max(values), len(values), None, in_seconds))

    def _figure(self, source: str, found: Course, becomes: str | None, in_seconds: bool = True) -> None:
        self.figures.append(
            Figure(source, found.mean, min(found.steps), max(found.steps), len(found.steps), becomes, in_seconds)
        )
        if found.restarts:
            self.notes.append(f"{source} begins again {found.restarts} times: those seconds are left out")

    def share(self, report: Report, total: str, count: str) -> None:
        """A count over another; not told where it is not there."""
        found = course(report, total, report, count)
        if found is not None:
            self._figure(f"{report.kind} {total}/{count}", found, None, in_seconds=False)


def _part(ident: str, connection: dict[str, Any], browser: str | None, name: str) -> FoundPart:
    place = f"PeerConnections {ident}"
    reports, said = reports_of(connection.get("stats"), name, place)
    reading = _Reading(reports, notes=said)
    _received(reading)
    _sent(reading)
    url = connection.get("url")
    about = [str(url)[:200]] if isinstance(url, str) and url else []
    codecs = dict.fromkeys(c for r in reading.of("codec", audio=False) if (c := r.last_text("mimeType")))
    config: dict[str, Any] = {"imported": "webrtc-internals", "connection": ident}
    config |= {"browser": browser} if browser else {}
    if codecs:
        config["codecs"] = ", ".join(list(codecs)[:10])
        about.append(f"codecs {config['codecs']}")
    lines: list[dict[str, Any]] = []
    if reading.lines:
        header = {
            "marks": 1,
            "session_id": f"connection {ident}",
            "clock": CLOCK,
            "unit": "ms",
            "note": f"connection {ident} of a webrtc-internals dump: means over the dump, not over the runs",
        }
        lines = [header, {"config": config}, *reading.lines]
    return FoundPart(
        f"connection {ident}",
        tuple(about),
        tuple(reading.figures),
        tuple(lines),
        tuple(dict.fromkeys(reading.missing)),
        tuple(reading.notes),
    )


def _received(reading: _Reading) -> None:
    inbound, playout = reading.of("inbound-rtp"), reading.of("media-playout")
    for report in inbound:
        emitted = "jitterBufferEmittedCount"
        reading.buffer(report)
        reading.delay(report, "jitterBufferTargetDelay", emitted, None)
        reading.delay(report, "totalProcessingDelay", emitted, "processing_delay")
        for samples in ("concealedSamples", "insertedSamplesForDeceleration", "removedSamplesForAcceleration"):
            reading.share(report, samples, "totalSamplesReceived")
        reading.seen(report, "jitter", True)
        reading.seen(report, "audioLevel", False)
    for report in playout:
        reading.delay(report, "totalPlayoutDelay", "totalSamplesCount", "output_latency")
    if not inbound:
        reading.missing.append("inbound-rtp of audio: this end receives none, or its statistics are of the legacy kind")
    elif not playout:
        reading.missing.append("media-playout totalPlayoutDelay: the browser states no delay of its playout")


def _sent(reading: _Reading) -> None:
    for report in reading.of("media-source"):
        reading.seen(report, "audioLevel", False)
    for report in reading.of("outbound-rtp"):
        reading.delay(report, "totalPacketSendDelay", "packetsSent", "send_delay")
    heard_of = reading.of("remote-inbound-rtp")
    for report in heard_of:
        reading.delay(report, "totalRoundTripTime", "roundTripTimeMeasurements", "round_trip_time")
    chosen = {r.last_text("selectedCandidatePairId") for r in reading.of("transport", audio=False)}
    pairs = [r for r in reading.of("candidate-pair", audio=False) if r.ident in chosen]
    for report in pairs:
        reading.delay(report, "totalRoundTripTime", "responsesReceived", None if heard_of else "round_trip_time")
    if not pairs and not heard_of:
        reading.missing.append("round trips: neither remote-inbound-rtp nor a selected candidate-pair")
