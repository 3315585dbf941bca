#!/bin/sh
# Sends generated requests to a server, valid and invalid ones, and compares the responses with the OpenAPI document.
# It keeps its tools in a virtual environment of the cache folder, which it makes when they change.
#
#   crates/onward-server/api-checks/check.sh [SECONDS [ARGUMENTS OF schemathesis…]]
#
# Without SECONDS it runs for 20, without sequences of requests; with them it follows sequences too. PYTHON chooses the
# interpreter (python3), ONWARD_BIN the program `onward` (target/debug/onward).
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
tools=$(cksum requirements.txt | cut -d ' ' -f 1)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/onward/api-checks-$version-$tools
if ! test -f "$folder/complete"; then
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
    touch "$folder/complete"
fi

test -z "${ONWARD_TOOLS_ONLY:-}" || exit 0
case ${1:-} in
    '') seconds=20 phases=coverage,fuzzing ;;
    *) seconds=$1 phases=coverage,fuzzing,stateful && shift ;;
esac
onward=$(realpath "${ONWARD_BIN:-../../../target/debug/onward}")
data=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; rm -rf "$data"' EXIT
(cd "$data" && exec "$onward" --store s.db --json serve --listen 127.0.0.1:0 > out 2> log) &
server=$!
until test -s "$data/out"; do
    kill -0 "$server"
    sleep 0.1
done
base=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["listening"])' "$data/out")

# Left out: streams, which do not end; keys and sessions, whose changes would end the credential of the check. One
# worker, because Python's parser fails in several threads at once.
began=$(date +%s)
(
    cd "$data"
    "$folder/bin/schemathesis" run "$base/v1/openapi.json" --header "$(cat s.db.serve-key)" --phases "$phases" \
        --max-time "$seconds" --workers 1 --warnings off --continue-on-failure --request-timeout 40 \
        --exclude-path-regex '/(events|changes|sign-in|sign-out|keys|sessions)' \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
        "$@"
) > "$data/report" 2>&1 || {
    tail -c 20000 "$data/report"
    exit 1
}
# A fault in a handler is logged, and the connection goes on.
if grep -i panicked "$data/log"; then
    exit 1
fi
grep 'generated' "$data/report"
echo "test generated requests ... ok <$(($(date +%s) - began)).000s>"
