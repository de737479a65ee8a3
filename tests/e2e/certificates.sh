# shellcheck shell=bash
# claimguard certificates against the real API server: Secrets, their renewal while a scheduler uses them, and the caBundle of a
# webhook. To be sourced.

# A user has the rights of docs/operations.md, and no others.
certificates_user() {
    local rules
    rules=$(sed -n '/^\*\*Rights\.\*\*/,/^Anyone/s/^    \(- {.*\)/\1/p' "$root/docs/operations.md")
    [ "$(wc -l <<<"$rules")" = 3 ]
    k apply -f - >/dev/null <<END
{apiVersion: v1, kind: ServiceAccount, metadata: {name: certificates, namespace: claimguard}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: certificates, namespace: claimguard}
rules:
$(head -2 <<<"$rules")
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: certificates}
rules:
$(tail -1 <<<"$rules")
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: certificates, namespace: claimguard}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: certificates}
subjects: [{kind: ServiceAccount, name: certificates, namespace: claimguard}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: certificates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: certificates}
subjects: [{kind: ServiceAccount, name: certificates, namespace: claimguard}]
END
    k -n claimguard create token certificates >"$plane/certificates.token"
    claimguard_kubeconfig "https://127.0.0.1:$(($(cat "$plane/port") + 2))" "$plane/certificates.token" >"$plane/certificates.kubeconfig"
}

# in_the_cluster EXPECTED [FLAGS]...: what is done about authority, server, client and webhook.
in_the_cluster() {
    local done
    "$claimguard" certificates --kubeconfig "$plane/certificates.kubeconfig" --format json "${@:2}" >"$plane/certificates.json"
    done=$(jq -r '[.[].action] | join(" ")' "$plane/certificates.json")
    [ "$done" = "$1" ] || fail "expected $1: $(cat "$plane/certificates.json")"
}

# As the kubelet and manifests/README.md write them: all at once, or one after the other.
secret_to_file() { # SECRET KEY FILE
    k -n claimguard get secret "$1" -o json | jq -r ".data[\"$2\"]" | base64 -d >"$plane/secrets/$3.new"
    mv "$plane/secrets/$3.new" "$plane/secrets/$3"
}
secrets_to_files() {
    local file
    mkdir -p "$plane/secrets"
    for file in tls.key tls.crt ca.crt; do secret_to_file claimguard-tls $file $file; done
    for file in key crt; do secret_to_file claimguard-client tls.$file client.$file; done
}

# Of a webhook that is never called.
webhook_yaml() { # CA-BUNDLE
    cat <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: claimguard}
