# shellcheck shell=bash
# The scenarios: a function each, whose name says what has to be true. Each runs in a namespace of its own, on the one
# control plane, with one claimguard, which both schedulers ask. To be sourced.

a_pod_on_a_free_claim_is_scheduled() {
    local line i
    for i in 1 2 3; do
        claim "data-$i"
        line=$(($(wc -l <"$plane/audit.log") + 1))
        pod "db-$i" "data-$i"
        scheduled "db-$i"
        # the scheduler may bind a pod that claimguard has not seen yet
        [ "$(gets_since "$line")" != 0 ] || return 0
    done
    fail "a pod that passes costs a request"
}
# How many single objects of this namespace claimguard asked the API server about.
gets_since() { tail -n "+$1" "$plane/audit.log" | grep '"verb":"get"' | grep -c "\"namespace\":\"$namespace\"" || true; }

many_callers_that_ask_the_same_cost_few_requests() {
    local line url
    claim data
    pod db-0 data 'nodeName: node-1'
    await 10 "claimguard knows" is_held data
    url=$(url_of claimguard address)/filter
    jq -n --arg namespace "$namespace" '{NodeNames: ["node-1"], Pod: {metadata: {name: "other", namespace: $namespace, uid: "1"},
        spec: {volumes: [{name: "v", persistentVolumeClaim: {claimName: "data"}}]}}}' >"$plane/request.json"
    line=$(($(wc -l <"$plane/audit.log") + 1))
    for _ in $(seq 300); do printf 'next\nurl = "%s"\ndata = "@%s"\noutput = "%s"\n' "$url" "$plane/request.json" "$plane/answer"; done |
        sed 1d | curl -s -Z --parallel-max 50 -K - 2>/dev/null
    grep -q "is in use by pod $namespace/db-0" "$plane/answer"
    echo "300 rejections cost $(gets_since "$line") requests"
    [ "$(gets_since "$line")" -gt 0 ] && [ "$(gets_since "$line")" -lt 250 ]
}
is_held() { cache_of claimguard | jq -e --arg key "$namespace/$1" '.claims[$key].refs == 1' >/dev/null; }

a_second_pod_waits_and_its_event_names_claim_and_holder() {
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    [ "$scheduler" = default-scheduler ] || await 10 "an event says so" has_event FailedScheduling \
        "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
}

# VolumeRestrictions rejects it first, and names nobody; claimguard's Event does.
an_event_names_the_holder_to_a_pod_that_kube_scheduler_rejects_first() {
    scheduler=default-scheduler
    claim data
    pod db-0 data 'priorityClassName: high'
    scheduled db-0
    pod plain ''
    pod db-1 data
    in_use_by db-1 db-0
    await 5 "an Event names the holder" has_event ClaimInUse \
        "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0); preemption cannot help"
    sleep 2 # nobody says it again
    [ "$(claim_in_use_events)" = 'db-1' ]
    delete_pod db-0
    scheduled db-1
    pod db-2 data
    in_use_by db-2 db-1
    await 5 "an Event names the new holder" has_event ClaimInUse "by pod $namespace/db-1 on $(node_of db-1)"
    [ "$(claim_in_use_events)" = 'db-1 db-2' ]
}
# The pods that have such an Event, each as often as it has one.
claim_in_use_events() {
    k -n "$namespace" get events -o json |
        jq -r '[.items[] | select(.reason == "ClaimInUse") | .involvedObject.name] | sort | join(" ")'
}

# Two pods wait for a claim; the one that gets it is the other one's new holder.
an_event_names_each_new_holder_to_a_pod_that_waits() {
    scheduler=default-scheduler
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    pod db-2 data
    in_use_by db-2 db-0
    delete_pod db-0
    await 15 "one of them gets the claim" some_scheduled db-1 db-2
    local holder=db-1 other=db-2
    is_scheduled db-1 || { holder=db-2 other=db-1; }
    await 5 "an Event on the other one" has_event ClaimInUse "claim $namespace/data is in use by pod $namespace/$holder on "
    [ "$(claim_in_use_events)" = "$(printf '%s\n' db-1 db-2 "$other" | sort | paste -sd ' ')" ]
}
some_scheduled() { is_scheduled "$1" || is_scheduled "$2"; }

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

