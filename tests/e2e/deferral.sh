# shellcheck shell=bash
# Scenarios of DeferFSMount (KEP-2857), by the KEP's stories where there is one. No API server that is released knows the
# field, so what is written is the annotation. To be sourced.

defer_with() { configure deferral.yaml "$@"; }
without_fast_storage='s/storageClass: fast-storage/storageClass: other-storage/'

# vm NAME CLAIMS [FIELD: VALUE]...: a pod of the runtime class, as the stories have it; `data` is mounted with a subPath.
vm_yaml() {
    local name=$1 claims=$2
    shift 2
    pod_yaml "$name" "$claims" 'runtimeClassName: microvm' \
        'securityContext: {fsGroup: 100, fsGroupChangePolicy: OnRootMismatch}' "$@"
}
vm() {
    local mount=
    [[ " $2 " != *' data '* ]] || mount=', volumeMounts: [{name: data, mountPath: /data, subPath: database}]'
    vm_yaml "$@" | sed "s#image: registry.example/app#&$mount#" | k apply -f - >/dev/null
}

deferred_of() { k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.annotations.claimguard\.io/defer-fs-mount}'; }
has_decision() { [ "$(deferred_of "$1")" = "$2" ]; }
is_deferred() { # POD VOLUMES: it is scheduled, with that decision
    scheduled "$1"
    has_decision "$1" "$2" || fail "$1 has '$(deferred_of "$1")' deferred, not '$2'"
}
orphaned() { metric claimguard_deferred_mounts_orphaned; }
# What was written to the pod since a line of the audit log: "verb/subresource" words.
writes_to() { # POD LINE
    sleep 1 # audit lines are buffered for a moment
    tail -n "+$2" "$plane/audit.log" | jq -r --arg ns "$namespace" --arg pod "$1" 'select(.objectRef.namespace == $ns and
        .objectRef.name == $pod and .objectRef.resource == "pods" and .verb != "get") | "\(.verb)/\(.objectRef.subresource // "")"' | paste -sd ' '
}

story_1_a_pod_is_deferred_whose_requirements_csi_plugin_and_runtime_meet() {
    local line before
    defer_with
    before=$(metric 'claimguard_deferred_mounts_total{storage_class="fast-storage",runtime_class="microvm"}' || true)
    claim data
    claim logs
    line=$(($(wc -l <"$plane/audit.log") + 1))
    vm web-0 'data logs'
    is_deferred web-0 data,logs
    [ "$(writes_to web-0 "$line")" = "patch/ create/binding" ] || fail "$(writes_to web-0 "$line")"
    [ "$(metric 'claimguard_deferred_mounts_total{storage_class="fast-storage",runtime_class="microvm"}')" = $((before + 2)) ]
    claim plain
    pod plain plain
    is_deferred plain ''
    [ "$(writes_to plain "$line")" = "create/binding" ] || fail "$(writes_to plain "$line")"
    grep -q 'deferFSMount is written as the API server can take it.*as=Annotation' "$plane/claimguard.log"
}

story_2_the_runtime_cannot_surface_a_sub_path_and_the_node_mounts_it() {
    defer_with 's/subPath: true/subPath: false/'
    claim data
    claim logs
    vm web-0 'data logs'
    is_deferred web-0 logs
    await 10 "an event says why" has_event DeferFSMountRefused "volume data: rule 6, subPath"
}

story_3_the_csi_plugin_cannot_defer_and_the_node_mounts_it() {
    defer_with "$without_fast_storage"
    claim data
    vm web-0 data
    is_deferred web-0 ''
}

story_4_after_the_plugin_s_upgrade_pods_are_deferred() {
    defer_with "$without_fast_storage"
    claim data
    claim more
    vm before data
    is_deferred before ''
    defer_with
    vm after more
    is_deferred after more
    is_deferred before '' # nothing is set once it is bound
}

story_5_after_a_downgrade_a_running_pod_is_deferred_and_listed() {
    local before
    defer_with
    claim data
    vm web-0 data
    is_deferred web-0 data
    runs web-0
    before=$(orphaned)
    defer_with "$without_fast_storage"
    await 5 "it is counted" orphaned_exceed "$before"
    curl -s "$(url_of claimguard metrics)/statusz" | has -x "$namespace/web-0 data"
    is_deferred web-0 data
    delete_pod web-0
    await 10 "drained" is_drained web-0
}
is_drained() { # others drain, too
    local page
    page=$(curl -sf "$(url_of claimguard metrics)/statusz") || return 1
    ! grep -q "^$namespace/$1 " <<<"$page"
}
orphaned_exceed() { [ "$(orphaned)" -gt "$1" ]; }

