# shellcheck shell=bash
# The scenarios: a function each, whose name says what has to be true. Each runs in a namespace of its own, on the one
# control plane, with one claimguard, which both schedulers ask. To be sourced.

a_pod_on_a_free_claim_is_scheduled() {
    claim data
    pod db-0 data
    scheduled db-0
}

a_second_pod_waits_and_its_event_names_claim_and_holder() {
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    [ "$scheduler" = default-scheduler ] || await 10 "an event says so" has_event FailedScheduling \
        "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
}

deleting_the_holder_lets_the_second_pod_run_within_seconds() {
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    delete_pod db-0
    await 5 "db-1 is scheduled" is_scheduled db-1
}

# The names of KEP-2485's end-to-end tests, as far as a scheduler can make them true.
kep_2485_a_volume_succeeds_when_consumed_by_a_single_pod_on_a_node() {
    claim data
    pod single data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled single
    [ "$(node_of single)" = node-1 ]
}

kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_the_same_node() {
    claim data
    pod first data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled first
    pod second data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    in_use_by second first
}

kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_a_different_node() {
    claim data
    pod first data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled first
    pod second data 'nodeSelector: {kubernetes.io/hostname: node-2}'
    in_use_by second first
}

# With VolumeRestrictions: without it, kube-scheduler starts no preemption for a conflict that it does not see.
kep_2485_a_high_priority_pod_preempts_the_pod_that_uses_the_volume() {
    scheduler=default-scheduler
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    pod high data 'priorityClassName: high'
    await 15 "the holder is gone" is_gone low
    scheduled high
}

kep_2485_a_low_priority_pod_is_unschedulable_and_unresolvable() {
    claim data
    pod high data 'priorityClassName: high'
    scheduled high
    pod low data 'priorityClassName: low'
    pod none data
    in_use_by low high
    in_use_by none high
    [ "$(prefilter low)" = UnschedulableAndUnresolvable ]
    [ "$(prefilter none)" = UnschedulableAndUnresolvable ]
    is_scheduled high
}

# The code of /prefilter for a pod.
prefilter() {
    k -n "$namespace" get pod "$1" -o json | jq '{Pod: .}' |
        curl -s --data @- "$(url_of claimguard address)/prefilter" | jq -r .code
}

a_pod_whose_claim_is_missing_waits_and_runs_when_it_is_created() {
    pod early data
    rejected early 'persistentvolumeclaim "data" not found'
    claim data
    scheduled early
}

claims_of_one_name_in_two_namespaces_are_two_claims() {
    local first=$namespace
    claim data
    pod db-0 data
    scheduled db-0
    namespace=$first-other
    k create namespace "$namespace" >/dev/null
    claim data
    pod db-0 data
    scheduled db-0
    namespace=$first
}

an_ephemeral_volume_is_a_claim_that_belongs_to_its_pod() {
    local template='{accessModes: [ReadWriteOncePod], storageClassName: fast-storage, resources: {requests: {storage: 1Gi}}}'
    claim_yaml app-scratch | awk '/^---/ { n++ } n == 1' | k apply -f - >/dev/null # only the volume
    pod app "" "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: $template}}}]"
    scheduled app
    pod thief app-scratch
    rejected thief "claim $namespace/app-scratch is in use by pod $namespace/app on"
}

a_pod_that_sets_its_node_beside_a_holder_shows_up_as_a_violation() {
    local before
    before=$(metric claimguard_exclusive_claim_violations)
    claim data
    pod first data
    scheduled first
    pod bold data 'nodeName: node-2'
    await 10 "the gauge counts it" more_violations_than "$before"
    await 10 "an event tells the pod that came second" has_event ExclusiveClaimViolated \
        "claim $namespace/data is ReadWriteOncePod, and in use by pod $namespace/first"
    k -n "$namespace" get events -o json | jq -e '
        [.items[] | select(.reason == "ExclusiveClaimViolated")] | length == 1 and .[0].involvedObject.name == "bold"' >/dev/null
    delete_pod bold
    await 10 "the gauge forgets it" eval '! more_violations_than '"$before"
}
more_violations_than() { [ "$(metric claimguard_exclusive_claim_violations)" -gt "$1" ]; }

the_api_server_is_killed_and_restarted() {
    claim data
    pod db-0 data
    scheduled db-0
    plane_kill "$plane" apiserver KILL
    sleep 2
    # verdicts go on from the cache, whose age is told
    is_ready claimguard
    [ "$(metric 'cache_last_event_timestamp_seconds{resource="pods"}' | cut -d. -f1)" -le "$(date +%s)" ]
    pod_yaml db-1 data | "$tools/kubectl" create --dry-run=client --validate=false -o json -f - 2>/dev/null |
        jq '{Pod: (. + {metadata: (.metadata + {uid: "a"})})}' |
        curl -s --data @- "$(url_of claimguard address)/prefilter" | jq -e '.code == "UnschedulableAndUnresolvable"' >/dev/null
    plane_api_start "$plane"
    pod db-1 data
    in_use_by db-1 db-0
    delete_pod db-0
    await 10 "db-1 is scheduled" is_scheduled db-1
}

