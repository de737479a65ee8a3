# shellcheck shell=bash
# What the machine has to have, and that nothing is left on it. To be sourced.
#
#   machine_lacks            prints why there can be no nodes here; nothing, if there can be. What needs iproute2 or iptables only if they are there
#   machine_can              whether there can be: if not, it says so, and returns 77, or 1 if CLAIMGUARD_NODE=required
#   machine_state RUN        what the run of that process could leave behind, a line each: mounts, links, addresses, routes, cgroups, sysctls
#   machine_group_join NAME  this process goes into cgroups of that name, which are made
#   machine_group_end NAME   they are removed, with all that is in them
#
# cgroup v1 alone: the v2 hierarchy of machines that have both is not enough for a kubelet. cgroups of one's own lie below one's own.

controllers=(cpu cpuacct cpuset memory devices freezer blkio pids)
hierarchies=("${controllers[@]}" systemd unified)

machine_can() {
    local lacks
    lacks=$(machine_lacks)
    [ -n "$lacks" ] || return 0
    if [ "${CLAIMGUARD_NODE:-}" = required ]; then
        echo "== FAILED: no nodes on this machine: $lacks" >&2
        return 1
    fi
    echo "== SKIPPED: NO NODES ON THIS MACHINE, so nothing of tests/node has run: $lacks" >&2
    return 77
}

machine_lacks() {
    local controller folder
    [ "$(id -u)" = 0 ] || { echo "it needs root"; return; }
    ! dpkg-query -W -f '${db:Status-Status}' containerd.io 2>/dev/null | grep -x installed >/dev/null ||
        { echo "it needs Debian's containerd, which would remove Docker's containerd.io"; return; }
    [ -r /dev/kmsg ] || { echo "it needs /dev/kmsg, which kubelets read"; return; }
    for controller in "${controllers[@]}"; do
        machine_has_group "$controller" || { echo "it needs cgroup v1, with its own group of the controller $controller at $(machine_group "$controller"), which it can write"; return; }
    done
    folder=$(mktemp -d)
    unshare --cgroup --mount --net --pid --ipc --uts --fork --propagation private bash -euc "$(declare -f machine_probe); machine_probe $folder ${controllers[*]}" 2>"$folder/lacks" ||
        echo "namespaces with the mounts and links of a node: $(tail -1 "$folder/lacks")"
    rm -rf --one-file-system "$folder"
}
# What a node does first. The rule makes the kernel load what a run would, which adds sysctls.
machine_probe() {
    local folder=$1 controller
    shift
    mkdir "$folder/lower" "$folder/upper" "$folder/work" "$folder/all" "$folder/group"
    mount -t overlay -o "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/all"
    for controller; do # by itself: not where systemd has mounted two as one
        mount -t cgroup -o "$controller" cgroup "$folder/group"
        umount "$folder/group"
    done
    if ! command -v ip >/dev/null || ! command -v iptables >/dev/null; then return 0; fi
    ip link add node0 type bridge
    ip link add port-2 type veth peer name node-2
    iptables -t nat -A POSTROUTING -m conntrack --ctstate NEW -j MASQUERADE
}

# The folder of a hierarchy's group that this process is in. systemd's has a name, cgroup2's has none.
machine_group() {
    local path
    case $1 in
    systemd) path=$(sed -n 's/^[0-9]*:name=systemd://p' /proc/self/cgroup) ;;
    unified) path=$(sed -n 's/^0:://p' /proc/self/cgroup) ;;
    *) path=$(sed -nE "s/^[0-9]+:([a-z_]+,)*$1(,[a-z_]+)*://p" /proc/self/cgroup) ;;
    esac
    path=/sys/fs/cgroup/$1$path
    echo "${path%/}"
}

# The path in /proc may be one that is not mounted: in a container that has the namespace of its host. In most containers, it cannot be written.
machine_has_group() { [ -w "$(machine_group "$1")/cgroup.procs" ]; }

machine_group_join() {
    local hierarchy group
    for hierarchy in "${hierarchies[@]}"; do
        group=$(machine_group "$hierarchy")/$1
        machine_has_group "$hierarchy" || case $hierarchy in
            systemd | unified) continue ;; # not everywhere
            *) echo "there is no $(machine_group "$hierarchy")" >&2; return 1 ;;
        esac
        mkdir -p "$group"
        if [ "$hierarchy" = cpuset ]; then
            cat "$group/../cpuset.cpus" >"$group/cpuset.cpus"
            cat "$group/../cpuset.mems" >"$group/cpuset.mems"
            echo 1 >"$group/cgroup.clone_children"
        fi
        echo "$BASHPID" >"$group/cgroup.procs"
    done
}

# Processes that were killed leave a moment later.
machine_group_end() {
    local hierarchy group
    for hierarchy in "${hierarchies[@]}"; do
        group=$(machine_group "$hierarchy")/$1
        for _ in $(seq 100); do
            [ -e "$group" ] || break
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
        done
    done
}

machine_state() {
    local hierarchy
    cut -d' ' -f4- /proc/self/mountinfo | sed 's/^/mount /'
    ip -o link | sed -E 's/^[0-9]+: ([^ @:]+).*link\/([^ ]+ [^ ]+).*/link \1 \2/'
    ip -o address | awk '{ print "address", $2, $4 }'
    ip route show table all | sed -E 's/ expires [0-9a-z]+//; s/^/route /'
    for hierarchy in "${hierarchies[@]}"; do
        # without those of another run
        { find "$(machine_group "$hierarchy")" -type d 2>/dev/null || true; } | { grep -vP "/claimguard-(e2e-|(?!$1\\b)[0-9])" || true; } | sed 's/^/cgroup /'
    done
    # what can be set, but for what the kernel counts and sets there
    { find /proc/sys -type f -perm -200 2>/dev/null || true; } |
        grep -vE '/(ns_last_pid|random/.*|flush|compact_memory|drop_caches|perf_event_max_sample_rate)$' | sort |
        { xargs grep -aHs '' || true; } | sed 's/^/sysctl /' # some cannot be read
    # processes: those that the run has started, whose environment says so
    grep -lz "^CLAIMGUARD_NODE_RUN=$1\$" /proc/[0-9]*/environ 2>/dev/null | sed 's/^/process /' || true
}
