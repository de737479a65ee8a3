# shellcheck shell=bash
# Admission of pods: those that name their node, which no scheduler sees, and what is wrong with others. To be sourced.

# pairs_on_nodes COUNT: two pods for each claim, at the same moment, that name a node each.
pairs_on_nodes() {
    seq "$1" | awk -v ns="$namespace" '{
        for (i = 0; i < 2; i++)
            printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"generateName\":\"p-%d-\"},\"spec\":{\"nodeName\":\"node-%d\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, i + 1, $1
    }' | "$flood" "$plane/admin.kubeconfig" 16
}

# refuses_pod TEXT POD-YAML-ARGUMENT...
refuses_pod() {
    if pod_yaml "${@:2}" | k create -f - >"$plane/created" 2>&1; then fail "not refused: ${*:2}" || return 1; fi
    grep -qF -- "$1" "$plane/created" || fail "${*:2}: $(cat "$plane/created")"
}
# takes_pod TEXT POD-YAML-ARGUMENT...: with the text as a warning.
takes_pod() {
    pod_yaml "${@:2}" | k create -f - >"$plane/created" 2>&1 || fail "$(cat "$plane/created")" || return 1
    grep -qF -- "Warning: $1" "$plane/created" || fail "${*:2}: $(cat "$plane/created")"
}

pods_that_name_their_nodes_race_and_admission_leaves_each_claim_one_pod() {
    local pairs=100 first=$namespace
    k delete validatingwebhookconfiguration claimguard --ignore-not-found >/dev/null # of a scenario before this one
    sleep 3                                                                          # until the API server knows
    namespace=$first-open
    k create namespace "$namespace" >/dev/null
    pairs_create 5
    pairs_on_nodes 5
    [ "$(pairs_outcome)" = "2:5" ] # without admission
    k delete namespace "$namespace" --wait=false >/dev/null
    await 60 "no claim has two pods any more" no_violations
    namespace=$first
    stop_schedulers
    admission_on
    pairs_create "$pairs"
    pairs_on_nodes "$pairs"
    pairs_end "$pairs" 30
    no_violations
    await 20 "all were seen" no_reservations
}

a_pod_that_names_its_node_is_refused_a_held_claim_and_gets_it_when_the_holder_goes() {
    admission_on
    claim data
    refuses_pod 'persistentvolumeclaim "none" not found' early none 'nodeName: node-1'
    pod_yaml trial data 'nodeName: node-1' | k create --dry-run=server -f - >/dev/null
    no_reservations || fail "a dry run has reserved a claim"
    pod_yaml first data 'nodeName: node-1' | k create -f - >/dev/null
    refuses_pod "claim $namespace/data is in use by pod $namespace/first on node-1" second data 'nodeName: node-2'
    delete_pod first
    pod_yaml second data 'nodeName: node-2' | k create -f - >/dev/null
    # the claim of a generic ephemeral volume is created after the pod
    pod_yaml own '' 'nodeName: node-1' 'volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOncePod],' \
        '  storageClassName: fast-storage, resources: {requests: {storage: 1Gi}}}}}}]' | k create -f - >/dev/null
    no_violations
}

what_can_never_run_is_refused_and_what_may_run_later_is_warned_of() {
    local inline='volumes: [{name: v, csi: {driver: never-inline.example.com}}]'
    admission_on
    takes_pod 'persistentvolumeclaim "none" not found' waiting none
    takes_pod 'no CSIDriver object for inline volume v (driver never-inline.example.com)' early '' "$inline"
    k create -f - >/dev/null <<'END'
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: never-inline.example.com}
spec: {volumeLifecycleModes: [Persistent]}
END
    await 10 "the driver is seen" refuses_pod \
        'CSI driver never-inline.example.com does not support inline volumes (volume v; it supports Persistent)' never '' "$inline"
    k delete csidriver never-inline.example.com >/dev/null
    k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
}

with_ignore_a_pod_is_created_without_claimguard_and_with_fail_only_one_without_a_node() {
    local what='failed calling webhook "node-name.claimguard.io"'
    admission_on
    claim data
    plane_kill "$plane" claimguard KILL
    pod_yaml first data 'nodeName: node-1' | k create -f - >/dev/null
    pod_yaml second data 'nodeName: node-2' | k create -f - >/dev/null # nobody was asked
    delete_pod second
    admission_apply Fail
    await 20 "it is refused" refuses_pod "$what" third data 'nodeName: node-2'
    pod fourth data # its Binding waits
    pod fifth '' 'nodeName: node-2' # it has no claim
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    await 20 "it says so" refuses_pod "claim $namespace/data is in use by pod $namespace/first" third data 'nodeName: node-2'
    k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
}

# ---- who calls ----

# made_up NAME [FLAGS]...: a review of a pod that nobody creates, sent to the port of the webhooks; its claim is `data`.
made_up() {
    pod_yaml "$1" data 'nodeName: node-1' | k create --dry-run=client -o json -f - | jq --arg uid "$(cat /proc/sys/kernel/random/uuid)" '
        {kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request: {$uid, operation: "CREATE",
        kind: {group: "", version: "v1", kind: "Pod"}, resource: {group: "", version: "v1", resource: "pods"},
        name: .metadata.name, namespace: .metadata.namespace, userInfo: {username: "somebody"}, dryRun: false,
        object: (.metadata.uid = $uid)}}' |
        curl -s --cacert "$plane/secrets/ca.crt" "${@:2}" --data @- "https://127.0.0.1:$(admission_port)/admit/pod" |
        jq -r '.response | if .allowed then "allowed" else .status.message end'
}

a_made_up_review_gets_an_answer_and_creates_nothing_and_without_a_certificate_it_may_get_none() {
    admission_on
    claim data
    [ "$(made_up first)" = allowed ]
    [ "$(metric claimguard_reservations)" = 1 ]
    [[ "$(made_up second)" = "claim $namespace/data is "*" pod $namespace/first"* ]] || fail "$(made_up second)"
    [ "$(k -n "$namespace" get pods -o name)" = "" ]
    sed -i "s#^\( *\)certFile: .*#&\n\1clientCAFile: $plane/secrets/ca.crt#" "$plane/admission/certificates.yaml"
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    if made_up first; then fail "answered without a certificate"; fi
    [ "$(made_up first --cert "$plane/secrets/client.crt" --key "$plane/secrets/client.key")" = allowed ]
}
