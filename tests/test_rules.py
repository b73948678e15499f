"""The architecture as a test: who may import whom, how long a file may be, where time and print may appear.

Each rule is a function from a file's name and text to the lines that break it. `test_the_rule_catches` shows each of
them a file that does.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FEWEST_FILES = 20
"""A walk that finds fewer files than this has looked in the wrong place."""

ON_DISK = {
    *("rig.errors", "rig.domain", "rig.strictjson", "rig.wavfile", "rig.flacfile", "rig.rawfile", "rig.wavwriter"),
    *("rig.recording", "rig.session"),
}
"""The session and the recordings in it: they may use each other, and nothing above them."""

OF_THE_WORLD = {"rig.errors", "rig.domain", "rig.acquire.wire", "rig.acquire.framing", "rig.sim"}
"""The simulated board speaks the real codec; beside that the world shares no code with what it tests."""

OF_VERDICTS = {"rig.report.digits", "rig.report.difference", "rig.report.stage_words"}
"""How numbers and stages are written, and how two documents differ."""

# What each part may import of rig, and of other people's libraries, lazily or not. The longest name that fits counts.
# docs/architecture.md says why.
IMPORTS: dict[str, tuple[set[str], set[str]]] = {
    "rig": (set(), set()),
    "rig.errors": (set(), set()),
    "rig.domain": ({"rig.errors", "rig.domain"}, {"numpy"}),
    "rig.acquire": ({"rig.errors", "rig.domain", "rig.acquire"}, {"numpy"}),
    "rig.acquire.marks_listen": ({"rig.errors", "rig.domain", "rig.acquire"}, {"aiohttp"}),
    "rig.acquire.link": ({"rig.errors", "rig.domain", "rig.acquire"}, {"numpy", "serial"}),
    "rig.acquire.audio_sounddevice": ({"rig.errors", "rig.domain", "rig.acquire"}, {"numpy", "sounddevice"}),
    "rig.acquire.audio_pyaudio": ({"rig.errors", "rig.domain", "rig.acquire"}, {"numpy", "pyaudio"}),
    "rig.analyse": ({"rig.errors", "rig.domain", "rig.analyse"}, {"numpy"}),
    "rig.analyse.wander": ({"rig.errors", "rig.domain", "rig.analyse"}, {"numpy", "allantools"}),
    "rig.report": ({"rig.errors", "rig.domain", "rig.report"}, {"numpy"}),
    "rig.export": ({"rig.errors", "rig.export"}, set()),
    "rig.export.parquet": ({"rig.errors", "rig.export"}, {"duckdb"}),
    "rig.imports": ({"rig.errors", "rig.strictjson", "rig.imports"}, set()),
    "rig.shelf": ({"rig.errors", "rig.strictjson", "rig.report.digits", "rig.shelf"}, set()),
    "rig.verdict": ({"rig.errors", *OF_VERDICTS, "rig.verdict"}, set()),
    "rig.sim": (OF_THE_WORLD, {"numpy", "scipy"}),
    "rig.sim.opus": (OF_THE_WORLD, {"numpy", "scipy", "av"}),
    "rig.doctor": ({"rig.errors", "rig.domain", "rig.acquire", "rig.bench", "rig.doctor"}, set()),
    "rig.calibration": ({"rig.errors", "rig.domain", "rig.tomllines", "rig.calibration"}, set()),
    "rig.experiment": (
        {"rig.errors", "rig.tomllines", "rig.strictjson", "rig.rawfile", "rig.verdict", "rig.experiment", *OF_VERDICTS},
        set(),
    ),
    "rig.tomllines": (set(), set()),
    "rig.strictjson": ({"rig.errors"}, set()),
    "rig.wavfile": (ON_DISK, {"numpy"}),
    "rig.rawfile": (ON_DISK, set()),
    "rig.wavwriter": (ON_DISK, {"numpy"}),
    "rig.flacfile": (ON_DISK, {"numpy", "soundfile"}),
    "rig.recording": (ON_DISK, {"numpy", "soundfile"}),
    "rig.session": (ON_DISK, {"numpy"}),
    "rig.bench": (ON_DISK | {"rig.calibration", "rig.bench"}, {"numpy"}),
    "rig.marks": (set(), set()),
    "rig.environment": ({"rig.errors"}, set()),
    "rig.firmware": ({"rig.errors", "rig.firmware"}, set()),
    "rig.virtual": ({"rig.errors", "rig.domain", "rig.virtual"}, set()),
    "rig.virtual.jack_wires": (set(), {"jack"}),
    "rig.sut": ({"rig.errors", "rig.sut"}, set()),
    "rig.sut.delay": ({"rig.errors", "rig.sut"}, {"jack"}),
    "rig.sut.loop_sounddevice": ({"rig.errors", "rig.sut"}, {"sounddevice"}),
    "rig.sut.loop_pyaudio": ({"rig.errors", "rig.sut"}, {"pyaudio"}),
    "rig.sut.voice": ({"rig.errors", "rig.sut", "rig.marks"}, {"numpy"}),
    "rig.sut.voice.client": ({"rig.errors", "rig.sut", "rig.marks"}, {"numpy", "aiohttp"}),
    "rig.sut.voice.echo_server": ({"rig.errors", "rig.sut"}, {"aiohttp"}),
    "rig.sut.voice.resample": ({"rig.errors", "rig.sut"}, {"numpy", "av"}),
    "rig.sut.voice.streams_sounddevice": ({"rig.errors", "rig.sut"}, {"numpy", "sounddevice"}),
    "rig.sut.voice.streams_pyaudio": ({"rig.errors", "rig.sut"}, {"numpy", "pyaudio"}),
    "rig.cli": ({"rig"}, {"typer", "click", "rich", "numpy"}),
}

MAY_READ_TIME = {"rig/acquire/link.py", "rig/cli/progress.py", "rig/marks.py"}
"""The real clock, the display's, and the one that a system under test stamps with. Everything
else is told the time through `HostTime`."""

MAY_READ_DATE = {"rig/cli/"}
"""The date that a session or a report carries is handed down from the command line."""

MAX_LINES = 400

Breaches = Iterator[str]


def module_of(name: str) -> str:
    """`rig/sim/clock.py` is rig.sim.clock; a package's __init__ is the package."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def within(module: str, owners: set[str]) -> bool:
    """Is the module one of the owners, or inside one?"""
    return any(module == owner or module.startswith(owner + ".") for owner in owners)


