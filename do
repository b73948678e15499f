#!/bin/sh
# Sets up what a command needs, then runs it. `./do help` lists the commands.
#
# Everything lands in .venv inside this checkout, but for system packages: a missing Python, and for the tests what the
# firmware and the virtual bench take. A second call finds a stamp and starts at once, without the network. All that the
# set-up says goes to stderr: stdout is the command's own.
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
./do docs             the pages of docs/ as a site, in build/site
./do setup            only set up: Python, .venv and the packages for all of the above and for a real bench
./do clean            remove .venv and the caches
./do help             this text

Each sets up what it needs first. The commands of the set-up are in this file: `set_up`, `install_python` and
`install_tools`.
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
    # python3-venv holds ensurepip, which Debian splits off, and brings python3 itself. Measuring on the simulated bench
    # needs no other system package: the wheels of soundfile and av carry libsndfile and libopus.
    packages="python3-venv"
    may_install || die "no Python 3.11 or newer that can make a virtual environment was found; this user is not root, and sudo is not there" \
        "have root run: apt-get update && apt-get install -y --no-install-recommends $packages"
    say "do: installing $packages (system packages, once)"
    apt_install "$packages" || die "apt-get could not install $packages: the lines above say why" \
        "once it is installed, run this again"
}

# Succeeds when this user can install system packages; then $as_root is what goes before the command.
may_install() {
    as_root=""
    if [ "$(id -u)" -eq 0 ]; then return 0; fi
    as_root="sudo"
    command -v sudo >/dev/null 2>&1
}

# Installs the packages named in $1. A source that fails to update does not matter as long as they can be installed.
apt_install() {
    $as_root apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 update -q >&2 ||
        say "do: apt-get update failed; trying with the lists that are there"
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::http::Timeout=20 install -q -y \
        --no-install-recommends $1 >&2
}

# --- tools beside Python --------------------------------------------------------------------------------------------

# What the tests use where it is there, a package and the file that shows it, one a line.
tools() {
    cat <<'END'
gcc              /usr/bin/gcc                        the emulator, and the firmware's core under sanitizers
libc6-dev        /usr/include/stdio.h                the same
python3-dev      /usr/include/python3*/Python.h      builds PyAudio
gcc-avr          /usr/bin/avr-gcc                    the firmware
avr-libc         /usr/lib/avr/include/avr/io.h       the firmware
avrdude          /usr/bin/avrdude                    rig firmware flash
libsimavr-dev    /usr/include/simavr/sim_avr.h       the emulated board
libelf-dev       /usr/include/libelf.h               the emulated board
libportaudio2    /usr/lib/*/libportaudio.so.2        real audio
portaudio19-dev  /usr/include/portaudio.h            builds PyAudio
libasound2-plugins /usr/lib/*/alsa-lib/libasound_module_pcm_pulse.so  PortAudio reaches PulseAudio through it
pulseaudio       /usr/bin/pulseaudio                 the virtual bench
pulseaudio-utils /usr/bin/pactl                      the virtual bench
jackd2           /usr/bin/jackd                      the virtual bench, to the frame
chromium         /usr/bin/chromium                   a real browser under test, and the report as a person sees it
END
}

# Prints the packages of `tools` whose file is not there.
missing_tools() {
    tools | while read -r package file _; do
        # shellcheck disable=SC2086
        set -- $file
        [ -e "$1" ] || printf '%s ' "$package"
    done
}

# Installs what `tools` lists where it can. Without them their tests are skipped, and say so: nothing stops here.
install_tools() {
    if [ -f "$venv/.rig-tools" ]; then return; fi
    if [ "$(uname -s)" != Linux ] || ! command -v apt-get >/dev/null 2>&1; then
        say "do: not Debian: the tests of firmware, emulator and virtual bench are skipped where their tools are missing"
        : >"$venv/.rig-tools"
        return
    fi
    missing=$(missing_tools)
    if [ -n "$missing" ]; then
        if may_install; then
            say "do: installing ${missing}(system packages, once)"
            # One at a time where all together fail: a package that a release lacks must not take the others along.
            apt_install "$missing" || for package in $missing; do apt_install "$package" || true; done
        fi
        missing=$(missing_tools)
    fi
    if [ -n "$missing" ]; then
        say "do: not there: ${missing%% }; the tests that need them are skipped. As root:"
        say "    apt-get update && apt-get install -y --no-install-recommends $missing"
        return # the next call looks again
    fi
    : >"$venv/.rig-tools"
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
    install_tools
    cd "$root"
    "$venv/bin/ruff" check --quiet .
    "$venv/bin/ruff" format --quiet --check .
    "$venv/bin/mypy" --strict
    # Two workers on two cores: a library that starts threads of its own only slows both down. Stealing keeps the tests
    # of one file on one worker while there is enough work, so that tests in real time seldom run beside each other.
    OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1} exec "$venv/bin/python" -m pytest -n auto --dist worksteal "$@"
    ;;
truth)
    set_up dev
    install_tools
    cd "$root"
    exec "$venv/bin/python" -m pytest --truth -m truth -s "$@"
    ;;
bench)
    set_up dev
    install_tools
    cd "$root"
    exec "$venv/bin/python" -m benchmarks "$@"
    ;;
docs)
    set_up dev
    cd "$root"
    "$venv/bin/python" -m mkdocs build --strict --quiet
    say "do: open $root/build/site/index.html"
    ;;
setup)
    set_up dev
    install_tools
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