# No kubelet is here to report FailedMount; that the pod stays deferred, and is listed, is ours.
story_6_a_pod_scheduled_right_before_a_downgrade_is_deferred_and_listed() {
    defer_with
    claim data
    claim more
    vm right-before data
    is_deferred right-before data
    defer_with "$without_fast_storage"
    vm after more
    is_deferred after ''
    is_deferred right-before data
    k get pods,pvc,pv,nodes,storageclasses -A -o json >"$plane/snapshot.json"
    "$claimguard" dry-run --snapshot "$plane/snapshot.json" --config "$plane/configuration.yaml" --all-pending >/dev/null 2>"$plane/notes" || true
    grep -qx "$namespace/right-before data" "$plane/notes"
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}

ephemeral_and_inline_volumes_are_decided_too() {
    local template='{accessModes: [ReadWriteOncePod], storageClassName: fast-storage, resources: {requests: {storage: 1Gi}}}'
    defer_with
    claim_yaml app-scratch | awk '/^---/ { n++ } n == 1' | k apply -f - >/dev/null # only the volume
    for driver in inline.example.com other.example.com; do # without a CSIDriver, no inline volume
        echo "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: $driver}, spec: {volumeLifecycleModes: [Ephemeral]}}"
        echo ---
    done | k apply -f - >/dev/null
    vm app '' "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: $template}}}, {name: inline, csi: {driver: inline.example.com}}, {name: other, csi: {driver: other.example.com}}, {name: empty, emptyDir: {}}]"
    is_deferred app scratch,inline
}

# The scheduler binds the claim in PreBind, right before it asks claimguard to bind the pod.
a_claim_that_is_bound_late_is_decided_when_it_is_bound() {
    defer_with
    for i in 1 2 3 4 5; do
        claim_yaml "late-$i" | sed 's/fast-storage/late-storage/; /claimRef/d; /volumeName/d; s/1Gi/'"$i"'Gi/'
    done | k apply -f - >/dev/null
    for i in 1 2 3 4 5; do vm_yaml "p-$i" "late-$i" | k apply -f - >/dev/null; done
    for i in 1 2 3 4 5; do is_deferred "p-$i" "late-$i"; done
}

a_user_s_own_annotation_is_kept_and_an_opt_out_heeded() {
    defer_with
    claim data
    claim logs
    claim more
    vm_yaml own 'data logs' | sed 's#^metadata: {#&annotations: {claimguard.io/defer-fs-mount: "logs, mine"}, #' | k apply -f - >/dev/null
    is_deferred own 'logs, mine,data'
    vm_yaml out more | sed 's#^metadata: {#&annotations: {claimguard.io/defer-fs-mount: disabled}, #' | k apply -f - >/dev/null
    is_deferred out disabled
}

a_field_that_the_api_server_does_not_know_binds_nobody() {
    defer_with 's/apply: Auto/apply: Field/'
    claim data
    vm web-0 data
    await 15 "an event says why" has_event DeferFSMountFailed 'unknown field "spec.volumes[0].persistentVolumeClaim.deferFSMount" (status 422)'
    await 15 "so does the scheduler's" has_event FailedScheduling 'deferFSMount could not be written as field'
    if is_scheduled web-0; then fail "it is bound"; fi
    [ -z "$(deferred_of web-0)" ] || fail "it fell back silently"
    claim plain
    pod plain plain
    scheduled plain
    defer_with
    is_deferred web-0 data
}

# The patch is let through, the Binding is not.
a_failure_between_the_patch_and_the_binding_leaves_one_decision() {
    local role line
    defer_with
    role=$(k get clusterrole claimguard -o json | jq -c '{rules: .rules}')
    k patch clusterrole claimguard --type merge -p "$(jq -c '.rules |= map(select(.resources != ["pods/binding"]))' <<<"$role")" >/dev/null
    sleep 0.3
    claim data
    line=$(($(wc -l <"$plane/audit.log") + 1))
    vm web-0 data
    await 15 "it carries its decision" has_decision web-0 data
    await 15 "the Binding is refused" grep -q 'bind refused.*pod=web-0' "$plane/claimguard.log"
    if is_scheduled web-0; then fail "it is bound"; fi
    k patch clusterrole claimguard --type merge -p "$role" >/dev/null
    is_deferred web-0 data
    writes_to web-0 "$line" | tr ' ' '\n' | grep -cx patch/ | has -x 1 || fail "$(writes_to web-0 "$line")"
    : >"$plane/audit.log" # what was refused here was meant to be
}

