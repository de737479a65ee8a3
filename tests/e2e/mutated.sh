# shellcheck shell=bash
# What a mutating webhook changes before a review: claims that it adds to pods, UIDs that it takes from Bindings. To be sourced.

# mutated_by PATH RESOURCE: a mutating webhook, which is mutator.py. The API server calls it after its policies.
mutated_by() {
    local port
    port=$(($(admission_port) + 3)) # that of late_bindings, too
    "$claimguard" certificates -o "$plane/mutator-tls" >/dev/null
    plane_kill "$plane" mutator
    plane_kill "$plane" silence KILL
    plane_run "$plane" mutator "$e2e/mutator.py" "$port" "$plane/mutator-tls/tls.crt" "$plane/mutator-tls/tls.key"
    await 10 "it listens" listens "$port"
    k apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutator}
webhooks:
- name: mutator.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:$port/$1", caBundle: $(base64 -w0 "$plane/mutator-tls/ca.crt")}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [$2]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
END
}
not_mutated_again() {
    k delete mutatingwebhookconfiguration mutator --ignore-not-found >/dev/null
    plane_kill "$plane" mutator
}

# adding_race COUNT: as pairs_race, but the pods have no claim until the webhook adds it.
adding_race() {
    seq "$1" | awk -v ns="$namespace" '{
        for (i = 0; i < 2; i++)
            printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d-%d\",\"annotations\":{\"e2e.example.com/claim\":\"c-%d\"}},\"spec\":{\"schedulerName\":\"%s\",\"automountServiceAccountToken\":false,\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}\n", ns, $1, i, $1, ($1 + i) % 2 ? "default-scheduler" : "claimguard-scheduler"
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    [ "$(k -n "$namespace" get pods -o json | jq '[.items[].spec | select(.volumes[0].persistentVolumeClaim) |
        select(tostring | contains("claimguard.io/claims") | not)] | length')" = $((2 * $1)) ] || fail "pods without a claim, or with a mark"
}
is_adding() { pod_yaml try "" | sed 's#^metadata: {#&annotations: {e2e.example.com/claim: none}, #' | k create --dry-run=server -o json -f - | jq -e .spec.volumes; }

claims_that_a_webhook_adds_behind_the_marks_have_one_pod_each_with_admission() {
    local name calls pairs=40
    trap 'not_mutated_again; drop_marks' EXIT
    k delete validatingwebhookconfiguration claimguard --ignore-not-found >/dev/null # of a scenario before this one
    apply_marks
    mutated_by claim pods
    await 20 "it adds claims" is_adding
    stop_schedulers
    for name in default second; do
        sed 's/# managedResources/managedResources/' "$root/manifests/scheduler/$name-scheduler.yaml" >"$plane/marks-$name.yaml"
        plane_scheduler_start "$plane" "$name-scheduler" "$plane/marks-$name.yaml" "$(url_of claimguard address)"
    done
    # why manifests/ and the chart refuse marks without admission
    calls=$(metric claimguard_extender_requests_total)
    open_race "$pairs" adding_race
    [ "$(metric claimguard_extender_requests_total)" = "$calls" ] || fail "claimguard was called"
    admission_on
    pairs_create "$pairs"
    adding_race "$pairs"
    pairs_end "$pairs" 400
    no_violations
    pairs_second_round "$pairs"
}

# Between the review and the Binding, another pod may get the name.
a_binding_without_uid_is_denied_for_each_pod_and_one_with_uid_binds_no_later_pod() {
    local pod path uid allowed posted late='Precondition failed: UID'
    trap 'k delete validatingwebhookconfiguration claimguard-late --ignore-not-found >/dev/null; not_mutated_again' EXIT
    scheduler=nobody
    stop_schedulers
    admission_on
    claim held
    claim shared ReadWriteMany
    for pod in held waits:held shared plain: again: swapped:; do pod "${pod%:*}" "${pod#*:}"; done
    post_binding pods/held/binding held node-1 >/dev/null
    for pod in held waits shared plain nobody; do
        for path in "pods/$pod/binding" bindings; do refuses_binding 'has no UID' "$path" "$pod" node-1 ""; done
    done
    # before the review
    uid=$(uid_of again)
    delete_pod again
    pod again held
    refuses_binding 'has another UID than' pods/again/binding again node-2 "$uid"
    # behind it: the API server compares
    late_bindings 10
    allowed=$(allowed_reviews)
    post_binding pods/swapped/binding swapped node-2 >"$plane/swapped" 2>&1 &
    posted=$!
    await 20 "it is allowed" is_allowed "$allowed"
    delete_pod swapped
    pod swapped held
    if wait $posted || ! grep -qF "$late" "$plane/swapped"; then fail "a later pod: $(cat "$plane/swapped")" || return 1; fi
    k delete validatingwebhookconfiguration claimguard-late >/dev/null
    # with the UID that the client has sent taken away; a review is the last that can change nothing
    mutated_by uid pods/binding
    await 20 "it is taken away" refuses_binding 'has no UID' pods/plain/binding plain node-1
    [ "$(bound_pods)" = 1 ] && no_violations
}
