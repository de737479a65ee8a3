# shellcheck shell=bash
# The default install, by README.md's own lines, on a real API server; the profile observe; and a cluster that starts from nothing. To be sourced.

# installed [COMPONENT]...: README.md's lines, but those of the image.
installed() {
    local line
    line=$(grep -xF '    kubectl apply -k manifests' "$root/README.md") || fail "README.md has another line"
    nothing_is_installed
    built "$@"
    paste_in "cd '$plane' && $line"
    deployment_is_played "$@"
}
nothing_is_installed() {
    stop_schedulers
    plane_kill "$plane" claimguard KILL
    k -n claimguard delete secret claimguard-ca claimguard-tls claimguard-client --ignore-not-found >/dev/null
    k delete validatingwebhookconfiguration claimguard --ignore-not-found >/dev/null
    k -n claimguard delete deployments --all >/dev/null # another one's pods would stay beside: no kubelet makes the new ones ready
    k -n claimguard delete pods --all --grace-period=0 --force >/dev/null 2>&1
    await 30 "the former pods are gone" pods_are claimguard 0
}
# claimguard runs as the Deployment's pods would, with the ConfigMap and the service account that are in the cluster. No Service is there, so the
# webhooks call its port here. That replicas have agreed on the lock, which takes 90 seconds, is written down.
deployment_is_played() { # [COMPONENT]...
    k -n claimguard patch configmap claimguard-agreement --type merge -p '{"data": {"claimLock.Local": null, "claimLock.Annotation": "in force"}}' >/dev/null
    k -n claimguard get configmap claimguard -o json | config_files "$plane/installed"
    sed -i "s#\":8443\"#127.0.0.1:$(admission_port)#" "$plane/installed/claimguard.yaml"
    k get validatingwebhookconfiguration claimguard -o json | jq --arg url "https://127.0.0.1:$(admission_port)" \
        '.webhooks[].clientConfig |= {url: ($url + .service.path)}' | k replace -f - >/dev/null
    case " $* " in *observe*) installed_runs 'claimguard would deny this: pods "nobody" not found' ;; *) installed_runs ;; esac
}
installed_runs() { # [TEXT]
    claimguard_start claimguard --config "$plane/installed" --kubeconfig "$plane/claimguard.kubeconfig"
    await 30 "claimguard is ready" is_ready claimguard
    await 30 "Bindings are reviewed" refuses_binding "${1:-denied the request: pods \"nobody\" not found}" 'pods/nobody/binding?dryRun=All' nobody node-1
}

# Without a certificate, a Secret or a namespace that somebody made before.
the_default_install_leaves_each_claim_one_pod_of_two_that_a_client_binds() {
    local pairs=50
    scheduler=nobody
    installed
    pairs_create $pairs
    pairs_race $pairs
    k -n "$namespace" get pods -o json | jq -rc --arg ns "$namespace" '.items[].metadata |
        "POST /api/v1/namespaces/\($ns)/pods/\(.name)/binding " +
        ({metadata: {name, uid}, target: {kind: "Node", name: "node-\((.name[-1:] | tonumber) + 1)"}} | tojson)' |
        "$flood" "$plane/admin.kubeconfig" 16
    pairs_end $pairs 60
    no_violations
    refuses_pod "claim $namespace/c-1 is in use by pod $namespace/" third c-1 'nodeName: node-1'
    plane_kill "$plane" claimguard KILL
    refuses_binding 'failed calling webhook "binding.claimguard.io"' pods/nobody/binding nobody node-1
}

with_observe_a_binding_that_would_be_denied_is_applied_and_everybody_is_told() {
    local text="claim $namespace/data is in use by pod $namespace/first on node-1"
    scheduler=nobody
    installed profiles/observe
    claim data
    for pod in first second third; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    post_binding pods/second/binding second node-2 >"$plane/posted" 2>&1
    grep -F "Warning: claimguard would deny this: $text" "$plane/posted" || fail "$(cat "$plane/posted")"
    pod_yaml fourth data 'nodeName: node-2' | k create -f - 2>&1 | has -F 'Warning: claimguard would deny this: '
    [ "$(metric 'reviews_total{path="/admit/pod",result="observed"}')" = 1 ]
    [ "$(metric 'reviews_total{path="/admit/binding",result="denied"}')" = 0 ]
    grep -q 'Binding would be denied' "$plane/claimguard.log"
    await 20 "an Event reports the two pods" has_event ExclusiveClaimViolated "$namespace/data"
    plane_kill "$plane" claimguard KILL
    post_binding pods/third/binding third node-2 >/dev/null # nobody waits for it
}

