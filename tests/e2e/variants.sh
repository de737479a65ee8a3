# shellcheck shell=bash
# What is in manifests/: each component, alone and with others; what marks cost and keep; the limits of claimguard's own user. To be
# sourced.

# variant [COMPONENT]...: manifests/ with these components: rendered, taken by the API server ($plane/rendered.json), and the configuration in
# it is good ($plane/config, printed to $plane/config.out).
variant() {
    built "$@"
    k apply --dry-run=server -o json -f "$plane/rendered.yaml" >"$plane/rendered.json"
    jq '.items[] | select(.kind == "ConfigMap" and .metadata.name == "claimguard")' "$plane/rendered.json" | config_files "$plane/config"
    case " $* " in *" static-pod "*) cp "$root/manifests/static-pod/config/claimguard.yaml" "$root/manifests/static-pod/admission.yaml" "$plane/config" ;; esac
    "$claimguard" check-config "$plane/config" >"$plane/config.out"
    doctor_likes_it "$@"
}
built() { # [COMPONENT]...
    rm -rf "$plane/manifests"
    cp -r "$root/manifests" "$plane/manifests"
    sed -i "s#^components:.*#components: [$(tr ' ' , <<<"$*")]#" "$plane/manifests/kustomization.yaml"
    "$tools/kubectl" kustomize "$plane/manifests" >"$plane/rendered.yaml"
}
# config_files FOLDER: those of the ConfigMap on stdin, if there is one.
config_files() {
    local entry
    rm -rf "$1"
    mkdir "$1"
    jq -c '.data | to_entries[]' | while read -r entry; do jq -r .value <<<"$entry" >"$1/$(jq -r .key <<<"$entry")"; done
}
# without_reviews FOLDER: a configuration of manifests/ for the scheduler's port alone, in plain text.
without_reviews() {
    rm "$1/certificates.yaml"
    sed -i '/^admission:/,/listen/d' "$1/claimguard.yaml"
}
# Of webhooks, only that Ignore is not Fail.
doctor_likes_it() { # [COMPONENT]...
    local folder=tls found ignored=''
    [[ " $* " != *" static-pod "* ]] || folder=scheduler
    cp "$root/manifests/$folder/second-scheduler.yaml" "$plane/liked.yaml"
    [ $folder = tls ] || sed -i "s#urlPrefix: .*#urlPrefix: http://127.0.0.1:8888#" "$plane/liked.yaml"
    [[ $* != *marks* && $* != *default-scheduler* ]] || sed -i 's/# managedResources/managedResources/' "$plane/liked.yaml"
    [[ $* != *ignore* && $* != *observe* ]] || ignored=CG704
    found=$({ "$claimguard" doctor --snapshot "$plane/rendered.yaml" --config "$plane/config" --scheduler-config "$plane/liked.yaml" -o json || [ $? = 1 ]; } |
        jq -r '[.findings[].code] | unique | join(" ")')
    [ "$found" = "$ignored" ] || fail "doctor, of manifests/ with $*: $found"
}
rendered() { jq -e "$@" "$plane/rendered.json" >/dev/null || fail "not rendered: $*"; }
configured() { grep -qF -- "$1" "$plane/config.out" || fail "not configured: $1"; }

# The Deployment's pod is one that its namespace, with the restricted Pod Security Standard, takes.
its_pod_is_admitted() {
    jq '.items[] | select(.kind == "Deployment") |
        {apiVersion: "v1", kind: "Pod", metadata: {name: "try", namespace: "claimguard"}, spec: .spec.template.spec}' \
        "$plane/rendered.json" | k create --dry-run=server -f - >/dev/null
}

