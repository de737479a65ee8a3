# shellcheck shell=bash
# The scenarios: a function each, whose name says what has to be true. Each runs in a namespace of its own, on the one
# control plane, with one claimguard, which both schedulers ask. To be sourced.

a_pod_on_a_free_claim_is_scheduled() {
    local line i
    for i in 1 2 3; do
        claim "data-$i"
        line=$(($(wc -l <"$plane/audit.log") + 1))
        pod "db-$i" "data-$i"
        scheduled "db-$i"
        # the scheduler may bind a pod that claimguard has not seen yet
        [ "$(gets_since "$line")" != 0 ] || return 0
    done
    fail "a pod that passes costs a request"
}
# How many single objects of this namespace claimguard asked the API server about.
gets_since() { tail -n "+$1" "$plane/audit.log" | grep '"verb":"get"' | grep -c "\"namespace\":\"$namespace\"" || true; }

many_callers_that_ask_the_same_cost_few_requests() {
    local line url
    claim data
    pod db-0 data 'nodeName: node-1'
    await 10 "claimguard knows" is_held data
    url=$(url_of claimguard address)/filter
    jq -n --arg namespace "$namespace" '{NodeNames: ["node-1"], Pod: {metadata: {name: "other", namespace: $namespace, uid: "1"},
        spec: {volumes: [{name: "v", persistentVolumeClaim: {claimName: "data"}}]}}}' >"$plane/request.json"
    line=$(($(wc -l <"$plane/audit.log") + 1))
    for _ in $(seq 300); do printf 'next\nurl = "%s"\ndata = "@%s"\noutput = "%s"\n' "$url" "$plane/request.json" "$plane/answer"; done |
        sed 1d | curl -s -Z --parallel-max 50 -K - 2>/dev/null
    grep -q "is in use by pod $namespace/db-0" "$plane/answer"
    echo "300 rejections cost $(gets_since "$line") requests"
    [ "$(gets_since "$line")" -gt 0 ] && [ "$(gets_since "$line")" -lt 250 ]
}
is_held() { cache_of claimguard | jq -e --arg key "$namespace/$1" '.claims[$key].refs == 1' >/dev/null; }

a_second_pod_waits_and_its_event_names_claim_and_holder() {
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    [ "$scheduler" = default-scheduler ] || await 10 "an event says so" has_event FailedScheduling \
        "claim $namespace/data is in use by pod $namespace/db-0 on $(node_of db-0)"
}

deleting_the_holder_lets_the_second_pod_run_within_seconds() {
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    delete_pod db-0
    await 5 "db-1 is scheduled" is_scheduled db-1
}

# The names of KEP-2485's end-to-end tests, as far as a scheduler can make them true.
kep_2485_a_volume_succeeds_when_consumed_by_a_single_pod_on_a_node() {
    claim data
    pod single data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled single
    [ "$(node_of single)" = node-1 ]
}

kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_the_same_node() {
    claim data
    pod first data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled first
    pod second data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    in_use_by second first
}

kep_2485_a_volume_fails_when_consumed_by_a_second_pod_on_a_different_node() {
    claim data
    pod first data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled first
    pod second data 'nodeSelector: {kubernetes.io/hostname: node-2}'
    in_use_by second first
}

# With VolumeRestrictions, kube-scheduler preempts; without it, it sees no conflict, and claimguard does.
kep_2485_a_high_priority_pod_preempts_the_pod_that_uses_the_volume() {
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    pod high data 'priorityClassName: high'
    await 15 "the holder is gone" is_gone low
    scheduled high
    await 5 "an event tells the victim" has_event Preempted "Preempted by"
}

kep_2485_a_low_priority_pod_is_unschedulable_and_unresolvable() {
    claim data
    pod high data 'priorityClassName: high'
    scheduled high
    pod low data 'priorityClassName: low'
    pod none data
    in_use_by low high
    in_use_by none high
    [ "$(prefilter low)" = UnschedulableAndUnresolvable ]
    [ "$(prefilter none)" = UnschedulableAndUnresolvable ]
    is_scheduled high
}

# The code of /prefilter for a pod.
prefilter() {
    k -n "$namespace" get pod "$1" -o json | jq '{Pod: .}' |
        curl -s --data @- "$(url_of claimguard address)/prefilter" | jq -r .code
}

