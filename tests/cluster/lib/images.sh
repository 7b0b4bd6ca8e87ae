# The images of the cluster, made without a registry: pause and workload from Debian's busybox, the driver's from
# deploy/Containerfile. Sourced.
# shellcheck shell=bash disable=SC2154

# buildah_here ARGUMENT...: buildah with its storage below the cluster's directory.
buildah_here() {
  buildah --storage-driver vfs --root "$state_dir/buildah" --runroot "$state_dir/buildah-run" "$@" > /dev/null
}

# build_image NAME CONTAINERFILE CONTEXT: into images/, from where every node imports it.
build_image() {
  local name=$1 containerfile=$2 context=$3 archive=$state_dir/images/${1//:/-}.tar
  mkdir -p "$state_dir/images"
  buildah_here bud --quiet --isolation chroot --tag "$name" --file "$containerfile" "$context"
  rm -f "$archive"
  buildah_here push --quiet "$name" "docker-archive:$archive:$name"
}

build_workload_images() {
  local context=$state_dir/busybox applet
  mkdir -p "$context/bin" "$context/tmp" "$context/etc"
  cp "$(command -v busybox)" "$context/bin/busybox"
  for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -sf busybox "$context/bin/$applet"; done
  echo "root:x:0:0:root:/:/bin/sh" > "$context/etc/passwd"
  printf 'FROM scratch\nCOPY . /\nCMD ["/bin/sleep", "2147483647"]\n' > "$state_dir/busybox.containerfile"
  build_image pause:test "$state_dir/busybox.containerfile" "$context"
  build_image busybox:latest "$state_dir/busybox.containerfile" "$context"
}

# build_driver: the binary as a release is built, with the first command at the top of deploy/Containerfile. Where a binary is
# given (PER_NODE_BINARY, a quick build while developing) there is nothing to do.
build_driver() {
  [ -z "${PER_NODE_BINARY:-}" ] || return 0
  log "building the driver as a release is built"
  (cd "$repository" && RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --locked --profile dist \
    --no-default-features --target x86_64-unknown-linux-gnu)
}

# build_driver_image: with the second command.
build_driver_image() {
  build_image_of "${PER_NODE_BINARY:-${CARGO_TARGET_DIR:-$repository/target}/x86_64-unknown-linux-gnu/dist/per-node}" test
}

# build_image_of BINARY TAG: the driver's image.
build_image_of() {
  local context=$state_dir/driver
  mkdir -p "$context"
  cp "$1" "$context/per-node"
  build_image "per-node:$2" "$repository/deploy/Containerfile" "$context"
}

# upgrade_image: what an upgrade pulls, per-node:next, on every node: a driver of another version where one is given, else the
# same one once more.
upgrade_image() {
  local node
  if [ -n "${PER_NODE_NEXT_BINARY:-}" ]; then build_image_of "$PER_NODE_NEXT_BINARY" next; fi
  for node in $nodes; do
    if [ -n "${PER_NODE_NEXT_BINARY:-}" ]; then
      in_node "$node" ctr -n k8s.io images import "$state_dir/images/per-node-next.tar" > /dev/null
    else
      in_node "$node" ctr -n k8s.io images tag --force "$(driver_reference "$node")" "$(driver_reference "$node" | sed 's/:test$/:next/')"
    fi
  done
}

# driver_reference NODE: the image's full name, as the runtime has completed it.
driver_reference() { in_node "$1" ctr -n k8s.io images ls -q | grep 'per-node:test$' | head -n 1; }
