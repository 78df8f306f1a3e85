# Sourced by tools/test and tools/demo: find a Python, make the environment, install the wheel of this tree.

say() { printf '\n== %s\n' "$*"; }
fail() { printf '\nFAILED: %s\n' "$*" >&2; exit 1; }

# Print the first Python of version 3.11 or later; $PYTHON goes first.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

make_venv() {
    local python
    python=$(find_python) || fail "no Python 3.11 or later found; install one or set PYTHON=/path/to/python3"
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || fail "$python cannot make environments: its venv module is missing.
On Debian and Ubuntu: sudo apt-get install python3-venv. Elsewhere install Python from python.org or conda, or set PYTHON."
    "$python" -m venv --clear .venv || fail "$python -m venv .venv"
}

# Build the wheel of this tree and install it. $1: extras such as [test], or nothing.
install_wheel() {
    # setuptools copies into build/lib and would ship modules deleted since; the egg-info caches file lists too.
    rm -rf build luxgrad.egg-info .venv/wheel
    .venv/bin/python -m pip wheel -q --disable-pip-version-check --no-deps -w .venv/wheel . || fail "building the wheel"
    rm -rf build luxgrad.egg-info
    local wheel=(.venv/wheel/luxgrad-*.whl)
    .venv/bin/python -m pip install -q --disable-pip-version-check "${wheel[0]}${1:-}" || fail "installing ${wheel[0]}"
    # Same version, new contents: pip would otherwise keep the old files.
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "${wheel[0]}" \
        || fail "installing ${wheel[0]}"
}
