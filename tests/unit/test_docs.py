"""The documents say what is true: paths exist, links land, commands parse, tables match, and no stray words."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rig import errors

ROOT = Path(__file__).parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

SKIPPED = {".git", ".venv", "__pycache__", "build", "dist", "sessions", "exports"}

# Written in halves, so that this file passes its own test.
STRAY = [
    ("a path of somebody's machine", r"/(?:wo" + r"rk|ro" + r"ot|home/\w+)/"),
    ("a package registry's host", r"py" + r"pi\.org|python" + r"hosted|deb\.deb" + r"ian|registry\.np" + r"mjs"),
    ("how the work was organised", r"\bhelp" + r"ers?\b|\bissue" + r" ?#|\bprom" + r"pts?\b|\bagent" + r" session"),
    (
        "a file that is not in this repository",
        r"\.\./sha" + r"red|\b(?:limits|peers|bug-rep" + r"orts|styles|design)\.md\b",
    ),
]


def fenced(text: str) -> Iterator[str]:
    """The lines inside fenced code blocks of a Markdown text, language ignored, `\\` continuations joined."""
    inside = False
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            yield line


def unfenced(text: str) -> str:
    """A Markdown text without its fenced code blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)


def spans(text: str) -> list[str]:
    """The `code spans` outside fenced blocks."""
    return re.findall(r"`([^`\n]+)`", unfenced(text))


def commands(text: str, first: str) -> Iterator[list[str]]:
    """Every command line that starts with the word `first`, in blocks (with or without `$`) and in code spans."""
    for line in [*fenced(text), *spans(text)]:
        line = re.sub(r"^\s*\$?\s*", "", line)
        if line.split(" ")[0] == first:
            words = shlex.split(line, comments=True)
            ends = [words.index(mark) for mark in ("|", ">", "2>", "&&", ";", "||") if mark in words]
            yield words[: min(ends, default=len(words))]


# --- paths ----------------------------------------------------------------------------------------------------------


def missing_paths(text: str, folder: Path) -> list[str]:
    """Code spans that name a file or folder of this repository which is not there.

    A span counts as a path of ours when it starts with one of our folders or ends like one of our sources; anything
    with a placeholder (`<device>`, `NNNN`, `*`) is looked for as a pattern.
    """
    ours = {entry.name for entry in [*ROOT.iterdir(), *(ROOT / "rig").iterdir()] if entry.is_dir()}
    missing = []
    for span in spans(text):
        if not re.fullmatch(r"[\w./<>*-]+", span) or span.startswith("/"):
            continue
        in_folder_of_ours = "/" in span and span.removeprefix("./").split("/")[0] in ours
        if not in_folder_of_ours and not re.search(r"\.(py|md|svg|h|c)$", span) and span != "./do":
            continue
        pattern = re.sub(r"<[^>]*>|NNNN", "*", span.removeprefix("./")).rstrip("/")
        if not any(any(base.glob(pattern)) for base in (ROOT, ROOT / "rig", folder)):
            missing.append(span)
    return missing


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name: str) -> None:
    missing = missing_paths(PAGES[name].read_text(encoding="utf-8"), PAGES[name].parent)
    assert not missing, f"{name} names {missing}"


