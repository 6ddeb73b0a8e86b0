#!/usr/bin/env bash
# Builds the Kubernetes binaries that tests, demo and benchmarks run against, from the sources
# pinned in kubernetes/go.mod and etcd/go.mod, into the user's cache folder.
#
#   build.sh path    prints the folder and builds nothing
#   build.sh         builds what is missing there (5-6 minutes on two cores, once per pin), and
#                    downloads OCM's CRDs (ocm-api/go.mod) into Go's module cache
#   build.sh node    also builds what a node needs: kubelet, kube-scheduler, kube-proxy
#   build.sh peers   builds OCM's own programs, pinned in peers/*/go.mod, into a folder of their own, and
#                    prints it (4 minutes on two cores, once per pin)
#   build.sh ocm-scheduler
#                    builds the program that asks OCM's scheduler for decisions, and prints its path (2 minutes)
#
# The folder's name is a hash of the pins, so every checkout with the same pins shares it, and
# changing a pin rebuilds. A binary that KUBEBUILDER_ASSETS already holds is not built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pins=$(cat "$here"/{kubernetes,etcd}/go.{mod,sum} | sha256sum | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/ocm-rs/testenv/$pins

control_plane=(etcd kube-apiserver kube-controller-manager kubectl)
node=(kubelet kube-scheduler kube-proxy)

if [ "${1:-}" = path ]; then
  echo "$folder"
  exit 0
fi

if [ "${1:-}" = peers ]; then
  exec "$here/peers/build.sh"
fi

if [ "${1:-}" = ocm-scheduler ]; then
  exec "$here/peers/ocm-scheduler/build.sh"
fi

wanted=("${control_plane[@]}")
if [ "${1:-}" = node ]; then wanted+=("${node[@]}"); fi

missing=()
for binary in "${wanted[@]}"; do
  if [ ! -x "$folder/$binary" ] && [ ! -x "${KUBEBUILDER_ASSETS:-/nonexistent}/$binary" ]; then
    missing+=("$binary")
  fi
done

go_version=$(go env GOVERSION 2>/dev/null || true)
if ! printf '%s\n' go1.26 "${go_version:-none}" | sort -VC; then
  if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
  echo "error: building ${missing[*]} needs Go 1.26 or newer, found ${go_version:-none}" >&2
  echo "hint: install Go from https://go.dev/dl, or set KUBEBUILDER_ASSETS to a folder that holds" >&2
  echo "      ${wanted[*]}" >&2
  exit 1
fi

# Independent of the user's settings of Go.
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off
GOOS=$(go env GOHOSTOS) GOARCH=$(go env GOHOSTARCH)
export GOOS GOARCH
(cd "$here/ocm-api" && go mod download)
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print $3 }
               $1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2 }' "$here/kubernetes/go.mod" | head -n 1)
IFS=. read -r major minor _ <<<"${version#v}"
stamp=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  stamp+=" -X $package.gitTreeState=clean"
done

# Measured with an empty cache: Go keeps every package it has compiled, and the first binary takes most of them.
space=500
if [[ " ${missing[*]} " == *" kube-apiserver "* ]]; then space=4000; fi
"$here/space.sh" "$space" "$(go env GOCACHE)" "building ${missing[*]}"

mkdir -p "$folder"
for binary in "${missing[@]}"; do
  started=$SECONDS
  echo "testenv: building $binary into $folder" >&2
  # Written under another name and renamed, so that an interrupted build leaves no incomplete file.
  if [ "$binary" = etcd ]; then
    (cd "$here/etcd" && go build -trimpath -ldflags "-s -w" -o "$folder/.$binary.$$" go.etcd.io/etcd/server/v3)
  else
    (cd "$here/kubernetes" && go build -trimpath -ldflags "-s -w$stamp" -o "$folder/.$binary.$$" "k8s.io/kubernetes/cmd/$binary")
  fi
  mv "$folder/.$binary.$$" "$folder/$binary"
  echo "testenv: $binary built in $((SECONDS - started)) s" >&2
done
