# shellcheck shell=bash
# Admission: Bindings that claimguard does not post, of schedulers without the extender and of other clients. To be sourced.

# ---- the webhooks of manifests/, on this machine: no Service is there, so the API server calls a port of it ----

admission_port() { echo $(($(cat "$plane/port") + 11)); } # with the three behind it

# admission_apply [CHOICE]...: the webhooks, with a caBundle, and in $plane/admission the configuration, both of manifests/. A choice is a
# component, `Fail` (else Ignore), `Annotation` (else Local), or `Secrets` (else certificates are files, of port 8443 alone; with `tls` of both).
admission_apply() {
    local components choice own=''
    components=(failure-policy-ignore)
    for choice; do
        case $choice in
        Fail) components=("${components[@]:1}") ;;
        Annotation | Secrets | tls) own+=" $choice " ;;
        *) components+=("$choice") ;;
        esac
    done
    variant "${components[@]}"
    mkdir -p "$plane/admission"
    [[ $own = *Annotation* || " $* " = *" static-pod "* ]] || sed -i 's/claimLock: Annotation/claimLock: Local/' "$plane/config/claimguard.yaml"
    if [[ $own != *Secrets* && " $* " != *" static-pod "* ]]; then
        cp "$root/manifests/cert-manager/config.yaml" "$plane/config/certificates.yaml"
        [[ $own = *tls* ]] || sed -i '/^server:/,/clientCAFile/d' "$plane/config/certificates.yaml"
    fi
    sed -i "s#/etc/claimguard-tls#$plane/secrets#; s#/etc/kubernetes/claimguard/tls#$plane/secrets#
        s#\":8443\"#127.0.0.1:$(admission_port)#; s#127.0.0.1:8443#127.0.0.1:$(admission_port)#" "$plane/config"/*.yaml
    rm -f "$plane"/admission/*
    mv "$plane"/config/*.yaml "$plane/admission"
    jq --arg url "https://127.0.0.1:$(admission_port)" '.items[] | select(.kind == "ValidatingWebhookConfiguration") |
        {apiVersion, kind, metadata: {name: .metadata.name},
        webhooks: [.webhooks[] | .clientConfig |= {url: ($url + (.service.path // (.url | sub("https://[^/]*"; ""))))}]}' "$plane/rendered.json" |
        k apply -f - >/dev/null
    "$claimguard" certificates --kubeconfig "$plane/admin.kubeconfig" >/dev/null
    secrets_to_files
}

# With Ignore and Local, and claimguard runs with that configuration.
admission_on() {
    admission_apply
    plane_kill "$plane" service KILL
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    await 20 "Bindings are reviewed" is_reviewing
}
is_reviewing() { refuses_binding 'denied the request: pods "nobody" not found' 'bindings?dryRun=All' nobody node-1; }

# After the scenarios of this file, whatever has become of them.
without_admission_again() {
    local name
    k delete validatingwebhookconfiguration claimguard claimguard-late --ignore-not-found >/dev/null
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client --ignore-not-found >/dev/null
    plane_kill "$plane" service KILL
    plane_kill "$plane" silence KILL
    for name in one two; do
        [ ! -e "$plane/$name.pid" ] || kill -CONT "$(cat "$plane/$name.pid")" || true
        plane_kill "$plane" "$name"
    done
    claimguard_restart claimguard
    await 20 "claimguard is ready" is_ready claimguard
    stop_schedulers
    start_schedulers
}

# post_binding PATH POD NODE [UID]: as an operator, in the namespace of the scenario; with the pod's UID, if there is such a pod.
post_binding() {
    local uid
    uid=${4-$(uid_of "$2")}
    k create --raw "/api/v1/namespaces/$namespace/$1" -f - <<END
{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "$2", "uid": "$uid"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "$3"}}
END
}
uid_of() { k -n "$namespace" get pod "$1" --ignore-not-found -o 'jsonpath={.metadata.uid}'; }
refuses_binding() { # TEXT PATH POD NODE [UID]
    if post_binding "${@:2}" >"$plane/posted" 2>&1; then fail "not refused: ${*:2}" || return 1; fi
    grep -qF -- "$1" "$plane/posted" || fail "${*:2}: $(cat "$plane/posted")"
}

# plain_schedulers [FILE]...: files of manifests/scheduler, without claimguard.
plain_schedulers() {
    local name
    for name in "$@"; do
        plane_kill "$plane" "$name"
        sed '/^extenders:/,$d' "$root/manifests/scheduler/$name.yaml" >"$plane/plain-$name.yaml"
        plane_scheduler_start "$plane" "$name" "$plane/plain-$name.yaml" none
    done
}

# ---- races ----

admission_pairs=$((2 * ${CLAIMGUARD_E2E_PAIRS:-50}))

# open_race COUNT RACE: for comparison, without the webhook: some claims have two pods. A busy machine may let the schedulers take turns,
# so there are three tries.
open_race() {
    local first=$namespace outcome try
    for try in 1 2 3; do
        namespace=$first-open-$try
        k create namespace "$namespace" >/dev/null
        pairs_create "$1"
        "$2" "$1"
        await 400 "each pod is bound or rejected" are_decided $((2 * $1))
        outcome=$(pairs_outcome)
        echo "without admission, claims by the number of their pods: $outcome"
        k delete namespace "$namespace" --wait=false >/dev/null
        [[ " $outcome" != *" 2:"* ]] || break
    done
    [[ " $outcome" == *" 2:"* ]] || fail "no claim has two pods"
    await 60 "no claim has two pods any more" no_violations
    namespace=$first
}
race_without_admission() { open_race "$admission_pairs" pairs_race; }
are_decided() {
    [ "$(of_namespace pods | jq '[.items[] | select(.spec.nodeName or
        any(.status.conditions[]?; .type == "PodScheduled" and .status == "False"))] | length')" = "$1" ]
}
no_violations() { [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]; }

race_with_admission() {
    local started
    pairs_create "$admission_pairs"
    pairs_race "$admission_pairs"
    pairs_end "$admission_pairs" 400
    no_violations
    echo "reviews: $(metric 'reviews_total{path="/admit/binding",result="allowed"}') allowed," \
        "$(metric 'reviews_total{path="/admit/binding",result="denied"}') denied"
    [ "$(metric 'reviews_total{path="/admit/binding",result="failed"}')" = 0 ]
    started=$(date +%s%N)
    pairs_second_round "$admission_pairs"
    echo "the second pods were all bound $((($(date +%s%N) - started) / 1000000)) ms after the first were deleted"
}

two_schedulers_without_extender_race_and_admission_leaves_each_claim_one_pod() {
    plain_schedulers default-scheduler second-scheduler
    race_without_admission
    admission_on
    race_with_admission
}

# What claimguard watches is half a second late: of the other scheduler's Bindings it hears in time only by their reviews.
a_scheduler_with_the_extender_and_one_without_race_and_no_claim_has_two_pods() {
    start_fault_proxy
    echo "delay 500" >"$plane/orders"
    claimguard_restart claimguard --kubeconfig "$plane/faulty.kubeconfig"
    await 20 "claimguard is ready" is_ready claimguard
    stop_schedulers
    start_schedulers
    plain_schedulers default-scheduler
    race_without_admission
    admission_on
    claimguard_restart claimguard --config "$plane/admission" --kubeconfig "$plane/faulty.kubeconfig"
    await 20 "claimguard is ready" is_ready claimguard
    race_with_admission
    stop_delayed
}

# ---- a Service with two claimguards, played by the fault proxy ----

# admission_replicas [CHOICE]...: `one` and `two` run with these choices, behind the port that the API server calls.
admission_replicas() {
    local name port
    port=$(admission_port)
    plane_kill "$plane" service KILL
    claimguard_restart claimguard # which leaves the port
    admission_apply "$@"
    for name in one two; do
        plane_kill "$plane" "$name"
        port=$((port + 1))
        rm -rf "$plane/config-$name"
        cp -r "$plane/admission" "$plane/config-$name"
        sed -i "s/127.0.0.1:$(admission_port)/127.0.0.1:$port/" "$plane/config-$name/claimguard.yaml"
        claimguard_start "$name" --config "$plane/config-$name"
        await 20 "$name is ready" is_ready "$name"
    done
    service_start
}
service_start() {
    rm -f "$plane/service"
    mkfifo "$plane/service"
    plane_run "$plane" service "$fault_proxy" "$(admission_port)" $(($(admission_port) + 1)) "${1:-1}" <>"$plane/service"
    await 20 "Bindings are reviewed" is_reviewing
}
service_obeys() { echo "$1" >"$plane/service"; }

# replica_killed NAME PORT-OF-THE-OTHER: the Service notices a moment later.
replica_killed() {
    plane_kill "$plane" "$1" KILL
    sleep 0.3
    service_obeys "upstream $2"
    claimguard_restart "$1" --config "$plane/config-$1"
    await 20 "$1 is ready" is_ready "$1"
}

two_claimguards_are_killed_in_turn_and_admission_leaves_each_claim_one_pod() {
    local port race
    port=$(admission_port)
    admission_replicas Annotation Fail
    stop_schedulers
    plain_schedulers default-scheduler
    plane_scheduler_start "$plane" second-scheduler "$root/manifests/scheduler/second-scheduler.yaml" "$(url_of two address)"
    pairs_create "$admission_pairs"
    pairs_race "$admission_pairs" &
    race=$!
    for _ in 1 2 3; do
        replica_killed one $((port + 2))
        replica_killed two $((port + 1))
    done
    wait $race
    pairs_end "$admission_pairs" 400
    [ "$(k -n "$namespace" get pvc -o json | jq '[.items[] | select(.metadata.annotations["claimguard.io/holder"])] | length')" = "$admission_pairs" ]
    pairs_second_round "$admission_pairs"
    # without the webhook, the scheduler without the extender takes what is in use
    k delete validatingwebhookconfiguration claimguard >/dev/null
    without_restrictions "$root/manifests/scheduler/default-scheduler.yaml" | sed '/^extenders:/,$d' >"$plane/blind.yaml"
    plane_kill "$plane" default-scheduler
    plane_scheduler_start "$plane" default-scheduler "$plane/blind.yaml" none
    scheduler=default-scheduler
    pod third c-1
    scheduled third
    await 10 "it is reported" more_violations_than 0 two
    delete_pod third
    await 20 "no claim has two pods" no_violations
}

# ---- Bindings of other clients ----

a_client_that_posts_to_the_old_path_gets_no_claim_that_another_pod_has() {
    local pairs=100
    stop_schedulers # the client binds
    admission_on
    pairs_create "$pairs"
    pairs_race "$pairs"
    # who comes first has the claim; a dry run takes nothing
    for path in pods/p-1-0/binding bindings; do post_binding "$path?dryRun=All" p-1-0 node-1 >/dev/null; done
    no_reservations || fail "a dry run has reserved a claim"
    # the API server drops the UID of what comes on the old path
    refuses_binding 'it might bind a later pod of that name' bindings p-1-1 node-2
    post_binding pods/p-1-1/binding p-1-1 node-2 >/dev/null
    for path in pods/p-1-0/binding "bindings?dryRun=All"; do
        refuses_binding "claim $namespace/c-1 is in use by pod $namespace/p-1-1 on node-2" "$path" p-1-0 node-1
    done
    # both at the same moment
    k -n "$namespace" get pods -o json | jq -rc --arg ns "$namespace" '.items[].metadata | select(.name | startswith("p-1-") | not) |
        "POST /api/v1/namespaces/\($ns)/" + ("pods/\(.name)/binding ", "bindings ") +
        ({metadata: {name, uid}, target: {kind: "Node", name: "node-\((.name[-1:] | tonumber) + 1)"}} | tojson)' |
        "$flood" "$plane/admin.kubeconfig" 16
    pairs_end "$pairs" 60
    no_violations
}

# One scheduler checks claims itself, and comes to the Binding only in a race. The other does not: each of its tries is denied.
a_denied_pod_s_event_names_the_holder_and_it_is_bound_soon_after_the_holder_goes() {
    local i denied waiting=10
    stop_schedulers
    admission_on
    without_restrictions "$root/manifests/scheduler/second-scheduler.yaml" | sed '/^extenders:/,$d' >"$plane/blind.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/blind.yaml" none
    scheduler='claimguard-scheduler'
    for i in $(seq $waiting); do claim_yaml "c-$i" && pod_yaml "first-$i" "c-$i"; done | k apply -f - >/dev/null
    await 60 "the first ones are scheduled" are_bound $waiting
    for i in $(seq $waiting); do pod_yaml "second-$i" "c-$i"; done | k apply -f - >/dev/null
    for i in $(seq $waiting); do
        rejected "second-$i" "claim $namespace/c-$i is in use by pod $namespace/first-$i on $(node_of "first-$i")"
        await 10 "an event says so" has_event FailedScheduling "claim $namespace/c-$i is in use by pod $namespace/first-$i"
    done
    sleep 20 # the scheduler waits ever longer between its tries, at last for ten seconds
    for i in $(seq $waiting); do delete_pod "first-$i"; done
    sleep 1 # a review that began before may end
    denied=$(grep -c 'Binding denied' "$plane/claimguard.log")
    await 60 "the second ones are scheduled" are_bound $waiting
    [ "$(grep -c 'Binding denied' "$plane/claimguard.log")" = "$denied" ] || fail "a pod was denied when its holder had gone"
}

a_pod_of_a_scheduler_without_extender_carries_its_decision_when_it_is_bound() {
    local pods=100
    stop_schedulers
    admission_on
    admission_apply Fail # else a review that takes too long lets the Binding pass
    plain_schedulers second-scheduler
    sed 's/apply: Auto/apply: Annotation/' "$e2e/deferral.yaml" >"$plane/admission/deferral.yaml"
    kill -HUP "$(cat "$plane/claimguard.pid")"
    await 10 "the configuration is reloaded" reloads_exceed 0
    decisions_appear_with "$pods"
}

# ---- without an answer ----

with_ignore_a_binding_passes_without_claimguard_and_with_fail_it_waits() {
    local what='failed calling webhook "binding.claimguard.io"'
    scheduler=nobody
    stop_schedulers
    admission_on
    claim data
    for pod in first second third; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    plane_kill "$plane" claimguard KILL
    post_binding bindings second node-2 >/dev/null # two pods: nobody was asked
    admission_apply Fail
    await 20 "it is refused" refuses_binding "$what" bindings third node-2
    refuses_binding "$what" pods/third/binding third node-2
    # the cluster can heal
    for namespace in kube-system claimguard; do refuses_binding 'pods "nobody" not found' pods/nobody/binding nobody node-1; done
    namespace=e2e-$number
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    await 20 "it says so" refuses_binding "claim $namespace/data is in use by pod $namespace/" pods/third/binding third node-2
    await 10 "the two pods are reported" more_violations_than 0
    delete_pod second
    await 10 "the gauge forgets it" no_violations
}

# ---- runs with faults ----

# late_bindings SECONDS: a second webhook, which never answers, so that the API server applies each Binding so long after its review.
late_bindings() {
    local port
    port=$(($(admission_port) + 3))
    plane_kill "$plane" silence KILL
    [ -e "$plane/silence" ] || mkfifo "$plane/silence"
    plane_run "$plane" silence "$fault_proxy" "$port" 1 1 <>"$plane/silence"
    await 10 "it listens" listens "$port"
    kill -STOP "$(cat "$plane/silence.pid")"
    k apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: claimguard-late}
webhooks:
- name: late.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:$port/"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/binding, bindings]}]
  failurePolicy: Ignore
  timeoutSeconds: $1
  sideEffects: None
  admissionReviewVersions: [v1]
END
}

admission_fault() { # KIND: for some seconds
    local port
    port=$(admission_port)
    case $1 in
    cut) for _ in $(seq 20); do service_obeys cut && sleep 0.1; done ;;
    stall) for _ in $(seq 4); do service_obeys stall && sleep 0.5; done ;; # their reviews time out
    noise) # of the API server's bytes, some are answered with others, or with none, or late; and answers end early
        service_obeys "faults 50"
        sleep 4
        service_obeys "faults 0"
        ;;
    restart)
        replica_killed one $((port + 2))
        replica_killed two $((port + 1))
        ;;
    late) ;; # before the race
    esac
}

admission_run() { # SEED FAULT...: they overlap a race
    local seed=$1 pairs=40 fault race started failures
    shift
    namespace=e2e-$number-$seed
    k create namespace "$namespace" >/dev/null
    pairs_create "$pairs"
    plane_kill "$plane" service KILL
    service_start "$seed"
    [[ " $* " != *' late '* ]] || late_bindings 3
    failures=$(failed_reviews)
    started=$(date +%s)
    pairs_race "$pairs" &
    race=$!
    sleep "0.$((seed % 8))"
    for fault in "$@"; do admission_fault "$fault"; done
    wait $race
    pairs_end "$pairs" 400 >/dev/null || fail "seed $seed, $*: $(pairs_outcome)" || return 1
    failures=$(($(failed_reviews) - failures))
    echo "seed $seed, $*: $(pairs_outcome) after $(($(date +%s) - started)) s; $failures reviews failed"
    k delete validatingwebhookconfiguration claimguard-late --ignore-not-found >/dev/null
    k delete namespace "$namespace" --wait=false >/dev/null
}
failed_reviews() { grep -c 'ailed calling webhook.*binding.claimguard.io' "$plane/apiserver.log" || true; }

admission_runs_with_faults_leave_each_claim_one_pod() {
    local faults=(late cut stall noise restart 'late cut' 'late stall' 'late noise' 'late restart') seed before
    admission_replicas Annotation Fail
    before=$(failed_reviews)
    plain_schedulers default-scheduler second-scheduler
    # Those with two faults at once; nightly has all, and `./dev proof` others.
    for seed in $(seq "${CLAIMGUARD_E2E_SEED:-5}" $((${CLAIMGUARD_E2E_SEED:-5} + ${CLAIMGUARD_E2E_ADMISSION_RUNS:-2} - 1))); do
        # shellcheck disable=SC2086 # words
        admission_run "$seed" ${faults[seed % ${#faults[@]}]}
    done
    # Which reviews a fault hits is chance; that it hits some is not.
    [ "$(failed_reviews)" -gt "$before" ] || fail "no review has failed"
}