a_pod_whose_claim_is_missing_waits_and_runs_when_it_is_created() {
    pod early data
    rejected early 'persistentvolumeclaim "data" not found'
    claim data
    scheduled early
}

# ---- preemption that claimguard starts ----

# victim NAME CLAIM [FIELD: VALUE]...: a holder of low priority, which takes its time to go: there is no kubelet to end it.
victim() {
    local name=$1 claim=$2
    shift 2
    pod_yaml "$name" "$claim" 'priorityClassName: low' "$@" |
        sed "s/terminationGracePeriodSeconds: 0/terminationGracePeriodSeconds: 600/; s/^metadata: {/&labels: {app: $name}, /" | k apply -f - >/dev/null
    scheduled "$name"
}
# runs POD: as its kubelet would say.
runs() {
    k -n "$namespace" patch pod "$1" --subresource status --type merge \
        -p '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}' >/dev/null
}
is_terminating() { [ -n "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.deletionTimestamp}')" ]; }
evictions_of() { grep '"verb":"create"' "$plane/audit.log" | grep '"subresource":"eviction"' | grep -c "\"namespace\":\"$namespace\",\"name\":\"$1\"" || true; }
is_disrupted_by() {
    [ "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="DisruptionTarget")].reason}')" = "$2" ]
}
is_looked_after() { [ "$(k -n "$namespace" get poddisruptionbudget "$1" -o 'jsonpath={.status.observedGeneration}')" = 1 ]; }

a_victim_is_evicted_once_and_its_claim_is_kept_for_the_preemptor() {
    claim data
    victim holder data
    pod high data 'priorityClassName: high'
    await 15 "the holder is evicted" is_terminating holder
    await 5 "its condition says why" is_disrupted_by holder PreemptionByScheduler
    await 5 "an event tells the victim" has_event Preempted "Preempted by pod $namespace/high: claim $namespace/data is in use"
    await 5 "an event tells the preemptor" has_event Preempting "Evicted 1 pod: claim $namespace/data is in use"
    pod other data 'priorityClassName: mid'
    await 10 "the claim is kept" says other "reserved for pod $namespace/high"
    sleep 2
    [ "$(evictions_of holder)" = 1 ] || fail "it was evicted $(evictions_of holder) times"
    delete_pod holder
    scheduled high
    rejected other "claim $namespace/data is in use by pod $namespace/high"
}

a_budget_forbids_a_preemption_until_it_is_gone() {
    claim data
    victim holder data
    runs holder # budgets do not protect pods that are pending
    k -n "$namespace" create poddisruptionbudget holder --selector app=holder --min-available 1 >/dev/null
    await 10 "the budget is looked after" is_looked_after holder
    pod high data 'priorityClassName: high'
    await 15 "an event tells the preemptor" has_event PreemptionFailed "would violate the pod's disruption budget"
    if is_terminating holder; then fail "it was evicted all the same"; fi
    is_disrupted_by holder ""
    k -n "$namespace" delete poddisruptionbudget holder >/dev/null
    await 20 "the holder is evicted" is_terminating holder
    delete_pod holder
    scheduled high
}

two_preemptors_for_one_claim_cost_one_eviction_and_the_higher_one_gets_it() {
    claim data
    victim holder data
    pod middle data 'priorityClassName: mid'
    await 15 "the holder is evicted" is_terminating holder
    pod high data 'priorityClassName: high'
    sleep 3
    [ "$(evictions_of holder)" = 1 ] || fail "it was evicted $(evictions_of holder) times"
    delete_pod holder
    scheduled high
    rejected middle "claim $namespace/data is in use by pod $namespace/high"
}

a_pod_that_never_preempts_evicts_nobody() {
    claim data
    pod low data 'priorityClassName: low'
    scheduled low
    pod never data 'priorityClassName: never'
    in_use_by never low
    sleep 3
    is_scheduled low
}

nobody_is_evicted_for_a_pod_that_could_not_get_all_its_claims() {
    claim data
    claim logs
    pod low data 'priorityClassName: low'
    pod equal logs 'priorityClassName: high'
    scheduled low
    scheduled equal
    pod both 'data logs' 'priorityClassName: high'
    in_use_by both low
    sleep 3
    is_scheduled low
    is_scheduled equal
}

