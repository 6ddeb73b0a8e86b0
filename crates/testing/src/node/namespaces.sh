# The first process of a node's namespaces: sets up network and mounts, runs the program, and collects orphans, such as
# the shims of containers, until it ends. Run by isolation.rs with `sh -c`; $1 is the machine's address, the rest the program.
set -eu
# Not everybody's has the folders of root's programs.
PATH=$PATH:/usr/sbin:/sbin

try() {
  hint=$1
  shift
  "$@" || { echo "error: failed to set up the namespaces of a node: $*" >&2; echo "hint: $hint" >&2; exit 1; }
}

address=$1
shift

try "the kernel has no loopback here; is this a container without CAP_NET_ADMIN?" ip link set lo up
try "the kernel lacks bridges; load them with \`modprobe bridge\`" ip link add kn0 type bridge
try "is the address taken?" ip address add "$address/24" dev kn0
try "the bridge does not come up" ip link set kn0 up
try "a default route is what kubelet finds its address by" ip route add default via "$address"
try "the kernel lacks veth pairs; load them with \`modprobe veth\`" ip link add kn1 type veth peer name kn2
ip link delete kn1
try "the kernel lacks nftables; load it with \`modprobe nf_tables\`" nft list ruleset

# What a node writes outside its own folder goes to memory, over the machine's own folders, which stay as they are.
try "mounting needs CAP_SYS_ADMIN" mount -t tmpfs -o mode=755 tmpfs /run
for folder in /var/lib /var/log; do
  mkdir -p "/run/node$folder/upper" "/run/node$folder/work"
  try "the kernel lacks overlays, which images need too; load them with \`modprobe overlay\`" \
    mount -t overlay -o "lowerdir=$folder,upperdir=/run/node$folder/upper,workdir=/run/node$folder/work" overlay "$folder"
done
# Not on the overlay: overlays do not stack.
mkdir -p /var/lib/containerd /var/lib/kubelet
for folder in /var/lib/containerd /var/lib/kubelet; do
  try "mounting needs CAP_SYS_ADMIN" mount -t tmpfs -o mode=755 tmpfs "$folder"
done
# kubelet sets these, and they are the whole machine's: what it writes to are copies.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes; do
  if [ ! -e "/proc/sys/$setting" ]; then continue; fi
  copy=/run/node/proc/sys/$setting
  mkdir -p "${copy%/*}"
  cat "/proc/sys/$setting" >"$copy"
  try "mounting needs CAP_SYS_ADMIN" mount --bind "$copy" "/proc/sys/$setting"
done

code=0
"$@" || code=$?
exit "$code"