def imported(tree: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that is imported anywhere in the file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*name.split("/")[: -node.level], *([base] if base else [])])
            for alias in node.names:
                # `from rig import errors` imports a module, `from rig.errors import RigError` a name in one.
                inner = f"{base}.{alias.name}"
                stem = ROOT / inner.replace(".", "/")
                is_module = base == "rig" or stem.is_dir() or stem.with_suffix(".py").is_file()
                yield node.lineno, inner if is_module else base
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            target = node.args[0] if node.args else None
            literal = isinstance(target, ast.Constant) and isinstance(target.value, str)
            yield node.lineno, str(target.value) if isinstance(target, ast.Constant) and literal else "<computed>"


def imports_allowed(name: str, text: str) -> Breaches:
    """Each part of rig imports only what the table above lets it."""
    module = module_of(name)
    owners = [owner for owner in IMPORTS if within(module, {owner}) and (owner != "rig" or module == "rig")]
    if not owners:
        yield f"{name}: not in the import table of tests/test_rules.py"
        return
    own, others = IMPORTS[max(owners, key=len)]
    for line, target in imported(ast.parse(text), name):
        top = target.split(".")[0]
        if top == "rig":
            if not within(target, own) and target not in ("rig", "rig.__version__"):  # the version
                yield f"{name}:{line}: {module} may not import {target}"
        elif top not in sys.stdlib_module_names and top not in others:
            yield f"{name}:{line}: {module} may not import {target}"


def short_enough(name: str, text: str) -> Breaches:
    """A file holds one idea; over 400 lines it holds several."""
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{name}: {lines} lines, {MAX_LINES} at most"


