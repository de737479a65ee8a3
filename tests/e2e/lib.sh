# shellcheck shell=bash
# What scenarios are written with. To be sourced.

# Of the scenario that runs.
namespace=default scheduler=default-scheduler

jq() { gojq "$@"; } # Debian 12's jq takes 40 ms to start, this one 4
k() { "$tools/kubectl" --kubeconfig "$plane/admin.kubeconfig" "$@"; }

# api PATH [CURL-OPTION]...: what the API server has there. kubectl takes ten times as much of the machine.
api() {
    curl -sS --max-time 20 --cacert "$plane/certs/apiserver.crt" -H 'Authorization: Bearer admin-token' "${@:2}" \
        "$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$plane/admin.kubeconfig")$1"
}
of_namespace() { api "/api/v1/namespaces/$namespace/$1" "${@:2}"; } # such as pods/NAME

fail() {
    echo "$*" >&2
    return 1
}

declare -p since_minor >/dev/null 2>&1 || declare -A since_minor # of a scenario, if groups.sh says one

# Whether the control plane is of that minor version, or newer.
kubernetes_has_minor() {
    local minor=${version#v1.}
    [ "${minor%%.*}" -ge "$1" ]
}

# scenario NAME COMMAND...: in a namespace of its own, if the name matches $filter; says how it went. `scenario_failed` prints more, indented.
failed=0 number=0 filter=${filter:-.}
scenario() {
    local name=$1 started status=0
    shift
    [ -z "${listing:-}" ] || { echo "$name" && return; }
    [[ $name =~ $filter ]] || return 0
    if ! kubernetes_has_minor "${since_minor[$name]:-0}"; then
        echo "SKIPPED - $name: it needs Kubernetes 1.${since_minor[$name]}, and this is $version"
        return
    fi
    number=$((number + 1))
    namespace=e2e-$number
    started=$(date +%s%N)
    k create namespace "$namespace" >/dev/null
    # in the background, since `set -e` counts for nothing in a command whose status is read
    (
        set -e
        "$@"
    ) >"$work/out" 2>&1 &
    wait $! || status=$?
    printf '%s %d - %s (%s s)\n' "$([ $status = 0 ] && echo ok || echo 'not ok')" "$number" "$name" \
        "$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $started) / 1e9 }")"
    if [ $status = 0 ]; then
        sed 's/^/    # /' "$work/out"
    else
        failed=$((failed + 1))
        sed 's/^/    /' "$work/out"
        scenario_failed
    fi
    k delete namespace "$namespace" --wait=false >/dev/null || true
}
scenarios() { # NAME...: each is a function
    local name
    for name in "$@"; do scenario "$name" "$name"; done
}
# The last line, and the exit status. A filter that matches nothing is an error.
scenarios_passed() {
    echo "$number scenarios, $failed failed"
    [ "$number" != 0 ] || fail "no scenario has a name that matches $filter"
    [ "$failed" = 0 ]
}

# await SECONDS WHAT COMMAND...: until the command succeeds. At least a minute: the machine may be slow.
await() {
    local seconds=$(($1 < 60 ? 60 : $1)) what=$2 deadline tries=0
    shift 2
    deadline=$(($(date +%s%N) + seconds * 1000000000))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s%N)" -lt "$deadline" ] || fail "after $seconds s, not yet: $what" || return 1
        sleep $((tries++ < 10 ? 0 : 1)).2 # what asks takes as much of the machine as what is asked
    done
}

# claim_yaml NAME [MODE]: a claim that is bound to a volume of its own.
claim_yaml() {
    local name=$1 mode=${2:-ReadWriteOncePod}
    cat <<END
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $namespace-$name}
spec:
  accessModes: [$mode]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: fast-storage
  csi: {driver: plugin1.example.com, volumeHandle: $namespace-$name}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: $namespace, name: $name}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name, namespace: $namespace}
spec:
  accessModes: [$mode]
  storageClassName: fast-storage
  volumeName: $namespace-$name
  resources: {requests: {storage: 1Gi}}
END
}

claim() { claim_yaml "$@" | k apply --validate=ignore -f - >/dev/null; }
claims_are_bound() { # COUNT
    [ "$(of_namespace persistentvolumeclaims | jq '[.items[] | select(.status.phase == "Bound")] | length')" = "$1" ]
}