claims_of_one_name_in_two_namespaces_are_two_claims() {
    local first=$namespace
    claim data
    pod db-0 data
    scheduled db-0
    namespace=$first-other
    k create namespace "$namespace" >/dev/null
    claim data
    pod db-0 data
    scheduled db-0
    namespace=$first
}

an_ephemeral_volume_is_a_claim_that_belongs_to_its_pod() {
    local template='{accessModes: [ReadWriteOncePod], storageClassName: fast-storage, resources: {requests: {storage: 1Gi}}}'
    claim_yaml app-scratch | awk '/^---/ { n++ } n == 1' | k apply -f - >/dev/null # only the volume
    pod app "" "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: $template}}}]"
    scheduled app
    pod thief app-scratch
    rejected thief "claim $namespace/app-scratch is in use by pod $namespace/app on"
}

a_pod_that_sets_its_node_beside_a_holder_shows_up_as_a_violation() {
    local before
    before=$(metric claimguard_exclusive_claim_violations)
    claim data
    pod first data
    scheduled first
    pod bold data 'nodeName: node-2'
    await 10 "the gauge counts it" more_violations_than "$before"
    await 10 "an event tells the pod that came second" has_event ExclusiveClaimViolated \
        "claim $namespace/data is ReadWriteOncePod, and in use by pod $namespace/first"
    k -n "$namespace" get events -o json | jq -e '
        [.items[] | select(.reason == "ExclusiveClaimViolated")] | length == 1 and .[0].involvedObject.name == "bold"' >/dev/null
    delete_pod bold
    await 10 "the gauge forgets it" eval '! more_violations_than '"$before"
}
more_violations_than() { [ "$(metric claimguard_exclusive_claim_violations)" -gt "$1" ]; }

the_api_server_is_killed_and_restarted() {
    claim data
    pod db-0 data
    scheduled db-0
    k -n "$namespace" get pod db-0 -o json |
        jq '{Pod: (.metadata.name = "db-1" | .metadata.uid = "1" | del(.spec.nodeName))}' >"$plane/request.json"
    plane_kill "$plane" apiserver KILL
    sleep 2
    # verdicts go on from the cache, whose age is told
    is_ready claimguard
    curl -s "$(url_of claimguard metrics)/metrics" | awk -v now="$(date +%s)" '
        /^claimguard_cache_last_event_timestamp_seconds{resource="pods"}/ { is_so = $2 > now - 3600 && $2 <= now + 1 } END { exit !is_so }'
    curl -s --data @"$plane/request.json" "$(url_of claimguard address)/prefilter" |
        jq -e '.code == "UnschedulableAndUnresolvable"' >/dev/null
    api_restart
    pod db-1 data
    in_use_by db-1 db-0
    delete_pod db-0
    scheduled db-1
}

an_older_api_server_is_followed_in_pages_and_without_what_it_lacks() {
    claim data
    pod db-0 data
    scheduled db-0
    api_restart --feature-gates=WatchList=false --runtime-config=storage.k8s.io/v1/volumeattributesclasses=false
    claimguard_start older
    await 20 "it is ready" is_ready older
    curl -s "$(url_of older metrics)/readyz?verbose" | grep -qx '\[+\] volumeattributesclasses not served by this API server'
    [ "$(metric 'reason="fallback"' older)" = 9 ]
    [ "$(grep -c 'it is left out' "$plane/older.log")" = 1 ]
    cache_of older | jq -e --arg key "$namespace/data" '.claims[$key].refs == 1' >/dev/null
    plane_kill "$plane" older
    api_restart
}

a_compaction_makes_the_watches_expire_and_nothing_is_lost() {
    local before port revision
    before=$(metric 'reason="expired"')
    claim data
    pod db-0 data
    scheduled db-0
    kill -STOP "$(cat "$plane/claimguard.pid")"
    delete_pod db-0
    plane_kill "$plane" apiserver KILL
    port=$(cat "$plane/port")
    for _ in 1 2 3; do
        revision=$(curl -s "http://127.0.0.1:$port/v3/kv/put" -d '{"key": "anVuaw==", "value": "anVuaw=="}' | jq -r .header.revision)
    done
    curl -s "http://127.0.0.1:$port/v3/kv/compaction" -d "{\"revision\": \"$revision\", \"physical\": true}" >/dev/null
    api_restart
    kill -CONT "$(cat "$plane/claimguard.pid")"
    await 30 "watches expired" eval "[ \$(metric 'reason=\"expired\"') -gt $before ]"
    pod db-1 data
    scheduled db-1
}

