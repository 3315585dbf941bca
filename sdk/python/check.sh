#!/bin/sh
# Checks the Python SDK: format, lint, types by two checkers, tests, conformance, and the wheel.
# It keeps its tools in a virtual environment of the cache folder, which it makes when they change. It
# installs Debian's Python if that is missing and it runs as root.
#
#   sdk/python/check.sh [ARGUMENTS OF PYTEST…]
#
# PYTHON chooses the interpreter (python3); ONWARD_BIN the program `onward` (target/debug/onward).
set -eu
cd "$(dirname "$0")"

python=${PYTHON:-python3}
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "$python with its module venv is missing; install Python 3.10 or newer" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends python3 python3-venv > /dev/null
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tools=$(cksum pyproject.toml | cut -d ' ' -f 1)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/onward/sdk-python-$version-$tools
if ! test -f "$folder/complete"; then
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
    "$folder/bin/pip" install --quiet --disable-pip-version-check --group check
    touch "$folder/complete"
fi
bin=$folder/bin

"$bin/ruff" format --quiet --check . ../conformance
"$bin/ruff" check --quiet . ../conformance
"$bin/mypy" --no-error-summary
"$bin/pyright" --pythonpath "$bin/python" > "$folder/pyright.txt" || { cat "$folder/pyright.txt"; exit 1; }
"$bin/pytest" "$@"

# The wheel holds every module and the mark of types, and imports without any other package.
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
"$bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$built" .
"$python" -I -c '
import sys, zipfile
wheel, = sys.argv[1:]
names = zipfile.ZipFile(wheel).namelist()
assert "onward/py.typed" in names, names
sys.path.insert(0, wheel)
import onward, onward.testing
' "$built"/onward-*.whl
