# The parts of release/build, which sets the variables that they read. Each makes one kind of artefact in $output.

cyclonedx_version=0.5.9
target=x86_64-unknown-linux-gnu

# step NAME FUNCTION: says what is made, and how long it took.
step() {
  local began=$SECONDS
  "$2"
  echo "$1: $((SECONDS - began)) s" >&2
}

# archive FILE DIRECTORY ENTRY...: a gzipped tar that has no trace of who packed it, or when.
archive() {
  local file=$1 directory=$2
  shift 2
  tar -C "$directory" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -c "$@" | gzip -9 -n > "$file"
}

# cargo_tool NAME VERSION: the directory of a tool that cargo builds, once for each version.
cargo_tool() {
  local name=$1 version=$2 at=$PER_NODE_CACHE/$1-$2
  if [ ! -x "$at/bin/$name" ]; then
    CARGO_TARGET_DIR=$at/build cargo install "$name" --version "$version" --locked --root "$at" >&2 || return 1
    rm -rf "$at/build"
  fi
  echo "$at/bin"
}

# dist CARGO-ARGUMENT...: a static binary whose bytes do not tell where it was built.
dist() {
  local cargo_home=${CARGO_HOME:-$HOME/.cargo}
  local flags="-C target-feature=+crt-static"
  flags+=" --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$work/tree=/per-node"
  flags+=" --remap-path-prefix=$work/target=/target"
  (cd "$work/tree" && CARGO_TARGET_DIR=$work/target CARGO_INCREMENTAL=0 RUSTFLAGS=$flags \
    cargo build --locked --profile dist --target "$target" --no-default-features "$@") >&2
}

make_binaries() {
  local from=$binaries binary
  if [ -z "$from" ]; then
    dist --bin per-node
    dist --features kubectl --bin kubectl-per_node
    from=$work/target/$target/dist
    for binary in "$from/per-node" "$from/kubectl-per_node"; do
      if readelf --program-headers "$binary" | grep INTERP; then echo "$binary is not static" >&2; return 1; fi
      if grep -aqF "$work" "$binary"; then echo "$binary tells where it was built" >&2; return 1; fi
    done
  fi
  mkdir "$work/bin"
  install -m 0755 "$from/per-node" "$from/kubectl-per_node" "$work/bin"
  cp "$work/tree/LICENSE" "$work/bin"
  archive "$output/per-node-$version-$target.tar.gz" "$work/bin" per-node LICENSE
  archive "$output/kubectl-per_node-$version-$target.tar.gz" "$work/bin" kubectl-per_node LICENSE
}

# An OCI layout in an archive, which `skopeo copy --preserve-digests oci-archive:FILE docker://…` pushes under the same digest.
make_image() {
  local buildah=(buildah --storage-driver vfs --root "$work/storage" --runroot "$work/storage-run")
  mkdir "$work/context"
  cp "$work/bin/per-node" "$work/context"
  touch -d "@$SOURCE_DATE_EPOCH" "$work/context/per-node"
  "${buildah[@]}" bud --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --format oci \
    --file "$work/tree/deploy/Containerfile" --tag per-node "$work/context" > /dev/null
  "${buildah[@]}" push --quiet --digestfile "$output/image-digest.txt" per-node "oci:$work/layout:$version"
  grep -qE '^sha256:[0-9a-f]{64}$' "$output/image-digest.txt"
  tar -C "$work/layout" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -cf "$output/per-node-$version-image.tar" .
}

