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
  local cgroups
  cgroups=$(new_cgroups | head -n 1)
  rm -rf --one-file-system "$state_dir"
  what_is_left "$cgroups"
}

# The one beside first: what control groups it leaves are found by the other.
tear_down_both() {
  (state_dir=$beside_dir && tear_down)
  tear_down
}

remove_network() {
  if ip link show "per-node-$1" > /dev/null 2>&1; then ip link delete "per-node-$1"; fi
}

# Containers that end with their node leave empty control groups below `k8s.io` behind. Those that were there before stay, and
# only empty ones can be removed at all.
remove_cgroups() {
  local directory
  for _ in $(seq 50); do
    new_cgroups | while read -r directory; do rmdir "$directory" 2> /dev/null || true; done
    [ -n "$(new_cgroups)" ] || return 0
    sleep 0.1
  done
}

# A cluster beside another cannot tell its groups from the other's, and leaves them all to it.
new_cgroups() {
  [ ! -e "$state_dir/.beside" ] || return 0
  find /sys/fs/cgroup -depth -type d \( -name k8s.io -o -path '*/k8s.io/*' \) 2> /dev/null |
    awk 'NR == FNR {before[$0]; next} !($0 in before)' "$state_dir/cgroups-before" -
}

# unmount_below DIRECTORY: deepest first.
unmount_below() {
  local target
  awk -v below="$1/" 'index($5, below) == 1 {print $5}' /proc/self/mountinfo | sort -r |
    while read -r target; do umount "$target"; done
}


# what_is_left [FOUND]: fails, naming what it found.
what_is_left() {
  local left=$1 node
  if [ -e "$state_dir" ]; then left+=" $state_dir"; fi
  if grep -qF "$state_dir/" /proc/self/mountinfo; then left+=" mounts"; fi
  for node in $nodes; do
    if ip link show "per-node-$node" > /dev/null 2>&1; then left+=" interface-per-node-$node"; fi
  done
  # What was killed a moment ago may still be on its way out.
  for _ in $(seq 100); do
    [ -n "$(processes_left)" ] || break
    sleep 0.1
  done
  left+=$(processes_left)
  [ -z "$left" ] || fail "left behind:$left"
}

# processes_left: those of this cluster. Each names its directory in a command line, or runs from the parts with it in its
# environment; parts that run for something else are not this cluster's.
processes_left() {
  local pid
  for pid in /proc/[0-9]*; do
    [ "${pid#/proc/}" = $$ ] && continue
    if names_state_dir "$pid/cmdline"; then printf ' process-%s' "${pid#/proc/}"; continue; fi
    case $(readlink "$pid/exe" 2> /dev/null) in
      "$parts_dir"/*) if names_state_dir "$pid/environ"; then printf ' process-%s' "${pid#/proc/}"; fi ;;
    esac
  done
}

names_state_dir() { tr '\0' '\n' 2> /dev/null < "$1" | grep -qF "$state_dir/"; }