the_manifests_render_and_the_api_server_takes_them() {
    local components
    variant
    rendered '.items[] | select(.kind == "Deployment").spec | .replicas == 2 and .strategy.rollingUpdate.maxUnavailable == 0 and
        (.template.spec | ([.tolerations[].tolerationSeconds] == [10, 10]) and .securityContext.runAsNonRoot and
        (.topologySpreadConstraints | length == 2) and (.volumes | all(.secret == null)) and
        (.containers[0] | .securityContext.readOnlyRootFilesystem and .lifecycle.preStop.sleep.seconds == 5 and (.volumeMounts | length == 1) and
        any(.ports[]; .name == "admission" and .containerPort == 8443)))'
    rendered '.items[] | select(.kind == "Service").spec | .sessionAffinity == "ClientIP" and ([.ports[].port] | sort == [8443, 8888])'
    rendered '[.items[] | select(.kind == "NetworkPolicy").spec.ingress[].ports[].port] | contains(["admission"])'
    rendered '[.items[].kind] | contains(["NetworkPolicy", "PodDisruptionBudget", "ValidatingAdmissionPolicyBinding"])'
    for what in 'claimLock: Annotation' 'certificates: Secrets' 'listen: ":8443"' 'mode: Enforce'; do configured "$what"; done
    its_webhook_is_rendered Fail
    its_pod_is_admitted
    for components in profiles/scheduler profiles/default-scheduler failure-policy-ignore network-policy "marks profiles/scheduler network-policy"; do
        # shellcheck disable=SC2086 # words
        variant $components
        its_pod_is_admitted
        case $components in *network-policy*)
            rendered '.items[] | select(.kind == "NetworkPolicy").spec.ingress | (.[0].from | length == 1) and length >= 2'
            ;;
        esac
    done
    variant profiles/observe
    its_webhook_is_rendered Ignore
    configured 'mode: Observe'
    variant host-network
    rendered '.items[] | select(.kind == "Namespace").metadata.labels["pod-security.kubernetes.io/enforce"] == "privileged"'
    variant static-pod
    rendered '[.items[].kind] | unique - ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"] == []'
    rendered '.items[] | select(.kind == "ValidatingWebhookConfiguration").webhooks | all(.clientConfig | .url and .service == null)'
    k create --dry-run=server -f "$root/manifests/static-pod/claimguard.yaml" >/dev/null
    configured 'claimLock: Annotation'
    grep -A 4 'listen: "127.0.0.1:8443"' "$plane/config.out" | grep /etc/kubernetes/claimguard/tls/tls.crt >/dev/null
    its_certificates_are_rendered
}

