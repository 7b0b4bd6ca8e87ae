# One certificate authority and a certificate for each part, made with openssl; kubeconfigs that carry them. Sourced.
# The authority signs and never serves: clients written in Rust refuse it as a server's certificate.
# shellcheck shell=bash disable=SC2154

make_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=per-node-test-ca \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$pki/ca.key" -out "$pki/ca.crt" 2> /dev/null
  openssl genrsa -out "$pki/service-account.key" 2048 2> /dev/null
  openssl rsa -in "$pki/service-account.key" -pubout -out "$pki/service-account.pub" 2> /dev/null
}

# issue NAME SUBJECT [SUBJECT_ALT_NAMES]
issue() {
  local name=$1 subject=$2 names=${3:-DNS:$1}
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
    -keyout "$pki/$name.key" -out "$pki/$name.csr" 2> /dev/null
  openssl x509 -req -in "$pki/$name.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 30 \
    -extfile <(printf '%s\n' "subjectAltName=$names" basicConstraints=CA:FALSE \
      extendedKeyUsage=serverAuth,clientAuth keyUsage=digitalSignature) \
    -out "$pki/$name.crt" 2> /dev/null
}

# write_kubeconfig NAME: a kubeconfig that needs no other file.
write_kubeconfig() {
  cat > "$state_dir/$1.kubeconfig" << YAML
apiVersion: v1
kind: Config
current-context: per-node-test
clusters:
  - name: per-node-test
    cluster:
      server: https://127.0.0.1:$api_port
      certificate-authority-data: $(base64 -w0 < "$pki/ca.crt")
users:
  - name: $1
    user:
      client-certificate-data: $(base64 -w0 < "$pki/$1.crt")
      client-key-data: $(base64 -w0 < "$pki/$1.key")
contexts:
  - name: per-node-test
    context: {cluster: per-node-test, user: $1}
YAML
  chmod 600 "$state_dir/$1.kubeconfig"
}

make_certificates() {
  pki=$state_dir/pki
  mkdir -p "$pki"
  make_authority
  issue apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
  issue kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  issue admin /O=system:masters/CN=admin
  issue controller-manager /CN=system:kube-controller-manager
  issue scheduler /CN=system:kube-scheduler
  local name node
  for node in $nodes; do issue "node-$node" "/O=system:nodes/CN=system:node:node-$node"; done
  for name in admin controller-manager scheduler; do write_kubeconfig "$name"; done
  for node in $nodes; do write_kubeconfig "node-$node"; done
}
