#!/usr/bin/env bash
# Builds OCM's own programs, whom ours meet in `make interop`, from the sources pinned in */go.mod, and prints
# the folder that holds them: one in the user's cache, named by a hash of the pins. What is there is not built again.
#
# Beside them, in manifests/, lie OCM's CRDs and the rights that OCM installs for its agents and for its example.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pins=$(cat "$here"/{ocm,addon-framework}/go.{mod,sum} "$here"/addon-framework/*/*.go "$0" | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/ocm-rs/peers/$pins

go_version=$(go env GOVERSION 2>/dev/null || true)
if [ ! -f "$folder/complete" ] && ! printf '%s\n' go1.26 "${go_version:-none}" | sort -VC; then
  echo "error: building OCM's programs needs Go 1.26 or newer, found ${go_version:-none}" >&2
  echo "hint: install Go from https://go.dev/dl" >&2
  exit 1
fi

# build MODULE PACKAGE NAME
build() {
  if [ -x "$folder/$3" ]; then return; fi
  local started=$SECONDS
  echo "testenv: building OCM's $3 into $folder" >&2
  # Written beside its place and renamed, so that an interrupted build leaves nothing half done.
  (cd "$here/$1" && go build -trimpath -ldflags "-s -w" -o "$folder/.$3.$$" "$2")
  mv "$folder/.$3.$$" "$folder/$3"
  echo "testenv: $3 built in $((SECONDS - started)) s" >&2
}

# copy MODULE PATH FOLDER PATTERN...: from the sources of a module
copy() {
  local sources into=$folder/manifests/$3
  sources=$(cd "$here/$1" && go list -m -f '{{.Dir}}' "$2")
  shift 3
  for pattern in "$@"; do
    # Unquoted, since it is spelled out here.
    install -D -m 644 -t "$into" "$sources"/$pattern
  done
}

if [ ! -f "$folder/complete" ]; then
  # Whatever the user's Go is set up for otherwise.
  export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off
  GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
  export GOOS GOARCH
  mkdir -p "$folder"
  for name in registration work placement addon; do
    build ocm "open-cluster-management.io/ocm/cmd/$name" "$name"
  done
  build addon-framework open-cluster-management.io/addon-framework/cmd/example/helloworld helloworld
  build addon-framework ./helloworld-by-lease helloworld-by-lease
  copy ocm open-cluster-management.io/ocm hub-crds 'manifests/cluster-manager/hub/crds/*.yaml'
  copy ocm open-cluster-management.io/ocm managed-crds 'manifests/klusterlet/managed/*.crd.yaml'
  copy addon-framework open-cluster-management.io/addon-framework helloworld \
    'examples/deploy/addon/helloworld/resources/cluster_role*.yaml' \
    examples/deploy/addon/helloworld/resources/service_account.yaml
  touch "$folder/complete"
fi
echo "$folder"