a_rotated_token_is_used_and_a_revoked_one_recovered_from() {
    local before
    before=$(metric 'reason="unauthorized"')
    new_token "token-$namespace" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    k -n claimguard delete secret token-first --ignore-not-found >/dev/null # the old token is good no longer
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    # and now the one in use is revoked before there is another
    k -n claimguard delete secret "token-$namespace" >/dev/null
    sleep 10 # the API server remembers tokens for so long
    api_restart # ends the watches
    await 20 "claimguard was refused" eval "[ \$(metric 'reason=\"unauthorized\"') -gt $before ]"
    new_token "token-last" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    delete_pod db-0
    scheduled db-1
    await 20 "the watches are back" is_current
}
# Whether the cache has what the API server has: the claims of this namespace, with their holders.
is_current() { cache_of claimguard | jq -e --arg key "$namespace/data" '.claims[$key].holders | map(.name) == ["db-1"]' >/dev/null; }

three_hundred_pods_on_three_hundred_claims_among_5000_nodes() {
    seq 5000 | sed 's#.*#POST /api/v1/nodes {"metadata":{"name":"big-&","labels":{"size":"big"}},"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"110"}}}#' |
        "$flood" "$plane/admin.kubeconfig" 32 2 >/dev/null
    for i in $(seq 300); do claim_yaml "c-$i"; done | k create -f - >/dev/null
    for i in $(seq 300); do pod_yaml "p-$i" "c-$i" 'nodeSelector: {size: big}'; done | k create -f - >/dev/null
    await 400 "all are scheduled" all_scheduled 300
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    await 20 "claimguard has seen them" are_referenced 300
    k delete nodes -l size=big --wait=false >/dev/null
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}
are_referenced() { [ "$(cache_of claimguard | jq --arg ns "$namespace" '[.claims | to_entries[] | select(.key | startswith($ns + "/")) | select(.value.refs == 1)] | length')" = "$1" ]; }
all_scheduled() { [ "$(k -n "$namespace" get pods -o json | jq '[.items[] | select(.spec.nodeName)] | length')" = "$1" ]; }

a_captured_snapshot_gives_the_verdicts_of_the_live_server() {
    local pod live
    claim data
    claim free
    claim shared ReadWriteMany
    pod db-0 data 'priorityClassName: low'
    scheduled db-0
    pod same data 'priorityClassName: low' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod higher data 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod never data 'priorityClassName: never' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod fine free 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod with shared 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod lost missing 'schedulingGates: [{name: e2e.example.com/wait}]'
    "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" -o "$plane/captured.json" 2>/dev/null
    jq -e '.kind == "List" and ([.items[] | .kind] | index("Pod") and index("PersistentVolumeClaim") and index("Node"))' "$plane/captured.json" >/dev/null
    # only what matters: no images, no annotations, nothing that looks like a secret
    if grep -nE 'registry.example|managedFields|annotations|token' "$plane/captured.json"; then
        fail "the snapshot has what it need not have"
    fi
    for pod in same higher never fine with lost; do
        live=$(k -n "$namespace" get pod "$pod" -o json | jq '{Pod: .}' | curl -s --data @- "$(url_of claimguard address)/prefilter" | jq -S '{code, reasons, claims}')
        "$claimguard" dry-run --snapshot "$plane/captured.json" --pod "$namespace/$pod" -o json >"$plane/dry.json" || [ $? = 1 ]
        [ "$(jq -S '{code: .preFilter.code, reasons: .preFilter.reasons, claims}' "$plane/dry.json")" = "$live" ] ||
            fail "$pod: live $live, dry run $(cat "$plane/dry.json")"
    done
}

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