# Of Bindings and of pods with their node, one webhook says POLICY, and the other one, of the namespaces that it leaves out, Ignore.
its_webhook_is_rendered() { # POLICY
    rendered '.items[] | select(.kind == "ValidatingWebhookConfiguration").webhooks |
        (map(select(.namespaceSelector != {}) | [.name, .failurePolicy, .namespaceSelector.matchExpressions[0].operator]) | sort) ==
        ([["binding", "'"$1"'", "NotIn"], ["binding-ignore", "Ignore", "In"], ["node-name", "'"$1"'", "NotIn"],
        ["node-name-ignore", "Ignore", "In"] | .[0] += ".claimguard.io"] | sort) and
        ([.[].namespaceSelector.matchExpressions[0].values // empty] | length == 4 and (unique | length == 1) and (.[0] | contains(["kube-system", "claimguard"])))'
    rendered '.items[] | select(.kind == "ValidatingWebhookConfiguration").webhooks | group_by(.clientConfig.service.path) |
        map(map(del(.name, .failurePolicy, .namespaceSelector) | select(.timeoutSeconds == 5)) | unique | length) == [1, 1]'
}

# Of cert-manager, which is not there: the API server does not know its kinds.
its_certificates_are_rendered() {
    built cert-manager
    [ "$(grep -oE 'secretName: claimguard-(ca|tls|client)' "$plane/rendered.yaml" | sort | uniq -c | wc -l)" = 3 ]
    grep -q 'inject-ca-from: claimguard/claimguard-tls' "$plane/rendered.yaml"
    grep -qE '^ *- claimguard.claimguard.svc$' "$plane/rendered.yaml" # the Service that the webhooks name
}

# Every component that has something to run, in two sets: claimguard, a scheduler and the webhooks with their files, and two pods on a claim.
all_components_run_together_and_so_does_a_static_pod() {
    local components folder url
    trap drop_marks EXIT
    scheduler='claimguard-scheduler'
    for components in "Annotation tls Fail marks network-policy" "static-pod Fail"; do
        folder=scheduler
        [[ $components != *tls* ]] || folder=tls
        plane_kill "$plane" service KILL
        # shellcheck disable=SC2086 # words
        admission_apply $components
        claimguard_restart claimguard --config "$plane/admission"
        await 20 "claimguard is ready" is_ready claimguard
        await 20 "Bindings are reviewed" is_reviewing
        url=$(url_of claimguard address)
        [ $folder = scheduler ] || url=${url/http:/https:}
        stop_schedulers
        without_restrictions "$root/manifests/$folder/second-scheduler.yaml" | sed "s#/etc/kubernetes/claimguard#$plane/secrets#" >"$plane/variant.yaml"
        if [[ $components = *marks* ]]; then
            apply_marks
            sed -i 's/# managedResources/managedResources/' "$plane/variant.yaml"
        fi
        plane_scheduler_start "$plane" second-scheduler "$plane/variant.yaml" "$url"
        claim "$folder"
        pod "$folder-0" "$folder"
        scheduled "$folder-0"
        pod "$folder-1" "$folder"
        rejected "$folder-1" "claim $namespace/$folder is in use by pod $namespace/$folder-0 on $(node_of "$folder-0")"
        refuses_binding "claim $namespace/$folder is in use by pod $namespace/$folder-0" "pods/$folder-1/binding" "$folder-1" node-1
        [ "$(k -n "$namespace" get pvc "$folder" -o json | jq -r '.metadata.annotations["claimguard.io/holder"] | sub(".*/"; "")')" = "$folder-0" ]
        if [ $folder = tls ]; then a_shared_claim_is_only_warned_of; drop_marks; fi
    done
}
a_shared_claim_is_only_warned_of() {
    local i
    claim shared ReadWriteOnce
    for i in 1 2; do
        pod "shared-$i" shared "nodeSelector: {kubernetes.io/hostname: node-$i}"
        scheduled "shared-$i"
    done
    await 10 "an Event says so" has_event VolumeWarning "claim $namespace/shared (ReadWriteOnce) is in use on node-1"
}

# ---- marks ----

apply_marks() {
    k apply -f "$root/manifests/marks/marks.yaml" >/dev/null
    await 30 "pods are marked" is_marking
}
is_marking() {
    pod_yaml try data | k create --dry-run=server -o json -f - |
        jq -e '.spec.containers[0].resources | .requests == .limits and .limits["claimguard.io/claims"] == "0"' >/dev/null
}
drop_marks() {
    k delete -f "$root/manifests/marks/marks.yaml" --ignore-not-found >/dev/null
    stop_schedulers
    start_schedulers
}

# The only scheduler calls claimguard only for marked pods.
scheduler_with_marks() {
    stop_schedulers
    without_restrictions "$root/manifests/scheduler/second-scheduler.yaml" | sed 's/# managedResources/managedResources/' >"$plane/marks.yaml"
    grep -q '^  managedResources' "$plane/marks.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/marks.yaml" "$(url_of claimguard address)"
}

bound_pods() { of_namespace pods | jq '[.items[] | select(.spec.nodeName)] | length'; }
are_bound() { [ "$(bound_pods)" = "$1" ]; }

marked_pods_are_judged_and_the_others_cost_no_call() {
    local calls pods=400 # the nodes take no more
    scheduler='claimguard-scheduler'
    apply_marks
    scheduler_with_marks
    calls=$(metric claimguard_extender_requests_total)
    seq $pods | awk -v ns="$namespace" '{
        printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"plain-%d\"},\"spec\":{\"schedulerName\":\"claimguard-scheduler\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}\n", ns, $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    await 120 "the pods without claims are bound" are_bound $pods
    [ "$(metric claimguard_extender_requests_total)" = "$calls" ] || fail "calls: $calls, then $(metric claimguard_extender_requests_total)"
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    rejected db-1 "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
    delete_pod db-0
    scheduled db-1
    echo "calls for $pods pods without claims: 0; for two with a claim: $(($(metric claimguard_extender_requests_total) - calls))"
    drop_marks
}

# A pod with an init container and two containers, all of which have what a LimitRange fills in.
limit_ranges_and_quotas_do_not_trip_over_the_mark() {
    scheduler='claimguard-scheduler'
    apply_marks
    scheduler_with_marks
    k -n "$namespace" apply -f - >/dev/null <<END
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - type: Container
    default: {cpu: 100m, claimguard.io/claims: "1"}
    defaultRequest: {cpu: 50m, claimguard.io/claims: "1"}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {requests.claimguard.io/claims: "0", requests.cpu: "1", pods: "5"}}
END
    await 30 "the quota is known" quota_is_known
    claim data
    pod db-0 data 'initContainers: [{name: i, image: registry.example/app}, {name: j, image: registry.example/app}]'
    scheduled db-0
    k -n "$namespace" get pod db-0 -o json | jq -e '[.spec | .containers[], .initContainers[]] |
        length == 3 and all(.resources | .limits["claimguard.io/claims"] == "0" and .requests["claimguard.io/claims"] == "0" and
        .limits.cpu == "100m" and .requests.cpu == "50m")' >/dev/null
    pod db-1 data
    rejected db-1 "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
    drop_marks
}
quota_is_known() { k -n "$namespace" get resourcequota quota -o json | jq -e '.status.hard | length == 3' >/dev/null; }

# ---- two replicas ----

# rolled_over OLD NEW [COMMAND]...: the Service, played by the fault proxy: the replica behind it changes before the old one ends. What else
# the change takes is done by the command.
rolled_over() {
    local pairs=30 port=$(($(cat "$plane/port") + 9)) old=$1 new=$2 race asked name
    shift 2
    rm -f "$plane/front"
    mkfifo "$plane/front"
    plane_run "$plane" front "$fault_proxy" "$port" "$(port_of "$old")" 1 <>"$plane/front"
    await 10 "the Service answers" curl -s "http://127.0.0.1:$port/"
    stop_schedulers
    for name in default second; do
        plane_scheduler_start "$plane" "$name-scheduler" "$root/manifests/scheduler/$name-scheduler.yaml" "http://127.0.0.1:$port"
    done
    pairs_create "$pairs"
    ask_all_the_time "http://127.0.0.1:$port/filter" &
    asked=$!
    pairs_race "$pairs" &
    race=$!
    sleep 0.7
    echo "upstream $(port_of "$new")" >"$plane/front"
    "$@"
    sleep 1 # preStop
    plane_kill "$plane" "$old"
    wait $race
    pairs_end "$pairs" 400
    kill $asked
    # the proxy closes what is open when it changes, which is one question at most
    [ "$(grep -vcx 0 "$plane/asked")" -le 1 ] || fail "without an answer: $(sort "$plane/asked" | uniq -c)"
    [ "$(grep -cx 0 "$plane/asked")" -gt 20 ]
    stop_schedulers
    plane_kill "$plane" front KILL
    plane_kill "$plane" "$new"
    start_schedulers
}

a_rolling_update_of_two_replicas_leaves_a_claim_one_pod() {
    local name
    variant
    without_reviews "$plane/config"
    for name in old new; do
        claimguard_start "$name" --config "$plane/config"
        await 20 "$name is ready" is_ready "$name"
    done
    rolled_over old new
}
port_of() { url_of "$1" address | sed 's/.*://'; }
ask_all_the_time() { # curl's exit status, a line each
    local status
    : >"$plane/asked"
    while :; do
        status=0
        curl -s -o "$plane/answer" --max-time 5 --data '{"Pod":{"metadata":{"name":"x","namespace":"x"},"spec":{}},"NodeNames":["node-1"]}' "$1" || status=$?
        echo $status >>"$plane/asked"
        sleep 0.05
    done
}

# ---- the limits of claimguard's own user ----

# With claimguard's token: its kubectl, and its PATCH of a pod's status, of which it may not GET the subresource.
its() { "$tools/kubectl" --kubeconfig "$plane/claimguard.kubeconfig" -n "$namespace" "$@"; }
its_status() { # POD TYPE BODY
    curl -sk --fail-with-body -X PATCH -H "Authorization: Bearer $(cat "$plane/token")" -H "Content-Type: application/$2-patch+json" \
        --data "$3" "https://127.0.0.1:$(($(cat "$plane/port") + 2))/api/v1/namespaces/$namespace/pods/$1/status"
}
limits_refuse() { # TEXT COMMAND...
    local text=$1
    shift
    if "$@" >"$plane/refused" 2>&1; then fail "not refused: $*" || return 1; fi
    if grep -qF "claimguard-own-limits" "$plane/refused" && grep -qF -- "$text" "$plane/refused"; then return 0; fi
    fail "$*: $(cat "$plane/refused")"
}

its_own_policy_lets_claimguard_write_what_it_writes_and_no_more() {
    local metadata='only annotations of the metadata' annotations='only annotations claimguard.io/*'
    claim data
    pod db-0 data
    pod plain ""
    pod waits "" 'schedulingGates: [{name: e2e.example.com/wait}]'
    scheduled db-0
    k -n "$namespace" annotate pod db-0 example.com/team=a >/dev/null
    k -n "$namespace" annotate pvc data example.com/team=a >/dev/null
    await 30 "the policy is in force" limits_refuse "$annotations" its annotate pod db-0 example.com/other=b
    # what it writes
    its annotate pod db-0 claimguard.io/requeue-requested=1 >/dev/null
    its annotate pod db-0 claimguard.io/requeue-requested- >/dev/null
    its annotate pvc data claimguard.io/holder=uid/db-0 claimguard.io/locked-at=1 >/dev/null
    its annotate pvc data claimguard.io/holder- claimguard.io/locked-at- >/dev/null
    its_status db-0 strategic-merge '{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}]}}' >/dev/null
    its_status waits merge '{"status":{"nominatedNodeName":"node-2"}}' >/dev/null
    its_status waits merge '{"status":{"nominatedNodeName":null}}' >/dev/null
    its delete pod db-0 --dry-run=server --wait=false >/dev/null
    # the metadata
    limits_refuse "$annotations" its annotate pod db-0 example.com/team-
    limits_refuse "$annotations" its annotate --overwrite pvc data example.com/team=b
    limits_refuse "$metadata" its label pod db-0 app=web
    limits_refuse "$metadata" its label pvc data app=web
    limits_refuse "$metadata" its patch pod db-0 --type=merge -p '{"metadata":{"finalizers":["example.com/stay"]}}'
    limits_refuse "$metadata" its patch pvc data --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'
    limits_refuse "$metadata" its_status db-0 merge '{"metadata":{"labels":{"app":"web"}}}'
    # the spec
    limits_refuse 'only deferFSMount in the spec' its patch pod db-0 --type=strategic \
        -p '{"spec":{"containers":[{"name":"c","image":"registry.example/other"}]}}'
    limits_refuse 'only deferFSMount in the spec' its patch pod db-0 --type=merge -p '{"spec":{"activeDeadlineSeconds":1}}'
    limits_refuse 'not change the spec of a claim' its patch pvc data --type=merge -p '{"spec":{"volumeAttributesClassName":"gold"}}'
    # the status
    limits_refuse 'only nominatedNodeName and conditions' its_status db-0 merge '{"status":{"phase":"Succeeded"}}'
    limits_refuse 'only the condition DisruptionTarget' its_status db-0 strategic-merge \
        '{"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}'
    limits_refuse 'only the condition DisruptionTarget' its_status db-0 strategic-merge \
        '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    # what it deletes, and binds
    limits_refuse 'delete only pods that use claims' its delete pod plain --dry-run=server --wait=false
    limits_refuse 'not annotate it by the Binding' its create --raw "/api/v1/namespaces/$namespace/pods/waits/binding" -f - <<END
{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits", "annotations": {"example.com/a": "b"}}, "target": {"kind": "Node", "name": "node-1"}}
END
}
