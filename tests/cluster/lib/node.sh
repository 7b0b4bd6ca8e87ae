# A node: a mount and a process namespace of its own with a containerd and a kubelet in it. Sourced.
# The second node keeps its kubelet's directory and the plugin's store at other paths, so that both flags are used.
# shellcheck shell=bash disable=SC2154,SC2046

kubelet_dir() { [ "$1" = 1 ] && echo /var/lib/kubelet || echo "/var/lib/kubelet$(($1 - 1))"; }

# node_port NODE BASE: nodes share the host's network, so each has ports of its own.
node_port() { echo $(($2 + 100 * ($1 - 1))); }

write_containerd_config() {
  local node=$1 directory=$state_dir/node-$1
  mkdir -p "$directory/cni"
  # Without CAP_SYS_RESOURCE (nested machines) no sandbox starts unless restrict_oom_score_adj is set.
  cat > "$directory/containerd.toml" << TOML
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:test"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$directory/cni"
TOML
  cat > "$directory/cni/bridge.conflist" << JSON
{"cniVersion": "1.0.0", "name": "per-node-$node", "plugins": [{
  "type": "bridge", "bridge": "per-node-$node", "isGateway": true, "ipMasq": false,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.$node.0/24"}]]}}]}
JSON
}

write_kubelet_config() {
  local node=$1 gates="${feature_gates//=/: }" line=""
  # A killed plugin is back after a second, not after the minutes of a crash loop. Versions before 1.35 want a gate for that.
  if [ "$(cut -d. -f2 <<< "$k8s_version")" -lt 35 ]; then gates+="${gates:+, }KubeletCrashLoopBackOffMax: true"; fi
  if [ -n "$gates" ]; then line="featureGates: {$gates}"; fi
  cat > "$state_dir/node-$node/kubelet.yaml" << YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  x509: {clientCAFile: "$state_dir/pki/ca.crt"}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: 0.0.0.0
port: $(node_port "$node" 10250)
healthzPort: $(node_port "$node" 10248)
readOnlyPort: 0
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
volumePluginDir: /var/lib/kubelet-volume-plugins
podLogsDir: /var/log/pods
maxPods: 250
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
volumeStatsAggPeriod: 5s
serializeImagePulls: false
# The kubelet's own pace is what people see; only its rate limits would slow the cases down.
registryPullQPS: 0
eventRecordQPS: 50
kubeAPIQPS: 100
kubeAPIBurst: 200
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
$line
YAML
}

start_containerd() {
  start_in_node "$1" "containerd-$1" containerd --config "$state_dir/node-$1/containerd.toml" --log-level warn
  wait_for "containerd of node $1" in_node "$1" ctr version
}

start_kubelet() {
  start_in_node "$1" "kubelet-$1" "$parts_dir/kubelet" --config "$state_dir/node-$1/kubelet.yaml" \
    --root-dir "$(kubelet_dir "$1")" --cert-dir "$(kubelet_dir "$1")/pki" \
    --hostname-override "node-$1" --kubeconfig "$state_dir/node-$1.kubeconfig" $(own_address --node-ip)
}

start_node_init() {
  local node=$1 directory=$state_dir/node-$1 parent
  rm -f "$directory/ready"
  setsid unshare --mount --pid --fork --mount-proc --propagation private -- \
    "$here/lib/node-init" "$directory" >> "$state_dir/logs/node-$node.log" 2>&1 < /dev/null 9>&- &
  parent=$!
  wait_for "the first process of node $node" test -e "$directory/ready"
  record_process "node-$node" "$(tr -d ' ' < "/proc/$parent/task/$parent/children")"
}

import_images() {
  local node=$1 archive
  for archive in "$state_dir"/images/*.tar; do in_node "$node" ctr -n k8s.io images import "$archive" > /dev/null; done
}

node_ready() {
  [ "$(kubectl get node "node-$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

start_node() {
  local node=$1
  mkdir -p "$state_dir/node-$node"
  write_containerd_config "$node"
  write_kubelet_config "$node"
  start_node_init "$node"
  start_containerd "$node"
  import_images "$node"
  start_kubelet "$node"
}

# cut_power NODE: every process and every mount of the node is gone at once; its disk stays.
cut_power() {
  stop_process "node-$1" KILL
  rm -f "$state_dir/pids/kubelet-$1" "$state_dir/pids/containerd-$1"
}

# boot NODE: after cut_power, as a machine comes up again: same disk, empty /run, no mounts.
boot() {
  start_node_init "$1"
  start_containerd "$1"
  start_kubelet "$1"
}
