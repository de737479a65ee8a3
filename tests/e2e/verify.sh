# shellcheck shell=bash
# claimguard verify: what it says of a good installation, and of broken ones. To be sourced.

# A namespace takes some seconds until it is gone.
verify_left_nothing() {
    [ "$(k get namespaces,persistentvolumes,validatingwebhookconfigurations -l app.kubernetes.io/managed-by=claimguard-verify -o json |
        jq '[.items[] | select(.metadata.deletionTimestamp | not)] | length')" = 0 ]
}

# verifies STATUS HOLDS [ARGUMENT]...: its exit status, and what it says of each row. It leaves nothing.
verifies() {
    local status=0 holds
    "$claimguard" verify --kubeconfig "$plane/admin.kubeconfig" -o json "${@:3}" >"$plane/verify.json" 2>"$plane/verify.err" || status=$?
    holds=$(jq -r '[.rows[].holds] | join(", ")' "$plane/verify.json")
    [ "$status, $holds" = "$1, $2" ] || fail "expected $1, $2: $status, $(cat "$plane/verify.json" "$plane/verify.err")"
    verify_left_nothing || fail "something is left"
}
verify_left_nobody() { [ -z "$(k get namespaces,persistentvolumes -l app.kubernetes.io/managed-by=claimguard-verify -o name)" ]; }

# blames CODE WHERE CHANGE FINDING: the finding, by the object and parts of its texts.
blames() {
    jq -e --arg code "$1" --arg where "$2" --arg change "$3" --arg finding "$4" 'any(.findings[]; .code == $code and .where == $where and
        (.change | contains($change)) and (.finding | contains($finding)))' "$plane/verify.json" >/dev/null ||
        fail "no $*: $(jq -c '.findings[]' "$plane/verify.json")"
}

