# shellcheck shell=bash
# Combinations of scheduler, extender, admission and lock: the rows of docs/guarantees.md that no other file has. To be sourced.

# ---- schedulers with the extender, while the API server calls the webhooks ----

configuration_of() { if [ "$1" = claimguard ]; then echo "$plane/admission"; else echo "$plane/config-$1"; fi; }

# raced CLAIMGUARD...: two races, in the second of which these are killed, twice each. No Binding is reviewed.
raced() {
    local pairs=25 first=$namespace how name race
    for how in calm killed; do
        namespace=$first-$1-$how
        k create namespace "$namespace" >/dev/null
        pairs_create "$pairs"
        pairs_race "$pairs" &
        race=$!
        [ $how = calm ] || killed_and_restarted "$@" "$@"
        wait $race
        pairs_end "$pairs" 400
        for name in "$@"; do
            [ "$(metric 'path="/admit/binding",result="allowed"' "$name")" = 0 ] || fail "what claimguard binds is reviewed"
        done
        k delete namespace "$namespace" --wait=false >/dev/null
    done
    namespace=$first
}
killed_and_restarted() {
    local name
    for name in "$@"; do
        sleep 0.5
        claimguard_restart "$name" --config "$(configuration_of "$name")"
    done
}

with_admission_schedulers_with_the_extender_race_and_no_claim_has_two_pods() {
    admission_on
    stop_schedulers
    start_schedulers
    with_scheduler claimguard-scheduler kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_a_different_node
    raced claimguard
    admission_replicas Annotation Fail
    stop_schedulers
    plane_scheduler_start "$plane" default-scheduler "$root/manifests/scheduler/default-scheduler.yaml" "$(url_of one address)"
    plane_scheduler_start "$plane" second-scheduler "$root/manifests/scheduler/second-scheduler.yaml" "$(url_of two address)"
    raced one two
}

with_admission_a_rolling_update_of_two_replicas_leaves_a_claim_one_pod() {
    admission_replicas Annotation Fail
    rolled_over one two service_obeys "upstream $(($(admission_port) + 2))"
}

# ---- schedulers that do not call claimguard for each pod ----

unmarked_pods_are_stopped_by_admission_and_marked_ones_by_the_extender() {
    local calls reviews
    trap drop_marks EXIT
    scheduler='claimguard-scheduler'
    admission_on
    scheduler_with_marks
    calls=$(metric claimguard_extender_requests_total)
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    rejected db-1 "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
    [ "$(metric claimguard_extender_requests_total)" = "$calls" ]
    # they are bound where nobody reviews the Binding
    k delete validatingwebhookconfiguration claimguard >/dev/null
    scheduled db-1
    await 10 "it is reported" more_violations_than 0
    k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
    admission_on
    apply_marks
    reviews=$(metric 'reviews_total{path="/admit/binding",result="allowed"}')
    pod marked-0 data
    scheduled marked-0
    pod marked-1 data
    rejected marked-1 "claim $namespace/data is in use by pod $namespace/marked-0 on $(node_of marked-0)"
    delete_pod marked-0
    scheduled marked-1
    [ "$(metric 'reviews_total{path="/admit/binding",result="allowed"}')" = "$reviews" ]
}

with_fail_a_claim_in_kube_system_has_one_pod_while_claimguard_answers() {
    local own=$namespace pod
    trap 'k -n kube-system delete pod/first pod/second pod/third pod/fourth pvc/data --grace-period=0 --force --ignore-not-found >/dev/null 2>&1' EXIT
    scheduler=nobody
    stop_schedulers
    admission_on
    admission_apply Fail
    for namespace in claimguard kube-system; do
        await 20 "Bindings are reviewed" refuses_binding '"binding-ignore.claimguard.io" denied the request: pods "nobody" not found' 'bindings?dryRun=All' nobody node-1
    done
    claim data
    for pod in first second; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    for path in pods/second/binding "bindings?dryRun=All"; do
        refuses_binding "claim kube-system/data is in use by pod kube-system/first on node-1" "$path" second node-2
    done
    refuses_pod "claim kube-system/data is in use by pod kube-system/first on node-1" third data 'nodeName: node-2'
    no_violations
    # and no longer than that
    plane_kill "$plane" claimguard KILL
    post_binding pods/second/binding second node-2 >/dev/null
    pod_yaml fourth data 'nodeName: node-2' | k create -f - >/dev/null
    namespace=$own
    await 20 "elsewhere it waits" refuses_binding 'failed calling webhook "binding.claimguard.io"' pods/nobody/binding nobody node-1
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    await 10 "the pods are reported" more_violations_than 0
}