a_compaction_makes_the_watches_expire_and_nothing_is_lost() {
    local before port revision
    before=$(metric 'reason="expired"')
    claim data
    pod db-0 data
    scheduled db-0
    kill -STOP "$(cat "$plane/claimguard.pid")"
    delete_pod db-0
    plane_kill "$plane" apiserver KILL
    port=$(cat "$plane/port")
    for _ in 1 2 3; do
        revision=$(curl -s "http://127.0.0.1:$port/v3/kv/put" -d '{"key": "anVuaw==", "value": "anVuaw=="}' | jq -r .header.revision)
    done
    curl -s "http://127.0.0.1:$port/v3/kv/compaction" -d "{\"revision\": \"$revision\", \"physical\": true}" >/dev/null
    plane_api_start "$plane"
    kill -CONT "$(cat "$plane/claimguard.pid")"
    await 30 "watches expired" eval "[ \$(metric 'reason=\"expired\"') -gt $before ]"
    pod db-1 data
    scheduled db-1
}

a_rotated_token_is_used_and_a_revoked_one_recovered_from() {
    local before
    before=$(metric 'reason="unauthorized"')
    new_token "token-$namespace" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    k -n claimguard delete secret token-first --ignore-not-found >/dev/null # the old token is good no longer
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    # and now the one in use is revoked before there is another
    k -n claimguard delete secret "token-$namespace" >/dev/null
    sleep 10 # the API server remembers tokens for so long
    plane_kill "$plane" apiserver KILL # ends the watches
    plane_api_start "$plane"
    await 20 "claimguard was refused" eval "[ \$(metric 'reason=\"unauthorized\"') -gt $before ]"
    new_token "token-last" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    delete_pod db-0
    await 20 "db-1 is scheduled" is_scheduled db-1
    await 20 "the watches are back" is_current
}
# Whether the cache has what the API server has: the claims of this namespace, with their holders.
is_current() { cache_of claimguard | jq -e --arg key "$namespace/data" '.claims[$key].holders | map(.name) == ["db-1"]' >/dev/null; }

three_hundred_pods_on_three_hundred_claims_among_5000_nodes() {
    seq 5000 | sed 's#.*#POST /api/v1/nodes {"metadata":{"name":"big-&","labels":{"size":"big"}},"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"110"}}}#' |
        "$flood" "$plane/admin.kubeconfig" 32 2 >/dev/null
    for i in $(seq 300); do claim_yaml "c-$i"; done | k create -f - >/dev/null
    for i in $(seq 300); do pod_yaml "p-$i" "c-$i" 'nodeSelector: {size: big}'; done | k create -f - >/dev/null
    await 120 "all are scheduled" all_scheduled 300
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    [ "$(cache_of claimguard | jq --arg ns "$namespace" '[.claims | to_entries[] | select(.key | startswith($ns + "/")) | select(.value.refs == 1)] | length')" = 300 ]
    k delete nodes -l size=big --wait=false >/dev/null
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}
all_scheduled() { [ "$(k -n "$namespace" get pods -o json | jq '[.items[] | select(.spec.nodeName)] | length')" = "$1" ]; }

a_captured_snapshot_gives_the_verdicts_of_the_live_server() {
    local pod live
    claim data
    claim free
    claim shared ReadWriteMany
    pod db-0 data 'priorityClassName: low'
    scheduled db-0
    pod same data 'priorityClassName: low' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod higher data 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod never data 'priorityClassName: high' 'preemptionPolicy: Never' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod fine free 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod with shared 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod lost missing 'schedulingGates: [{name: e2e.example.com/wait}]'
    "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" -o "$plane/captured.json" 2>/dev/null
    jq -e '.kind == "List" and ([.items[] | .kind] | index("Pod") and index("PersistentVolumeClaim") and index("Node"))' "$plane/captured.json" >/dev/null
    # only what matters: no images, no annotations, nothing that looks like a secret
    ! grep -qE 'registry.example|managedFields|annotations|token' "$plane/captured.json"
    for pod in same higher never fine with lost; do
        live=$(k -n "$namespace" get pod "$pod" -o json | jq '{Pod: .}' | curl -s --data @- "$(url_of claimguard address)/prefilter" | jq -S '{code, reasons, claims}')
        "$claimguard" dry-run --snapshot "$plane/captured.json" --pod "$namespace/$pod" -o json >"$plane/dry.json" || [ $? = 1 ]
        [ "$(jq -S '{code: .preFilter.code, reasons: .preFilter.reasons, claims}' "$plane/dry.json")" = "$live" ] ||
            fail "$pod: live $live, dry run $(cat "$plane/dry.json")"
    done
}

the_manifests_render_and_the_api_server_takes_them() {
    "$tools/kubectl" kustomize "$root/manifests" >"$plane/rendered.yaml"
    k apply --dry-run=server -f "$plane/rendered.yaml" >/dev/null
    grep -q 'runAsNonRoot: true' "$plane/rendered.yaml"
    k -n claimguard get configmap claimguard -o 'jsonpath={.data.claimguard\.yaml}' >"$plane/config.yaml"
    "$claimguard" check-config "$plane/config.yaml" >/dev/null
}

claimguard_was_refused_nothing() {
    # audit lines are buffered for a moment
    sleep 1
    if grep '"code":403' "$plane/audit.log"; then fail "the API server refused claimguard something"; fi
    grep -q '"code":200' "$plane/audit.log"
}