# With VolumeRestrictions, kube-scheduler preempts; without it, it sees no conflict, and claimguard does.
kep_2485_a_high_priority_pod_preempts_the_pod_that_uses_the_volume() {
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    pod high data 'priorityClassName: high'
    await 15 "the holder is gone" is_gone low
    scheduled high
    await 5 "the victim gets an Event" has_event Preempted "Preempted by"
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
    await 10 "the pod that came second gets an Event" has_event ExclusiveClaimViolated \
        "claim $namespace/data belongs to one pod (ReadWriteOncePod), and pod $namespace/first"
    k -n "$namespace" get events -o json | jq -e '
        [.items[] | select(.reason == "ExclusiveClaimViolated")] | length == 1 and .[0].involvedObject.name == "bold"' >/dev/null
    delete_pod bold
    await 10 "the gauge forgets it" eval '! more_violations_than '"$before"
}
more_violations_than() { [ "$(metric claimguard_exclusive_claim_violations "${2:-claimguard}")" -gt "$1" ]; } # COUNT [CLAIMGUARD]

# Whether the cache has what the API server has: the claims of this namespace, with their holders.
is_current() { cache_of claimguard | jq -e --arg key "$namespace/data" '.claims[$key].holders | map(.name) == ["db-1"]' >/dev/null; }

three_hundred_pods_on_three_hundred_claims_among_5000_nodes() {
    seq 5000 | sed 's#.*#POST /api/v1/nodes {"metadata":{"name":"big-&","labels":{"size":"big"}},"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"110"}}}#' |
        "$flood" "$plane/admin.kubeconfig" 32 2 >/dev/null
    for i in $(seq 300); do claim_yaml "c-$i"; done | k create -f - >/dev/null
    for i in $(seq 300); do pod_yaml "p-$i" "c-$i" 'nodeSelector: {size: big}'; done | k create -f - >/dev/null
    await 400 "all are scheduled" all_scheduled 300
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    await 20 "claimguard has seen them" are_referenced 300
    k delete nodes -l size=big --wait=false >/dev/null
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}
are_referenced() { [ "$(cache_of claimguard | jq --arg ns "$namespace" '[.claims | to_entries[] | select(.key | startswith($ns + "/")) | select(.value.refs == 1)] | length')" = "$1" ]; }
all_scheduled() { [ "$(of_namespace pods | jq '[.items[] | select(.spec.nodeName)] | length')" = "$1" ]; }

a_captured_snapshot_gives_the_verdicts_of_the_live_server() {
    local pod live
    claim data
    claim free
    claim shared ReadWriteMany
    pod db-0 data 'priorityClassName: low'
    scheduled db-0
    pod same data 'priorityClassName: low' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod higher data 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod never data 'priorityClassName: never' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod fine free 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod with shared 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod lost missing 'schedulingGates: [{name: e2e.example.com/wait}]'
    # a dry run also says what kube-scheduler would say before it asks the server: a claim is unbound
    await 30 "all claims are bound" claims_are_bound 3
    "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" -o "$plane/captured.json" 2>/dev/null
    jq -e '.kind == "List" and ([.items[] | .kind] | index("Pod") and index("PersistentVolumeClaim") and index("Node"))' "$plane/captured.json" >/dev/null
    # only what matters: no images, no annotations, nothing that looks like a secret
    if grep -nE 'registry.example|managedFields|annotations|token' "$plane/captured.json"; then
        fail "the snapshot has what it need not have"
    fi
    for pod in same higher never fine with lost; do
        live=$(k -n "$namespace" get pod "$pod" -o json | jq '{Pod: .}' | curl -s --data @- "$(url_of claimguard address)/prefilter" | jq '{code, reasons, claims}')
        "$claimguard" dry-run --snapshot "$plane/captured.json" --pod "$namespace/$pod" -o json >"$plane/dry.json" || [ $? = 1 ]
        [ "$(jq '{code: .preFilter.code, reasons: .preFilter.reasons, claims}' "$plane/dry.json")" = "$live" ] ||
            fail "$pod: live $live, dry run $(cat "$plane/dry.json")"
    done
}
