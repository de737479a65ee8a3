# shellcheck shell=bash
# Replicas whose configurations differ: what they agree on decides. To be sourced.

agreed_in() { k -n "$1" get configmap claimguard-agreement -o json | jq -r --arg key "$2" '.data[$key] // ""'; }
is_agreed() { [ "$(agreed_in "$1" "$2")" = 'in force' ]; }

# ---- one replica has an entry more ----

# vm_race FIRST LAST [KINDS]: for each of these claims, a pod that is deferred by the second scheduler's replica (1), and an ordinary pod of
# the first's (0); or one of them.
vm_race() {
    seq "$1" "$2" | awk -v ns="$namespace" -v kinds="${3:-01}" '{
        for (i = 0; i < 2; i++)
            if (index(kinds, i))
                printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d-%d\"},\"spec\":{%s\"schedulerName\":\"%s\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, i, i ? "\"runtimeClassName\":\"microvm\"," : "", i ? "claimguard-scheduler" : "default-scheduler", $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
}
bound_or_deferred() { # how many; of those that are deferred with an argument
    k -n "$namespace" get pods -o json | jq --arg only "${1:-}" '[.items[] | select(.spec.nodeName) |
        select($only == "" or .metadata.annotations["claimguard.io/defer-fs-mount"])] | length'
}
bound_reach() { [ "$(bound_or_deferred "${2:-}")" -ge "$1" ]; }
# When the first deferred pod was bound, in seconds since 1970.
first_deferred() {
    k -n "$namespace" get pods -o json | jq '[.items[] | select(.metadata.annotations["claimguard.io/defer-fs-mount"]) |
        .status.conditions[] | select(.type == "PodScheduled" and .status == "True") | .lastTransitionTime | fromdate] | min'
}
# The claims that a deferred pod has, and another pod has, too.
shared_with_a_vm() {
    k -n "$namespace" get pods -o json | jq '[.items[] | select(.spec.nodeName) |
        {claim: .spec.volumes[0].persistentVolumeClaim.claimName, vm: (.metadata.annotations["claimguard.io/defer-fs-mount"] != null)}] |
        group_by(.claim) | map(select(length > 1 and any(.vm))) | length'
}

# The second replica starts with an entry that the first does not have. Before the entry is in force, no pod is deferred for it; from then on,
# the first one locks, too.
replicas_with_different_entries_race_and_no_claim_is_shared() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50} kubeconfig deferred announced
    trap one_claimguard_again EXIT
    agreement_of "$namespace-agreement" --from-literal=claimLock.Annotation
    kubeconfig=$plane/$namespace-agreement.kubeconfig
    { cat "$e2e/deferral.yaml" && echo 'readWriteOncePod: {claimLock: Annotation}'; } >"$plane/more.yaml"
    pairs_create $((2 * pairs)) ReadWriteOnce
    claimguard_restart one --config "$e2e/annotation.yaml" --kubeconfig "$kubeconfig"
    await 20 "one is ready" is_ready one
    claimguard_restart two --config "$plane/more.yaml" --kubeconfig "$kubeconfig"
    await 20 "two is ready" is_ready two
    announced=$(agreed_in "$namespace-agreement" exclusive.fast-storage)
    stop_schedulers
    plane_scheduler_start "$plane" default-scheduler "$root/manifests/scheduler/default-scheduler.yaml" "$(url_of one address)"
    plane_scheduler_start "$plane" second-scheduler "$root/manifests/scheduler/second-scheduler.yaml" "$(url_of two address)"
    vm_race 1 "$pairs"
    await 400 "the ordinary pods are bound" bound_reach "$pairs"
    [ "$(shared_with_a_vm)" = 0 ] || fail "shared with a deferred pod: $(shared_with_a_vm) claims"
    await 120 "the entry is in force" is_agreed "$namespace-agreement" exclusive.fast-storage
    # some have no rival at first, so that some are deferred in any case
    vm_race $((pairs + 1)) $((pairs + 10)) 1
    await 60 "ten pods are deferred" bound_reach 10 deferred
    vm_race $((pairs + 1)) $((pairs + 10)) 0
    vm_race $((pairs + 11)) $((2 * pairs))
    await 400 "each claim has a pod" bound_reach $((2 * pairs))
    sleep 2
    deferred=$(bound_or_deferred deferred)
    echo "deferred: $deferred of $pairs; claims by the number of their pods: $(pairs_outcome)"
    [ "$(shared_with_a_vm)" = 0 ] || fail "shared with a deferred pod: $(shared_with_a_vm) claims"
    [ "$(pairs_outcome)" = "1:$((2 * pairs))" ]
    [ "$deferred" -ge 10 ] || fail "a deferral is gone"
    [ "$(first_deferred)" -ge $((${announced#announced at } / 1000 + 89)) ] || fail "deferred before it is in force"
}

# ---- another claimLock, while a Binding is on its way ----

# `one` has posted a Binding of the pod `first`, which the API server has not applied yet, and stands still. `two` starts with the lock on the
# claim, and is asked about the pod `second`.
another_claim_lock_waits_for_the_bindings_of_the_former_one() {
    local kubeconfig name asked
    trap held_end EXIT
    scheduler=nobody
    hold_first
    agreement_of "$namespace-agreement" --from-literal=claimLock.Local
    kubeconfig=$plane/$namespace-agreement.kubeconfig
    claim data
    for name in first second; do pod $name data; done
    claimguard_restart one --kubeconfig "$kubeconfig"
    await 20 "one is ready" is_ready one
    hold
    ask_first bind >"$plane/first" 2>&1 &
    asked=$!
    await 20 "the API server waits" is_waited_for
    kill -STOP "$(cat "$plane/one.pid")"
    claimguard_restart two --config "$e2e/annotation.yaml" --kubeconfig "$kubeconfig"
    await 20 "two is ready" is_ready two
    for _ in 1 2 3 4 5; do # a scheduler would try again
        ! ask_bind two second node-2 >/dev/null || break
        sleep 1
    done
    let_go
    await 60 "the first is bound" is_scheduled first
    kill -CONT "$(cat "$plane/one.pid")"
    wait $asked || true
    echo "claims by the number of their pods: $(pairs_outcome)"
    [ "$(pairs_outcome)" = 1:1 ]
    plane_kill "$plane" one
    await 120 "the lock on the claim is in force" is_agreed "$namespace-agreement" claimLock.Annotation
    ! ask_bind two second node-2 >/dev/null || fail "the claim has two pods"
    delete_pod first
    await 60 "the second has the claim" ask_bind two second node-2
}
