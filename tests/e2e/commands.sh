# shellcheck shell=bash
# Commands that ask a live cluster. To be sourced.

who_in() { "$claimguard" who "$@" 2>"$plane/who.err"; }
who_json() { who_in data -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" -o json | jq -er ".claims[0] | $1"; }
who_says() { [ "$(who_json "$1")" = "$2" ] || fail "$1 is $(who_json "$1"), not $2"; }

# May list pods and claims of the scenario's namespace, and nothing else.
namespaced_kubeconfig() {
    k -n "$namespace" create serviceaccount reader >/dev/null
    k -n "$namespace" create role reader --verb=list --resource=pods,persistentvolumeclaims >/dev/null
    k -n "$namespace" create rolebinding reader --role=reader --serviceaccount="$namespace:reader" >/dev/null
    kubeconfig_with 'certificate-authority: certs/apiserver.crt' "token: $(k -n "$namespace" create token reader)"
}

who_names_the_holder_of_a_live_claim_and_what_it_says_frees_it() {
    local advice
    claim data
    pod_yaml db-0 data | sed 's/terminationGracePeriodSeconds: 0/terminationGracePeriodSeconds: 600/' | k apply -f - >/dev/null
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    cat <<END | k apply -f - >/dev/null
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: $namespace-data}
spec: {attacher: plugin1.example.com, nodeName: $(node_of db-0), source: {persistentVolumeName: $namespace-data}}
END
    who_says '[.heldBy[] | .name, .node, .as] | join(" ")' "db-0 $(node_of db-0) Bound"
    who_says '[.waiting[].name] | join(" ")' db-1
    who_json '.waiting[0].message' | has -F '/' || fail "the scheduler's message: $(who_json .waiting)"
    who_says '[.attachments[].node] | join(" ")' "$(node_of db-0)"
    who_says '.usableBy' OnePod
    who_in --all -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" | has -E '^1 .* [^ ]+/data ' || fail "--all"
    # rights in one namespace are enough, and what they do not show is said
    namespaced_kubeconfig >"$plane/try.kubeconfig"
    who_in "$namespace/data" --kubeconfig "$plane/try.kubeconfig" >"$plane/who.txt" || fail "$(cat "$plane/who.err")"
    grep -qE "held by +pod $namespace/db-0 " "$plane/who.txt" || fail "$(cat "$plane/who.txt")"
    grep -qF -- '- nodes: these credentials may not list them' "$plane/who.txt" || fail "$(cat "$plane/who.txt")"
    if who_in data --all-namespaces --kubeconfig "$plane/try.kubeconfig" >/dev/null; then fail "it has no right to that"; fi
    grep -qF 'these credentials may not list them' "$plane/who.err" || fail "$(cat "$plane/who.err")"
    # what it says is done; while the grace lasts, it says for how long
    advice=$(who_json '.freedBy[0].command')
    [ "$advice" = "kubectl delete pod -n $namespace db-0" ] || fail "$(who_json .freedBy)"
    # shellcheck disable=SC2086 # words
    k ${advice#kubectl } --wait=false >/dev/null
    who_says '.heldBy[0].as' Terminating
    who_json '.freedBy[0].text' | has -E 's of grace left$' || fail "$(who_json .freedBy)"
    k -n "$namespace" delete pod db-0 --force --grace-period=0 >/dev/null 2>&1
    scheduled db-1
    who_says '[.heldBy[].name] | join(" ")' db-1
    k delete volumeattachment "$namespace-data" --wait=false >/dev/null
}

# No CSI driver runs on these nodes, so CG203 is always true.
audit_in() { "$claimguard" audit --disable CG203 --kubeconfig "$plane/admin.kubeconfig" -n "$namespace" "$@" 2>"$plane/audit.err"; }
audit_json() { { audit_in -o json || true; } | jq -er "$1"; }

# A Deployment whose pods name the claim data, with that image.
shop_yaml() {
    cat <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: $namespace}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      schedulerName: $scheduler
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "shop:$1"}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
END
}
shop_pods() { k -n "$namespace" get pods -l app=shop -o "jsonpath={range .items[*]}{.spec.nodeName}/{.metadata.deletionTimestamp} {end}" | wc -w; }
shop_is_stuck() { [ "$(k -n "$namespace" get pods -l app=shop -o json | jq '[.items[] | .spec.nodeName == null] | sort == [false, true]')" = true ]; }
shop_runs_version() {
    [ "$(k -n "$namespace" get pods -l app=shop -o json | jq -r '[.items[] | select(.spec.nodeName != null and .metadata.deletionTimestamp == null).spec.containers[0].image] | join(" ")')" = "shop:$1" ]
}