the_manifests_render_and_the_api_server_takes_them() {
    "$tools/kubectl" kustomize "$root/manifests" >"$plane/rendered.yaml"
    k apply --dry-run=server -f "$plane/rendered.yaml" >/dev/null
    grep -q 'runAsNonRoot: true' "$plane/rendered.yaml"
    k -n claimguard get configmap claimguard -o 'jsonpath={.data.claimguard\.yaml}' >"$plane/config.yaml"
    "$claimguard" check-config "$plane/config.yaml" >/dev/null
    # with the component for TLS
    cp -r "$root/manifests" "$plane/manifests"
    printf 'components: [tls]\n' >>"$plane/manifests/kustomization.yaml"
    k apply --dry-run=server -o json -k "$plane/manifests" >"$plane/rendered.json"
    jq -e '.items[] | select(.kind == "Deployment").spec.template.spec |
        (.volumes | any(.secret.secretName == "claimguard-tls") and any(.configMap.name == "claimguard-over-tls")) and
        (.containers[0].volumeMounts | length == 2)' "$plane/rendered.json" >/dev/null
    jq -r '.items[] | select(.metadata.name == "claimguard-over-tls").data["claimguard.yaml"]' "$plane/rendered.json" >"$plane/config.yaml"
    "$claimguard" check-config "$plane/config.yaml" | grep 'clientCAFile: "/etc/claimguard-tls/ca.crt"' >/dev/null
}

# certificate NAME AUTHORITY: as manifests/README.md makes them.
certificate() {
    local name=$plane/tls/$1 authority=$plane/tls/$2
    mkdir -p "$plane/tls"
    [ -e "$authority.crt" ] || openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$2" -keyout "$authority.key" -out "$authority.crt" 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -addext subjectAltName=IP:127.0.0.1 -keyout "$name.key" -out "$name.csr" 2>/dev/null
    openssl x509 -req -in "$name.csr" -copy_extensions copy -CA "$authority.crt" -CAkey "$authority.key" -days 1 -out "$name.crt" 2>/dev/null
}
scheduler_over_tls() {
    plane_kill "$plane" second-scheduler
    without_restrictions "$root/manifests/tls/second-scheduler.yaml" | sed "s#/etc/kubernetes/claimguard#$plane/tls#" >"$plane/tls.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/tls.yaml" "$(url_of secure address | sed s/http:/https:/)"
}

over_tls_a_scheduler_with_a_certificate_is_answered_and_no_other() {
    certificate tls ca
    certificate scheduler ca
    sed "s#/etc/claimguard-tls#$plane/tls#" "$root/manifests/tls/claimguard.yaml" >"$plane/secure.yaml"
    claimguard_start secure --config "$plane/secure.yaml"
    await 20 "it is ready" is_ready secure
    scheduler_over_tls
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    certificate tls ca
    await 5 "the new certificate is taken" grep -q 'certificate reloaded' "$plane/secure.log"
    scheduler_over_tls
    delete_pod db-0
    scheduled db-1
    certificate scheduler other-ca
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
    wc -l <"$plane/audit.log"
    grep -q '"code":200' "$plane/audit.log"
    # and says who it is
    if grep '"username":"system:serviceaccount:claimguard:claimguard"' "$plane/audit.log" | grep -v '"userAgent":"claimguard/'; then fail "without its name"; fi
}

# ---- two schedulers ----

# pairs_create COUNT [MODE]: so many claims, each bound to a volume of its own.
pairs_create() {
    seq "$1" | awk -v ns="$namespace" -v mode="${2:-ReadWriteOncePod}" '{
        printf "POST /api/v1/persistentvolumes {\"metadata\":{\"name\":\"%s-c-%d\"},\"spec\":{\"accessModes\":[\"%s\"],\"capacity\":{\"storage\":\"1Gi\"},\"storageClassName\":\"fast-storage\",\"csi\":{\"driver\":\"plugin1.example.com\",\"volumeHandle\":\"%s-%d\"},\"claimRef\":{\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"%s\",\"name\":\"c-%d\"}}}\n", ns, $1, mode, ns, $1, ns, $1
        printf "POST /api/v1/namespaces/%s/persistentvolumeclaims {\"metadata\":{\"name\":\"c-%d\"},\"spec\":{\"accessModes\":[\"%s\"],\"storageClassName\":\"fast-storage\",\"volumeName\":\"%s-c-%d\",\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}\n", ns, $1, mode, ns, $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    await 400 "all claims are bound" pairs_are_bound "$1"
}
pairs_are_bound() { [ "$(k -n "$namespace" get pvc -o json | jq '[.items[] | select(.status.phase == "Bound")] | length')" = "$1" ]; }

# pairs_race COUNT [RUNTIME]: two pods for each claim, at the same moment, for one scheduler each; one of them with that
# runtime class.
pairs_race() {
    seq "$1" | awk -v ns="$namespace" -v vm="${2:+\"runtimeClassName\":\"$2\",}" '{
        for (i = 0; i < 2; i++)
            printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d-%d\"},\"spec\":{%s\"schedulerName\":\"%s\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, i, i ? "" : vm, ($1 + i) % 2 ? "default-scheduler" : "claimguard-scheduler", $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
}

