#!/usr/bin/env bash
# Fails if a disk has too little space for a build, which would otherwise fail after minutes.
#
#   space.sh MEGABYTES FOLDER WHAT
set -euo pipefail
mkdir -p "$2"
free=$(df --output=avail --block-size=1M "$2" | tail -n 1)
if [ "$free" -lt "$1" ]; then
  echo "error: $3 needs about $1 MB in $2, whose disk has $((free)) MB left" >&2
  echo "hint: make room there; \`cargo clean\` and \`go clean -cache\` remove what earlier builds have left" >&2
  exit 1
fi