audit_finds_the_deployment_whose_rollout_is_stuck() {
    claim data
    shop_yaml 1 | k apply -f - >/dev/null
    await 30 "the first pod is bound" shop_runs_version 1
    # the next version waits for the claim of the pod that it is to replace
    shop_yaml 2 | k apply -f - >/dev/null
    await 30 "the second pod waits" shop_is_stuck
    audit_in >"$plane/audit.txt" && fail "no finding: $(cat "$plane/audit.txt")"
    grep -qE "^error +CG102 +Deployment $namespace/shop +- " "$plane/audit.txt" || fail "$(cat "$plane/audit.txt" "$plane/audit.err")"
    # no pod and no ReplicaSet of it is reported once more
    [ "$(audit_json '[.findings[] | .code] | join(" ")')" = CG102 ] || fail "$(audit_json .findings)"
    # rights in one namespace are enough, and what they do not show is said
    namespaced_kubeconfig >"$plane/try.kubeconfig"
    k -n "$namespace" create role workloads --verb=list --resource=deployments.apps >/dev/null
    k -n "$namespace" create rolebinding workloads --role=workloads --serviceaccount="$namespace:reader" >/dev/null
    audit_in --kubeconfig "$plane/try.kubeconfig" >"$plane/audit.txt" && fail "no finding"
    grep -qF CG102 "$plane/audit.txt" || fail "$(cat "$plane/audit.txt" "$plane/audit.err")"
    grep -qF 'Note: cronjobs: these credentials may not list them.' "$plane/audit.txt" || fail "$(cat "$plane/audit.txt")"
    # the annotation silences it
    k -n "$namespace" annotate deployment shop 'claimguard.io/audit-ignore=CG102: rolled out by hand' >/dev/null
    audit_in >"$plane/audit.txt" || fail "$(cat "$plane/audit.txt" "$plane/audit.err")"
    grep -qE "^ignored +CG102 " "$plane/audit.txt" || fail "$(cat "$plane/audit.txt")"
    k -n "$namespace" annotate deployment shop claimguard.io/audit-ignore- >/dev/null
    # what it says is done: nothing is found, and the rollout ends
    k -n "$namespace" patch deployment shop --type merge -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}' >/dev/null
    audit_in >"$plane/audit.txt" || fail "$(cat "$plane/audit.txt" "$plane/audit.err")"
    # the old pod goes (its node has no kubelet, so it is deleted by hand, if the controller waits for that)
    await 60 "the rollout ends" shop_runs_version 2
}

watched() { grep -qE "  $namespace/data  $1\$" "$plane/watch.txt"; }
watch_shows() { await 30 "$1" watched "$1"; }

who_watch_shows_each_change_of_a_live_claim() {
    local watcher
    claim data
    "$claimguard" who data -n "$namespace" --watch --kubeconfig "$plane/admin.kubeconfig" >"$plane/watch.txt" 2>"$plane/watch.err" &
    watcher=$!
    watch_shows 'held by no pod; no pod waits'
    pod db-0 data
    scheduled db-0
    watch_shows "held by db-0 on $(node_of db-0), Bound; no pod waits"
    pod db-1 data
    in_use_by db-1 db-0
    watch_shows "held by db-0 on $(node_of db-0), Bound; db-1 waits"
    k -n "$namespace" delete pod db-0 --force --grace-period=0 >/dev/null 2>&1
    scheduled db-1
    watch_shows "held by db-1 on $(node_of db-1), Bound; no pod waits"
    kill -INT "$watcher"
    wait "$watcher" || fail "exit status $?: $(cat "$plane/watch.err")"
    [ ! -s "$plane/watch.err" ] || fail "$(cat "$plane/watch.err")"
}

# A StatefulSet with a claim for each pod, which it deletes when it is scaled down.
shop_set_yaml() {
    cat <<END
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: pg, namespace: $namespace}
spec:
  replicas: 1
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  selector: {matchLabels: {app: pg}}
  template:
    metadata: {labels: {app: pg}}
    spec: {schedulerName: $scheduler, terminationGracePeriodSeconds: 0, containers: [{name: main, image: pg}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOncePod], storageClassName: "", volumeName: $namespace-data-pg-0, resources: {requests: {storage: 1Gi}}}