# watch_pods VERSION: every event of the namespace's pods from there on, in $plane/watched, until $plane/seen-enough is
# there, and one round more. An API server under load ends a watch now and then.
watch_pods() {
    local version=$1 last=
    until [ -n "$last" ]; do
        [ ! -e "$plane/seen-enough" ] || last=1
        curl -skN --max-time 5 -H 'Authorization: Bearer admin-token' \
            "https://127.0.0.1:$((base_port + 2))/api/v1/namespaces/$namespace/pods?watch=1&resourceVersion=$version" >"$plane/watched.part" || true
        jq -cR 'fromjson?' "$plane/watched.part" >"$plane/watched.whole" # the last line may be cut
        [ -s "$plane/watched.whole" ] || continue
        cat "$plane/watched.whole" >>"$plane/watched"
        version=$(tail -1 "$plane/watched.whole" | jq -r .object.metadata.resourceVersion)
    done
}

# 500 pods with two volumes each, seen by a watch: in no event is one bound without its decision.
every_pod_that_appears_bound_carries_its_decision() {
    defer_with 's/apply: Auto/apply: Annotation/'
    decisions_appear_with "${CLAIMGUARD_E2E_DEFERRED:-500}"
}
decisions_appear_with() { # PODS
    local pods=$1 watcher
    pairs_create $((pods * 2))
    rm -f "$plane/watched" "$plane/seen-enough"
    watch_pods "$(k -n "$namespace" get pods -o json | jq -r '.metadata.resourceVersion')" &
    watcher=$!
    seq "$pods" | awk -v ns="$namespace" '{
        printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d\"},\"spec\":{\"schedulerName\":\"claimguard-scheduler\",\"runtimeClassName\":\"microvm\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}},{\"name\":\"logs\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, 2 * $1 - 1, 2 * $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    await 400 "all are scheduled" all_scheduled "$pods"
    touch "$plane/seen-enough"
    wait $watcher
    jq -rs '[.[] | .object | select(.spec.nodeName)] | "\(map(.metadata.name) | unique | length) pods, \(map(select(.metadata.annotations["claimguard.io/defer-fs-mount"] != "data,logs")) | length) events without"' \
        "$plane/watched" >"$plane/watched.sum"
    cat "$plane/watched.sum"
    grep -qx "$pods pods, 0 events without" "$plane/watched.sum"
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}

# ---- claims that are not ReadWriteOncePod ----

exclusive_two_pods_on_a_read_write_once_claim_race_and_never_run_together() {
    local pairs=50
    defer_with
    pairs_create "$pairs" ReadWriteOnce
    pairs_race "$pairs" microvm
    pairs_end "$pairs" 400
    k -n "$namespace" get pods -o json | jq -r '[.items[] | select(.spec.nodeName and .spec.runtimeClassName)] | "VMs that came first: \(length)"'
    k -n "$namespace" get pods -o json | jq -e 'all(.items[] | select(.spec.nodeName and .spec.runtimeClassName);
        .metadata.annotations["claimguard.io/defer-fs-mount"] == "v")' >/dev/null
    # the first ones gone, the second ones run
    pairs_second_round "$pairs"
    await 40 "no reservation is left over" no_reservations
}

exclusive_a_deferred_holder_is_preempted_though_the_scheduler_knows_nothing() {
    defer_with
    claim data ReadWriteOnce
    vm low data 'priorityClassName: low'
    is_deferred low data
    pod equal data 'priorityClassName: low'
    rejected equal "claim $namespace/data is in use by pod $namespace/low on $(node_of low), whose container runtime mounts it (deferFSMount)"
    pod high data 'priorityClassName: high'
    await 15 "the holder is gone" is_gone low
    scheduled high
}

a_pod_that_sets_its_node_beside_a_deferred_holder_shows_up_as_a_violation() {
    local before
    defer_with
    before=$(metric claimguard_exclusive_claim_violations)
    claim data ReadWriteOnce
    vm web-0 data
    is_deferred web-0 data
    pod bold data 'nodeName: node-2'
    await 10 "the gauge counts it" more_violations_than "$before"
    await 10 "the pod that came second gets an Event" has_event ExclusiveClaimViolated \
        "claim $namespace/data belongs to one pod (a container runtime mounts it: deferFSMount), and pod $namespace/web-0"
    delete_pod bold
}

refuse_defers_no_claim_that_pods_may_share() {
    defer_with 's/: Exclusive/: Refuse/'
    claim data ReadWriteOnce
    vm one data
    vm two data
    is_deferred one ''
    is_deferred two ''
    await 10 "an event says why" has_event DeferFSMountRefused "rule 10, accessMode"
}

allow_lets_deferred_pods_share() {
    defer_with 's/: Exclusive/: Allow/'
    claim data ReadWriteOnce
    vm one data
    vm two data
    is_deferred one data
    is_deferred two data
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
    defer_with
}
