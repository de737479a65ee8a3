# shellcheck shell=bash
# What a user with rights in one namespace can have the API server send. To be sourced.

as_mallory() { k --as=mallory "$@"; }

# nested LEVELS: managedFields that deep. The API server accepts about 9,990.
nested() {
    local levels
    levels=$(seq "$1")
    # shellcheck disable=SC2059,SC2086 # the format is what is wanted, once for each level
    printf '[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":%s{}%s}]' \
        "$(printf '{"f:a":%.0s' $levels)" "$(printf '}%.0s' $levels)"
}

# hostile_pod NAME META SPEC, hostile_claim NAME META: more members of metadata and spec, as JSON text that kubectl would not write.
hostile_pod() {
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"%s},"spec":{"schedulerName":"%s","automountServiceAccountToken":false,
        "terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"registry.example/app","args":["\\u0000"],
        "env":[{"name":"E","value":"a\\u0000b"}]}]%s}}' "$1" "$2" "$scheduler" "$3" | hostile_send pods
}
hostile_claim() {
    printf '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"%s"%s},"spec":{"accessModes":["ReadWriteOncePod"],
        "storageClassName":"fast-storage","resources":{"requests":{"storage":"1Gi"}}}}' "$1" "$2" | hostile_send persistentvolumeclaims
}
hostile_send() { # RESOURCE
    cat >"$plane/hostile.json"
    as_mallory create --raw "/api/v1/namespaces/$hostile/$1" -f "$plane/hostile.json" >/dev/null
}

hostile_objects() {
    hostile_pod nul ',"annotations":{"claimguard.io/defer-fs-mount":"x\u0000y","z":"\ud800"}' ''
    hostile_pod bound ',"annotations":{"z":"\u0000"}' ',"nodeName":"node-1"'
    hostile_claim nul ',"annotations":{"z":"\u0000"}'
    hostile_pod deep ",\"managedFields\":$(nested 200)" ''
    hostile_pod deepest ",\"managedFields\":$(nested 9990)" ''
    hostile_claim deepest ",\"managedFields\":$(nested 9990)"
    # no UTF-8, and sent as it came
    hostile_pod bytes ',"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:'$'\xff''":{}}}]' ''
}

# is_judged NAME: a claim of that name in the other namespace goes from pod to pod.
is_judged() {
    claim "$1"
    pod "$1-0" "$1"
    scheduled "$1-0"
    pod "$1-1" "$1"
    rejected "$1-1" "claim $namespace/$1 is in use by pod $namespace/$1-0 on $(node_of "$1-0")"
    delete_pod "$1-0"
    await 10 "$1-1 is scheduled" is_scheduled "$1-1"
    is_ready claimguard || fail "claimguard is not ready: $1"
}

hostile_is_scheduled() { [ -n "$(as_mallory -n "$hostile" get pod "$1" -o 'jsonpath={.spec.nodeName}')" ]; }

a_user_of_one_namespace_stops_no_other() {
    local hostile=$namespace-hostile
    k create namespace "$hostile" >/dev/null
    k -n "$hostile" create role mallory --verb='*' --resource=pods,persistentvolumeclaims >/dev/null
    k -n "$hostile" create rolebinding mallory --role=mallory --user=mallory >/dev/null
    [ "$(as_mallory auth can-i create pods -n "$namespace" || true)" = no ]
    await 20 "mallory has her rights" as_mallory auth can-i create pods -n "$hostile"
    hostile_objects
    is_judged in-a-watch
    await 30 "a pod with NUL in its args is scheduled" hostile_is_scheduled nul
    await 30 "a deep one, too" hostile_is_scheduled deepest
    claimguard_restart claimguard
    await 20 "claimguard is ready after a restart" is_ready claimguard
    is_judged after-a-restart
    [ "$(metric claimguard_cache_skipped_objects_total)" = 0 ] || fail "an object was passed over"
    "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" -o "$plane/captured.json" 2>/dev/null
    k get pods,pvc,pv,nodes,storageclasses -A -o json >"$plane/got.json"
    pod waiting after-a-restart 'schedulingGates: [{name: e2e.example.com/wait}]'
    k -n "$namespace" get pod waiting -o json >"$plane/waiting.json"
    for snapshot in captured got; do
        "$claimguard" dry-run --snapshot "$plane/$snapshot.json" --pod "$plane/waiting.json" >"$plane/dry.txt" 2>&1 || [ $? = 1 ]
        grep -q "in use by pod $namespace/after-a-restart-1" "$plane/dry.txt" || fail "$snapshot: $(cat "$plane/dry.txt")"
    done
    delete_pod waiting
    as_mallory -n "$hostile" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
    as_mallory -n "$hostile" delete pvc --all --wait=false >/dev/null
    is_judged without-them
    k delete namespace "$hostile" --wait=false >/dev/null
}