END
}

# ---- why ----

# why_of POD FILTER: what it says of the pod, through jq.
why_of() {
    "$claimguard" why "$1" -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" -o json |
        jq -er "def blocking: .causes[] | select(.effect == \"Blocks\"); .pods[0] | $2"
}
blocked_by() { [ "$(why_of "$1" '[blocking.cause] | unique | join(" ")')" = "$2" ]; }
# follow POD CAUSE: runs the last command of what it says would help, as it is.
follow() {
    local command
    command=$(why_of "$1" "[blocking | select(.cause == \"$2\").helps[].command | values] | last") || fail "$(why_of "$1" .causes)"
    KUBECONFIG=$plane/admin.kubeconfig PATH=$tools:$PATH timeout 60 bash -c "$command" >/dev/null || fail "$command"
}

# attachment NODE [ATTACHED]: as the attach-detach controller and an attacher write it.
attachment() {
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: $namespace-$1}
spec: {attacher: plugin1.example.com, nodeName: $1, source: {persistentVolumeName: $namespace-data}}
END
    k patch volumeattachment "$namespace-$1" --subresource status --type merge -p '{"status":{"attached":'"${2:-true}"'}}' >/dev/null
}

why_frees_a_volume_that_another_node_has() {
    claim data ReadWriteOnce
    pod old data 'nodeName: node-1'
    attachment node-1
    pod new data 'nodeName: node-2'
    blocked_by new MultiAttach || fail "$(why_of new .causes)"
    follow new MultiAttach
    await 30 "the old pod is gone" is_gone old
    # now the volume is detached, which takes its controller some seconds
    why_of new '[blocking.helps[].text] | join(" ")' | has -F node-1 || fail "$(why_of new .causes)"
    k delete volumeattachment "$namespace-node-1" >/dev/null
    attachment node-2 false
    blocked_by new NotAttached || fail "$(why_of new .causes)"
    attachment node-2
    blocked_by new "" || fail "$(why_of new .causes)"
    # what only its node knows
    mount_fails new
    [ "$(why_of new '[.events[].reason] | join(" ")')" = FailedMount ] || fail "$(why_of new .)"
    k delete volumeattachment "$namespace-node-2" --wait=false >/dev/null
}

# As a kubelet writes it.
mount_fails() { # POD
    k create -f - >/dev/null <<END
apiVersion: v1
kind: Event
metadata: {name: $1.mount, namespace: $namespace}
involvedObject: {kind: Pod, namespace: $namespace, name: $1, uid: $(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.uid}')}
type: Warning
reason: FailedMount
message: "MountVolume.MountDevice failed: wrong fs type"
lastTimestamp: $(date -u +%Y-%m-%dT%H:%M:%SZ)
END
}

why_says_what_keeps_a_holder_that_is_being_deleted() {
    local keeper
    claim data
    pod_yaml db-0 data | sed 's/^metadata: {/&finalizers: [example.com\/backup], /' | k apply -f - >/dev/null
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    follow db-1 ClaimInUse & # kubectl waits until the pod is gone
    keeper=$!
    await 10 "it says what keeps the pod" says_finalizer db-1
    k -n "$namespace" patch pod db-0 --type json -p '[{"op":"remove","path":"/metadata/finalizers"}]' >/dev/null
    wait "$keeper"
    scheduled db-1
}
says_finalizer() { why_of "$1" '[blocking.helps[].text] | join(" ")' | has -F 'example.com/backup'; }

why_names_a_driver_that_a_node_lacks() {
    claim data
    registered other.example.com other.example.com
    pod web-0 data 'nodeName: node-1'
    attachment node-1
    blocked_by web-0 DriverNotRegistered || fail "$(why_of web-0 .causes)"
    why_of web-0 '[blocking.text] | join(" ")' | has -F plugin1.example.com || fail "$(why_of web-0 .causes)"
    registered 'other.example.com plugin1.example.com' other.example.com # its DaemonSet runs there now
    blocked_by web-0 "" || fail "$(why_of web-0 .causes)"
    k delete volumeattachment "$namespace-node-1" --wait=false >/dev/null
    drivers_end
}