verify_on() { # CHOICE...: claimguard runs with admission
    admission_on
    [ $# = 0 ] || admission_apply "$@"
    await 20 "Bindings are reviewed" is_reviewing
}

verify_keys() { python3 -c 'import json, sys; answer = json.load(open(sys.argv[1])); print(list(answer), list(answer["rows"][0]))' "$1"; } # in their order

every_row_holds_where_claimguard_reviews_and_schedulers_call_it() {
    verify_on Fail
    verifies 0 "yes, yes, yes, yes, yes" --scheduler default-scheduler --without-claimguard
    jq -e '.rows[0].seen | contains("is in use by pod claimguard-verify-") or contains("is being bound")' "$plane/verify.json" >/dev/null
    verifies 0 "yes, yes, yes, yes" --scheduler claimguard-scheduler
    [ "$(verify_keys "$plane/verify.json")" = "$(verify_keys "$root/tests/fixtures/verify.json")" ]
    verifies 2 "yes, yes, yes, not tried" --scheduler nobody-s
    verify_on
    admission_apply
    await 10 "the policy is another one" verifies 1 "yes, yes, yes, no" --without-claimguard
    blames CG704 'ValidatingWebhookConfiguration claimguard' failure-policy-ignore 'says Ignore'
}

# A scheduler with the extender stops pods also without webhooks; without bindVerb, only what it finds in its cache.
without_webhooks_the_rows_that_do_not_hold_are_named() {
    k delete validatingwebhookconfiguration claimguard --ignore-not-found >/dev/null
    sed '/bindVerb/d' "$root/manifests/tls/second-scheduler.yaml" >"$plane/no-bind.yaml"
    verifies 1 "no, no, no, yes" --scheduler claimguard-scheduler --scheduler-config "$plane/no-bind.yaml"
    blames CG907 'ValidatingWebhookConfiguration claimguard' 'manifests/webhooks.yaml' 'no webhook for Bindings'
    blames CG504 "$(jq -r '.findings[] | select(.code == "CG504") | .where' "$plane/verify.json")" 'bindVerb: bind' ''
    plain_schedulers default-scheduler
    verifies 1 "no, no, no, no" --scheduler default-scheduler
    stop_schedulers
    start_schedulers
    # marks, and nobody reviews the Bindings of pods without one
    if kubernetes_has_minor 36; then
        k apply -f "$root/manifests/marks/marks.yaml" >/dev/null
        verifies 1 "no, no, no"
        blames CG808 'MutatingAdmissionPolicy claimguard-marks' 'manifests/webhooks.yaml' 'nobody reviews'
        k delete -f "$root/manifests/marks/marks.yaml" >/dev/null
    fi
}

# webhook_patched JQ: each webhook is changed so, and the API server knows.
webhook_patched() {
    k get validatingwebhookconfiguration claimguard -o json |
        jq "{apiVersion, kind, metadata: {name: .metadata.name}, webhooks: [.webhooks[] | $1]}" | k apply -f - >/dev/null
    sleep 2
}

verify_names_the_line_of_each_broken_webhook() {
    local where='ValidatingWebhookConfiguration claimguard'
    verify_on
    # the caBundle of another authority
    webhook_patched ".clientConfig.caBundle = \"$(base64 -w0 "$plane/certs/apiserver.crt")\""
    verifies 1 "no, no, no"
    blames CG906 "$where" 'clientConfig.caBundle: ' 'signed by unknown authority'
    # a port where nobody listens, and one where something else does
    admission_apply
    webhook_patched '.clientConfig.url |= sub(":[0-9]+/"; ":9/")'
    verifies 1 "no, no, no"
    blames CG906 "$where" 'clientConfig.service.port' 'connection refused'
    webhook_patched ".clientConfig.url |= sub(\":[0-9]+/\"; \":$(url_of claimguard metrics | sed 's/.*://')/\")"
    verifies 1 "no, no, no"
    blames CG906 "$where" 'clientConfig.service.port' 'HTTP response to HTTPS client'
    # something in between drops what is sent
    plane_kill "$plane" silence KILL
    [ -e "$plane/silence" ] || mkfifo "$plane/silence"
    plane_run "$plane" silence "$fault_proxy" $(($(admission_port) + 3)) 1 1 <>"$plane/silence"
    await 10 "it listens" listens $(($(admission_port) + 3))
    kill -STOP "$(cat "$plane/silence.pid")"
    webhook_patched ".timeoutSeconds = 1 | .clientConfig.url |= sub(\":[0-9]+/\"; \":$(($(admission_port) + 3))/\")"
    verifies 1 "no, no, no"
    blames CG906 "$where" NetworkPolicy imeout
    kill -CONT "$(cat "$plane/silence.pid")"
    plane_kill "$plane" silence KILL
    # namespaces without a label are left out
    admission_apply
    webhook_patched '.namespaceSelector.matchExpressions += [{key: "guarded", operator: "Exists"}]'
    verifies 1 "no, no, no"
    blames CG907 "$where" namespaceSelector 'has not called it'
    # one of two paths
    admission_apply
    webhook_patched '.rules[] |= (.resources -= ["bindings"])'
    verifies 1 "yes, no, yes"
    blames CG706 "$where" 'resources: [pods/binding, bindings]' 'does not review bindings'
    # a namespace that is left out by its name, with such a claim
    admission_apply
    webhook_patched ".namespaceSelector.matchExpressions += [{key: \"kubernetes.io/metadata.name\", operator: \"NotIn\", values: [\"$namespace\"]}]"
    claim data
    verifies 0 "yes, yes, yes"
    blames CG705 "$where" 'out of the selector' "$namespace"
    # the certificate has ended
    admission_apply
    expire_certificate
    verifies 1 "no, no, no"
    blames CG906 "$where" 'claimguard certificates renews it' 'certificate has expired'
    # claimguard is away: with Fail, no pod is bound
    admission_apply Fail
    plane_kill "$plane" claimguard KILL
    verifies 1 "no, no, no"
    blames CG906 "$where" 'clientConfig.service.port' 'connection refused'
}

# claimguard shows a certificate of its authority that ended yesterday.
expire_certificate() {
    local folder=$plane/secrets
    k -n claimguard get secret claimguard-ca -o json | jq -r '.data["tls.key"]' | base64 -d >"$folder/ca.key"
    openssl req -new -key "$folder/tls.key" -subj /CN=claimguard -out "$folder/ended.csr"
    printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n' >"$folder/ended.ext"
    openssl x509 -req -in "$folder/ended.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -set_serial 7 -days -1 -extfile "$folder/ended.ext" -out "$folder/ended.crt"
    mv "$folder/ended.crt" "$folder/tls.crt"
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
}

# What does not let a claim have two pods, and breaks claimguard in another way.
verify_prints_what_doctor_finds() {
    verify_on
    k get clusterrole claimguard -o json | jq 'del(.metadata.resourceVersion, .metadata.uid)' >"$plane/clusterrole.json"
    jq '.rules |= map(select(.resources != ["pods/status"]))' "$plane/clusterrole.json" | k apply -f - >/dev/null
    # of another image than the Deployment, whose pod is otherwise the same
    k -n claimguard get deployment claimguard -o json | jq '{apiVersion: "v1", kind: "Pod", metadata: (.spec.template.metadata + {name: "other-version"}),
        spec: (.spec.template.spec + {nodeName: "node-1", terminationGracePeriodSeconds: 0} | del(.containers[].lifecycle) | .containers[0].image = "claimguard:0.0.1")}' | k -n claimguard create -f - >/dev/null
    await 10 "both are found" verify_blames_both
    verifies 1 "yes, yes, yes" --fail-on warning
    k apply -f "$root/manifests/rbac.yaml" >/dev/null
    k -n claimguard delete pod other-version --grace-period=0 --force >/dev/null 2>&1
    # two configurations: this claimguard stops all pods, and the webhooks are not to blame
    k -n claimguard patch configmap claimguard-agreement --type merge -p '{"data": {"claimLock.Annotation": "in force", "claimLock.Local": "in force"}}' >/dev/null
    await 60 "it is found" verify_blames_agreement
    nothing_is_agreed
}
verify_blames_both() {
    verifies 0 "yes, yes, yes"
    blames CG901 system:serviceaccount:claimguard:claimguard manifests/rbac.yaml 'patch pods/status'
    blames CG614 'Pod claimguard/other-version' 'image: ' 'claimguard:0.0.1'
}
verify_blames_agreement() {
    verifies 1 "no, no, no"
    blames CG615 'ConfigMap claimguard/claimguard-agreement' 'claimLock: Annotation' 'others Annotation'
    ! jq -e 'any(.findings[]; .code == "CG906" or .code == "CG907")' "$plane/verify.json" >/dev/null
}

