# etcd, kube-apiserver, kube-controller-manager and kube-scheduler as plain processes on 127.0.0.1. Sourced.
# shellcheck shell=bash disable=SC2154,SC2046

# Gates that a case asks for, e.g. CSIVolumeHealth=true; both the API server and the kubelets get them.
feature_gates=${FEATURE_GATES:-}
# Pods have a status for the health of volumes since 1.37; the gate of that name meant something else before.
if [ "$(cut -d. -f2 <<< "$k8s_version")" -ge 37 ] && [[ $feature_gates != *CSIVolumeHealth=* ]]; then
  feature_gates=CSIVolumeHealth=true${feature_gates:+,$feature_gates}
fi

start_etcd() {
  start_process etcd "$parts_dir/etcd" --data-dir "$state_dir/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$etcd_peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$etcd_peer_port" \
    --initial-cluster "default=http://127.0.0.1:$etcd_peer_port"
}

start_apiserver() {
  local pki=$state_dir/pki
  start_process kube-apiserver "$parts_dir/kube-apiserver" \
    --etcd-servers "http://127.0.0.1:$etcd_port" --bind-address 127.0.0.1 --secure-port "$api_port" \
    --endpoint-reconciler-type none --service-cluster-ip-range 10.96.0.0/24 --allow-privileged \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-client-certificate "$pki/kubelet-client.crt" --kubelet-client-key "$pki/kubelet-client.key" \
    --kubelet-preferred-address-types InternalIP --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$pki/service-account.pub" --service-account-signing-key-file "$pki/service-account.key" \
    --feature-gates "$feature_gates" $(own_address --advertise-address)
}

# Its own rate limit (20 requests a second) would make the finalizers of a thousand volumes take two minutes.
start_controller_manager() {
  local pki=$state_dir/pki
  start_process kube-controller-manager "$parts_dir/kube-controller-manager" --bind-address 127.0.0.1 \
    --kubeconfig "$state_dir/controller-manager.kubeconfig" --leader-elect=false --use-service-account-credentials=true \
    --kube-api-qps 300 --kube-api-burst 600 \
    --service-account-private-key-file "$pki/service-account.key" --root-ca-file "$pki/ca.crt"
}

start_scheduler() {
  start_process kube-scheduler "$parts_dir/kube-scheduler" --bind-address 127.0.0.1 \
    --kubeconfig "$state_dir/scheduler.kubeconfig" --leader-elect=false
}

api_ready() { kubectl get --raw /readyz; }

start_control_plane() {
  start_etcd
  start_apiserver
  wait_for "the API server" api_ready
  start_controller_manager
  start_scheduler
  # Pods are refused until the controller manager has made their namespace's account.
  wait_for "the default service account" kubectl get serviceaccount default
}

stop_control_plane() {
  local name
  # The API server keeps no state of its own; ended gently it would wait ten seconds for its watchers.
  for name in kube-scheduler kube-controller-manager; do stop_process "$name"; done
  stop_process kube-apiserver KILL
  stop_process etcd
}

# save_etcd, restore_etcd: the whole control plane is stopped for both, since none of its parts may see the revisions go back.
save_etcd() {
  stop_control_plane
  rm -rf "$state_dir/etcd-saved"
  cp -a "$state_dir/etcd" "$state_dir/etcd-saved"
  start_control_plane
}

restore_etcd() {
  stop_control_plane
  rm -rf "$state_dir/etcd"
  cp -a "$state_dir/etcd-saved" "$state_dir/etcd"
  start_control_plane
  restart_kubelets
}

# empty_etcd: the nodes find themselves in another cluster, where the driver is installed and nothing else.
empty_etcd() {
  stop_control_plane
  rm -rf "$state_dir/etcd"
  start_control_plane
  restart_kubelets
  install_driver
}

restart_kubelets() {
  local node
  for node in $nodes; do
    stop_process "kubelet-$node"
    start_kubelet "$node"
  done
  for node in $nodes; do wait_for "node $node to be Ready" node_ready "$node"; done
}
