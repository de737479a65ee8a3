# shellcheck shell=bash
# Two schedulers, with one claimguard or with one each. To be sourced.

# pairs_create COUNT [MODE]: so many claims, each bound to a volume of its own.
pairs_create() {
    seq "$1" | awk -v ns="$namespace" -v mode="${2:-ReadWriteOncePod}" '{
        printf "POST /api/v1/persistentvolumes {\"metadata\":{\"name\":\"%s-c-%d\"},\"spec\":{\"accessModes\":[\"%s\"],\"capacity\":{\"storage\":\"1Gi\"},\"storageClassName\":\"fast-storage\",\"csi\":{\"driver\":\"plugin1.example.com\",\"volumeHandle\":\"%s-%d\"},\"claimRef\":{\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"%s\",\"name\":\"c-%d\"}}}\n", ns, $1, mode, ns, $1, ns, $1
        printf "POST /api/v1/namespaces/%s/persistentvolumeclaims {\"metadata\":{\"name\":\"c-%d\"},\"spec\":{\"accessModes\":[\"%s\"],\"storageClassName\":\"fast-storage\",\"volumeName\":\"%s-c-%d\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}\n", ns, $1, mode, ns, $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    await 400 "all claims are bound" claims_are_bound "$1"
}

# pairs_race COUNT [RUNTIME]: two pods for each claim, at the same moment, for one scheduler each; one of them with that
# runtime class.
pairs_race() {
    seq "$1" | awk -v ns="$namespace" -v vm="${2:+\"runtimeClassName\":\"$2\",}" '{
        for (i = 0; i < 2; i++)
            printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d-%d\"},\"spec\":{%s\"schedulerName\":\"%s\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, i, i ? "" : vm, ($1 + i) % 2 ? "default-scheduler" : "claimguard-scheduler", $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
}

# How many claims are held by N bound pods: "N:claims" words.
pairs_outcome() {
    of_namespace pods |
        jq -r '[.items[] | select(.spec.nodeName) | .spec.volumes[0].persistentVolumeClaim.claimName] | group_by(.) | map(length)
            | group_by(.) | map("\(.[0]):\(length)") | join(" ")'
}

# pairs_end COUNT SECONDS: within so many, each claim has one pod; and keeps it.
pairs_end() {
    await "$2" "each claim has one pod" pairs_are_settled "$1" || fail "$(pairs_outcome)"
    sleep 2
    echo "claims by the number of their pods: $(pairs_outcome)"
    [ "$(pairs_outcome)" = "1:$1" ]
}

# pairs_second_round COUNT: the pods that were first are deleted; the others get their claims.
pairs_second_round() {
    pairs_delete_bound 2
    await 400 "each claim has one pod again" pairs_are_settled "$1" || fail "$(pairs_outcome)"
}
pairs_delete_bound() { # [STATUS]
    of_namespace pods | jq -r '.items[] | select(.spec.nodeName) |
        "DELETE /api/v1/namespaces/\(.metadata.namespace)/pods/\(.metadata.name)?gracePeriodSeconds=0"' |
        "$flood" "$plane/admin.kubeconfig" 16 "$@" >/dev/null
}
pairs_are_settled() { [ "$(pairs_outcome)" = "1:$1" ]; }

two_schedulers_race_and_no_claim_has_two_pods() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50}
    pairs_create "$pairs"
    pairs_race "$pairs"
    pairs_end "$pairs" 400
    echo "refused binds: $(metric claimguard_bind_conflicts_total)"
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    # the first ones gone, the second ones run
    pairs_second_round "$pairs"
    await 40 "no reservation is left over" no_reservations
}

two_schedulers_race_while_claimguard_is_killed_and_restarted() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50} race
    pairs_create "$pairs"
    pairs_race "$pairs" &
    race=$!
    for _ in 1 2 3; do
        sleep 0.7
        claimguard_restart claimguard
    done
    wait $race
    pairs_end "$pairs" 400
}

# ---- two replicas, which do not know each other: claimLock: Annotation ----

start_replicas() {
    local name
    for name in one two; do
        claimguard_start "$name" --config "$e2e/annotation.yaml"
        await 20 "$name is ready" is_ready "$name"
    done
    stop_schedulers
    plane_scheduler_start "$plane" default-scheduler "$root/manifests/scheduler/default-scheduler.yaml" "$(url_of one address)"
    plane_scheduler_start "$plane" second-scheduler "$root/manifests/scheduler/second-scheduler.yaml" "$(url_of two address)"
}

# Back to the one that the other scenarios use.
one_claimguard_again() {
    stop_schedulers
    plane_kill "$plane" one
    plane_kill "$plane" two
    start_schedulers
}

two_schedulers_with_a_replica_each_race_and_the_annotation_decides() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50}
    start_replicas
    pairs_create "$pairs"
    pairs_race "$pairs"
    pairs_end "$pairs" 400
    echo "refused binds: $(metric bind_conflicts_total one) and $(metric bind_conflicts_total two)"
    # every claim says who has it
    [ "$(of_namespace persistentvolumeclaims | jq '[.items[] | select(.metadata.annotations["claimguard.io/holder"])] | length')" = "$pairs" ]
    # the first ones gone, their locks are taken over
    pairs_second_round "$pairs"
}

two_replicas_are_killed_and_restarted_while_their_schedulers_race() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50} race
    [ -e "$plane/one.pid" ] || start_replicas
    pairs_create "$pairs"
    pairs_race "$pairs" &
    race=$!
    for _ in 1 2 3; do
        sleep 0.5
        claimguard_restart one --config "$e2e/annotation.yaml"
        sleep 0.5
        claimguard_restart two --config "$e2e/annotation.yaml"
    done
    wait $race
    pairs_end "$pairs" 400
}

no_reservations() { [ "$(metric claimguard_reservations)" = 0 ]; }
