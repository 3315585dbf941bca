#!/bin/sh
# Kills workflows whose steps are in workers of every language. `cargo xtask soak languages-kill` runs it.
#
#   sdk/conformance/kills.sh [ARGUMENTS OF kills.py…]
#
# ONWARD_PROFILE chooses the profile of cargo by which `onward` is built (dev), unless ONWARD_BIN names
# the program.
set -eu
cd "$(dirname "$0")/../.."

if test -z "${ONWARD_BIN:-}"; then
    profile=${ONWARD_PROFILE:-dev}
    cargo build --quiet -p onward-cli --profile "$profile"
    ONWARD_BIN=${CARGO_TARGET_DIR:-target}/$(test "$profile" = dev && echo debug || echo "$profile")/onward
    export ONWARD_BIN
fi
(
    cd sdk/typescript
    test node_modules/.package-lock.json -nt package-lock.json || npm ci --no-audit --no-fund --silent
    touch node_modules/.package-lock.json
    npm run --silent compile
)
export PYTHONPATH=sdk/python/src
exec python3 -u sdk/conformance/kills.py "$@" \
    --worker "python3 sdk/python/tests/steps_worker.py" \
    --worker "node sdk/typescript/build/tests/steps-worker.js" \
    --worker "ruby sdk/ruby/test/steps_worker.rb"
