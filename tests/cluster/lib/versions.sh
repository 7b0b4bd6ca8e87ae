# Which versions the cluster is made of, and where things are kept. Sourced; it does nothing but set names.
# shellcheck shell=bash disable=SC2034

default_k8s_version=1.37.2
etcd_version=3.6.16

k8s_version=${K8S_VERSION:-$default_k8s_version}
k8s_version=${k8s_version#v}

# Built parts are kept for the next run; everything else of a cluster lives in one directory that goes with it.
cache_dir=${PER_NODE_CACHE:-${HOME:-/root}/.cache/per-node}
parts_dir=$cache_dir/kubernetes-$k8s_version-etcd-$etcd_version
state_dir=${PER_NODE_CLUSTER_DIR:-/tmp/per-node-cluster}

api_port=6443
etcd_port=12379
etcd_peer_port=12380
nodes="1 2"

# A cluster beside another has a network of its own, with this address; the first has the host's.
beside_address=198.18.0.1
own_address() { [ ! -e "$state_dir/.beside" ] || echo "$1=$beside_address"; }
