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
    who_json '.waiting[0].message' | grep -qF '/' || fail "the scheduler's message: $(who_json .waiting)"
    who_says '[.attachments[].node] | join(" ")' "$(node_of db-0)"
    who_says '.usableBy' OnePod
    who_in --all -n "$namespace" --kubeconfig "$plane/admin.kubeconfig" | grep -qE '^[^ ]+ +data +db-0 ' || fail "--all"
    # rights in one namespace are enough, and what they do not show is said
    namespaced_kubeconfig >"$plane/try.kubeconfig"
    who_in "$namespace/data" --kubeconfig "$plane/try.kubeconfig" >"$plane/who.txt" || fail "$(cat "$plane/who.err")"
    grep -qE "held by +pod $namespace/db-0 " "$plane/who.txt" || fail "$(cat "$plane/who.txt")"
    grep -qF -- '- nodes: these credentials may not list them' "$plane/who.txt" || fail "$(cat "$plane/who.txt")"
    if who_in data --all-namespaces --kubeconfig "$plane/try.kubeconfig" >/dev/null; then fail "it has no right to that"; fi
    grep -qF 'these credentials may not list them' "$plane/who.err" || fail "$(cat "$plane/who.err")"
    # what it says is done; while the grace lasts, it says for how long
    advice=$(who_json '.freedBy[0]' | grep -oE "kubectl delete pod -n $namespace db-0") || fail "$(who_json .freedBy)"
    # shellcheck disable=SC2086 # words
    k ${advice#kubectl } --wait=false >/dev/null
    who_says '.heldBy[0].as' Terminating
    who_json '.freedBy[0]' | grep -qE 's of grace left$' || fail "$(who_json .freedBy)"
    k -n "$namespace" delete pod db-0 --force --grace-period=0 >/dev/null 2>&1
    scheduled db-1
    who_says '[.heldBy[].name] | join(" ")' db-1
    k delete volumeattachment "$namespace-data" --wait=false >/dev/null
}