an_ignorable_extender_is_passed_by_without_claimguard_unless_admission_fails() {
    scheduler='claimguard-scheduler'
    admission_on
    stop_schedulers
    without_restrictions "$root/manifests/scheduler/second-scheduler.yaml" | sed 's/ignorable: false/ignorable: true/' >"$plane/ignorable.yaml"
    grep -q 'ignorable: true' "$plane/ignorable.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/ignorable.yaml" "$(url_of claimguard address)"
    claim data
    pod first data
    scheduled first
    pod second data
    rejected second "claim $namespace/data is in use by pod $namespace/first on $(node_of first)"
    delete_pod second
    plane_kill "$plane" claimguard KILL
    pod third data
    scheduled third # two pods: nobody was asked
    delete_pod third
    admission_apply Fail
    await 20 "Bindings are refused" refuses_binding 'failed calling webhook "binding.claimguard.io"' bindings fourth node-2
    pod fourth data
    rejected fourth 'failed calling webhook "binding.claimguard.io"'
    claimguard_restart claimguard --config "$plane/admission"
    await 20 "claimguard is ready" is_ready claimguard
    await 20 "the extender rejects it" says fourth "claim $namespace/data is in use by pod $namespace/first on $(node_of first)"
    no_violations
}

# ---- what the API server was asked for, and does later ----

# A webhook that the API server waits for before it binds or creates a pod `first`: half a minute, until let_go. While nothing listens
# there, it does not wait.
hold_first() {
    let_go # of a scenario before this one
    "$claimguard" certificates -o "$plane/silence-tls" >/dev/null
    k apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: claimguard-late}
webhooks:
- name: held.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:$(($(admission_port) + 3))/hold", caBundle: $(base64 -w0 "$plane/silence-tls/ca.crt")}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods, pods/binding, bindings]}]
  matchConditions: [{name: is-the-first, expression: request.name == "first"}]
  failurePolicy: Ignore
  timeoutSeconds: 30
  sideEffects: None
  admissionReviewVersions: [v1]
END
    await 20 "it is called" is_called
}
is_called() {
    post_binding 'bindings?dryRun=All' first node-1 || true
    grep -q 'ailed calling webhook.*held.e2e.example.com' "$plane/apiserver.log"
}
hold() {
    let_go
    rm -f "$plane/silence.log"
    plane_run "$plane" silence "$e2e/mutator.py" $(($(admission_port) + 3)) "$plane/silence-tls/tls.crt" "$plane/silence-tls/tls.key"
    await 20 "the API server reaches it" is_reached
}
is_reached() {
    post_binding 'bindings?dryRun=All' first node-1 || true
    grep -q '^asked about first' "$plane/silence.log"
}
is_waited_for() { grep -q '^held first' "$plane/silence.log"; }
let_go() { plane_kill "$plane" silence KILL; }

# ask_WAY CLAIMGUARD POD NODE: by the extender's verb, by the Binding of another client, or by creating it with its node.
ask_bind() {
    k -n "$namespace" get pod "$2" -o json |
        jq --arg node "$3" '{PodName: .metadata.name, PodNamespace: .metadata.namespace, PodUID: .metadata.uid, Node: $node}' |
        curl -s --data @- "$(url_of "$1" address)/bind" | jq -e 'if .Error == "" then true else .Error | halt_error end'
}
ask_review() { post_binding "pods/$2/binding" "$2" "$3"; }
# As a scheduler does: until the API server has it, and waits.
ask_first() { until "ask_$1" one first node-1 || is_waited_for; do sleep 1; done; }
ask_create() { pod_yaml "$2" data "nodeName: $3" | k create -f -; }

