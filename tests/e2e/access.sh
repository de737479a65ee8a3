# shellcheck shell=bash
# How claimguard reaches the API server, how schedulers reach claimguard, and which rights are needed. To be sourced.

# kubeconfig_with CLUSTER USER: flow mappings of the two.
kubeconfig_with() {
    cat <<END
current-context: a
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$(($(cat "$plane/port") + 2))", $1}}]
users: [{name: u, user: {$2}}]
contexts: [{name: a, context: {cluster: c, user: u}}]
END
}
captures() { "$claimguard" snapshot --kubeconfig "$plane/try.kubeconfig" -o "$plane/try.json" 2>"$plane/try.err" && jq -e .items "$plane/try.json" >/dev/null; }
refuses() { if captures; then fail "that should not have worked"; else grep -qF -- "$1" "$plane/try.err" || fail "$(cat "$plane/try.err")"; fi; }

every_kind_of_kubeconfig_connects_and_a_wrong_one_says_why() {
    local authority='certificate-authority: certs/apiserver.crt' data plugin
    data="certificate-authority-data: $(base64 -w0 "$plane/certs/apiserver.crt")"
    plugin='exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}'
    cat >"$plane/plugin" <<END
#!/bin/sh
echo '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "$(cat "$plane/token")"}}'
END
    chmod +x "$plane/plugin"
    kubeconfig_with "$authority" "token: $(cat "$plane/token")" >"$plane/try.kubeconfig"
    captures
    kubeconfig_with "$data, tls-server-name: kubernetes" "$plugin" >"$plane/try.kubeconfig"
    captures
    kubeconfig_with "insecure-skip-tls-verify: true, proxy-url: ''" "tokenFile: token" >"$plane/try.kubeconfig"
    captures
    kubeconfig_with "$data, tls-server-name: example.org" "$plugin" >"$plane/try.kubeconfig"
    refuses "'example.org'"
    kubeconfig_with "" "tokenFile: token" >"$plane/try.kubeconfig"
    refuses "certificate"
    kubeconfig_with "$data" "token: nonsense" >"$plane/try.kubeconfig"
    refuses "these credentials are not accepted"
    kubeconfig_with "$data, proxy-url: 'http://127.0.0.1:9'" "tokenFile: token" >"$plane/try.kubeconfig"
    refuses "127.0.0.1 port 9"
}

# certificates FOLDER [FLAGS]...
certificates() { "$claimguard" certificates -o "$plane/$1" "${@:2}"; }
scheduler_over_tls() {
    plane_kill "$plane" second-scheduler
    without_restrictions "$root/manifests/tls/second-scheduler.yaml" | sed "s#/etc/kubernetes/claimguard#$plane/tls#" >"$plane/tls.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/tls.yaml" "$(url_of secure address | sed s/http:/https:/)"
}

over_tls_a_scheduler_with_a_certificate_is_answered_and_no_other() {
    certificates tls
    sed "s#/etc/claimguard-tls#$plane/tls#; /^admission:/,\$d" "$root/manifests/cert-manager/config.yaml" >"$plane/secure.yaml"
    claimguard_start secure --config "$plane/secure.yaml"
    await 20 "it is ready" is_ready secure
    scheduler_over_tls
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    certificates tls --renew-before 8760h
    await 5 "the new certificate is taken" grep -q 'certificate reloaded' "$plane/secure.log"
    scheduler_over_tls
    delete_pod db-0
    scheduled db-1
    certificates other-tls
    cp "$plane"/other-tls/client.* "$plane/tls"
    scheduler_over_tls
    claim more
    pod refused more
    await 10 "its scheduler is refused" grep -q "a client's certificate is refused" "$plane/secure.log"
    if is_scheduled refused; then fail "a pod was bound by a scheduler that is not let in"; fi
    plane_kill "$plane" secure
    stop_schedulers
    start_schedulers
}

# The authorizer's word; a 403 can also mean that a namespace is on its way out.
forbidden='"authorization.k8s.io/decision":"forbid"'

claimguard_was_refused_nothing() {
    # audit lines are buffered for a moment
    sleep 1
    if grep "$forbidden" "$plane/audit.log"; then fail "the API server refused claimguard something"; fi
    if grep claimguard-own-limits "$plane/audit.log"; then fail "its own policy refused claimguard something"; fi
    wc -l <"$plane/audit.log"
    # it did something at all; a watch is in the log only when it has ended, a Binding is a 201
    grep -q '"code":20[01]' "$plane/audit.log"
    # and says who it is
    if grep '"username":"system:serviceaccount:claimguard:claimguard"' "$plane/audit.log" | grep -v '"userAgent":"claimguard/'; then fail "without its name"; fi
}

