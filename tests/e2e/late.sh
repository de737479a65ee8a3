# shellcheck shell=bash
# A claimguard whose watch is late, silent, or cannot ask. To be sourced.

# The fault proxy, before this API server: faulty.kubeconfig goes through it. It takes orders from $plane/orders.
start_fault_proxy() {
    local port
    port=$(cat "$plane/port")
    plane_run "$plane" proxy "$tools/kubectl" --kubeconfig "$plane/claimguard.kubeconfig" proxy --port $((port + 3))
    [ -e "$plane/orders" ] || mkfifo "$plane/orders"
    plane_run "$plane" fault-proxy "$fault_proxy" $((port + 5)) $((port + 3)) "$seed" <>"$plane/orders"
    for port in $((port + 3)) $((port + 5)); do await 10 "port $port listens" listens "$port"; done # without a request in claimguard's name
    faults_kubeconfig x "$port" >"$plane/faulty.kubeconfig"
}

# With everything that claimguard watches five seconds late: only asking the API server can be in time.
start_delayed() {
    start_fault_proxy
    echo "delay 5000" >"$plane/orders"
    claimguard_start delayed --kubeconfig "$plane/faulty.kubeconfig"
    await 20 "it is ready" is_ready delayed
    stop_schedulers
    plane_scheduler_start "$plane" second-scheduler "$plane/second.yaml" "$(url_of delayed address)"
}

# How long COMMAND's effect takes until the pod is scheduled, in ms.
ms_until_scheduled() { # POD COMMAND...
    local pod=$1 started
    shift
    : >"$plane/seen"
    k -n "$namespace" get pod "$pod" --watch -o 'jsonpath={.spec.nodeName}{"\n"}' >"$plane/seen" &
    local watcher=$!
    await 60 "the watch has begun" test -s "$plane/seen"
    started=$(date +%s%N)
    "$@" >/dev/null
    for _ in $(seq 3000); do
        if grep -q node "$plane/seen"; then break; fi
        sleep 0.01
    done
    echo $((($(date +%s%N) - started) / 1000000))
    kill $watcher
    wait $watcher 2>/dev/null || true
}

no_rejection_is_stale() {
    local trials=${CLAIMGUARD_E2E_TRIALS:-6} i ms late=0
    start_delayed
    for i in $(seq "$trials"); do
        claim "data-$i"
        pod "a-$i" "data-$i"
        scheduled "a-$i"
        pod "b-$i" "data-$i"
        pod "early-$i" "later-$i"
        rejected "b-$i" "is in use by pod"
        rejected "early-$i" "not found"
        ms=$(ms_until_scheduled "b-$i" k_delete "pods/a-$i")
        [ "$ms" -le 4000 ] || { late=$((late + 1)) && echo "after the holder's deletion: $ms ms"; }
        echo "$ms" >>"$plane/deletion-ms"
        claim_yaml "later-$i" | awk '/^---/ { n++ } n == 1' | sed '/claimRef/d' | k apply -f - >/dev/null
        ms=$(ms_until_scheduled "early-$i" create_bound_claim "later-$i")
        [ "$ms" -le 4000 ] || { late=$((late + 1)) && echo "after the claim's creation: $ms ms"; }
        echo "$ms" >>"$plane/creation-ms"
    done
    for i in deletion creation; do
        sort -n "$plane/$i-ms" | awk -v what="$i" '{ ms[NR] = $1 } END { printf "%s to binding, %d times: median %d ms, most %d ms\n", what, NR, ms[int((NR + 1) / 2)], ms[NR] }'
    done
    [ "$(metric 'confirmations_total{result="overruled"}' delayed)" -ge "$trials" ]
    # on a machine that is too slow, the API server may not answer in time: claimguard says so
    [ "$late" -le "$(metric 'confirmations_total{result="unknown"}' delayed)" ]
}
# A claim that a scheduler treats as bound from its first moment: what is measured is claimguard, not the volume controller.
create_bound_claim() {
    curl -sk -H "Authorization: Bearer admin-token" -H "Content-Type: application/json" \
        "https://127.0.0.1:$(($(cat "$plane/port") + 2))/api/v1/namespaces/$namespace/persistentvolumeclaims" -d "{
            \"metadata\": {\"name\": \"$1\", \"annotations\": {\"pv.kubernetes.io/bind-completed\": \"yes\"}},
            \"spec\": {\"accessModes\": [\"ReadWriteOncePod\"], \"storageClassName\": \"fast-storage\",
                \"volumeName\": \"$namespace-$1\", \"resources\": {\"requests\": {\"storage\": \"1Gi\"}}}}"
}
k_delete() { curl -sk -X DELETE -H "Authorization: Bearer admin-token" "https://127.0.0.1:$(($(cat "$plane/port") + 2))/api/v1/namespaces/$namespace/$1"; }