# Reviews reach this one.
is_asked() {
    local before
    before=$(metric 'result="denied"' "$1")
    is_reviewing && [ "$(metric 'result="denied"' "$1")" -gt "$before" ]
}
# The reviews whose answer the API server has, and that allowed.
allowed_reviews() {
    k get --raw /metrics | awk '/^apiserver_admission_webhook_request_total.*claimguard.io"/ && /rejected="false"/ { sum += $NF } END { print sum + 0 }'
}
is_allowed() { [ "$(allowed_reviews)" -gt "$1" ]; }

# held LOCK WAY FATE: `one` has let the pod `first` have the claim, and the API server has not done it yet. Then `one` is killed and
# restarted, or stands still, and `two` is there. The pod `second` asks. Adds to $plane/held how many pods have the claim at the end.
held() {
    local lock=$1 way=$2 fate=$3 all=$namespace name asked allowed
    namespace=$all-${lock,,}-$way-$fate
    k create namespace "$namespace" >/dev/null
    claim data
    [ "$way" = create ] || for name in first second; do pod $name data; done
    name=one
    service_obeys "upstream $(($(admission_port) + 1))"
    await 20 "one is asked" is_asked one
    hold
    allowed=$(allowed_reviews)
    ask_first "$way" >"$plane/first" 2>&1 &
    asked=$!
    await 20 "the API server waits" is_waited_for || fail "asked for: $(tail -3 "$plane/first") one: $(tail -5 "$plane/one.log")"
    [ "$way" = bind ] || await 20 "it is allowed" is_allowed "$allowed"
    case $fate in
    killed) claimguard_restart one --config "$plane/config-one" ;;
    still)
        name=two
        kill -STOP "$(cat "$plane/one.pid")"
        service_obeys "upstream $(($(admission_port) + 2))"
        ;;
    esac
    await 20 "$name is ready" is_ready $name
    await 20 "$name is asked" is_asked $name
    # a scheduler would try again
    if [ "$way $lock" = "bind Annotation" ]; then
        await 60 "the second has the claim" "ask_$way" $name second node-2
    elif ! "ask_$way" $name second node-2 >"$plane/second" 2>&1; then
        grep -F "claim $namespace/data is locked for pod $namespace/first" "$plane/second"
    fi
    let_go
    kill -CONT "$(cat "$plane/one.pid")"
    wait $asked || true
    echo "$lock $way $fate $(pairs_outcome)" | tee -a "$plane/held"
    [ "$(pairs_outcome)" = 1:1 ] || await 10 "it is reported" more_violations_than 0
    k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
    await 20 "no claim has two pods any more" no_violations
    k delete namespace "$namespace" --wait=false >/dev/null
    namespace=$all
}
held_end() {
    k delete validatingwebhookconfiguration claimguard-late --ignore-not-found >/dev/null
    let_go
    kill -CONT "$(cat "$plane/one.pid")" || true
}

what_the_api_server_does_late_gives_a_claim_two_pods_with_local_and_one_with_annotation() {
    local case
    trap held_end EXIT
    scheduler=nobody
    stop_schedulers
    : >"$plane/held"
    nothing_is_agreed
    admission_replicas Fail
    hold_first
    for case in "bind killed" "bind still" "review killed" "create still"; do
        # shellcheck disable=SC2086 # words
        held Local $case
    done
    admission_replicas Annotation Fail
    for case in "bind still" "review killed" "create still"; do
        # shellcheck disable=SC2086 # words
        held Annotation $case
    done
    diff - "$plane/held" <<END
Local bind killed 1:1
Local bind still 2:1
Local review killed 2:1
Local create still 2:1
Annotation bind still 1:1
Annotation review killed 1:1
Annotation create still 1:1
END
}
