# Which versions the cluster is made of, and where its binaries are kept. Sourced; it does nothing but set names.

# shellcheck disable=SC2034
default_k8s_version=1.37.2
etcd_version=3.6.16

k8s_version=${K8S_VERSION:-$default_k8s_version}
k8s_version=${k8s_version#v}

cache_dir=${PER_NODE_CACHE:-${HOME:-/root}/.cache/per-node}
parts_dir=$cache_dir/kubernetes-$k8s_version-etcd-$etcd_version
