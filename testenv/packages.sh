#!/usr/bin/env bash
# Installs the Debian packages in node.txt, which a node for tests needs (`make test-node`), and prints which and why. Programs that are there already, wherever they come from, are left alone, and nothing is removed. Without root it
# installs nothing and prints what to do.
#
#   packages.sh         installs what is missing
#   packages.sh list    prints the packages, one a line
#
# Debian would start containerd and docker-registry as services of the machine. Nodes for tests do not use those: each
# starts its own, in namespaces of its own. So services that come with this are neither started nor enabled.
set -euo pipefail
needs=$(cd "$(dirname "$0")" && pwd)/node.txt
# The PATH of other users lacks the folders of root's programs.
PATH=$PATH:/usr/sbin:/sbin

if [ "${1:-}" = list ]; then
  awk '!/^#/ { print $2 }' "$needs" | sort -u
  exit 0
fi

is_there() {
  case $1 in
    /*) [ -e "$1" ] ;;
    # Only a static one can be packed. Not `grep -q`, which exits early and makes ldd fail.
    busybox) command -v busybox >/dev/null && ! ldd "$(command -v busybox)" 2>/dev/null | grep '=>' >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
packages=()
while read -r program package reason; do
  if [ "$program" = "#" ] || is_there "$program"; then continue; fi
  missing+=("$program (package $package): $reason")
  if [[ " ${packages[*]} " != *" $package "* ]]; then packages+=("$package"); fi
done <"$needs"
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

echo "testenv: a node needs what is not there:" >&2
printf '  %s\n' "${missing[@]}" >&2
if ! command -v apt-get >/dev/null; then
  echo "testenv: this machine has no apt, so it has to come by other means; what is missing is named again when a node starts" >&2
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "error: only root can install it" >&2
  echo "hint: run \`sudo $0\`, or ask the administrator of this machine to run:" >&2
  echo "      apt-get install --no-install-recommends --no-remove ${packages[*]}" >&2
  exit 1
fi

# The lists may be as old as the machine's image, and name versions that are no longer on the mirror.
if ! apt-get update --quiet >&2; then
  echo "testenv: the package lists could not be updated, trying with those that are there" >&2
fi

removed=$(apt-get install --simulate --no-install-recommends "${packages[@]}" 2>/dev/null | awk '$1 == "Remv" { print $2 }') || true
if [ -n "$removed" ]; then
  echo "error: ${packages[*]} cannot be installed without removing" $removed >&2
  echo "hint: if nothing else needs that, remove it by hand, then run $0 again" >&2
  exit 1
fi

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
if ! DEBIAN_FRONTEND=noninteractive \
  apt-get install --yes --quiet --no-install-recommends --no-remove "${packages[@]}" >&2; then
  echo "error: the packages could not be installed" >&2
  echo "hint: check /etc/apt/sources.list and the connection to the mirror, then run $0 again" >&2
  exit 1
fi
for service in containerd docker-registry; do
  if [[ " ${packages[*]} " != *" $service "* ]] || ! command -v systemctl >/dev/null; then continue; fi
  systemctl disable --quiet "$service" >&2 || true
  echo "testenv: the service $service is not enabled; \`systemctl enable --now $service\` does that, should anything need it" >&2
done