webhooks:
- name: nothing.e2e.example.com
  clientConfig: {caBundle: "$1", service: {namespace: claimguard, name: claimguard-door, port: 8443, path: /}}
  rules: [{apiGroups: [e2e.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
END
}
ca_bundle() { k get validatingwebhookconfiguration claimguard -o 'jsonpath={.webhooks[0].clientConfig.caBundle}'; }
ca_of_secret() { k -n claimguard get secret claimguard-tls -o 'jsonpath={.data.ca\.crt}'; }

certificates_are_secrets_that_are_renewed_while_a_scheduler_uses_them() {
    k delete validatingwebhookconfiguration claimguard --ignore-not-found >/dev/null
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client --ignore-not-found >/dev/null
    certificates_user
    in_the_cluster "created created created missing" --dry-run
    in_the_cluster "created created created missing"
    in_the_cluster "kept kept kept missing"
    # a webhook configuration that comes later: without a bundle, and with that of another authority
    webhook_yaml "" | k apply -f - >/dev/null
    in_the_cluster "kept renewed kept updated"
    [ "$(ca_bundle)" = "$(ca_of_secret)" ]
    webhook_yaml "$(base64 -w0 "$plane/certs/apiserver.crt")" | k apply -f - >/dev/null
    in_the_cluster "kept kept kept updated"
    [ "$(ca_bundle)" = "$(ca_of_secret)" ]
    in_the_cluster "kept kept kept kept"
    # without the right to read it
    k delete clusterrolebinding certificates >/dev/null
    await 10 "it is skipped" in_the_cluster "kept kept kept skipped"
    certificates_user
    await 10 "it is not" in_the_cluster "kept kept kept kept"

    secrets_to_files
    openssl verify -x509_strict -CAfile "$plane/secrets/ca.crt" -purpose sslserver \
        -verify_hostname claimguard-door.claimguard.svc "$plane/secrets/tls.crt"
    cat >"$plane/renewed.yaml" <<END
apiVersion: claimguard.io/v1alpha1
kind: ClaimguardConfiguration
server:
  tls: {certFile: $plane/secrets/tls.crt, keyFile: $plane/secrets/tls.key, clientCAFile: $plane/secrets/ca.crt}
END
    claimguard_start renewed --config "$plane/renewed.yaml"
    await 20 "it is ready" is_ready renewed
    plane_kill "$plane" second-scheduler
    without_restrictions "$root/manifests/tls/second-scheduler.yaml" | sed "s#/etc/kubernetes/claimguard#$plane/secrets#" >"$plane/tls.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/tls.yaml" "$(url_of renewed address | sed s/http:/https:/)"
    claim first
    pod first first
    scheduled first
    # the scheduler is not restarted
    in_the_cluster "kept renewed renewed kept" --renew-before 8760h
    secrets_to_files
    await 5 "the new certificate is taken" grep -q 'certificate reloaded' "$plane/renewed.log"
    claim second
    pod second second
    scheduled second
    if grep -q "a client's certificate is refused" "$plane/renewed.log"; then fail "the scheduler was refused"; fi
    if grep -rqE 'PRIVATE KEY|LS0tLS1CRUdJTiBQUklW' "$plane"/*.log; then fail "a key is in a log"; fi

    plane_kill "$plane" renewed
    k delete validatingwebhookconfiguration claimguard >/dev/null
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client >/dev/null
    stop_schedulers
    start_schedulers
}

# While the API server calls the webhooks, which say Fail.
a_wrong_ca_bundle_stops_reviews_until_the_command_is_called_again() {
    local refused held="claim $namespace/data is in use by pod $namespace/first on node-1"
    scheduler=nobody
    stop_schedulers
    admission_on
    admission_apply Fail
    certificates_user
    claim data
    for pod in first second; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    refuses_binding "$held" pods/second/binding second node-2
    refused=$(metric claimguard_tls_handshakes_refused_total)
    k patch validatingwebhookconfiguration claimguard --type=json -p "$(jq -n --arg other "$(base64 -w0 "$plane/certs/apiserver.crt")" \
        '[range(5) | {op: "replace", path: "/webhooks/\(.)/clientConfig/caBundle", value: $other}]')" >/dev/null
    await 20 "no review arrives" refuses_binding 'x509: certificate signed by unknown authority' pods/second/binding second node-2
    await 5 "claimguard counts it" handshakes_refused_exceed "$refused"
    in_the_cluster "kept kept kept updated" --dry-run
    refuses_binding x509 pods/second/binding second node-2
    in_the_cluster "kept renewed renewed updated" --renew-before 8760h
    secrets_to_files
    await 5 "the new certificate is taken" grep -q 'certificate reloaded' "$plane/claimguard.log"
    await 20 "reviews arrive" refuses_binding "$held" pods/second/binding second node-2
    in_the_cluster "kept kept kept kept"
}
handshakes_refused_exceed() { [ "$(metric claimguard_tls_handshakes_refused_total)" -gt "$1" ]; }

# The same webhooks, and claimguard keeps its certificates itself: the API server reaches it all the time.
claimguard_makes_deleted_certificates_again_and_misses_no_review() {
    local old give_up held="claim $namespace/data is in use by pod $namespace/first on node-1"
    scheduler=nobody
    stop_schedulers
    admission_apply Secrets Fail
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client >/dev/null
    claimguard_restart claimguard --config "$plane/admission"
    await 30 "claimguard is ready" is_ready claimguard
    await 20 "Bindings are reviewed" is_reviewing
    claim data
    for pod in first second; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    old=$(ca_of_secret)
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client >/dev/null
    give_up=$((SECONDS + 60))
    until [ "$(grep -c 'certificate reloaded' "$plane/claimguard.log")" = 2 ]; do
        refuses_binding "$held" pods/second/binding second node-2
        [ "$SECONDS" -lt "$give_up" ] || fail "no new certificate is shown"
        sleep 0.5
    done
    [ "$(ca_of_secret)" != "$old" ]
    for _ in 1 2 3 4 5; do refuses_binding "$held" pods/second/binding second node-2; done
    # and after a restart, with what is there
    claimguard_restart claimguard --config "$plane/admission"
    await 30 "claimguard is ready" is_ready claimguard
    await 10 "Bindings are reviewed" refuses_binding "$held" pods/second/binding second node-2
    # its right to create Secrets is for these three
    k -n claimguard create secret generic other --as system:serviceaccount:claimguard:claimguard >/dev/null 2>"$plane/refused" &&
        fail "it may create another Secret"
    grep -q 'claimguard may create only the Secrets of its certificates' "$plane/refused"
    # and what it may change of the webhooks is their caBundle
    k patch validatingwebhookconfiguration claimguard --as system:serviceaccount:claimguard:claimguard --type json \
        -p '[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]' >/dev/null 2>"$plane/refused" &&
        fail "it may change a failurePolicy"
    grep -q 'claimguard may change only the caBundle of its webhooks' "$plane/refused"
}