# How many claims are held by N bound pods: "N:claims" words.
pairs_outcome() {
    k -n "$namespace" get pods -o json |
        jq -r '[.items[] | select(.spec.nodeName) | .spec.volumes[0].persistentVolumeClaim.claimName] | group_by(.) | map(length)
            | group_by(.) | map("\(.[0]):\(length)") | join(" ")'
}

# pairs_end COUNT SECONDS: within so many, each claim has one pod; and keeps it.
pairs_end() {
    await "$2" "each claim has one pod" pairs_are_settled "$1" || fail "$(pairs_outcome)"
    sleep 2
    echo "claims by the number of their pods: $(pairs_outcome)"
    [ "$(pairs_outcome)" = "1:$1" ]
}

# pairs_second_round COUNT: the pods that were first are deleted; the others get their claims.
pairs_second_round() {
    pairs_delete_bound 2
    await 400 "each claim has one pod again" pairs_are_settled "$1" || fail "$(pairs_outcome)"
}
pairs_delete_bound() { # [STATUS]
    k -n "$namespace" get pods -o json | jq -r '.items[] | select(.spec.nodeName) |
        "DELETE /api/v1/namespaces/\(.metadata.namespace)/pods/\(.metadata.name)?gracePeriodSeconds=0"' |
        "$flood" "$plane/admin.kubeconfig" 16 "$@" >/dev/null
}
pairs_are_settled() { [ "$(pairs_outcome)" = "1:$1" ]; }

two_schedulers_race_and_no_claim_has_two_pods() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-100}
    pairs_create "$pairs"
    pairs_race "$pairs"
    pairs_end "$pairs" 400
    echo "refused binds: $(metric claimguard_bind_conflicts_total)"
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    # the first ones gone, the second ones run
    pairs_second_round "$pairs"
    await 40 "no reservation is left over" no_reservations
}

two_schedulers_race_while_claimguard_is_killed_and_restarted() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-100} race
    pairs_create "$pairs"
    pairs_race "$pairs" &
    race=$!
    for _ in 1 2 3; do
        sleep 0.7
        claimguard_restart claimguard
    done
    wait $race
    pairs_end "$pairs" 400
}

# ---- two replicas, which know nothing of one another: claimLock: Annotation ----

start_replicas() {
    local name
    for name in one two; do
        claimguard_start "$name" --config "$e2e/annotation.yaml"
        await 20 "$name is ready" is_ready "$name"
    done
    stop_schedulers
    plane_scheduler_start "$plane" default-scheduler "$root/manifests/scheduler/default-scheduler.yaml" "$(url_of one address)"
    plane_scheduler_start "$plane" second-scheduler "$root/manifests/scheduler/second-scheduler.yaml" "$(url_of two address)"
}

# Back to the one that the other scenarios use.
one_claimguard_again() {
    stop_schedulers
    plane_kill "$plane" one
    plane_kill "$plane" two
    start_schedulers
}

two_schedulers_with_a_replica_each_race_and_the_annotation_decides() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-100}
    start_replicas
    pairs_create "$pairs"
    pairs_race "$pairs"
    pairs_end "$pairs" 400
    echo "refused binds: $(metric bind_conflicts_total one) and $(metric bind_conflicts_total two)"
    # every claim says who has it
    [ "$(k -n "$namespace" get pvc -o json | jq '[.items[] | select(.metadata.annotations["claimguard.io/holder"])] | length')" = "$pairs" ]
    # the first ones gone, their locks are taken over
    pairs_second_round "$pairs"
}

two_replicas_are_killed_and_restarted_while_their_schedulers_race() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-100} race
    pairs_create "$pairs"
    pairs_race "$pairs" &
    race=$!
    for _ in 1 2 3; do
        sleep 0.5
        claimguard_restart one --config "$e2e/annotation.yaml"
        sleep 0.5
        claimguard_restart two --config "$e2e/annotation.yaml"
    done
    wait $race
    pairs_end "$pairs" 400
}

