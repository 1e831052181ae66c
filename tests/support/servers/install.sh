#!/usr/bin/env bash
# Programs of servers for tests, into .servers of the checkout. What can't be had is left out, and its tests skip themselves.
set -u
cd "$(dirname "$0")/../../.."
place="$PWD/.servers"
mkdir -p "$place"

# bring NAME FILE COMMAND...: run the command unless the file is there.
bring() {
  local name=$1 file=$2
  shift 2
  [ -e "$place/$file" ] && return
  if ! command -v "$1" >/dev/null; then echo "left out: $name, because there is no $1"; return; fi
  echo "installing $name"
  "$@" >"$place/log" 2>&1 && [ -e "$place/$file" ] || { tail -n 3 "$place/log"; rm -rf "${place:?}/$file"; echo "left out: $name"; }
}

testbench() {
  python3 -m venv "$place/testbench" &&
    "$place/testbench/bin/python" -m pip install --quiet --disable-pip-version-check \
      "${PYHUDI_GCS_TESTBENCH_SOURCE:-https://github.com/googleapis/storage-testbench/archive/e8c85072463f1f8378d850db457df598fdcb17a7.tar.gz}"
}

metastore() {
  mvn -B -ntp -q -f tests/support/servers/metastore.xml dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$place/metastore.part" && mv "$place/metastore.part" "$place/metastore"
}

bring "Azurite" node_modules/.bin/azurite-blob npm install --prefix "$place" --no-audit --no-fund azurite@3.35.0
bring "Google's storage-testbench" testbench/bin/storage-testbench testbench
bring "fake-gcs-server" bin/fake-gcs-server env GOBIN="$place/bin" go install github.com/fsouza/fake-gcs-server@v1.56.1
bring "a Hive metastore" metastore metastore
rm -rf "$place/log" "$place/metastore.part"
