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
strace strace
chromium chromium
mkfs.xfs xfsprogs
mkfs.btrfs btrfs-progs
LIST
  [ ${#missing[@]} = 0 ] && return
  log "installing ${missing[*]}"
  local try
  for try in 1 2 3; do
    if install_quietly "${missing[@]}"; then return; fi
    log "installing failed (try $try of 3)"
    sleep 5
  done
  fail "these packages cannot be installed: ${missing[*]}"
}

# Only the programs are wanted; a service that the package starts would be a second containerd.
install_quietly() {
  apt-get update -qq > /dev/null &&
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" > /dev/null
}
