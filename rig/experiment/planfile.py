"""An experiment's plan from TOML. The schema is closed: what is unknown, missing or of another kind is an error that
names file, line and key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rig import tomllines
from rig.errors import BadInput, UsageError
from rig.experiment.plan import COMMAND, CONFIG, ENVIRONMENT, WAYS, WORLD, Parameter, Plan, Round

SCHEMA = 1
MAX_BYTES = 256 << 10
MOST_ROUNDS, MOST_PARAMETERS, MOST_RUNS = 64, 64, 1000

MEASURE: dict[str, type] = {
    **dict.fromkeys(("device", "port", "backend", "stimulus", "lead_in", "spacing", "mode"), str),
    **dict.fromkeys(("sut", "sut_ready", "marks", "build", "min_latency", "max_latency", "settle"), str),
    **dict.fromkeys(("calibration", "needs"), str),
    **dict.fromkeys(("rate", "runs", "stimuli", "ref", "ear"), int),
    "blank": bool,
}
"""Keys of [measure]: the options of `rig measure`, and `settle`, the wait after a message of settings."""

_KINDS = {str: "text", int: "a whole number from 1", bool: "true or false"}
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class _Table:
    """One table of the file. `path` is how its keys are named in errors."""

    file: str
    path: str
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def refuse(self, key: str, what: str, expected: str, remedy: str = "docs/experiments.md shows a plan") -> NoReturn:
        full = f"{self.path}.{key}" if self.path and key else self.path or key
        line = self.lines.get(full, self.lines.get(self.path))
        where = self.file if line is None else f"{self.file}, line {line}"
        raise BadInput(f"{where}: {full[:80]} {what}", expected, remedy)

    def only(self, *keys: str) -> None:
        for key in self.values:
            if key not in keys:
                self.refuse(key, "is no key of a plan", f"one of {', '.join(keys)}")

    def table(self, key: str, required: bool = True) -> _Table:
        value = self.values.get(key, None if required else {})
        path = f"{self.path}.{key}" if self.path else key
        if not isinstance(value, dict):
            self.refuse(key, "is missing" if value is None else "is no table", f"a table [{path}]")
        return _Table(self.file, path, value, self.lines)

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.values.get(key, default)
        if value is not default and (not isinstance(value, str) or not value.strip() or len(value) > 4000):
            self.refuse(key, f"is {str(value)[:40]!r}", "text in quotes")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, f"is {str(value)[:40]!r}", "true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or len(value) > 64 or not all(isinstance(v, str) and v.strip() for v in value):
            self.refuse(key, f"is {str(value)[:40]!r}", 'a list of names: ["frame_ms"]')
        return tuple(value)


Checks = Mapping[str, Callable[[Any], object]]
WorldCheck = Callable[[str, Mapping[str, Any]], object]


def read_plan(raw: bytes, name: str, checks: Checks, world: WorldCheck) -> Plan:
    """The plan in the bytes of a file called `name`. Raises BadInput naming file, line and key.

    What the options of `rig measure` may be is not known here: `checks` has a function for each key of [measure] that
    raises UsageError for a value that cannot be, and `world` one for settings of a simulated device."""
    try:
        document, lines = tomllines.parse(raw, MAX_BYTES)
    except tomllines.NotToml as error:
        raise BadInput(f"{name} {error}", "a plan in TOML", "docs/experiments.md shows one") from error
    top = _Table(name, "", document, lines)
    top.only("schema", "name", "allow", "measure", "baseline", "round", "order")
    if type(document.get("schema")) is not int or document["schema"] != SCHEMA:
        top.refuse("schema", f"is {str(document.get('schema'))[:40]!r}", f"{SCHEMA}, the only one so far")
    measure = _measure(top.table("measure"), checks)
    baseline = top.table("baseline")
    parameters = _parameters(baseline)
    _check_ways(baseline, measure, parameters)
    order = top.table("order", required=False)
    order.only("random", "seed", "repeat_baseline")
    seed = order.values.get("seed", 1)
    if type(seed) is not int or not 0 <= seed < 2**31:
        order.refuse("seed", f"is {str(seed)[:40]!r}", "a whole number from 0")
    rounds = _rounds(top, parameters)
    _check_world(top, measure["device"], parameters, rounds, world)
    return Plan(
        name=top.text("name") or re.sub(r"\.toml$", "", name),
        measure=measure,
        parameters=parameters,
        rounds=rounds,
        shuffled=order.flag("random"),
        repeats_baseline=order.flag("repeat_baseline"),
        seed=seed,
        allow=top.texts("allow"),
    )


def _measure(at: _Table, checks: Checks) -> dict[str, Any]:
    at.only(*MEASURE)
    if "device" not in at.values:
        at.refuse("device", "is missing", 'the interface, or "sim:SCENARIO"')
    for key, value in at.values.items():
        kind = MEASURE[key]
        empty = (isinstance(value, str) and not value.strip()) or (isinstance(value, int) and kind is int and value < 1)
        if type(value) is not kind or empty:
            at.refuse(key, f"is {str(value)[:40]!r}", _KINDS[kind])
        if key in checks:
            try:
                checks[key](value)
            except UsageError as error:
                at.refuse(key, f"is not right: {error.what}", error.expected, error.remedy)
    if at.values.get("runs", 1) > MOST_RUNS:
        at.refuse("runs", f"is {at.values['runs']}", f"{MOST_RUNS} at most")
    return dict(at.values)


def _parameters(at: _Table) -> tuple[Parameter, ...]:
    at.only(*WAYS)
    found: list[Parameter] = []
    for way in WAYS:
        table = at.table(way, required=False)
        for name, value in table.values.items():
            if not _NAME.fullmatch(name):
                table.refuse(name, "is no name", "letters, digits, dots, dashes and underscores")
            if any(p.name == name for p in found):
                table.refuse(name, "is a name that another value has", "each name once, whatever its way")
            _check_value(table, name, value, way)
            found.append(Parameter(name, way, value))
    if not found or len(found) > MOST_PARAMETERS:
        at.refuse("", f"holds {len(found)} values", f"1 to {MOST_PARAMETERS}: what the rounds change, as it is before")
    return tuple(found)


def _check_value(at: _Table, key: str, value: Any, way: str) -> None:
    pair = way == WORLD and isinstance(value, list) and len(value) == 2
    for part in value if pair else [value]:
        if not isinstance(part, str | int | float) or (isinstance(part, float) and not math.isfinite(part)):
            at.refuse(key, f"is {str(value)[:40]!r}", "text, a number, true or false")
        if isinstance(part, str) and (len(part) > 400 or "\0" in part):
            at.refuse(key, f"is {part[:40]!r}", "400 characters at most")


def _check_ways(at: _Table, measure: Mapping[str, Any], parameters: tuple[Parameter, ...]) -> None:
    """Each way needs what it goes through, and each place in the command a value."""
    simulated = measure["device"].partition(":")[0] == "sim"
    sut = measure.get("sut")
    needs = {
        COMMAND: (sut is not None and not simulated, "measure.sut, a command with {NAME} in it, and a real device"),
        ENVIRONMENT: (
            sut is not None and not simulated,
            "measure.sut, the command that it is set for, and a real device",
        ),
        CONFIG: (str(measure.get("marks", "")).partition(":")[0] == "listen", 'measure.marks = "listen"'),
        WORLD: (simulated, 'measure.device = "sim" or "sim:SCENARIO"'),
    }
    for parameter in parameters:
        there, expected = needs[parameter.way]
        if not there:
            at.refuse(f"{parameter.way}.{parameter.name}", "cannot reach the system", expected)
    places = set(_PLACE.findall(sut or ""))
    names = {p.name for p in parameters if p.way == COMMAND}
    for name in sorted(names - places):
        at.refuse(f"{COMMAND}.{name}", "has no place in the command", f"{{{name}}} in measure.sut")
    if places - names:
        first = sorted(places - names)[0]
        at.refuse(COMMAND, f"has no value for {{{first}}} of measure.sut", f"{first} = … under [baseline.command]")


def _check_world(
    top: _Table, device: str, parameters: tuple[Parameter, ...], rounds: tuple[Round, ...], world: WorldCheck
) -> None:
    """Every world that the plan needs can be made, before the first is measured."""
    before = {p.name: p.value for p in parameters if p.way == WORLD}
    for key, change in [(f"baseline.{WORLD}", {}), *((f"round[{k}]", {r.name: r.to}) for k, r in enumerate(rounds))]:
        if before and set(change) <= set(before):
            try:
                world(device, {**before, **change})
            except UsageError as error:
                _Table(top.file, key, {}, top.lines).refuse("", f"is not right: {error.what}", error.expected)


def _rounds(top: _Table, parameters: tuple[Parameter, ...]) -> tuple[Round, ...]:
    listed = top.values.get("round")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_ROUNDS:
        top.refuse("round", "is missing or no list", f"1 to {MOST_ROUNDS} tables [[round]]")
    found: list[Round] = []
    known = {p.name: p for p in parameters}
    for k, item in enumerate(listed):
        at = _Table(top.file, f"round[{k}]", item if isinstance(item, dict) else {}, top.lines)
        at.only("change", "to", "stage", "allow")
        name = at.text("change")
        if name not in known:
            at.refuse(
                "change",
                "is missing" if name is None else f"is {name!r}",
                f"one of the baseline's values: {', '.join(known)}",
            )
        if "to" not in at.values:
            at.refuse("to", "is missing", "the value in this round")
        to = at.values["to"]
        _check_value(at, "to", to, known[name].way)
        if to == known[name].value and isinstance(to, bool) == isinstance(known[name].value, bool):
            at.refuse("to", f"is {str(to)[:40]}, as in the baseline", "another value")
        if any((r.name, r.to) == (name, to) for r in found):
            at.refuse("to", f"is {str(to)[:40]}, as in a round before", "each round once; measure.runs for more starts")
        found.append(Round(name, to, at.text("stage"), at.texts("allow")))
    return tuple(found)
