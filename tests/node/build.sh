# shellcheck shell=bash
# What the nodes run, built once: Go's components, and the images. To be sourced.
#
#   node_build TOOLS IMAGES   binaries into the first folder, image archives into the second; what is newer is built again
#   image_name NAME           what the pods call it: pause, debian, csi, claimguard

node_build() {
    node_build_tools "$1"
    mkdir -p "$2"
    unshare --mount --propagation private "$node/images" "$1" "$2" # what it mounts is gone with the namespace
}

# Go's components: the modules name them as tools, and the driver is a package of the first one. Provisioner and resizer need an older k8s.io.
node_build_tools() {
    module_build "$node" "$1" .built-node "$(plane_flags)"
    module_build "$node/provisioner" "$1" .built-provisioner
    (cd "$node" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$1/" ./driver)
}

# The names that the pods use.
image_name() {
    case $1 in
    pause | csi) echo "docker.io/library/$1:local" ;;
    debian) echo docker.io/library/debian:12-slim ;;
    claimguard) sed -n 's#^ *image: \(claimguard:[^ ]*\).*#docker.io/library/\1#p' "$root/manifests/deployment.yaml" ;;
    esac
}
