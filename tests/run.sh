#!/usr/bin/env bash
# All tests. Those with Spark come one after the other and wait for the JVM much of the time: first on a classic session,
# then on Spark Connect. Those without take what processor time is left, in as many processes as there are cores, so that
# no core has nothing to do. Called by `make test`; the arguments are Python and what pytest shall get as well.
set -uo pipefail
python="$1"; shift
export PYHUDI_SAMPLE=1  # of random examples, rounds and places to die a part; `make sweeps` takes all
# The run starts hundreds of Python processes: workers of Spark, writers that are killed. Where no bytecode may be written
# each of them compiles PyHudi for itself, and pytest rewrites the assertions of all files anew.
unset PYTHONDONTWRITEBYTECODE
logs="$(mktemp -d)"
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT

with_spark() {
    "$python" -m pytest tests/spark -m "not judge and not slow and not sweep and not cluster" "$@"
}

{
    PYHUDI_SPARK=classic with_spark "$@" > "$logs/classic" 2>&1; echo $? > "$logs/classic.exit"
    PYHUDI_SPARK=connect with_spark "$@" > "$logs/connect" 2>&1; echo $? > "$logs/connect.exit"
} &
spark=$!

# These folders have nothing for it: what is about the source alone is in `make check`.
nice -n 10 "$python" -m pytest -n auto --dist worksteal --ignore tests/spark --ignore tests/judge --ignore tests/house \
    -m "not spark and not judge and not slow and not sweep and not servers" "$@"
failed=$?
wait "$spark"
for session in classic connect; do
    echo "on Spark, a session of the kind $session:"
    cat "$logs/$session"
    [ "$(cat "$logs/$session.exit")" = 0 ] || failed=1
done
exit "$failed"
