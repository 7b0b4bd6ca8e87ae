# What the host must have: Debian packages, installed when a command of theirs is missing. Sourced.
# shellcheck shell=bash disable=SC2154

ensure_packages() {
  local command package missing=()
  while read -r command package; do
    command -v "$command" > /dev/null || [ -x "$command" ] || missing+=("$package")
  done << 'LIST'
containerd containerd
runc runc
/usr/lib/cni/bridge containernetworking-plugins
busybox busybox-static
buildah buildah
ip iproute2
iptables iptables
conntrack conntrack
ethtool ethtool
socat socat
openssl openssl
jq jq
mkfs.xfs xfsprogs
mkfs.btrfs btrfs-progs
LIST
  [ ${#missing[@]} = 0 ] && return
  log "installing ${missing[*]}"
  apt-get update -qq > /dev/null
  # Only the programs are wanted; a service that the package starts would be a second containerd.
  DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}