# Interrupted or killed at any moment; and a user who may not do it.
verify_that_is_interrupted_leaves_nothing_and_the_next_one_removes_what_a_killed_one_left() {
    local after signal status
    for after in 0.1 0.3 0.6 1 1.5; do
        for signal in INT TERM; do
            status=0
            timeout -s "$signal" "$after" "$claimguard" verify --kubeconfig "$plane/admin.kubeconfig" >"$plane/interrupted" 2>&1 || status=$?
            verify_left_nothing || fail "something is left after $after s"
        done
    done
    k create -f - >/dev/null <<END
{apiVersion: v1, kind: Namespace, metadata: {name: claimguard-verify-bbbbbbbb, labels: {app.kubernetes.io/managed-by: claimguard-verify}, annotations: {claimguard.io/verify-ends: "1764000000"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: not-ours, labels: {app.kubernetes.io/managed-by: claimguard-verify}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: claimguard-verify-cccccccc, labels: {app.kubernetes.io/managed-by: claimguard-verify}, annotations: {claimguard.io/verify-ends: "9764000000"}}}
END
    "$claimguard" verify --kubeconfig "$plane/admin.kubeconfig" >"$plane/verified" || [ $? = 1 ]
    await 20 "it removes what is left of a run that is over" verify_left_of_others
    k delete namespace not-ours claimguard-verify-cccccccc >/dev/null
    await 60 "all is gone" verify_left_nobody
    status=0
    "$claimguard" verify --kubeconfig "$plane/claimguard.kubeconfig" >"$plane/verified" 2>&1 || status=$?
    [ $status = 2 ] || fail "$status: $(cat "$plane/verified")"
    grep -q 'a namespace: .* status 403' "$plane/verified" || fail "$(cat "$plane/verified")"
}
verify_left_of_others() {
    [ "$(k get namespaces -l app.kubernetes.io/managed-by=claimguard-verify -o name | sort | xargs)" = "namespace/claimguard-verify-cccccccc namespace/not-ours" ]
}
