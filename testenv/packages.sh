#!/usr/bin/env bash
# Installs the Debian packages that a node for tests needs (`make test-node`), and says which and why. What is there
# already is left alone. Without root it installs nothing and says what to do.
#
#   packages.sh         installs what is missing
#   packages.sh list    prints the packages, one a line
#
# Debian starts containerd and docker-registry as services of the machine where it has systemd. Nodes for tests do not
# use those: each starts its own, in namespaces of its own. Stop them with `systemctl disable --now` if nothing else
# needs them.
set -euo pipefail

reasons=(
  "containerd: runs the containers of pods"
  "runc: starts each of them"
  "containernetworking-plugins: connects pods to the machine"
  "iptables: the plugin for ports of the machine calls it"
  "nftables: kube-proxy's rules for services"
  "iproute2: sets up the network of a node's namespaces"
  "docker-registry: the registry on loopback that images with pull policy Always come from"
  "busybox-static: what the images busybox and pause are packed from"
)
packages=("${reasons[@]%%:*}")

if [ "${1:-}" = list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "testenv: this machine has no apt; a node needs these programs of Debian's packages by other means:" >&2
  printf '  %s\n' "${reasons[@]}" >&2
  echo "hint: what is missing is named when the node starts" >&2
  exit 0
fi

missing=()
for reason in "${reasons[@]}"; do
  status=$(dpkg-query --show --showformat '${db:Status-Status}' "${reason%%:*}" 2>/dev/null || true)
  if [ "$status" != installed ]; then missing+=("$reason"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

echo "testenv: a node needs packages that are not installed:" >&2
printf '  %s\n' "${missing[@]}" >&2
if [ "$(id -u)" != 0 ]; then
  echo "error: only root can install them" >&2
  echo "hint: run \`sudo $0\`, or ask whoever runs this machine for:" >&2
  echo "      apt-get install --no-install-recommends ${missing[*]%%:*}" >&2
  exit 1
fi

install() {
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "${missing[@]%%:*}" >&2
}
# The lists may be as old as the machine's image, and name versions that are no longer on the mirror.
if ! apt-get update --quiet >&2; then
  echo "testenv: the package lists could not be updated, trying with those that are there" >&2
fi
if ! install; then
  echo "error: the packages could not be installed" >&2
  echo "hint: check /etc/apt/sources.list and the connection to the mirror, then run $0 again" >&2
  exit 1
fi
