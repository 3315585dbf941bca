#!/bin/sh
# Runs the workers without a library, in Go, Java and shell, on tasks of a store. It installs Debian's
# Go and Java if they are missing and it runs as root.
#
#   sdk/plain/check.sh
#
# ONWARD_BIN chooses the program `onward` (target/debug/onward).
# With ONWARD_TOOLS_ONLY it ends when the tools are installed.
set -eu
cd "$(dirname "$0")"

onward=${ONWARD_BIN:-../../target/debug/onward}
onward=$(cd "$(dirname "$onward")" && pwd)/$(basename "$onward")
if ! command -v go > /dev/null || ! command -v javac > /dev/null; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "go or javac is missing; install Go 1.19 and Java 17, or newer" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends golang-go openjdk-17-jdk-headless > /dev/null
fi

test -z "${ONWARD_TOOLS_ONLY:-}" || exit 0
folder=$(mktemp -d)
workers=
trap 'kill $workers 2> /dev/null || true; wait; rm -rf "$folder"' EXIT
gofmt=$(gofmt -l .)
test -z "$gofmt" || { echo "not formatted: $gofmt; run gofmt -w" >&2; exit 1; }
go build -o "$folder/worker" worker.go
javac -Xlint:all -Werror -d "$folder" Worker.java
cp worker.sh "$folder"
cd "$folder"

# Submits three tasks, waits for their ends, and compares the results: `expect NAME`.
expect() {
    for word in ada grace 'with "quotes"'; do
        found=$("$onward" submit --kind upper --wait "$word")
        test "$found" = "$(echo "$word" | tr a-z A-Z)" || { echo "test plain $1 ... FAILED: $found"; exit 1; }
    done
    echo "test plain $1 ... ok"
}

# Stops the last worker by SIGTERM, and waits until it has ended.
stop() {
    kill "$workers"
    wait "$workers" || true
    workers=
}

export ONWARD_STORE="$folder/onward.db"
"$onward" work --quiet --app ./worker &
workers=$!
expect go
stop

"$onward" work --quiet --kind upper -- ./worker.sh &
workers=$!
expect shell
stop

"$onward" work --quiet --listen "ipc://$folder/gateway" &
gateway=$!
workers=$gateway
tries=0
until test -S "$folder/gateway"; do
    tries=$((tries + 1))
    test "$tries" -lt 600 || { echo "the gateway does not listen" >&2; exit 1; }
    sleep 0.1
done
ONWARD_GATEWAY="ipc://$folder/gateway" java -cp . Worker &
workers="$gateway $!"
expect java
kill "$gateway"
wait "$gateway" || true
