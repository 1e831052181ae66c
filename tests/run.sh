#!/usr/bin/env bash
# The tests of `make test` ("once": each behaviour once) and of `make test-all` ("all"). Those with Spark come one after
# the other and wait for the JVM much of the time: first on a classic session, then on Spark Connect. Those without take
# what processor time is left, in as many processes as there are cores, so that no core has nothing to do.
#
#     tests/run.sh once|all PYTHON [ARGUMENTS OF PYTEST]
set -uo pipefail
what="$1"; python="$2"; shift 2
export PYHUDI_SAMPLE=1  # of random examples, rounds and places to die a part; `make sweeps` takes all
# The run starts hundreds of Python processes: workers of Spark, writers that are killed. Where no bytecode may be written
# each of them compiles PyHudi for itself, and pytest rewrites the assertions of all files every time.
unset PYTHONDONTWRITEBYTECODE
marks="not judge and not slow and not sweep"
[ "$what" = all ] || marks="$marks and not thorough"
logs="$(mktemp -d)"
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT

with_spark() {
    "$python" -m pytest tests/spark -m "$marks and not cluster" "$@"
}

echo "Tests without Spark are shown as they run; beside them Spark's run on a classic session, then on Spark Connect."
{
    PYHUDI_SPARK=classic with_spark "$@" > "$logs/classic" 2>&1; echo $? > "$logs/classic.exit"
    PYHUDI_SPARK=connect with_spark "$@" > "$logs/connect" 2>&1; echo $? > "$logs/connect.exit"
} &
spark=$!

# These folders have nothing for it: what is about the source alone is in `make check`.
nice -n 10 "$python" -m pytest -n auto --dist worksteal --ignore tests/spark --ignore tests/judge --ignore tests/house \
    -m "$marks and not spark and not servers" "$@"
failed=$?
echo "Without Spark: done after $((SECONDS / 60)) min $((SECONDS % 60)) s. Waiting for the tests on Spark."
wait "$spark"
for session in classic connect; do
    echo "On Spark, a session of the kind $session:"
    cat "$logs/$session"
    [ "$(cat "$logs/$session.exit")" = 0 ] || failed=1
done
echo "All of it took $((SECONDS / 60)) min $((SECONDS % 60)) s."
exit "$failed"