# The audit log's lines about a refusal, since the line given.
refusals_since() { tail -n "+$1" "$plane/audit.log" | grep -c "$forbidden"; }

is_ready_or_refused() { is_ready least || [ "$(refusals_since "$1")" -gt 0 ]; }

# What claimguard does in a day, in a second: a snapshot, a sync, two confirmations, a violation to report, a bind, a requeue,
# and the preemption of two pods, one of them without regard to budgets.
work_out() { # FIRST-AUDIT-LINE
    local pod
    for pod in 1 2; do pod_yaml "prey-$pod" "prize-$pod" 'nodeName: node-1' 'priorityClassName: low'; done |
        k apply -f - >/dev/null
    "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" >/dev/null 2>&1 || true
    (cat "$e2e/annotation.yaml" && echo "  preemptionGrace: 10ms") >"$plane/least.yaml"
    claimguard_start least --config "$plane/least.yaml"
    await 20 "it is ready or refused" is_ready_or_refused "$1"
    curl -s --data @"$plane/hunter-1.json" "$(url_of least address)/filter" >/dev/null
    for pod in waits lost; do
        curl -s --data @"$plane/$pod.json" "$(url_of least address)/prefilter" >/dev/null
    done
    # the first of two pods reserves their claim and is not bound, since it is gated: the second is requeued
    for pod in gated behind; do
        curl -s --data @"$plane/$pod.json" "$(url_of least address)/filter" >/dev/null
    done
    curl -s --data @"$plane/bind.json" "$(url_of least address)/bind" >/dev/null
    echo "  respectPodDisruptionBudgets: false" >>"$plane/least.yaml"
    kill -HUP "$(cat "$plane/least.pid")"
    await 5 "it has reloaded" grep -q 'configuration reloaded' "$plane/least.log"
    curl -s --data @"$plane/hunter-2.json" "$(url_of least address)/filter" >/dev/null
    if is_ready least; then await 20 "the attempt is over" grep -qE '(pod evicted|preemption failed).*(prey-2|hunter-2)' "$plane/least.log" || true; fi
    sleep 0.3 # the audit log
    plane_kill "$plane" least
}

every_right_of_the_cluster_role_is_needed() {
    local role count line without
    claim data
    pod first data 'nodeName: node-1'
    pod second data 'nodeName: node-2'
    pod waits data 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod lost missing 'schedulingGates: [{name: e2e.example.com/wait}]'
    claim spare
    pod gated spare 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod behind spare 'schedulingGates: [{name: e2e.example.com/wait}]'
    claim own # which no other pod names: else the first lock after a start waits (extender/serving/bind/claim_lock.h)
    pod alone own 'schedulingGates: [{name: e2e.example.com/wait}]'
    for pod in 1 2; do
        claim "prize-$pod"
        pod "hunter-$pod" "prize-$pod" 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    done
    for pod in waits lost gated behind alone hunter-1 hunter-2; do
        k -n "$namespace" get pod $pod -o json | jq '{Pod: ., NodeNames: ["node-1"]}' >"$plane/$pod.json"
    done
    jq '{PodName: .Pod.metadata.name, PodNamespace: .Pod.metadata.namespace, PodUID: .Pod.metadata.uid, Node: "node-1"}' \
        "$plane/alone.json" >"$plane/bind.json"
    # one rule for each (group, resource, verb)
    role=$(k get clusterrole claimguard -o json | jq -c '[.rules[] | . as $rule | .resources[] as $resource | .verbs[] as $verb |
        {apiGroups: $rule.apiGroups, resources: [$resource], verbs: [$verb]}]')
    count=$(jq length <<<"$role")
    line=$(($(wc -l <"$plane/audit.log") + 1))
    work_out "$line"
    [ "$(refusals_since "$line")" = 0 ] || fail "with all rights, it was refused something"
    for i in $(seq 0 $((count - 1))); do
        without=$(jq -c "{rules: (del(.[$i]))}" <<<"$role")
        k patch clusterrole claimguard --type merge -p "$without" >/dev/null
        sleep 0.2
        line=$(($(wc -l <"$plane/audit.log") + 1))
        work_out "$line"
        if [ "$(refusals_since "$line")" = 0 ]; then
            fail "nothing was missed without $(jq -c ".[$i]" <<<"$role")"
        fi
    done
    echo "$count rights"
    manifests_apply
    # which the running claimguard may have missed for so long that a resource was stalled
    await 30 "it is ready again" is_ready claimguard
    delete_pod first
    delete_pod second
    sleep 1
    : >"$plane/audit.log" # what was refused here was meant to be
}