def time_is_told(name: str, text: str) -> Breaches:
    """Nobody reads a clock or sleeps but the one implementation of `HostTime` and the display."""
    tree = ast.parse(text)
    for line, target in imported(tree, name):
        if target.split(".")[0] == "time" and name not in MAY_READ_TIME:
            yield f"{name}:{line}: imports time; take a HostTime"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today"):
            owner = ast.unparse(node.value).split(".")[-1]
            if owner in ("datetime", "date", "dt") and not name.startswith(tuple(MAY_READ_DATE)):
                yield f"{name}:{node.lineno}: reads the date; take it as an argument"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("asyncio.sleep", "Event.wait", "signal.alarm"):
            yield f"{name}:{node.lineno}: sleeps; take a HostTime"


def only_the_cli_prints(name: str, text: str) -> Breaches:
    """stdout belongs to the report: only the command line writes to the standard streams."""
    if name.startswith("rig/cli/"):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            yield f"{name}:{node.lineno}: prints; return text instead"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr"):
            yield f"{name}:{node.lineno}: uses {ast.unparse(node)}; return text instead"


def draws_are_seeded(name: str, text: str) -> Breaches:
    """Every draw can be replayed: no generator without a seed, no hidden global state."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        callee = ast.unparse(node.func)
        if callee.endswith("default_rng") and not (node.args or node.keywords):
            yield f"{name}:{node.lineno}: default_rng() without a seed"
        module, _, function = callee.rpartition(".")
        # Capitalised ones are types: Generator, PCG64, SeedSequence.
        if module in ("np.random", "numpy.random", "random") and function.islower() and function != "default_rng":
            yield f"{name}:{node.lineno}: {callee} draws from global state; take a numpy Generator"


Rule = Callable[[str, str], Breaches]
OF_THE_PACKAGE: list[Rule] = [imports_allowed, short_enough, time_is_told, only_the_cli_prints, draws_are_seeded]
OF_THE_TESTS: list[Rule] = [short_enough, draws_are_seeded]


def sources(*folders: str) -> dict[str, str]:
    """Every Python file below the folders, by name relative to the repository's root."""
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


def broken(rule: Rule, files: dict[str, str]) -> list[str]:
    """All breaches of a rule in the files."""
    assert len(files) >= FEWEST_FILES, f"only {len(files)} files found"
    return [breach for name, text in files.items() for breach in rule(name, text)]


@pytest.mark.parametrize("rule", OF_THE_PACKAGE, ids=lambda rule: rule.__name__)
def test_the_package_keeps(rule: Rule) -> None:
    breaches = broken(rule, sources("rig"))
    assert not breaches, "\n".join(["", *breaches])


@pytest.mark.parametrize("rule", OF_THE_TESTS, ids=lambda rule: rule.__name__)
def test_the_tests_keep(rule: Rule) -> None:
    breaches = broken(rule, sources("tests", "benchmarks"))
    assert not breaches, "\n".join(["", *breaches])


