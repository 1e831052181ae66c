#!/usr/bin/env bash
# The nightly care of one table. Usage: maintain.sh TABLE
# Exit code 4 of pyhudi is a conflict with another process: the same command is tried again, three times.
set -u
table=$1

again() {
  for wait_s in 10 60 300 0; do
    "$@" && return 0
    code=$?
    [ "$code" -eq 4 ] && [ "$wait_s" -gt 0 ] || return "$code"
    sleep "$wait_s"
  done
}

if pyhudi table describe "$table" --json | grep -q '"MERGE_ON_READ"'; then
  again pyhudi compact "$table" --json || exit $?
fi
again pyhudi clean "$table" --yes --json || exit $?
again pyhudi archive "$table" --json || exit $?
pyhudi metadata validate "$table" --sample 10 --json
