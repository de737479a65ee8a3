# shellcheck shell=bash
# What the machine has to have, and that nothing is left on it. To be sourced.
#
#   machine_lacks FOLDER     prints why there can be no nodes here; nothing, if there can be
#   machine_state            what a run could leave behind, a line each: mounts, links, addresses, routes, cgroups, sysctls
#   machine_group_join NAME  this process goes into cgroups of that name, which are made
#   machine_group_end NAME   they are removed, with all that is in them
#
# cgroup v1 alone: the v2 hierarchy of machines that have both is not enough for a kubelet. cgroups of one's own lie below one's own.

controllers=(cpu cpuacct cpuset memory devices freezer blkio pids)
hierarchies=("${controllers[@]}" systemd unified)

machine_lacks() {
    local controller
    [ "$(id -u)" = 0 ] || { echo "it needs root"; return; }
    for controller in "${controllers[@]}"; do
        [ -e "/sys/fs/cgroup/$controller/cgroup.procs" ] || { echo "it needs cgroup v1, with the controller $controller at /sys/fs/cgroup/$controller"; return; }
    done
    mkdir "$1/lower" "$1/upper" "$1/work" "$1/all"
    unshare --cgroup --mount --net --pid --ipc --uts --fork --propagation private bash -euc "
        mount -t overlay -o lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work overlay $1/all
        ip link add node0 type bridge && ip link add port-2 type veth peer name node-2" 2>"$1/lacks" || echo "namespaces with an overlay, a bridge and a veth: $(tail -1 "$1/lacks")"
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

machine_group_join() {
    local hierarchy group
    for hierarchy in "${hierarchies[@]}"; do
        group=$(machine_group "$hierarchy")/$1
        [ -e "${group%/*}/cgroup.procs" ] || continue # systemd, unified: not everywhere
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
        find "$(machine_group "$hierarchy")" -type d 2>/dev/null | sed 's/^/cgroup /'
    done
    # what can be set, but for what the kernel counts there
    find /proc/sys -type f -perm -200 2>/dev/null | grep -vE '/(ns_last_pid|random/.*|flush|compact_memory|drop_caches)$' | sort |
        { xargs grep -aHs '' || true; } | sed 's/^/sysctl /' # some cannot be read
    # processes: those that were started by a run, whose environment says so
    grep -lz '^CLAIMGUARD_NODE_RUN=' /proc/[0-9]*/environ 2>/dev/null | sed 's/^/process /' || true
}
