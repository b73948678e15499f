#!/bin/sh
# Sets up what a command needs, then runs it. `./do help` lists the commands.
#
# Everything lands in .venv inside this checkout; only a missing Python is installed into the system. A second call
# finds a stamp and starts at once, without the network. All that the set-up says goes to stderr: stdout is the
# command's own.
set -eu

root=$(cd "$(dirname "$0")" && pwd)
venv=$root/.venv
least="3, 11"  # requires-python of pyproject.toml, as a Python tuple

say() { printf '%s\n' "$*" >&2; }

die() {
    say "do: $1"
    shift
    for line in "$@"; do say "    $line"; done
    exit 4 # the bench is not ready: somebody has to act on this machine
}

usage() {
    cat <<'END'
./do measure [ARGS]   measure on the simulated bench: rig measure --device sim ARGS
./do test [ARGS]      lint, types, import rules and tests; ARGS go to pytest
./do truth [ARGS]     the full-size runs against known truth (the tests take a tenth of them)
./do bench [ARGS]     speed, memory and start-up, measured and printed
./do setup            only set up: Python, .venv and the packages for all of the above
./do clean            remove .venv and the caches
./do help             this text

Each sets up what it needs first. The commands of the set-up are in this file, in `set_up` and `install_python`.
END
}

# --- Python ---------------------------------------------------------------------------------------------------------

# Succeeds when $1 is a Python that can make a virtual environment. Debian ships Python without ensurepip, and then
# `python3 -m venv` fails half-way: so both modules are asked for by name.
usable() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < ($least))" >/dev/null 2>&1
}

# Prints the first usable Python: $PYTHON if set, then what PATH offers, then where the systems put theirs.
find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 \
        /usr/bin/python3 /opt/homebrew/bin/python3 /usr/local/bin/python3; do
        if usable "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Installs a Python with the system's own package manager, or says what to install and stops.
install_python() {
    if [ "$(uname -s)" = Darwin ]; then
        command -v brew >/dev/null 2>&1 || die "no Python 3.11 or newer was found, and Homebrew is not there" \
            "install Homebrew, or Python 3.11 or newer from python.org, and run this again"
        say "do: installing Python with Homebrew"
        brew install python >&2 || die "Homebrew could not install Python: the lines above say why"
        return
    fi
    command -v apt-get >/dev/null 2>&1 || die "no Python 3.11 or newer that can make a virtual environment was found" \
        "install Python 3.11 or newer, with its venv and ensurepip modules, with this system's package manager" \
        "or name one: PYTHON=/path/to/python3 ./do ${verb}"
    # python3-venv holds ensurepip, which Debian splits off, and brings python3 itself. It is the only system package:
    # the wheels of soundfile and av carry libsndfile and libopus.
    packages="python3-venv"
    if [ "$(id -u)" -eq 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null 2>&1; then
        as_root="sudo"
    else
        die "no Python 3.11 or newer that can make a virtual environment was found; this user is not root, and sudo is not there" \
            "have root run: apt-get update && apt-get install -y --no-install-recommends $packages"
    fi
    say "do: installing $packages (system packages, once)"
    # A source that fails to update does not matter as long as the package can be installed.
    $as_root apt-get update -q >&2 || say "do: apt-get update failed; trying with the lists that are there"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages >&2 ||
        die "apt-get could not install $packages: the lines above say why" \
            "once it is installed, run this again"
}

# --- the virtual environment ----------------------------------------------------------------------------------------

# Prints what the environment was made for: where it stands (its scripts hold absolute paths) and its Python.
# Prints nothing when its Python does not start, as after an upgrade of the system.
environment() {
    version=$("$venv/bin/python" -I -S -c 'import sys; print(sys.version.split()[0])' 2>/dev/null) || return 0
    printf '%s python %s\n' "$root" "$version"
}

# Makes sure that .venv holds this package with the extras $1 (sim or dev; dev holds all of sim).
set_up() {
    wanted="$(environment) pyproject $(cksum <"$root/pyproject.toml")"
    stamp=$venv/.rig-$1
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then return; fi

    here=$(environment)
    if [ -z "$here" ] || [ ! -f "$venv/.rig-made" ] || [ "$(cat "$venv/.rig-made")" != "$here" ]; then
        python=$(find_python) || {
            install_python
            python=$(find_python) || die "the Python that was installed is not usable" \
                "Python 3.11 or newer with venv and ensurepip is needed; this system's package is older" \
                "name a newer one: PYTHON=/path/to/python3 ./do ${verb}"
        }
        if [ -d "$venv" ]; then
            say "do: making .venv anew with $python (it was not made here, or its Python has changed)"
        else
            say "do: making .venv with $python"
        fi
        "$python" -m venv --clear "$venv" >&2 || die "$python could not make $venv: the lines above say why"
        environment >"$venv/.rig-made"
    fi
    say "do: installing rig and what it needs into .venv (once; about a minute)"
    # Where packages come from is pip's own configuration (PIP_INDEX_URL, pip.conf).
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root[$1]" >&2 ||
        die "pip could not install the packages: the lines above say why" \
            "the first set-up needs the network, or a mirror named in PIP_INDEX_URL or pip.conf"
    wanted="$(environment) pyproject $(cksum <"$root/pyproject.toml")"
    printf '%s\n' "$wanted" >"$stamp"
    if [ "$1" = dev ]; then printf '%s\n' "$wanted" >"$venv/.rig-sim"; fi
}

# --- the commands ---------------------------------------------------------------------------------------------------

verb=${1:-help}
if [ $# -gt 0 ]; then shift; fi

case $verb in
measure)
    set_up sim
    exec "$venv/bin/rig" measure --device sim "$@"
    ;;
test)
    set_up dev
    cd "$root"
    "$venv/bin/ruff" check --quiet .
    "$venv/bin/ruff" format --quiet --check .
    "$venv/bin/mypy" --strict
    # Two workers on two cores: a library that starts threads of its own only slows both down.
    OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1} exec "$venv/bin/python" -m pytest -n auto "$@"
    ;;
truth)
    set_up dev
    cd "$root"
    exec "$venv/bin/python" -m pytest --truth -m truth -s "$@"
    ;;
bench)
    set_up dev
    cd "$root"
    exec "$venv/bin/python" -m benchmarks "$@"
    ;;
setup)
    set_up dev
    say "do: ready: $venv/bin/rig"
    ;;
clean)
    cd "$root"
    rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist ./*.egg-info
    find rig tests -name __pycache__ -type d -prune -exec rm -rf {} +
    ;;
help | -h | --help)
    usage
    ;;
*)
    say "do: there is no command '$verb'"
    usage >&2
    exit 2
    ;;
esac
