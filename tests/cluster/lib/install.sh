# Installs the driver as its users do, `kubectl apply -k`, through the overlay beside this file. Sourced.
# shellcheck shell=bash disable=SC2154

driver_ready() {
  local node
  for node in $nodes; do
    kubectl get csinode "node-$node" -o jsonpath='{.spec.drivers[*].name}' | grep -q per-node.liken.sh || return 1
  done
}

install_driver() {
  wait_for "the driver's objects to be there" kubectl apply -k "$here/overlay"
  wait_for "the driver to be registered on every node" driver_ready
  kubectl -n per-node rollout status daemonset/per-node daemonset/per-node-second --timeout "${patience}s" > /dev/null
}
