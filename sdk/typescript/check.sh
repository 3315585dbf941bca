#!/bin/sh
# Checks the TypeScript SDK: types, lint, format, tests, conformance, and the packed package.
# It installs its tools into node_modules when package-lock.json has changed.
#
#   sdk/typescript/check.sh [ARGUMENTS OF node --test…]
#
# ONWARD_BIN is the program `onward` (target/debug/onward).
set -eu
cd "$(dirname "$0")"

if ! test node_modules/.package-lock.json -nt package-lock.json; then
    npm ci --no-audit --no-fund --silent
    touch node_modules/.package-lock.json
fi
npm run --silent compile
npm run --silent lint
if test -n "${ONWARD_TEST_LINES:-}"; then
    set -- --test-reporter=./build/tests/lines-reporter.js "$@"
fi
node --test "$@" build/tests/*.test.js
