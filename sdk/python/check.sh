#!/bin/sh
# Checks the Python SDK: format, lint, types by two checkers, tests, conformance, and the wheels.
# It keeps its tools in a virtual environment of the cache folder, which it makes when they change. It
# installs Debian's Python if that is missing and it runs as root.
#
#   sdk/python/check.sh [ARGUMENTS OF PYTEST…]
#
# PYTHON chooses the interpreter (python3); ONWARD_BIN the program `onward` (target/debug/onward).
# With ONWARD_TOOLS_ONLY it ends when the tools are installed.
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
test -z "${ONWARD_TOOLS_ONLY:-}" || exit 0
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

# The wheel of this platform holds the program: in a clean environment the quick start needs nothing else.
onward=${ONWARD_BIN:-../../target/debug/onward}
if test -f "$onward"; then
    began=$(date +%s)
    strip -o "$built/program" "$onward"
    platform=$("$python" -c 'import sysconfig; print(sysconfig.get_platform().replace("-", "_").replace(".", "_"))')
    "$python" package.py "$built"/onward-*-any.whl "$built/program" "$platform" "$built" > /dev/null
    "$python" -m venv "$built/venv"
    "$built/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$built"/onward-*"$platform".whl
    sed -n '/^```python$/,/^```$/p' README.md | sed -n '2,/^```$/p' | sed '$d' > "$built/app.py"
    (
        cd "$built"
        PATH=$built/venv/bin:$PATH
        unset ONWARD_STORE
        onward work --quiet --app "python app.py" &
        greeting=$(python -m onward submit --kind greet --wait '{"name": "Ada"}')
        kill $!
        wait $! || true
        test "$greeting" = '"Hello, Ada"' || { echo "the quick start of the wheel printed $greeting" >&2; exit 1; }
    )
    echo "test package wheel ... ok <$(($(date +%s) - began)).000s>"
fi
