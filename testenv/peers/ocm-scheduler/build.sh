#!/usr/bin/env bash
# Builds the program that asks OCM's scheduling controller what it decides, from this folder and the sources pinned in go.mod, and
# prints its path: in a folder of the user's cache that is named by a hash of both. A program that exists is not built again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sources=$(cat "$here"/go.{mod,sum} "$here"/*.go "$0" | sha256sum | cut -c1-16)
program=${XDG_CACHE_HOME:-$HOME/.cache}/ocm-rs/peers/scheduler-$sources/ocm-scheduler

if [ ! -x "$program" ]; then
  go_version=$(go env GOVERSION 2>/dev/null || true)
  if ! printf '%s\n' go1.26 "${go_version:-none}" | sort -VC; then
    echo "error: building OCM's scheduler needs Go 1.26 or newer, found ${go_version:-none}" >&2
    echo "hint: install Go from https://go.dev/dl" >&2
    exit 1
  fi
  # Independent of the user's settings of Go.
  export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off
  GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
  export GOOS GOARCH
  started=$SECONDS
  echo "testenv: building OCM's scheduler into ${program%/*}" >&2
  mkdir -p "${program%/*}"
  # Written under another name and renamed, so that an interrupted build leaves no incomplete file.
  (cd "$here" && go build -trimpath -ldflags "-s -w" -o "$program.$$" .)
  mv "$program.$$" "$program"
  echo "testenv: OCM's scheduler built in $((SECONDS - started)) s" >&2
fi
echo "$program"
