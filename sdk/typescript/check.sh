#!/bin/sh
# Checks the TypeScript SDK: types, lint, format, tests, conformance, and the packed package.
# It installs its tools into node_modules when package-lock.json has changed, and Node.js 20 if that is
# missing and it runs as root.
#
#   sdk/typescript/check.sh [ARGUMENTS OF node --test…]
#
# ONWARD_BIN is the program `onward` (target/debug/onward).
set -eu
cd "$(dirname "$0")"

if ! command -v npm > /dev/null; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "npm is missing; install Node.js 20 or newer" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends nodejs npm > /dev/null
fi
# Debian's Node.js may be older than 20. The package `node` of the npm registry contains the program.
if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'; then
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/onward/node-20
    npm install --prefix "$folder" --no-audit --no-fund --silent node@20
    PATH=$folder/node_modules/.bin:$PATH
    export PATH
fi
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
