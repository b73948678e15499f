"""Plans of experiments: what a file may hold, in which order it is measured, and how a folder knows its plan again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rig.cli.main import main
from rig.cli.rounds import CHECKS, check_world
from rig.errors import BadInput, UsageError
from rig.experiment.ledger import FILE, open_ledger, plan_of, read_ledger
from rig.experiment.plan import Plan, steps_of
from rig.experiment.planfile import read_plan

PLAN = """\
schema = 1
name = "buffers"
[measure]
device = "USB Audio"
sut = "my-app --block {block}"
marks = "listen"
spacing = "3s"
[baseline.command]
block = 256
[baseline.environment]
JITTER = "adaptive"
[baseline.config]
target = 0
[[round]]
change = "block"
to = 128
stage = "output"
[[round]]
change = "target"
to = 200
allow = ["jitterBufferTarget"]
"""


def plan(text: str = PLAN) -> Plan:
    return read_plan(text.encode(), "plan.toml", CHECKS, check_world)


def test_a_plan_says_what_reaches_the_system_in_each_step() -> None:
    read = plan(PLAN + "[order]\nrepeat_baseline = true\n")
    steps = steps_of(read)
    assert [s.folder for s in steps] == ["00-baseline", "01-block-128", "02-target-200", "03-baseline-again"]
    assert [read.values(s, "command") for s in steps] == [
        {"block": 256},
        {"block": 128},
        {"block": 256},
        {"block": 256},
    ]
    assert [read.values(s, "config") for s in steps] == [{"target": 0}, {"target": 0}, {"target": 200}, {"target": 0}]
    assert {str(read.values(s, "environment")) for s in steps} == {"{'JITTER': 'adaptive'}"}


def test_a_random_order_is_the_same_for_the_same_seed_and_leaves_nothing_out() -> None:
    rounds = "".join(f'[[round]]\nchange = "block"\nto = {k}\n' for k in range(1, 9))
    head = PLAN[: PLAN.index("[[round]]")]
    orders = []
    for seed in (1, 1, 2):
        steps = steps_of(plan(head + rounds + f"[order]\nrandom = true\nseed = {seed}\n"))
        orders.append([s.round for s in steps])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2][1:]) == list(range(1, 9))  # type: ignore[type-var]
    assert orders[2][0] is None


WRONG = [
    ("schema = 1", "schema = 2", 1, "schema"),
    ("schema = 1", "scheme = 1", 1, "scheme"),
    ('name = "buffers"', "name = 7", 2, "name"),
    ('device = "USB Audio"', 'devise = "USB Audio"', 4, "measure.devise"),
    ('device = "USB Audio"', "", 3, "measure.device is missing"),
    ('marks = "listen"', 'marks = "listen"\nruns = 0', 7, "measure.runs"),
    ('marks = "listen"', 'marks = "listen"\nruns = true', 7, "measure.runs"),
    ('marks = "listen"', 'marks = "listen"\nstimulus = "gong"', 7, "measure.stimulus"),
    ('marks = "listen"', 'marks = "marks.jsonl"', 13, "baseline.config.target cannot reach"),
    ('spacing = "3s"', 'spacing = "3"', 7, "measure.spacing"),
    ("{block}", "256", 9, "baseline.command.block has no place"),
    ("{block}", "{block} {more}", 8, "{more}"),
    ("block = 256", "block = [1, 2]", 9, "baseline.command.block"),
    ("block = 256", "block = nan", 9, "baseline.command.block"),
    ("target = 0", "JITTER = 0", 13, "baseline.config.JITTER"),
    ("target = 0", "target = 0\n[baseline.magic]\nx = 1", 14, "baseline.magic"),
    ("target = 0", "target = 0\n[baseline.world]\nsnr_db = 3", 15, "baseline.world.snr_db cannot reach"),
    ('change = "block"', 'change = "blocks"', 15, "round[0].change"),
    ("to = 128", "to = 256", 16, "as in the baseline"),
    ("to = 128", "tu = 128", 16, "round[0].tu"),
    ('change = "target"\nto = 200', 'change = "block"\nto = 128', 20, "as in a round before"),
    ('allow = ["jitterBufferTarget"]', 'allow = "all"', 21, "round[1].allow"),
    ('allow = ["jitterBufferTarget"]', "[order]\nrandom = 1", 22, "order.random"),
    ('allow = ["jitterBufferTarget"]', "[order]\nseed = -1", 22, "order.seed"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), WRONG)
def test_a_mistake_is_told_with_file_line_and_key(
    old: str, new: str, line: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in PLAN
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    assert main(["experiment", str(path), "--out", str(tmp_path / "e")]) == 2
    heard = capsys.readouterr()
    assert heard.out == ""
    assert said in heard.err
    found = re.search(r"plan\.toml(?:, line (\d+))?: ", heard.err)
    assert found is not None, heard.err
    assert found[1] == str(line), heard.err
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("text", ["", "[", "schema = 1\n\x00", "x = " + "[" * 9000, "#" * (300 << 10), "measure = 3"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        plan(text)


@pytest.mark.parametrize(
    ("device", "setting", "to", "said"),
    [
        ("sim", "network_s = 0.018", "-1", "round[0]"),
        ("sim", "nowhere = 1", "2", "baseline.world"),
        ("sim", "network_s = 0.018", '"soon"', "round[0]"),
    ],
)
def test_every_world_is_looked_at_before_the_first_is_measured(device: str, setting: str, to: str, said: str) -> None:
    name = setting.partition(" ")[0]
    text = f'schema = 1\n[measure]\ndevice = "{device}"\n[baseline.world]\n{setting}\n[[round]]\nchange = "{name}"\n'
    with pytest.raises(BadInput, match=re.escape(said)):
        plan(f"{text}to = {to}\n")


def test_a_folder_knows_its_plan_again_and_takes_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    begun = open_ledger(folder, plan(), None)
    assert open_ledger(folder, plan("# a comment\n" + PLAN), None).sha256 == begun.sha256
    assert plan_of(read_ledger(folder)) == plan()
    with pytest.raises(UsageError, match="rounds differ"):
        open_ledger(folder, plan(PLAN.replace("to = 128", "to = 64")), None)
    with pytest.raises(UsageError, match="measure differ"):
        open_ledger(folder, plan(PLAN.replace("USB Audio", "other")), None)
    with pytest.raises(UsageError, match="the file that is played"):
        open_ledger(folder, plan(), "ab" * 32)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no experiment"):
        open_ledger(tmp_path / "mine", plan(), None)


@pytest.mark.parametrize("change", [{"schema": "x"}, {"plan": 3}, {"plan": {"name": "x"}}, {"plan_sha256": None}])
def test_a_damaged_folder_is_bad_input(tmp_path: Path, change: dict[str, Any]) -> None:
    open_ledger(tmp_path, plan(), None)
    raw = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    (tmp_path / FILE).write_text(json.dumps({**raw, **change}), encoding="utf-8")
    with pytest.raises(BadInput):
        plan_of(read_ledger(tmp_path))


def test_a_session_of_something_else_is_left_alone(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, plan(), None)
    step = steps_of(plan())[1]
    session = ledger.session(step)
    session.mkdir()
    assert not ledger.is_done(step)
    manifest = session / "manifest.json"
    manifest.write_text('{"status": "complete"}', encoding="utf-8")
    with pytest.raises(UsageError, match="not the session of this round"):
        ledger.is_done(step)
    mark = ledger.mark(step)
    manifest.write_text(json.dumps({"status": "complete", "experiment": mark}), encoding="utf-8")
    assert ledger.is_done(step)
    assert ledger.make_room(step) is None
    manifest.write_text(json.dumps({"status": "recording", "experiment": mark}), encoding="utf-8")
    aside = ledger.make_room(step)
    assert aside is not None
    assert (aside / "manifest.json").is_file()
    assert not session.exists()


def test_the_plan_in_the_docs_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    shown = re.search(r"```toml\n(.*?)```", page, re.S)
    assert shown is not None
    read = plan(shown[1])
    assert [(r.name, r.to) for r in read.rounds] == [("buffer", "adaptive"), ("frame", "40ms")]
    assert (read.repeats_baseline, len(steps_of(read))) == (True, 4)