# claimguard alone has lost the API server, and answers the scheduler from its cache. It learns later than the scheduler
# what happens meanwhile, and the scheduler would not ask again for minutes.
a_rejection_that_could_not_be_confirmed_is_made_up_for() {
    local before pods claims
    echo "delay 0" >"$plane/orders"
    await 60 "the last scenario is cleared away" is_cleared # what goes there is an event for the scheduler
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    pod early later
    rejected db-1 "is in use by pod"
    rejected early "not found"
    pods=$(restarts pods) claims=$(restarts persistentvolumeclaims)
    echo "upstream 1" >"$plane/orders"
    await 10 "its watches have ended" more_restarts_than "$pods" "$claims" # else it gets an event of what follows
    before=$(metric 'confirmations_total{result="unknown"}' delayed)
    delete_pod db-0
    claim later
    await 15 "both were asked about" more_unconfirmed_than "$((before + 1))"
    await 120 "the pods that the scheduler tries again by itself were tried" nobody_is_asked_about
    if is_scheduled db-1 || is_scheduled early; then fail "a pod was bound without the API server"; fi
    echo "upstream $(($(cat "$plane/port") + 3))" >"$plane/orders"
    scheduled db-1
    scheduled early
    is_requeued db-1 || is_requeued early # the first that is bound makes an event for the other
}
is_cleared() { [ -z "$(k get namespace "e2e-$((number - 1))" --ignore-not-found -o name)" ]; }
more_unconfirmed_than() { [ "$(metric 'confirmations_total{result="unknown"}' delayed)" -gt "$1" ]; }
# For longer than the scheduler's longest back-off.
nobody_is_asked_about() {
    local before
    before=$(metric 'confirmations_total{result="unknown"}' delayed)
    sleep 11
    kill -0 "$(cat "$plane/delayed.pid")" && ! more_unconfirmed_than "$before"
}
is_requeued() { [ -n "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.annotations.claimguard\.io/requeue-requested}')" ]; }

# The connections stay open and bring nothing any more: no packet is lost, so only a time-out can show it.
silence_is_found_within_a_minute() {
    local before started
    claim silent
    pod before silent
    scheduled before
    echo stall >"$plane/orders"
    started=$(date +%s)
    before=$(restarts pods)
    await 60 "it is found" more_restarts_than "$before"
    echo "after $(($(date +%s) - started)) s"
    delete_pod before
    await 30 "the cache is current" knows_none silent
}
more_restarts_than() { # OF-PODS [OF-CLAIMS]
    [ "$(restarts pods)" -gt "$1" ] && { [ $# = 1 ] || [ "$(restarts persistentvolumeclaims)" -gt "$2" ]; }
}
restarts() { metric "watch_restarts_total{resource=\"$1\"" delayed; }
knows_none() { cache_of delayed | jq -e --arg key "$namespace/$1" '.claims[$key].refs == 0' >/dev/null; }

stop_delayed() {
    plane_kill "$plane" delayed
    plane_kill "$plane" fault-proxy
    plane_kill "$plane" proxy
}
