# shellcheck shell=bash
# The variants of manifests/, on the nodes. To be sourced.

# first_then_second: a pod has the claim; another one waits with its name, and runs when it is gone.
first_then_second() {
    wanted data
    runs first data 'echo first >>/data/log' "$(on_node 1)"
    is_up first
    runs second data 'echo second >>/data/log' "$(on_node 2)"
    rejected second "claim $namespace/data is in use by pod $namespace/first on node-1"
    end_pod first
    is_up second
    contains second 'first second'
}

# As the chart's README.md says.
by_helm_install_its_own_image_is_ready_and_doctor_finds_nothing() {
    claimguard_gone
    manifests_with # for the scheduler's file
    trap helm_ends EXIT
    with_helm install claimguard "$root/manifests/chart" --create-namespace --set image.repository=docker.io/library/claimguard >/dev/null
    lock_is_agreed
    k -n claimguard rollout status deployment/claimguard --timeout 120s
    client_files
    scheduler_start tls/second-scheduler.yaml
    is_ready_and_doctor_finds_nothing
    helm_test_has Succeeded
    first_then_second
    k -n claimguard scale deployment/claimguard --replicas 0 >/dev/null
    k -n claimguard wait --for=delete pod -l app.kubernetes.io/name=claimguard --timeout 90s >/dev/null # until then they answer
    helm_test_has Failed
}
# The pod of `helm test`, with the Service's address in its /etc/hosts, since these nodes have no DNS.
helm_test_has() { # PHASE
    k -n claimguard delete pod claimguard-test --ignore-not-found >/dev/null
    with_helm get hooks claimguard | gojq --yaml-input -s . | jq --arg address "$(k -n claimguard get service claimguard -o 'jsonpath={.spec.clusterIP}')" \
        '{apiVersion: "v1", kind: "List", items: map(if .kind == "Pod" then
            .spec.hostAliases = [{ip: $address, hostnames: ["claimguard.claimguard.svc"]}] else . end)}' | k apply -f - >/dev/null
    await 60 "the pod of helm test has $1" helm_test_is "$1" || { k -n claimguard logs claimguard-test && return 1; }
}
helm_test_is() { [ "$(k -n claimguard get pod claimguard-test -o 'jsonpath={.status.phase}')" = "$1" ]; }
helm_ends() {
    plane_kill "$plane" second-scheduler
    with_helm uninstall claimguard >/dev/null
    k delete namespace claimguard >/dev/null
}

# Through the Service, while one of the two ends.
a_replica_on_each_node_answers_and_one_may_die() {
    claimguard_with
    doctor_finds_nothing
    [ "$(replicas_nodes)" = 'node-1 node-2' ] || fail "replicas on $(replicas_nodes)"
    wanted data
    runs first data 'echo first >>/data/log' "$(on_node 1)"
    is_up first
    k -n claimguard delete "$(k -n claimguard get pods -o name | head -1)" --force --grace-period=0 >/dev/null 2>&1
    runs second data 'echo second >>/data/log' "$(on_node 2)"
    rejected second "claim $namespace/data is in use by pod $namespace/first on node-1"
    k -n "$namespace" get pvc data -o json | jq -r '.metadata.annotations["claimguard.io/holder"]' | has /first
    end_pod first
    is_up second
    contains second 'first second'
    k -n claimguard rollout status deployment/claimguard --timeout 60s >/dev/null
}
replicas_nodes() { k -n claimguard get pods -o json | jq -r '[.items[].spec.nodeName] | sort | join(" ")'; }

a_pod_that_names_its_node_is_refused_a_held_claim() {
    claimguard_with
    doctor_finds_nothing
    wanted data
    runs first data 'echo first >>/data/log' "$(on_node 1)"
    is_up first
    await 60 "a pod that names its node is refused" is_refused second data "claim $namespace/data is in use by pod $namespace/first on node-1"
    end_pod first
    await 60 "it may be created" runs second data 'echo second >>/data/log' 'nodeName: node-2'
    is_up second
    contains second 'first second'
}
is_refused() { # POD CLAIM TEXT
    local answer
    answer=$(pod_yaml "$1" "$2" 'nodeName: node-2' | k create --dry-run=server -f - 2>&1) && return 1
    grep -qF "$3" <<<"$answer"
}

with_marks_a_pod_without_claims_costs_no_call() {
    local calls
    claimguard_with profiles/default-scheduler
    sed -i 's/# managedResources/managedResources/' "$nodes/manifests/tls/second-scheduler.yaml"
    scheduler_start tls/second-scheduler.yaml
    doctor_finds_nothing
    calls=$(calls_of_filter)
    runs plain '' 'true'
    is_up plain
    [ "$(calls_of_filter)" = "$calls" ] || fail "calls: $calls, then $(calls_of_filter)"
    first_then_second
    [ "$(calls_of_filter)" -gt "$calls" ]
}
# Of the pods' own ports, through the API server.
calls_of_filter() {
    local pod
    for pod in $(k -n claimguard get pods -o 'jsonpath={.items[*].metadata.name}'); do
        k get --raw "/api/v1/namespaces/claimguard/pods/$pod:8889/proxy/metrics"
    done |
        awk '/^claimguard_extender_requests_total\{.*verb="filter"/ { sum += $NF } END { print sum + 0 }'
}

# Beside the scheduler, on node-1. As README.md says, but with a token for kubeadm's certificate.
as_a_static_pod_it_is_there_without_a_scheduler() {
    claimguard_gone
    manifests_with failure-policy-ignore static-pod
    k apply -k "$nodes/manifests" >/dev/null
    lock_is_agreed
    trap static_pod_ends EXIT
    mkdir -p $rights
    cp -r "$root/manifests/static-pod/config" $rights
    "$tools/kubectl" --kubeconfig "$plane/claimguard.kubeconfig" config view --raw --flatten >$rights/kubeconfig
    chown -R 65532 $rights && chmod 600 $rights/kubeconfig
    cp "$root/manifests/static-pod/claimguard.yaml" /etc/kubernetes/manifests/
    await 60 "the static pod is ready" static_pod_is_ready
    scheduler_start scheduler/second-scheduler.yaml http://127.0.0.1:8888
    first_then_second
}
static_pod_is_ready() { k -n kube-system get pod claimguard-node-1 -o json | jq -e 'any(.status.conditions[]; .type == "Ready" and .status == "True")'; }
static_pod_is_gone() { [ -z "$(k -n kube-system get pod claimguard-node-1 --ignore-not-found -o name)" ]; }
static_pod_ends() {
    rm -rf /etc/kubernetes/manifests/claimguard.yaml
    await 60 "the static pod is gone" static_pod_is_gone
    rm -rf $rights
}