# A policy stands for the SecurityContextConstraints, which refuse a pod with a user of its own.
with_openshift_no_pod_names_a_user_and_the_old_path_of_bindings_is_closed() {
    scheduler=nobody
    k apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: e2e-users}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations:
  - expression: "!has(object.spec.securityContext) || !has(object.spec.securityContext.runAsUser)"
    message: a user of its own
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: e2e-users}
spec: {policyName: e2e-users, validationActions: [Deny]}
END
    await 30 "the policy is in force" refuses_pod 'a user of its own' other '' 'securityContext: {runAsUser: 65532}'
    installed openshift
    await 60 "the Deployment's pods are created" pods_are claimguard 2
    claim data
    for pod in first second; do pod $pod data; done
    post_binding pods/first/binding first node-1 >/dev/null
    await 30 "the old path is closed" refuses_binding 'claimguard reviews no Binding here' bindings second node-2
    refuses_binding "claim $namespace/data is in use by pod $namespace/first" pods/second/binding second node-2
    k delete validatingadmissionpolicybindings,validatingadmissionpolicies e2e-users claimguard-bindings >/dev/null
}

# The default scheduler calls no extender. Kubelets are played: nodes register as new ones do; the network plugin's pod makes its node ready; a
# pod of claimguard starts claimguard.
a_cluster_whose_nodes_and_claimguards_are_all_gone_starts_again_by_itself() {
    plane_kill "$plane" controllers # before the quota is there: a ReplicaSet whose pods it forbids tries again later and later
    plane_controllers_start "$plane" ,daemonset-controller,pod-garbage-collector-controller
    installed
    plain_schedulers default-scheduler
    claim data
    k apply -f - >/dev/null <<END
{apiVersion: v1, kind: Namespace, metadata: {name: kube-flannel}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel, namespace: kube-flannel}
spec:
  selector: {matchLabels: {app: kube-flannel}}
  template:
    metadata: {labels: {app: kube-flannel}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: c, image: registry.example/app}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: db, namespace: $namespace}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: registry.example/app}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
END
    all_are_bound
    k get nodes -o json | jq '{apiVersion: "v1", kind: "List", items: [.items[] | {apiVersion: "v1", kind: "Node", metadata: {name: .metadata.name, labels: .metadata.labels},
        spec: {taints: [{key: "node.kubernetes.io/not-ready", effect: "NoSchedule"}, {key: "node.kubernetes.io/network-unavailable", effect: "NoSchedule"}]},
        status: {capacity: .status.capacity}}]}' >"$plane/nodes.json"
    for name in claimguard default-scheduler; do plane_kill "$plane" $name KILL; done
    k delete nodes --all >/dev/null
    await 180 "no pod is on a node any more" bound_in_all_are 0
    # all comes back
    k create -f "$plane/nodes.json" >/dev/null
    plain_schedulers default-scheduler
    await 60 "the network plugin's pods are bound" bound_of_are kube-flannel "$(k get nodes -o name | wc -l)"
    bound_of_are claimguard 0 || fail "claimguard is on a node that is not ready"
    k taint nodes --all node.kubernetes.io/not-ready- node.kubernetes.io/network-unavailable- >/dev/null
    await 120 "claimguard's pods are bound again" bound_of_are claimguard 2
    await 30 "the others wait" has_event FailedScheduling 'failed calling webhook "binding.claimguard.io"'
    bound_of_are "$namespace" 0 || fail "nobody was asked"
    installed_runs
    all_are_bound
}
pods_are() { [ "$(k -n "$1" get pods -o name | wc -l)" = "$2" ]; }
bound_of_are() { [ "$(k -n "$1" get pods -o json | jq '[.items[] | select(.spec.nodeName)] | length')" = "$2" ]; }
bound_in_all_are() { bound_of_are kube-flannel "$1" && bound_of_are claimguard "$1" && bound_of_are "$namespace" "$1"; }
all_are_bound() {
    await 60 "the network plugin runs" bound_of_are kube-flannel "$(k get nodes -o name | wc -l)"
    await 120 "claimguard's pods are bound" bound_of_are claimguard 2
    await 90 "the workload is bound" bound_of_are "$namespace" 1
}