# For comparison, when asked for (CLAIMGUARD_E2E_PLAIN): the same race without claimguard. Nothing is asserted.
plain_schedulers_for_comparison() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-100} file
    stop_schedulers
    for file in default second; do
        sed '/^extenders:/,$d' "$root/manifests/scheduler/$file-scheduler.yaml" >"$plane/plain.yaml"
        plane_scheduler_start "$plane" "$file-scheduler" "$plane/plain.yaml" none
    done
    pairs_create "$pairs"
    sleep 3
    pairs_race "$pairs"
    sleep 20
    echo "without claimguard, claims by the number of their pods: $(pairs_outcome)"
    stop_schedulers
    start_schedulers
}
no_reservations() { [ "$(metric claimguard_reservations)" = 0 ]; }

# ---- each right is needed ----

# The audit log's lines since the line given that tell of a refusal.
refusals_since() { tail -n "+$1" "$plane/audit.log" | grep -c "$forbidden"; }

is_ready_or_refused() { is_ready least || [ "$(refusals_since "$1")" -gt 0 ]; }

# What claimguard does in a day, in a second: a snapshot, a sync, two confirmations, a violation to tell, a bind, a requeue,
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
    for pod in 1 2; do
        claim "prize-$pod"
        pod "hunter-$pod" "prize-$pod" 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    done
    for pod in waits lost gated behind hunter-1 hunter-2; do
        k -n "$namespace" get pod $pod -o json | jq '{Pod: ., NodeNames: ["node-1"]}' >"$plane/$pod.json"
    done
    jq '{PodName: .Pod.metadata.name, PodNamespace: .Pod.metadata.namespace, PodUID: .Pod.metadata.uid, Node: "node-1"}' \
        "$plane/gated.json" >"$plane/bind.json"
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
    k apply -k "$root/manifests" >/dev/null
    delete_pod first
    delete_pod second
    sleep 1
    : >"$plane/audit.log" # what was refused here was meant to be
}

# ---- no stale rejection ----

# The fault proxy, before this API server: faulty.kubeconfig goes through it. It takes orders from $plane/orders.
start_fault_proxy() {
    local port
    port=$(cat "$plane/port")
    plane_run "$plane" proxy "$tools/kubectl" --kubeconfig "$plane/claimguard.kubeconfig" proxy --port $((port + 3))
    [ -e "$plane/orders" ] || mkfifo "$plane/orders"
    plane_run "$plane" fault-proxy "$fault_proxy" $((port + 5)) $((port + 3)) "$seed" <>"$plane/orders"
    await 10 "kubectl proxy listens" curl -s "http://127.0.0.1:$((port + 5))/readyz"
    faults_kubeconfig x $((port + 5)) >"$plane/faulty.kubeconfig"
}

# With everything that claimguard watches five seconds late: only asking the API server can be in time.
start_delayed() {
    start_fault_proxy
    echo "delay 5000" >"$plane/orders"
    claimguard_start delayed --kubeconfig "$plane/faulty.kubeconfig"
    await 20 "it is ready" is_ready delayed
    stop_schedulers
    plane_scheduler_start "$plane" second-scheduler "$plane/second.yaml" "$(url_of delayed address)"
}

# How long COMMAND's effect takes until the pod is scheduled, in ms.
ms_until_scheduled() { # POD COMMAND...
    local pod=$1 started
    shift
    : >"$plane/seen"
    k -n "$namespace" get pod "$pod" --watch -o 'jsonpath={.spec.nodeName}{"\n"}' >"$plane/seen" &
    local watcher=$!
    await 60 "the watch has begun" test -s "$plane/seen"
    started=$(date +%s%N)
    "$@" >/dev/null
    for _ in $(seq 3000); do
        if grep -q node "$plane/seen"; then break; fi
        sleep 0.01
    done
    echo $((($(date +%s%N) - started) / 1000000))
    kill $watcher
    wait $watcher 2>/dev/null || true
}

