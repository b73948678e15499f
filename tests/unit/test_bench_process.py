"""The system under test as a command: started, stopped with all its children, and honest about its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rig.acquire.process import CommandSystem, SelfRunningSystem
from rig.environment import environment
from rig.errors import BenchNotReady, UsageError

PYTHON = sys.executable


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Waits for what another process does; fails after 10 s."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(f"never came: {what}")


def until(what: str, path: Path) -> None:
    """Waits until the file holds a whole line. The child writes it when it is ready."""
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"), what)


def test_a_command_runs_between_start_and_stop(tmp_path: Path) -> None:
    note = tmp_path / "note"
    says = "os.environ['RIG_RUN'] + ' ' + str(os.getpid()) + '\\n'"
    code = f"import os, time; open({str(note)!r}, 'w').write({says}); time.sleep(60)"
    system = CommandSystem(f'{PYTHON} -c "{code}"', ready_s=0.0)
    assert system.can_stop
    system.stop()
    for run in (1, 2):
        note.unlink(missing_ok=True)
        system.start(run)
        until("started", note)
        number, pid = note.read_text().split()
        assert int(number) == run
        assert alive(int(pid))
        system.stop()
        assert not alive(int(pid))
        system.stop()
    assert system.ended_early is None


def test_children_are_stopped_too_even_deaf_ones(tmp_path: Path) -> None:
    note = tmp_path / "note"
    deaf = tmp_path / "deaf.py"
    deaf.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"if len(sys.argv) == 1: subprocess.Popen([sys.executable, {str(deaf)!r}, 'child'])\n"
        f"else: open({str(note)!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}}\\n')\n"
        "time.sleep(60)\n"
    )
    system = CommandSystem(f"{PYTHON} {deaf}", ready_s=0.0, stop_s=0.1)
    system.start(1)
    until("child", note)
    parent, child = (int(pid) for pid in note.read_text().split())
    assert alive(parent)
    assert alive(child)
    began_s = time.monotonic()
    system.stop()
    assert time.monotonic() - began_s < 10.0, "it was waited for instead of killed"
    assert not alive(parent)
    wait_for(lambda: not alive(child), "the end of the child")  # it is not ours to wait for


def test_a_command_that_ends_at_once_is_not_ready() -> None:
    system = CommandSystem(f"""{PYTHON} -c "print('no microphone'); raise SystemExit(3)" """, ready_s=10.0)
    with pytest.raises(BenchNotReady) as caught:
        system.start(1)
    assert caught.value.what == ("the system under test ended with exit code 3 within 10 s of its start: no microphone")
    system.stop()


SLOW = """import time
print('not ready', flush=True)
time.sleep(0.3)
print('ready: 48000 Hz', flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("kept", [False, True])
def test_a_command_that_says_when_it_is_ready_is_waited_for(tmp_path: Path, kept: bool) -> None:
    code = tmp_path / "slow.py"
    code.write_text(SLOW)
    log = tmp_path / "sut.log" if kept else None
    system = CommandSystem(f"{PYTHON} {code}", says="ready", log=log)
    for run in (1, 2):  # the log of the first run holds the word already
        began_s = time.monotonic()
        system.start(run)
        assert 0.3 <= time.monotonic() - began_s < 30.0
        assert system._process is not None
        assert alive(system._process.pid)
        system.stop()


def test_a_command_that_never_says_it_is_stopped(tmp_path: Path) -> None:
    note = tmp_path / "note"
    code = f"import os, time; open({str(note)!r}, 'w').write(f'{{os.getpid()}}\\n'); print('opening'); time.sleep(60)"
    system = CommandSystem(f'{PYTHON} -uc "{code}"', says="ready", within_s=1.0)
    with pytest.raises(BenchNotReady, match="has not said that it is ready in 1 s: opening") as caught:
        system.start(1)
    assert "'ready'" in caught.value.expected
    assert not alive(int(note.read_text()))


def test_a_command_that_ends_before_it_is_ready() -> None:
    system = CommandSystem(f"""{PYTHON} -c "print('no microphone'); raise SystemExit(4)" """, says="ready")
    with pytest.raises(BenchNotReady, match="ended with exit code 4 within 60 s of its start: no microphone"):
        system.start(1)


def test_a_command_that_ends_during_a_run_is_told(tmp_path: Path) -> None:
    note = tmp_path / "note"
    code = f"import os, signal; open({str(note)!r}, 'w').write('x\\n'); os.kill(os.getpid(), signal.SIGSEGV)"
    system = CommandSystem(f'{PYTHON} -c "{code}"', ready_s=0.0)
    system.start(2)
    until("started", note)
    assert system._process is not None
    system._process.wait(10)
    system.stop()
    assert system.ended_early == "the system under test was ended by SIGSEGV during run 2"


def test_its_output_is_kept_where_a_log_is_given(tmp_path: Path) -> None:
    log = tmp_path / "sut.log"
    system = CommandSystem(f"""{PYTHON} -uc "import time; print('up'); time.sleep(60)" """, ready_s=0.0, log=log)
    system.start(1)
    until("up", log)
    system.stop()
    assert log.read_text() == "up\n"


def test_commands_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        CommandSystem('run "this')
    with pytest.raises(UsageError, match="is empty"):
        CommandSystem("  ")
    with pytest.raises(BenchNotReady, match=r"cannot be started: /no/such/program: No such file"):
        CommandSystem("/no/such/program --now").start(1)


def test_a_system_that_runs_by_itself_cannot_be_muted() -> None:
    system = SelfRunningSystem()
    system.start(1)
    system.stop()
    assert not system.can_stop


def test_the_environment_is_told_without_guessing() -> None:
    facts = environment()
    assert set(facts) == {
        *("os", "kernel", "machine", "cpu_governor", "power_profile", "on_battery", "python", "rig", "network_note"),
    }
    assert facts["python"] == ".".join(str(part) for part in sys.version_info[:3])
    assert facts["network_note"] is None
    assert all(value is None or isinstance(value, str | bool) for value in facts.values())
    assert "" not in facts.values()