def test_a_missing_path_is_seen() -> None:
    text = "`rig/nowhere.py` `docs/absent.md` `sim/none/` `gone.py` `README.md` `rig/sim/clock.py` `sim/` `a/b` `x.wav`"
    assert missing_paths(text, ROOT) == ["rig/nowhere.py", "docs/absent.md", "sim/none/", "gone.py"]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as the usual renderers make them."""
    heads = re.findall(r"^#+ +(.+)$", unfenced(page.read_text(encoding="utf-8")), flags=re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", PAGES)
def test_links_land(name: str) -> None:
    page = PAGES[name]
    for link in re.findall(r"\]\(([^)\s]+)\)", unfenced(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{name} links to {link}; {path} has {sorted(anchors(target))}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, to_read = set(), [ROOT / "README.md"]
    while to_read:
        page = to_read.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for link in re.findall(r"\]\(([^)#\s:]+)\)", page.read_text(encoding="utf-8")):
            to_read.append((page.parent / link).resolve())
    lost = sorted(name for name, page in PAGES.items() if page not in reached)
    assert not lost, f"no link leads to {lost}"


def missing_names(text: str) -> list[str]:
    """Names that a table row gives for a Python file (`rig/x.py`: `name`) and that the file does not define."""
    missing = []
    for row in text.splitlines():
        files = [span for span in spans(row) if span.endswith(".py")]
        if row.startswith("|") and len(files) == 1 and (ROOT / files[0]).is_file():
            source = (ROOT / files[0]).read_text(encoding="utf-8")
            names = [span for span in spans(row.split(f"`{files[0]}`", 1)[1]) if span.isidentifier()]
            missing += [f"{files[0]}: {n}" for n in names if not re.search(rf"^ *(def|class) {n}\b", source, re.M)]
    return missing


@pytest.mark.parametrize("name", PAGES)
def test_functions_named_in_tables_exist(name: str) -> None:
    assert not missing_names(PAGES[name].read_text(encoding="utf-8"))


def test_a_missing_function_is_seen() -> None:
    row = "| `before` | `rig/errors.py`: `RigError`, `NoSuchError` |"
    assert missing_names(row) == ["rig/errors.py: NoSuchError"]


# --- commands -------------------------------------------------------------------------------------------------------


def rig_error(words: list[str]) -> str | None:
    """What the command line would say against `rig ...`, parsed but not run; None when it accepts it.

    typer carries its own copy of click or uses the package, depending on its version: hence no click type here.
    """
    import typer

    from rig.cli.main import app

    command: Any = typer.main.get_command(app)
    context = command.context_class(command, info_name="rig")
    rest = words[1:]
    try:
        while True:
            _, rest, _ = command.make_parser(context).parse_args(list(rest))
            if not hasattr(command, "resolve_command") or not rest:
                return f"arguments too many: {rest}" if rest else None
            name, command, rest = command.resolve_command(context, rest)
            context = command.context_class(command, info_name=name, parent=context)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return str(error.format_message())


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_rig_parse(name: str) -> None:
    for words in commands(PAGES[name].read_text(encoding="utf-8"), "rig"):
        assert rig_error(words) is None, f"{name}: {' '.join(words)}: {rig_error(words)}"


def test_commands_in_messages_parse() -> None:
    # A remedy that names a command which does not exist sends the reader into a second error.
    for path in sorted((ROOT / "rig").rglob("*.py")):
        for words in commands(path.read_text(encoding="utf-8"), "rig"):
            assert rig_error(words) is None, f"{path.relative_to(ROOT)}: {' '.join(words)}: {rig_error(words)}"


@pytest.mark.parametrize("line", ["rig measures", "rig measure --no-such-option", "rig analyze a.wav b.wav c.wav"])
def test_a_wrong_command_is_seen(line: str) -> None:
    assert rig_error(line.split()) is not None


def verbs_of_do() -> set[str]:
    """The commands that ./do lists in its help."""
    out = subprocess.run(["sh", str(ROOT / "do"), "help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\./do (\w+)", out, flags=re.M))


def test_do_lists_the_commands_that_it_has() -> None:
    cases = re.findall(r"^(\w+)(?: \| [\w-]+)*\)$", (ROOT / "do").read_text(encoding="utf-8"), flags=re.M)
    assert set(cases) == verbs_of_do()


def test_make_calls_do() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^([a-z ]+):$", text, flags=re.M)
    assert targets is not None
    assert set(targets[1].split()) == verbs_of_do() - {"help"}


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_do_and_make_exist(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    for words in [*commands(text, "./do"), *commands(text, "make")]:
        assert len(words) == 1 or words[1] in verbs_of_do(), f"{name}: {' '.join(words)}"


# --- tables and words -----------------------------------------------------------------------------------------------


def every_error() -> Iterator[type[errors.RigError]]:
    """The whole error tree."""
    found = [errors.RigError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return iter([kind for kind in found if kind.__module__ == errors.__name__])


def test_errors_page_has_every_error_with_its_exit_code() -> None:
    rows = [line for line in PAGES["docs/errors.md"].read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for kind in every_error():
        if kind is errors.RigError:
            continue
        own = [row for row in rows if re.search(rf"\b{kind.__name__}\b", row)]
        assert own, f"docs/errors.md has no row for {kind.__name__}"
        assert any(re.search(rf"\b{kind.exit_code}\b", row) for row in own), f"{kind.__name__}: {own}"
    for code in (errors.EXIT_OVER_LIMIT, errors.EXIT_INTERRUPTED):
        assert any(re.search(rf"\b{code}\b", row) for row in rows), f"docs/errors.md has no row for exit code {code}"


def test_uncertainty_page_has_every_term_of_the_budget() -> None:
    from rig.analyse.uncertainty import CHANNEL_SKEW_S, SAMPLE_CLOCK_PPM, budget

    page = PAGES["docs/uncertainty.md"].read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for line in budget(latency_s=0.15, u_noise_s=1e-6):
        assert any(row.startswith(f"| {line.term} | {line.kind} |") for row in rows), f"no row for {line.term}"
    assert f"{SAMPLE_CLOCK_PPM:g} ppm of the latency" in page
    assert f"{CHANNEL_SKEW_S * 1e6:g} µs: both channels" in page


def readable(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of every text file of the repository."""
    for path in sorted(folder.iterdir()):
        if path.name in SKIPPED or path.name.endswith(("_cache", ".egg-info")) or path.name == ".hypothesis":
            continue
        if path.is_dir():
            yield from readable(path)
        else:
            data = path.read_bytes()
            if b"\0" not in data[:8192]:
                yield path.relative_to(ROOT).as_posix(), data.decode("utf-8", errors="replace")


def strays(text: str) -> list[str]:
    """What does not belong into the text, with its line."""
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]!r} is {what}"
        for what, pattern in STRAY
        for found in re.finditer(pattern, text, flags=re.I)
    ]


def test_the_project_speaks_of_itself_alone() -> None:
    texts = dict(readable(ROOT))
    assert len(texts) > 40
    found = [f"{name} {stray}" for name, text in texts.items() for stray in strays(text)]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize("text", ["see /wo" + "rk/x", "a help" + "er", "https://py" + "pi.org/simple", "Issue" + " #2"])
def test_a_stray_word_is_seen(text: str) -> None:
    assert strays(text)


def test_product_words_are_no_strays() -> None:
    assert not strays("a voice agent's session, promptly; helpful; workbench; limits; root cause")
