# Starting, finding and ending processes by recorded ids. Sourced.
# A process is recorded with its start time, so that an id the kernel has given to another process is never signalled;
# nothing here ever looks for a process by name.
# shellcheck shell=bash disable=SC2154

log() { echo "cluster: $*" >&2; }

fail() {
  log "$*"
  exit 1
}

# start_time PID: field 22 of its stat line, counted from behind the name, which may hold spaces. Read by the shell itself: a
# program that read it could be ended by the signal that ends a run, and a process be left without a record.
start_time() {
  local stat
  { stat=$(< "/proc/$1/stat"); } 2> /dev/null || return 1
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  echo "${20}"
}

record_process() {
  local name=$1 pid=$2
  echo "$pid $(start_time "$pid")" > "$state_dir/pids/$name"
}

# recorded_pid NAME: prints the id of the recorded process while it is alive.
recorded_pid() {
  local pid born
  [ -s "$state_dir/pids/$1" ] || return 1
  read -r pid born < "$state_dir/pids/$1"
  [ "$(start_time "$pid")" = "$born" ] || return 1
  # A zombie has ended; its parent has only not looked yet.
  [[ "$(cat "/proc/$pid/stat" 2> /dev/null)" != *") Z "* ]] || return 1
  echo "$pid"
}

# start_process NAME COMMAND...: in the background, its output in logs/NAME.log.
start_process() {
  local name=$1
  shift
  setsid "$@" >> "$state_dir/logs/$name.log" 2>&1 < /dev/null 9>&- &
  record_process "$name" $!
}

# start_in_node NODE NAME COMMAND...: the same inside a node. nsenter stays outside as the parent and goes when its child
# does, so the child is what is recorded.
start_in_node() {
  local node=$1 name=$2 init parent child
  shift 2
  init=$(recorded_pid "node-$node") || fail "node $node is not running"
  setsid nsenter --target "$init" --mount --pid --wd=/ -- "$@" >> "$state_dir/logs/$name.log" 2>&1 < /dev/null 9>&- &
  parent=$!
  for _ in $(seq 100); do
    child=$(cat "/proc/$parent/task/$parent/children" 2> /dev/null || true)
    [ -n "$child" ] && break
    sleep 0.02
  done
  [ -n "$child" ] || fail "$name did not start: $(tail -n 3 "$state_dir/logs/$name.log")"
  # shellcheck disable=SC2086
  record_process "$name" $child
}

# in_node NODE COMMAND...: runs a command with the node's mounts and processes, and waits for it.
in_node() {
  local init
  init=$(recorded_pid "node-$1") || fail "node $1 is not running"
  shift
  nsenter --target "$init" --mount --pid --wd=/ -- "$@"
}

# stop_process NAME [SIGNAL]: asks it to end, insists after ten seconds, returns once it is gone.
stop_process() {
  local name=$1 signal=${2:-TERM} pid
  if pid=$(recorded_pid "$name"); then
    # It may have ended by itself since its id was read; whether it is gone is what the loop looks at.
    kill "-$signal" "$pid" 2> /dev/null || :
    for tick in $(seq 200); do
      recorded_pid "$name" > /dev/null || break
      [ "$tick" = 100 ] && kill -KILL "$pid" 2> /dev/null
      sleep 0.1
    done
  fi
  rm -f "$state_dir/pids/$name"
}

# The bound of every wait, as in tests/cluster/wait.rs: for machines that are many times slower than it needs.
patience=600

# wait_for WHAT COMMAND...: tries until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + patience)) what=$1
  shift
  until "$@" > /dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || fail "gave up waiting for $what"
    sleep 0.1
  done
}
