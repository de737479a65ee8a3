# shellcheck shell=bash
# A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler. To be sourced.
#
#   plane_build TOOLS              builds the binaries of go.mod's tool lines into that folder
#   plane_start DIR PORT [FLAGS]   etcd and the API server on ports from PORT on; their files and logs in DIR
#   plane_stop DIR                 all that was started in DIR
#
# Users (static tokens): admin (system:masters) and the two components. kubeconfig files lie in DIR.

version=v${CLAIMGUARD_E2E_KUBERNETES:-1.37.1} # go.mod's: what the binaries say of themselves

# has OPTIONS...: grep -q that reads its input to the end: with pipefail, a writer that nobody reads from fails.
has() { grep "$@" >/dev/null; }

# plane_port VARIABLE: a port that 99 others follow. No other run of this user gets it until this shell and all its children
# have ended. Below those that the kernel gives to clients.
plane_port() {
    local block reserved ports=${TMPDIR:-/tmp}/claimguard-ports-$UID
    mkdir -p "$ports"
    for block in $(seq 200 319 | shuf); do
        exec {reserved}>"$ports/$block"
        if flock -n "$reserved"; then
            printf -v "$1" %s $((block * 100))
            return
        fi
        exec {reserved}>&-
    done
    echo "all ports from 20000 to 31999 are in use" >&2
    return 1
}

# module_build MODULE TOOLS STAMP [LDFLAGS]: the binaries of its tool lines, unless TOOLS has them. Concurrent calls wait for
# each other.
module_build() {
    local module=$1 tools=$2 stamp=$2/$3 sum
    mkdir -p "$tools"
    sum=$(cat "$module/go.mod" "$module/go.sum" | sha256sum)
    (
        flock 9
        [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || exit 0
        echo "== building the tools of ${module##*/} (some minutes, once)" >&2
        (cd "$module" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local \
            go build -trimpath -buildvcs=false -ldflags "-s -w ${4:-}" -o "$tools/" tool)
        printf %s "$sum" >"$stamp"
    ) 9>"$tools/.lock"
}

# CLAIMGUARD_E2E_KUBERNETES: another version than that of go.mod.
plane_build() {
    local module=$e2e
    [ -z "${CLAIMGUARD_E2E_KUBERNETES:-}" ] || module=$("$e2e/other-version" "$CLAIMGUARD_E2E_KUBERNETES")
    module_build "$module" "$1" .built "$(plane_flags)"
}

# What the linker writes into Kubernetes' components.
plane_flags() {
    local package=k8s.io/component-base/version minor=${version#v1.}
    echo "-X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
}

# plane_kubeconfig DIR USER SERVER: DIR/USER.kubeconfig, with the user's static token.
plane_kubeconfig() {
    cat >"$1/$2.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: $2
clusters:
- {name: e2e, cluster: {server: "$3", certificate-authority: "$1/certs/apiserver.crt"}}
users:
- {name: $2, user: {token: $2-token}}
contexts:
- {name: $2, context: {cluster: e2e, user: $2}}
END
}

# plane_run DIR NAME COMMAND...: in the background, with a log and a pid file.
plane_run() {
    local dir=$1 name=$2
    shift 2
    "$@" <&0 >>"$dir/$name.log" 2>&1 &
    echo $! >"$dir/$name.pid"
    disown # the shell need not say that it was killed
}

# plane_kill DIR NAME [SIGNAL]: ends it and waits until it has ended.
plane_kill() {
    local pid
    pid=$(cat "$1/$2.pid" 2>/dev/null) || return 0
    rm -f "$1/$2.pid"
    kill "-${3:-TERM}" "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

plane_stop() {
    local file
    for file in "$1"/*.pid; do
        [ -e "$file" ] || continue
        file=${file##*/}
        plane_kill "$1" "${file%.pid}" KILL
    done
}

plane_api_start() {
    local dir=$1 port
    port=$(cat "$dir/port")
    shift
    plane_run "$dir" apiserver "$tools/kube-apiserver" \
        --etcd-servers "http://127.0.0.1:$port" --bind-address 127.0.0.1 --secure-port $((port + 2)) \
        --cert-dir "$dir/certs" --token-auth-file "$dir/tokens.csv" --authorization-mode RBAC \
        --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$dir/sa.key" \
        --service-account-signing-key-file "$dir/sa.key" --service-cluster-ip-range 10.0.0.0/24 \
        --audit-policy-file "$e2e/audit-policy.yaml" --audit-log-path "$dir/audit.log" \
        --max-requests-inflight 2000 --max-mutating-requests-inflight 1000 \
        --disable-admission-plugins ServiceAccount,TaintNodesByCondition "$@"
    for _ in $(seq 600); do
        if curl -sk --max-time 2 "https://127.0.0.1:$((port + 2))/readyz" | has -x ok; then return 0; fi
        kill -0 "$(cat "$dir/apiserver.pid")" 2>/dev/null || break
        sleep 0.1
    done
    tail -20 "$dir/apiserver.log" >&2
    echo "the API server did not start" >&2
    return 1
}

plane_start() {
    local dir=$1 port=$2
    shift 2
    mkdir -p "$dir"
    echo "$port" >"$dir/port"
    [ -e "$dir/sa.key" ] || openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
    cat >"$dir/tokens.csv" <<END
admin-token,admin,admin,"system:masters"
scheduler-token,system:kube-scheduler,scheduler
controllers-token,system:kube-controller-manager,controllers,"system:masters"
END
    local user
    for user in admin scheduler controllers; do
        plane_kubeconfig "$dir" "$user" "https://127.0.0.1:$((port + 2))"
    done
    plane_etcd_start "$dir" "$port"
    plane_api_start "$dir" "$@"
}

# The data is thrown away afterwards: no need to wait for the disk.
plane_etcd_start() {
    local dir=$1 port=$2
    plane_run "$dir" etcd "$tools/server" --data-dir "$dir/etcd" --unsafe-no-fsync --log-level error \
        --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port" \
        --listen-peer-urls "http://127.0.0.1:$((port + 1))" --initial-cluster "default=http://127.0.0.1:$((port + 1))" \
        --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" --quota-backend-bytes 6000000000
}

# plane_controllers_start DIR [,CONTROLLER... [FLAGS]]: what the scenarios need. No kubelet is there: node health is nobody's business.
plane_controllers_start() {
    plane_run "$1" controllers "$tools/kube-controller-manager" --kubeconfig "$1/controllers.kubeconfig" \
        --leader-elect=false --secure-port=0 --kube-api-qps 500 --kube-api-burst 1000 \
        --controllers namespace-controller,garbage-collector-controller,persistentvolume-binder-controller,ephemeral-volume-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,disruption-controller,deployment-controller,replicaset-controller,statefulset-controller,resourcequota-controller"${2:-}" "${@:3}"
}

# plane_scheduler_start DIR NAME CONFIG EXTENDER-URL [FLAGS]: with a file of manifests/, pointed at this plane.
plane_scheduler_start() {
    sed -e "s#^  kubeconfig: .*#  kubeconfig: $1/scheduler.kubeconfig\n  qps: 5000\n  burst: 5000#" \
        -e "s#urlPrefix: .*#urlPrefix: $4#" "$3" >"$1/$2.yaml"
    plane_run "$1" "$2" "$tools/kube-scheduler" --config "$1/$2.yaml" --secure-port=0 --leader-elect=false "${@:5}"
}
