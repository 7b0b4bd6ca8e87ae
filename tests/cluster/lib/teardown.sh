# Ends a cluster and proves that nothing of it is left. Sourced. It may run at any time: after a failure, after Ctrl-C in the
# middle of a start, twice in a row, or by the next run when the last one was killed.
# shellcheck shell=bash disable=SC2154

tear_down() {
  [ -e "$state_dir/.per-node-cluster" ] || return 0
  local node
  # With a node's first process the kernel ends all its others and takes its mounts.
  for node in $nodes; do cut_power "$node"; done
  stop_control_plane
  for node in $nodes; do remove_network "$node"; done
  remove_cgroups
  unmount_below "$state_dir"
  rm -rf --one-file-system "$state_dir"
  what_is_left
}

remove_network() {
  if ip link show "per-node-$1" > /dev/null 2>&1; then ip link delete "per-node-$1"; fi
}

# Containers that end with their node leave empty control groups behind; only empty ones can be removed.
remove_cgroups() {
  local list=$state_dir/cgroups-before directory
  [ -s "$list" ] || return 0
  for _ in $(seq 50); do
    find /sys/fs/cgroup -mindepth 1 -depth -type d 2> /dev/null | grep -vxFf "$list" |
      while read -r directory; do
        case $directory in */k8s.io* | */kubepods* | */system.slice/containerd*) rmdir "$directory" 2> /dev/null || true ;; esac
      done
    find /sys/fs/cgroup -path '*/k8s.io*' -type d 2> /dev/null | grep -qvxFf "$list" || return 0
    sleep 0.1
  done
}

# unmount_below DIRECTORY: deepest first.
unmount_below() {
  local target
  awk '{print $5}' /proc/self/mountinfo | grep -F "$1/" | sort -r | while read -r target; do umount "$target"; done
}


# what_is_left: fails, naming what it found.
what_is_left() {
  local left="" node
  [ -e "$state_dir" ] && left+=" $state_dir"
  grep -qF "$state_dir/" /proc/self/mountinfo && left+=" mounts"
  for node in $nodes; do ip link show "per-node-$node" > /dev/null 2>&1 && left+=" interface-per-node-$node"; done
  # Every process of the cluster names its directory or runs from the parts.
  local pid
  for pid in /proc/[0-9]*; do
    [ "${pid#/proc/}" = $$ ] && continue
    case $(readlink "$pid/exe" 2> /dev/null) in "$parts_dir"/*) left+=" process-${pid#/proc/}" ;; esac
    if tr '\0' ' ' 2> /dev/null < "$pid/cmdline" | grep -qF "$state_dir/"; then left+=" process-${pid#/proc/}"; fi
  done
  [ -z "$left" ] || fail "left behind:$left"
}