# pod_yaml NAME CLAIMS [FIELD: VALUE]...: more fields of the spec, each an argument.
pod_yaml() {
    local name=$1 claims=$2 field claim
    shift 2
    cat <<END
---
apiVersion: v1
kind: Pod
metadata: {name: $name, namespace: $namespace}
spec:
  schedulerName: $scheduler
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers: [{name: c, image: registry.example/app}]
END
    for field in "$@"; do echo "  $field"; done
    [ -z "$claims" ] || echo "  volumes:"
    for claim in $claims; do
        echo "  - {name: $claim, persistentVolumeClaim: {claimName: $claim}}"
    done
}

pod() { pod_yaml "$@" | k apply --validate=ignore -f - >/dev/null; }

node_of() { of_namespace "pods/$1" | jq -r '.spec.nodeName // empty'; }
is_scheduled() { [ -n "$(node_of "$1")" ]; }
is_gone() { [ "$(of_namespace "pods/$1" -o /dev/null -w '%{http_code}')" = 404 ]; }
scheduled() { await 30 "pod $1 is scheduled" is_scheduled "$1"; }

# The message of the pod's latest condition PodScheduled=False.
why_not() {
    of_namespace "pods/$1" | jq -r '.status.conditions[]? | select(.type == "PodScheduled") | .message // empty'
}
says() { why_not "$1" | has -F -- "$2"; }

# rejected POD TEXT: it is unschedulable, and says why; and stays so.
rejected() {
    await 20 "pod $1 is rejected with: $2" says "$1" "$2"
    sleep 0.3
    if is_scheduled "$1"; then fail "pod $1 is scheduled"; fi
}

# in_use_by POD HOLDER: rejected for a conflict. kube-scheduler's own plugin comes first, where it is on, and names nobody.
in_use_by() {
    if [ "$scheduler" = default-scheduler ]; then
        rejected "$1" "PersistentVolumeClaim with ReadWriteOncePod access mode"
    else
        rejected "$1" "claim $namespace/data is in use by pod $namespace/$2 on $(node_of "$2")"
    fi
}

# has_event REASON TEXT: an Event of the namespace says so.
has_event() {
    of_namespace events |
        jq -e --arg reason "$1" --arg text "$2" \
            'any(.items[]; .reason == $reason and (.message // .note // "" | contains($text)))' >/dev/null
}

delete_pod() { k -n "$namespace" delete pod "$1" --grace-period=0 --force --wait=false >/dev/null 2>&1; }

# ---- advice ----

# As a shell runs what a person pastes.
paste_in() { KUBECONFIG=$plane/admin.kubeconfig PATH=$tools:$PATH timeout 90 bash -c "$1" >"$plane/pasted" 2>&1 || fail "$1: $(cat "$plane/pasted")"; }

