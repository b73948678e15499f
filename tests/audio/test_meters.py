"""`rig levels` on a real sound server: what the interface hears of itself, in a terminal and without one."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

from virtual_shell import RIG, ROOT, Shell, need_library

DEVICE = ("--device", "Virtual USB Audio")


def test_levels_of_the_virtual_bench(bench: Shell) -> None:
    need_library("sounddevice")
    said = bench.rig(
        "virtual", "run", "--", *RIG, "levels", *DEVICE, "--seconds", "3", "--play", "--json", "--quiet"
    ).stdout
    found = json.loads(said)
    assert found["bench"] == "virtual"
    assert found["granted"]["rate_hz"] == 48000
    reference, ear = found["channels"]
    assert -7.0 < reference["peak_dbfs"] < -5.0, "the chirp as it was played, at half of full scale"
    assert ear["digital_silence"], "nothing plays to the ear"
    assert "digital silence" in ear["advice"]


def test_meters_in_a_terminal(bench: Shell) -> None:
    need_library("sounddevice")
    master, slave = pty.openpty()
    command = [*RIG, "virtual", "run", "--", *RIG, "levels", *DEVICE, "--seconds", "2", "--play"]
    environ = {**bench.environ, "TERM": "xterm", "COLUMNS": "80"}
    running = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    shown = bytearray()
    while True:
        try:
            got = os.read(master, 65536)
        except OSError:
            break
        if not got:
            break
        shown += got
    os.close(master)
    out, _ = running.communicate(timeout=20)
    assert running.returncode == 0, shown.decode()
    drawn = shown.decode()
    assert re.search(r"1 reference \[#+-+ *\] +-6\.0 dBFS", drawn), drawn
    assert "2 ear       [                                    ]     - dBFS digital silence" in drawn
    assert "Virtual USB Audio, 48000 Hz" in drawn
    assert "digital silence: every sample has the same value" in out, "the summary stays"
