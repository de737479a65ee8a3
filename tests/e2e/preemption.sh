# shellcheck shell=bash
# Preemption that claimguard starts itself. To be sourced.

# victim NAME CLAIM [FIELD: VALUE]...: a holder of low priority, which takes its time to go: there is no kubelet to end it.
victim() {
    local name=$1 claim=$2
    shift 2
    pod_yaml "$name" "$claim" 'priorityClassName: low' "$@" |
        sed "s/terminationGracePeriodSeconds: 0/terminationGracePeriodSeconds: 600/; s/^metadata: {/&labels: {app: $name}, /" | k apply -f - >/dev/null
    scheduled "$name"
}
# runs POD: as its kubelet would say.
runs() {
    k -n "$namespace" patch pod "$1" --subresource status --type merge \
        -p '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}' >/dev/null
}
is_terminating() { [ -n "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.deletionTimestamp}')" ]; }
evictions_of() { grep '"verb":"create"' "$plane/audit.log" | grep '"subresource":"eviction"' | grep -c "\"namespace\":\"$namespace\",\"name\":\"$1\"" || true; }
is_disrupted_by() {
    [ "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="DisruptionTarget")].reason}')" = "$2" ]
}
is_looked_after() { [ "$(k -n "$namespace" get poddisruptionbudget "$1" -o 'jsonpath={.status.observedGeneration}')" = 1 ]; }

a_victim_is_evicted_once_and_its_claim_is_kept_for_the_preemptor() {
    claim data
    victim holder data
    pod high data 'priorityClassName: high'
    await 15 "the holder is evicted" is_terminating holder
    await 5 "its condition says why" is_disrupted_by holder PreemptionByScheduler
    await 5 "the victim gets an Event" has_event Preempted "Preempted by pod $namespace/high: claim $namespace/data is in use"
    await 5 "the preemptor gets an Event" has_event Preempting "Evicted 1 pod: claim $namespace/data is in use"
    pod other data 'priorityClassName: mid'
    await 10 "the claim is kept" says other "reserved for pod $namespace/high"
    sleep 2
    [ "$(evictions_of holder)" = 1 ] || fail "it was evicted $(evictions_of holder) times"
    delete_pod holder
    scheduled high
    rejected other "claim $namespace/data is in use by pod $namespace/high"
}

a_budget_forbids_a_preemption_until_it_is_gone() {
    claim data
    victim holder data
    runs holder # budgets do not protect pods that are pending
    k -n "$namespace" create poddisruptionbudget holder --selector app=holder --min-available 1 >/dev/null
    await 10 "the budget is looked after" is_looked_after holder
    pod high data 'priorityClassName: high'
    await 15 "the preemptor gets an Event" has_event PreemptionFailed "would violate the pod's disruption budget"
    if is_terminating holder; then fail "it was evicted"; fi
    is_disrupted_by holder ""
    k -n "$namespace" delete poddisruptionbudget holder >/dev/null
    await 20 "the holder is evicted" is_terminating holder
    delete_pod holder
    scheduled high
}

two_preemptors_for_one_claim_cost_one_eviction_and_the_higher_one_gets_it() {
    claim data
    victim holder data
    pod middle data 'priorityClassName: mid'
    await 15 "the holder is evicted" is_terminating holder
    pod high data 'priorityClassName: high'
    sleep 3
    [ "$(evictions_of holder)" = 1 ] || fail "it was evicted $(evictions_of holder) times"
    delete_pod holder
    scheduled high
    rejected middle "claim $namespace/data is in use by pod $namespace/high"
}

a_pod_that_never_preempts_evicts_nobody() {
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    pod never data 'priorityClassName: never'
    in_use_by never low
    sleep 3
    is_scheduled low
}

nobody_is_evicted_for_a_pod_that_could_not_get_all_its_claims() {
    claim data
    claim logs
    pod low data 'priorityClassName: low'
    pod equal logs 'priorityClassName: high'
    scheduled low
    scheduled equal
    pod both 'data logs' 'priorityClassName: high'
    in_use_by both low
    sleep 3
    is_scheduled low
    is_scheduled equal
}

# Two pods of high priority, of which one never fits. Gangs are behind a feature gate that is off by default.
nobody_is_evicted_for_a_gang_that_does_not_fit() {
    local gate=--feature-gates=GenericWorkload=true
    api_restart "$gate" --runtime-config=scheduling.k8s.io/v1beta1=true
    stop_schedulers
    start_schedulers "$gate"
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    k apply -f - >/dev/null <<END
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang, namespace: $namespace}
spec: {priorityClassName: high, schedulingPolicy: {gang: {minCount: 2}}}
END
    pod member data 'priorityClassName: high' 'schedulingGroup: {podGroupName: gang}'
    pod giant '' 'priorityClassName: high' 'schedulingGroup: {podGroupName: gang}' 'nodeSelector: {no: node}'
    await 20 "the reason says so" says member "for a pod of a scheduling group, no pod is evicted"
    sleep 5
    is_scheduled low
    [ "$(evictions_of low)" = 0 ]
    delete_pod low
    pod other data 'priorityClassName: high'
    scheduled other # though the member passes again and again
    if is_scheduled member; then fail "a part of the gang is scheduled"; fi
    k -n "$namespace" delete pod member giant --grace-period=0 --force >/dev/null 2>&1
    api_restart
}