@pytest.mark.parametrize(
    "library", sorted({"serial", "sounddevice", "pyaudio", "jack", "av", "scipy", "rich", "duckdb"})
)
def test_a_library_that_may_be_missing_is_never_imported_at_the_top(library: str) -> None:
    # scipy, av and rich take long to load, the others need a system library: `rig --help` must do without all of them.
    # The simulated world is itself imported late, so scipy may stand at the top there.
    for name, text in sources("rig").items():
        if library in ("scipy", "av") and name.startswith("rig/sim/"):
            continue
        top_level = ast.Module([node for node in ast.parse(text).body if not isinstance(node, ast.If)], [])
        tops = [node for node in top_level.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in tops:
            names = [target for _, target in imported(node, name)]
            assert library not in {target.split(".")[0] for target in names}, f"{name}:{node.lineno}: imports {library}"


def test_the_package_loads_without_what_it_does_not_need() -> None:
    # A fresh interpreter, since this one has everything loaded already.
    heavy = ["numpy", "scipy", "soundfile", "rich", "av", "serial", "sounddevice", "pyaudio", "jack", "duckdb"]
    code = f"import sys, rig.cli.main; print(*[m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.split() == [], f"import rig.cli.main loads {out.stdout}"


CAUGHT: list[tuple[Rule, str, str]] = [
    (imports_allowed, "rig/sim/x.py", "import rig.analyse.onset"),
    (imports_allowed, "rig/sim/x.py", "from rig.analyse import onset"),
    (imports_allowed, "rig/sim/x.py", "def f():\n    from ..analyse import onset"),
    (imports_allowed, "rig/sim/__init__.py", "from ..analyse import onset"),
    (imports_allowed, "rig/sim/x.py", "from rig.acquire.link import Link"),
    (imports_allowed, "rig/sim/x.py", "from rig import analyse"),
    (imports_allowed, "rig/sim/x.py", "from rig.acquire import link"),
    (imports_allowed, "rig/sim/x.py", "import av"),
    (imports_allowed, "rig/sim/x.py", "import importlib\nimportlib.import_module('rig.analyse')"),
    (imports_allowed, "rig/sim/x.py", "__import__(name)"),
    (imports_allowed, "rig/analyse/x.py", "from scipy import signal"),
    (imports_allowed, "rig/analyse/x.py", "from rig.sim.clock import VirtualTime"),
    (imports_allowed, "rig/errors.py", "from rig.domain.records import Trial"),
    (imports_allowed, "rig/acquire/x.py", "def f():\n    import serial"),
    (imports_allowed, "rig/report/x.py", "import rich.table"),
    (imports_allowed, "rig/report/x.py", "from rig.session import Session"),
    (imports_allowed, "rig/newcomer.py", "x = 1"),
    (short_enough, "rig/x.py", "x = 1\n" * 401),
    (time_is_told, "rig/bench.py", "def f():\n    from time import sleep"),
    (time_is_told, "rig/session.py", "import datetime\ndatetime.datetime.now()"),
    (time_is_told, "rig/session.py", "from datetime import date\nwhen = date.today"),
    (only_the_cli_prints, "rig/report/x.py", "print('x')"),
    (only_the_cli_prints, "rig/bench.py", "import sys\nsys.stderr.write('x')"),
    (draws_are_seeded, "rig/sim/x.py", "rng = np.random.default_rng()"),
    (draws_are_seeded, "rig/sim/x.py", "x = np.random.normal(3)"),
    (draws_are_seeded, "rig/sim/x.py", "import random\nx = random.random()"),
]

ALLOWED: list[tuple[Rule, str, str]] = [
    (
        imports_allowed,
        "rig/sim/x.py",
        "import json\nfrom rig.acquire import wire\nfrom rig.acquire.wire import encode\nfrom scipy import signal",
    ),
    (imports_allowed, "rig/acquire/link.py", "def f():\n    import serial"),
    (imports_allowed, "rig/sim/__init__.py", "from .clock import VirtualTime\nfrom ..domain import records"),
    (imports_allowed, "rig/cli/measure.py", "from rig.analyse.run import analyse_run\nfrom rig import __version__"),
    (short_enough, "rig/x.py", "x = 1\n" * 400),
    (time_is_told, "rig/acquire/link.py", "import time"),
    (time_is_told, "rig/bench.py", "at = host.now()"),
    (only_the_cli_prints, "rig/cli/main.py", "print('x')"),
    (draws_are_seeded, "rig/sim/x.py", "rng = np.random.default_rng(seed)\nx = rng.normal()"),
]


@pytest.mark.parametrize(("rule", "name", "text"), CAUGHT)
def test_the_rule_catches(rule: Rule, name: str, text: str) -> None:
    assert list(rule(name, text)), f"{rule.__name__} lets pass: {text[:80]!r}"


@pytest.mark.parametrize(("rule", "name", "text"), ALLOWED)
def test_the_rule_allows(rule: Rule, name: str, text: str) -> None:
    assert not list(rule(name, text))
