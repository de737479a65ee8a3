# shellcheck shell=bash
# Two nodes: node-1 is where this shell is, beside the control plane; node-2 has namespaces of its own. To be sourced.
#
#   node_namespaces N       within namespaces that are N's: mounts, the kubelet's sysctls, the network of node-1
#   node_second             node-2's namespaces, and its link to node-1
#   in_node N COMMAND...    a command there
#   node_start N            containerd, kubelet, kube-proxy; their files in $nodes/N, also their logs and pid files
#
# All that a node writes is in $nodes/N: /etc and /var are overlays, /run is in memory.

cni=/usr/lib/cni # where Debian's package has them

node_namespaces() {
    local n=$1 state=$nodes/$1 folder hierarchy setting
    hostname "node-$n"
    for folder in etc var; do
        mkdir -p "$state/$folder" "$state/$folder.work"
        mount -t overlay -o "lowerdir=/$folder,upperdir=$state/$folder,workdir=$state/$folder.work" overlay "/$folder"
    done
    for folder in lib/kubelet lib/containerd log/pods log/containers; do # containerd's layers are overlays themselves
        mkdir -p "$state/bound/$folder" "/var/$folder"
        mount --bind "$state/bound/$folder" "/var/$folder"
    done
    mkdir -p /etc/kubernetes/manifests
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    for hierarchy in "${controllers[@]}"; do
        mkdir "/sys/fs/cgroup/$hierarchy"
        mount -t cgroup -o "$hierarchy" cgroup "/sys/fs/cgroup/$hierarchy"
    done
    mkdir /sys/fs/cgroup/{systemd,unified}
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir /run/containerd
    # the kubelet wants these values, which are the whole machine's: it gets files that have them
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1; do
        echo "${setting#*=}" >"/run/${setting##*/}" # files named so: panic=10
        mount --bind "/run/${setting##*/}" "/proc/sys/${setting%=*}"
    done
    mount --make-rshared /
    ip link set lo up
    sysctl -qw net.ipv4.ip_forward=1
    [ "$n" != 1 ] || { # no dummy links in every kernel: a bridge carries the address
        ip link add node0 type bridge
        ip address add 10.99.0.11/24 dev node0
        ip link set node0 up
        ip route add default dev node0
    }
    sysctl -qw net.bridge.bridge-nf-call-iptables=1 || true # each namespace has its own, if the kernel has any
}

node_second() {
    local file=$nodes/2/ready
    mkdir -p "$nodes/2"
    (
        machine_group_join node-2
        exec unshare --cgroup --mount --net --uts --propagation private bash -euc "
            . '$node/machine.sh'; . '$node/node.sh'; nodes='$nodes'; node_namespaces 2; touch '$file'; exec sleep infinity"
    ) &
    second=$!
    await 10 "node-2 has namespaces" test -e "$file"
    ip link add port-2 type veth peer name node-2 netns "$second"
    ip link set port-2 master node0 up
    in_node 2 sh -ec 'ip address add 10.99.0.12/24 dev node-2; ip link set node-2 up; ip route add default via 10.99.0.11; ip route add 10.244.1.0/24 via 10.99.0.11'
    ip route add 10.244.2.0/24 via 10.99.0.12
}

in_node() {
    local n=$1
    shift
    if [ "$n" = 1 ]; then
        "$@"
    else
        nsenter -t "$second" --cgroup --mount --net --uts --wd=/ "$@"
    fi
}

# node_run N NAME COMMAND...: a daemon of that node, in its cgroups, with a log and a pid file.
node_run() {
    local n=$1 name=$2
    shift 2
    if [ "$n" = 1 ]; then
        plane_run "$nodes/1" "$name" "$@"
    else
        (machine_group_join "node-$n" && plane_run "$nodes/$n" "$name" nsenter -t "$second" --cgroup --mount --net --uts --wd=/ "$@")
    fi
}

node_start() {
    local n=$1
    node_files "$n"
    node_run "$n" containerd containerd --config "$nodes/$n/containerd.toml"
    await 20 "containerd of node-$n answers" in_node "$n" ctr version
    in_node "$n" sh -ec "for file in '$images'/*.tar; do ctr -n k8s.io images import \$file; done" >/dev/null
    node_kubelet "$n"
    node_run "$n" kube-proxy "$binaries/kube-proxy" --kubeconfig "$plane/proxy.kubeconfig" --proxy-mode iptables --cluster-cidr 10.244.0.0/16 \
        --conntrack-max-per-core 0 --conntrack-min 0 --hostname-override "node-$n"
}
node_kubelet() {
    node_run "$1" kubelet "$binaries/kubelet" --hostname-override "node-$1" --node-ip "10.99.0.1$1" \
        --kubeconfig "$plane/node-$1.kubeconfig" --config "$nodes/$1/kubelet.yaml"
}

node_files() {
    local state=$nodes/$1
    mkdir -p "$state/cni" "$state/manifests"
    cat >"$state/containerd.toml" <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$(image_name pause)"
  disable_apparmor = true
  restrict_oom_score_adj = true # without CAP_SYS_RESOURCE, no sandbox starts otherwise
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cni"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata] # a handler of that name: the pods' RuntimeClass asks for it
    runtime_type = "io.containerd.runc.v2"
END
    cat >"$state/cni/bridge.conflist" <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "10.244.$1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
    echo 'nameserver 10.99.0.11' >"$state/resolv.conf"
    cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
protectKernelDefaults: true # it sets nothing for the whole machine
resolvConf: $state/resolv.conf
clusterDNS: [10.99.0.11] # nobody is there
nodeStatusUpdateFrequency: 1s # a volume is mounted when the node's status says that it is attached
volumePluginDir: /var/lib/kubelet/volumeplugins
staticPodPath: /etc/kubernetes/manifests
fileCheckFrequency: 1s
syncFrequency: 5s # a changed ConfigMap arrives sooner
configMapAndSecretChangeDetectionStrategy: Watch
authentication: {x509: {clientCAFile: $plane/certs/apiserver.crt}}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100 # an imported image cannot be pulled again
imageGCLowThresholdPercent: 99
END
}