no_rejection_is_stale() {
    local trials=${CLAIMGUARD_E2E_TRIALS:-6} i ms late=0
    start_delayed
    for i in $(seq "$trials"); do
        claim "data-$i"
        pod "a-$i" "data-$i"
        scheduled "a-$i"
        pod "b-$i" "data-$i"
        pod "early-$i" "later-$i"
        rejected "b-$i" "is in use by pod"
        rejected "early-$i" "not found"
        ms=$(ms_until_scheduled "b-$i" k_delete "pods/a-$i")
        [ "$ms" -le 4000 ] || { late=$((late + 1)) && echo "after the holder's deletion: $ms ms"; }
        echo "$ms" >>"$plane/deletion-ms"
        claim_yaml "later-$i" | awk '/^---/ { n++ } n == 1' | sed '/claimRef/d' | k apply -f - >/dev/null
        ms=$(ms_until_scheduled "early-$i" create_bound_claim "later-$i")
        [ "$ms" -le 4000 ] || { late=$((late + 1)) && echo "after the claim's creation: $ms ms"; }
        echo "$ms" >>"$plane/creation-ms"
    done
    for i in deletion creation; do
        sort -n "$plane/$i-ms" | awk -v what="$i" '{ ms[NR] = $1 } END { printf "%s to binding, %d times: median %d ms, most %d ms\n", what, NR, ms[int((NR + 1) / 2)], ms[NR] }'
    done
    [ "$(metric 'confirmations_total{result="overruled"}' delayed)" -gt 0 ]
    [ "$late" = 0 ]
}
# A claim that a scheduler takes for bound from its first moment: what is measured is claimguard, not the volume controller.
create_bound_claim() {
    curl -sk -H "Authorization: Bearer admin-token" -H "Content-Type: application/json" \
        "https://127.0.0.1:$(($(cat "$plane/port") + 2))/api/v1/namespaces/$namespace/persistentvolumeclaims" -d "{
            \"metadata\": {\"name\": \"$1\", \"annotations\": {\"pv.kubernetes.io/bind-completed\": \"yes\"}},
            \"spec\": {\"accessModes\": [\"ReadWriteOncePod\"], \"storageClassName\": \"fast-storage\",
                \"volumeName\": \"$namespace-$1\", \"resources\": {\"requests\": {\"storage\": \"1Gi\"}}}}"
}
k_delete() { curl -sk -X DELETE -H "Authorization: Bearer admin-token" "https://127.0.0.1:$(($(cat "$plane/port") + 2))/api/v1/namespaces/$namespace/$1"; }

# claimguard alone has lost the API server: what happens meanwhile it learns later than the scheduler, which is told the
# cache's word, and would not ask again for minutes.
a_rejection_that_could_not_be_confirmed_is_made_up_for() {
    local before
    echo "delay 0" >"$plane/orders"
    await 60 "the last scenario is cleared away" is_cleared # what goes there is an event for the scheduler
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    pod early later
    rejected db-1 "is in use by pod"
    rejected early "not found"
    echo "upstream 1" >"$plane/orders"
    before=$(metric 'confirmations_total{result="unknown"}' delayed)
    delete_pod db-0
    claim later
    await 15 "both were asked about" more_unconfirmed_than "$((before + 1))"
    sleep 11 # the scheduler's longest back-off: whoever it tries again by itself was tried
    if is_scheduled db-1 || is_scheduled early; then fail "a pod was bound without the API server"; fi
    echo "upstream $(($(cat "$plane/port") + 3))" >"$plane/orders"
    scheduled db-1
    scheduled early
    is_requeued db-1 || is_requeued early # the first that is bound makes an event for the other
}
is_cleared() { [ -z "$(k get namespace "e2e-$((number - 1))" --ignore-not-found -o name)" ]; }
more_unconfirmed_than() { [ "$(metric 'confirmations_total{result="unknown"}' delayed)" -gt "$1" ]; }
is_requeued() { [ -n "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.annotations.claimguard\.io/requeue-requested}')" ]; }

# The connections stay open and bring nothing any more: no packet is lost, so only time can tell.
silence_is_found_within_a_minute() {
    local before started
    claim silent
    pod before silent
    scheduled before
    echo stall >"$plane/orders"
    started=$(date +%s)
    before=$(pod_restarts)
    await 60 "it is found" more_pod_restarts_than "$before"
    echo "after $(($(date +%s) - started)) s"
    delete_pod before
    await 30 "the cache is current" knows_none silent
}
more_pod_restarts_than() { [ "$(pod_restarts)" -gt "$1" ]; }
pod_restarts() { metric 'watch_restarts_total{resource="pods"' delayed; }
knows_none() { cache_of delayed | jq -e --arg key "$namespace/$1" '.claims[$key].refs == 0' >/dev/null; }

stop_delayed() {
    plane_kill "$plane" delayed
    plane_kill "$plane" fault-proxy
    plane_kill "$plane" proxy
}