# The base and each overlay, for `kubectl apply -f`, with the image by its digest.
make_manifests() {
  local kustomize overlay name
  kustomize=$("$repository/tests/deploy/build-tools" kustomize)/kustomize
  mkdir "$work/manifests"
  for overlay in "$work/tree/deploy" "$work"/tree/deploy/overlays/*/; do
    name=$(basename "$overlay")
    (cd "$overlay" && "$kustomize" edit set image "per-node=$image@$(cat "$output/image-digest.txt")")
    "$kustomize" build "$overlay" > "$work/manifests/${name/#deploy/per-node}.yaml"
  done
  if grep -h 'image:' "$work"/manifests/*.yaml | grep -v "@sha256:"; then
    echo "an image that is not pinned" >&2
    return 1
  fi
  cp -r "$work/tree/deploy/monitoring" "$work/tree/deploy/examples" "$work/manifests"
  archive "$output/per-node-$version-manifests.tar.gz" "$work" manifests
  cp "$work/manifests/per-node.yaml" "$output/per-node-$version.yaml"
}

# The chart, whose values name the image by its digest. helm packs with the time of day, so it is packed again.
make_chart() {
  local helm chart=$work/tree/deploy/chart
  helm=$("$repository/tests/deploy/build-tools" helm)/helm
  sed -i -e "s|^  repository: per-node$|  repository: $image|" \
    -e "s|^  digest: \"\"$|  digest: $(cat "$output/image-digest.txt")|" "$chart/values.yaml"
  grep -q '^  digest: sha256:' "$chart/values.yaml" && grep -qF "  repository: $image" "$chart/values.yaml"
  "$helm" package "$chart" --version "$version" --app-version "$version" --destination "$work/packed" > /dev/null
  tar -xzf "$work/packed/per-node-$version.tgz" -C "$work/packed"
  archive "$output/per-node-chart-$version.tgz" "$work/packed" per-node
  "$helm" template test "$output/per-node-chart-$version.tgz" | grep "image: .*$image.*@sha256:" > /dev/null
}

# What is in each binary, in CycloneDX. The tool writes beside the manifest, and tells where that was.
make_sbom() {
  local bin name features
  bin=$(cargo_tool cargo-cyclonedx "$cyclonedx_version")
  for name in per-node kubectl-per_node; do
    features=()
    [ "$name" = per-node ] || features=(--features kubectl)
    (cd "$work/tree" && "$bin/cargo-cyclonedx" cyclonedx --format json --spec-version 1.5 --target "$target" \
      --no-default-features "${features[@]}" --no-build-deps --override-filename "$name.cdx" --quiet)
    jq --sort-keys --arg tree "$work/tree" 'del(.serialNumber) | walk(if type == "string" then gsub($tree; "/per-node") else . end)' \
      "$work/tree/$name.cdx.json" > "$output/$name-$version.cdx.json"
  done
}

# The texts of every licence that the binaries are under: each text once, below the crates that carry it.
make_licences() {
  local released=$version
  local name version license manifest texts text
  (cd "$work/tree" && cargo tree --locked --edges normal --no-default-features --features kubectl --target "$target" \
    --prefix none --no-dedupe --format '{p}') | sed -E 's/^([^ ]+) v([^ ]+).*/\1 \2/' | sort -u > "$work/crates"
  (cd "$work/tree" && cargo metadata --locked --format-version 1) |
    jq -r '.packages[] | [.name, .version, .license // "none", .manifest_path] | @tsv' > "$work/packages"
  while IFS=$'\t' read -r name version license manifest; do
    grep -qxF "$name $version" "$work/crates" || continue
    texts=$(find "$(dirname "$manifest")" -maxdepth 1 -type f \
      -iregex '.*/\(licen[cs]e\|copying\|notice\|unlicense\)[^/]*' | sort)
    [ -n "$texts" ] || texts=$(text_of_its_project "$name" "$license") || return 1
    while read -r text; do
      printf '%s\t%s\t%s\n' "$(sha256sum < "$text" | cut -d' ' -f1)" "$name $version ($license)" "$text"
    done <<< "$texts"
  done < "$work/packages" | sort -u > "$work/texts"
  {
    echo "The binaries of per-node contain these crates, under the licences whose texts follow."
    cut -f1 "$work/texts" | uniq | while read -r text; do
      printf '\n%s\n\n' "$(printf '=%.0s' {1..100})"
      grep "^$text" "$work/texts" | cut -f2 | sort -u
      echo
      cat "$(grep -m 1 "^$text" "$work/texts" | cut -f3)"
    done
  } > "$output/LICENCES-$released.txt"
}

# Crates that come without the text of their licence, which their project has all the same.
text_of_its_project() {
  case $1:$2 in
    kube:Apache-2.0 | kube-client:Apache-2.0 | kube-core:Apache-2.0) echo "$repository/LICENSE" ;;
    tonic-prost:MIT) dirname "$(awk -F'\t' '$1 == "tonic" { print $4; exit }' "$work/packages")" | sed 's|$|/LICENSE|' ;;
    *) echo "$1 carries no text of its licence, $2" >&2; return 1 ;;
  esac
}

# What somebody else needs to make the same bytes.
write_what_built_it() {
  {
    echo "commit $(git rev-parse HEAD), SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"
    rustc --version
    ld --version | head -n 1
    echo "static C library: $(dpkg-query -W -f '${Package} ${Version}' libc6-dev)"
    buildah --version
    echo "cargo-cyclonedx $cyclonedx_version"
  } > "$output/built-with.txt"
}

make_checksums() {
  (cd "$output" && sha256sum -- * > SHA256SUMS)
}