who_says_of() { "$claimguard" who "$1" -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" -o json | jq -c '.claims[0].freedBy'; }
why_says_of() { "$claimguard" why "$1" -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" -o json | jq -c '[.pods[0].causes[].helps[]]'; }

# take ROW WHO|WHY OBJECT: does what that row says of the claim, or of the pod. The variable undo gets the command that goes back.
take() {
    local pieces piece
    pieces=$("$2_says_of" "$3")
    piece=$(jq -ce --arg row "$1" 'map(select(.advice == $row))[0] // empty' <<<"$pieces") || fail "no $1 in $pieces"
    undo=$(jq -r '.undo // ""' <<<"$piece")
    paste_in "$(jq -er .command <<<"$piece")"
}
go_back() { paste_in "$undo"; }
advises() { "$2_says_of" "$3" | jq -e --arg row "$1" 'any(.[]; .advice == $row)' >/dev/null; }

# ---- Helm ----

# Without the line that it prints for each link in the chart.
with_helm() {
    local code=0
    "$tools/helm" --kubeconfig "$plane/admin.kubeconfig" --namespace claimguard "$@" 2>"$plane/helm.err" || code=$?
    grep -v 'found symbolic link' "$plane/helm.err" >&2 || true
    return $code
}

# ---- claimguard ----

# manifests/ without the webhooks, which no claimguard answers before `admission_apply`.
manifests_apply() {
    k apply -k "$root/manifests" >/dev/null
    k delete validatingwebhookconfiguration claimguard >/dev/null
}

claimguard_kubeconfig() { # SERVER TOKEN-FILE [NAMESPACE]
    cat <<END
apiVersion: v1
kind: Config
current-context: claimguard
clusters:
- {name: e2e, cluster: {server: "$1", certificate-authority: "$plane/certs/apiserver.crt"}}
users:
- {name: claimguard, user: {tokenFile: "$2"}}
contexts:
- {name: claimguard, context: {cluster: e2e, user: claimguard, namespace: ${3:-claimguard}}}
END
}

# What claimguards that run no more have announced would hold up those with another lock for 90 s.
nothing_is_agreed() { k -n claimguard patch configmap claimguard-agreement --type merge -p '{"data": null}' >/dev/null; }

# agreement_of NAMESPACE [ENTRY]...: the entries are in force for those whose kubeconfig has that namespace: NAMESPACE.kubeconfig.
agreement_of() {
    local namespace=$1
    shift
    claimguard_kubeconfig "https://127.0.0.1:$(($(cat "$plane/port") + 2))" "$plane/token" "$namespace" >"$plane/$namespace.kubeconfig"
    k create namespace "$namespace" >/dev/null
    k -n "$namespace" create configmap claimguard-agreement "${@/%/=in force}" >/dev/null
    k -n "$namespace" create role claimguard --verb=get,patch --resource=configmaps --resource-name=claimguard-agreement >/dev/null
    k -n "$namespace" create rolebinding claimguard --role=claimguard --serviceaccount=claimguard:claimguard >/dev/null
}

# kubeconfig_for [FLAGS]...: those with one configuration agree among themselves.
kubeconfig_for() {
    local name=claimguard
    while [ $# -gt 1 ]; do
        if [ "$1" = --config ] && grep -rqs 'claimLock: Annotation' "$2"; then
            name=replicas
            ! grep -rqs 'nonExclusiveClaims: Exclusive' "$2" || name=replicas-of-vms
        fi
        shift
    done
    echo "$plane/$name.kubeconfig"
}

# new_token SECRET: a token of claimguard's service account, good for as long as the Secret is there.
new_token() {
    k -n claimguard create secret generic "$1" >/dev/null
    k -n claimguard create token claimguard --bound-object-kind Secret --bound-object-name "$1"
}

# claimguard_start NAME [FLAGS]...: serve, with NAME.log and NAME.pid; later flags take the place of these.
claimguard_start() {
    claimguard_launch "$@"
    claimguard_listens "$1"
}
claimguard_launch() {
    local name=$1 port=0 next=0
    shift
    # who is killed and restarted has ports that the kernel gives to no client meanwhile
    case $name in claimguard) next=15 ;; one) next=17 ;; two) next=19 ;; esac
    [ $next = 0 ] || port=$(($(cat "$plane/port") + next)) next=$(($(cat "$plane/port") + next + 1))
    # that of an earlier one is kept: a sanitizer may have reported in it
    [ ! -e "$plane/$name.log" ] || mv "$plane/$name.log" "$plane/$name-$(date +%s%N).log"
    plane_run "$plane" "$name" "$claimguard" serve --kubeconfig "$(kubeconfig_for "$@")" \
        --listen "127.0.0.1:$port" --metrics-listen "127.0.0.1:$next" --log-level debug --config "$e2e/claimguard.yaml" "$@"
}
claimguard_listens() { await 60 "$1 listens" grep -q " listening " "$plane/$1.log"; }

# claimguard_restart NAME [FLAGS]...: killed, and started again where it listened: `claimguard`, `one` or `two`.
claimguard_restart() {
    plane_kill "$plane" "$1" KILL
    claimguard_start "$@"
}

# configure FILE [SED-EXPRESSION]...: claimguard runs with that file, changed so.
configure() {
    local expression reloads file=$plane/configuration.yaml
    cp "$e2e/$1" "$file.new"
    shift
    for expression in "$@"; do sed -i "$expression" "$file.new"; done
    if ! grep -qF "$file" "/proc/$(cat "$plane/claimguard.pid")/cmdline"; then
        mv "$file.new" "$file"
        claimguard_restart claimguard --config "$file"
        await 20 "claimguard is ready" is_ready claimguard
        return
    fi
    reloads=$(grep -c 'configuration reloaded' "$plane/claimguard.log" || true)
    mv "$file.new" "$file"
    await 10 "the configuration is reloaded" reloads_exceed "$reloads"
}
reloads_exceed() { [ "$(grep -c 'configuration reloaded' "$plane/claimguard.log")" -gt "$1" ]; }

# url_of NAME address|metrics
url_of() { echo "http://$(sed -n "s/.*\blistening .*\b$2=\([^ ]*\).*/\1/p" "$plane/$1.log" | head -1)"; }

is_ready() { curl -sf "$(url_of "$1" metrics)/readyz" >/dev/null; }
metric() { curl -s "$(url_of "${2:-claimguard}" metrics)/metrics" | grep -F -- "$1" | awk '{ sum += $NF } END { print sum + 0 }'; }
cache_of() { curl -s "$(url_of "$1" metrics)/debug/cache" | jq -e .; } # which comes in no order
