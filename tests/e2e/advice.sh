# shellcheck shell=bash
# What `who`, `why` and `doctor` advise is done to the letter, and undone, in clusters that are stuck: docs/advice.md. Each row that changes
# something has a scenario with its name (tests/checks/advice-is-followed). To be sourced.

advises_not() { if advises "$@"; then fail "$1 in $("$2_says_of" "$3")"; fi; }

# The volume, and so its data, is still there, and the policy of what is not meant to go is as before.
has_its_volume() { [ "$(k get pv "$namespace-$1" -o 'jsonpath={.metadata.deletionTimestamp}/{.spec.persistentVolumeReclaimPolicy}')" = "/${2:-Retain}" ] || fail "$(k get pv "$namespace-$1" -o yaml)"; }

# A pod that waits for the claim, beside its holder.
waits_beside_holder() {
    pod waits "$1"
    rejected waits "$2"
}
in_use() { echo "claim $namespace/$1 is in use by pod $namespace/"; }

# waiter_runs_and_goes CLAIM: what had the claim may have it again.
waiter_runs_and_goes() {
    scheduled waits
    has_its_volume "$1"
    delete_pod waits
}

# ---- by the holder's controller ----

advice_delete_pod() {
    claim data
    pod holds data
    scheduled holds
    waits_beside_holder data "$(in_use data)"
    take delete-pod who data
    waiter_runs_and_goes data
}

template_yaml() {
    cat <<END
    metadata: {labels: {app: shop}}
    spec:
      schedulerName: $scheduler
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: shop}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
END
}
# workload_yaml API-VERSION KIND SELECTOR REPLICAS
workload_yaml() {
    cat <<END
apiVersion: $1
kind: $2
metadata: {name: shop, namespace: $namespace}
spec:
  replicas: $4
  selector: $3
  template:
$(template_yaml)
END
}
shop_holds() { [ -n "$(k -n "$namespace" get pods -l app=shop -o 'jsonpath={.items[*].spec.nodeName}')" ]; }
shop_is_gone() { [ "$(k -n "$namespace" get pods -l app=shop -o name | wc -l)" = 0 ]; }

advice_scale_of() {
    workload_yaml "$@" | k apply -f - >/dev/null
    await 60 "$2 has the claim" shop_holds
    waits_beside_holder data "$(in_use data)"
    take scale who data
    waiter_runs_and_goes data
    go_back
    await 60 "$2 has the claim again" shop_holds
    k -n "$namespace" delete "$2" shop --wait=false >/dev/null
    await 60 "the pods of $2 are gone" shop_is_gone
}
advice_scale_of_each_kind() {
    claim data
    advice_scale_of apps/v1 Deployment '{matchLabels: {app: shop}}' 1
    advice_scale_of apps/v1 ReplicaSet '{matchLabels: {app: shop}}' 1
    advice_scale_of apps/v1 StatefulSet '{matchLabels: {app: shop}}' 1
    advice_scale_of v1 ReplicationController '{app: shop}' 1
}

# Two replicas of one claim: one of them waits for ever.
advice_scale_to_one() {
    claim data
    workload_yaml apps/v1 Deployment '{matchLabels: {app: shop}}' 2 | k apply -f - >/dev/null
    await 60 "one of two pods has the claim" shop_is_stuck
    take scale who data
    await 60 "the other one is gone" shop_has 1
    shop_holds || fail "the pod that had the claim is gone"
    has_its_volume data
}
shop_has() { [ "$(k -n "$namespace" get pods -l app=shop -o name | wc -l)" = "$1" ]; }

shop_autoscaler_yaml() {
    cat <<END
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: load, namespace: $namespace}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: $1, name: shop}, minReplicas: 2, maxReplicas: 4}
END
}
shop_replicas() { [ "$(k -n "$namespace" get "$1" shop -o 'jsonpath={.spec.replicas}')" = "$2" ]; }

# It scales up what is scaled to 1, and leaves 0 alone.
advice_scale_under_an_autoscaler() {
    claim data
    workload_yaml apps/v1 StatefulSet '{matchLabels: {app: shop}}' 2 | sed 's/^  replicas/  podManagementPolicy: Parallel\n&/' | k apply -f - >/dev/null
    await 60 "a pod has the claim" shop_holds
    shop_autoscaler_yaml StatefulSet | k apply -f - >/dev/null
    k -n "$namespace" scale statefulset shop --replicas=1 >/dev/null
    await 60 "it is scaled up again" shop_replicas statefulset 2
    k -n "$namespace" delete pod shop-1 --wait=false >/dev/null 2>&1 || true
    waits_beside_holder data "$(in_use data)"
    # of the pod that waits: the StatefulSet's own other pod would make it a claim that several name
    take scale why waits
    waiter_runs_and_goes data
    sleep 6 # the autoscaler looks each two seconds
    shop_replicas statefulset 0 || fail "it was scaled up"
    go_back
    await 60 "it has the claim again" shop_holds
}

advice_keep_claims() {
    claim data-pg-0
    shop_set_yaml | k apply -f - >/dev/null
    scheduled pg-0
    waits_beside_holder data-pg-0 "$(in_use data-pg-0)"
    take keep-claims who data-pg-0
    keep_back=$undo
    take scale who data-pg-0
    waiter_runs_and_goes data-pg-0
    [ "$(k -n "$namespace" get pvc data-pg-0 -o 'jsonpath={.status.phase}/{.metadata.deletionTimestamp}')" = Bound/ ] || fail "the claim is deleted"
    go_back
    scheduled pg-0
    paste_in "$keep_back"
    [ "$(k -n "$namespace" get statefulset pg -o 'jsonpath={.spec.persistentVolumeClaimRetentionPolicy.whenScaled}')" = Delete ] || fail "not as before"
    [ "$(k -n "$namespace" get pvc data-pg-0 -o 'jsonpath={.status.phase}/{.metadata.deletionTimestamp}')" = Bound/ ] || fail "the claim is deleted"
}

job_yaml() {
    cat <<END
apiVersion: batch/v1
kind: $1
metadata: {name: shop, namespace: $namespace}
spec:
END
}
advice_suspend_job() {
    claim data
    { job_yaml Job && echo "  template:" && template_yaml | sed 's/^      schedulerName/      restartPolicy: Never\n&/'; } | k apply -f - >/dev/null
    await 60 "the Job's pod has the claim" shop_holds
    waits_beside_holder data "$(in_use data)"
    take suspend-job who data
    waiter_runs_and_goes data
    go_back
    await 60 "the Job has the claim again" shop_holds
}

advice_suspend_cron_job() {
    local job_back
    claim data
    { job_yaml CronJob && echo '  schedule: "0 0 1 1 *"' && echo '  jobTemplate:' && echo '    spec:' && echo '      template:' &&
        template_yaml | sed 's/^      schedulerName/      restartPolicy: Never\n&/' | sed 's/^/    /'; } | k apply -f - >/dev/null
    k -n "$namespace" create job shop-1 --from=cronjob/shop >/dev/null
    await 60 "its pod has the claim" shop_holds
    waits_beside_holder data "$(in_use data)"
    take suspend-cron-job who data
    cron_back=$undo
    take suspend-job who data
    job_back=$undo
    [ "$(k -n "$namespace" get cronjob shop -o 'jsonpath={.spec.suspend}')" = true ] || fail "not suspended"
    waiter_runs_and_goes data
    paste_in "$job_back"
    paste_in "$cron_back"
    await 60 "the Job has the claim again" shop_holds
    [ "$(k -n "$namespace" get cronjob shop -o 'jsonpath={.spec.suspend}')" = false ] || fail "not resumed"
}

rollout_is_stuck() {
    claim data
    shop_yaml 1 | k apply -f - >/dev/null
    await 30 "the first pod is bound" shop_runs_version 1
    shop_yaml 2 | k apply -f - >/dev/null
    await 30 "the second pod waits" shop_is_stuck
    new=$(k -n "$namespace" get pods -l app=shop -o json | jq -r '.items[] | select(.spec.nodeName == null).metadata.name')
    await 30 "the scheduler has said why" why_of "$new" .message
}
advice_end_old() {
    local new
    rollout_is_stuck
    take end-old why "$new"
    await 60 "the new version runs" shop_runs_version 2
    has_its_volume data
}
advice_recreate() {
    local new
    rollout_is_stuck
    take recreate why "$new"
    await 60 "the rollout ends" shop_runs_version 2
    go_back
    [ "$(k -n "$namespace" get deployment shop -o 'jsonpath={.spec.strategy.type}')" = RollingUpdate ] || fail "not as before"
    has_its_volume data
}

# ---- by the holder's node ----

# node_with_ready STATUS: a node of this scenario alone, where nobody answers.
node_with_ready() {
    k apply -f - >/dev/null <<END
apiVersion: v1
kind: Node
metadata: {name: $namespace-node}
END
    k patch node "$namespace-node" --subresource status --type merge -p '{"status":{"conditions":[{"type":"Ready","status":"'"$1"'","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}' >/dev/null
}
# held_on_it [SED]: a pod there holds the claim, and nobody ends it.
held_on_it() {
    claim data
    pod_yaml holds data "nodeName: $namespace-node" | sed 's/terminationGracePeriodSeconds: 0/terminationGracePeriodSeconds: 600/'"${1:-}" | k apply -f - >/dev/null
    waits_beside_holder data "$(in_use data)"
}
advice_out_of_service() {
    node_with_ready Unknown
    held_on_it
    advises_not delete-pod who data
    take out-of-service who data
    scheduled waits
    has_its_volume data
    go_back
    [ -z "$(k get node "$namespace-node" -o 'jsonpath={.spec.taints[?(@.key=="node.kubernetes.io/out-of-service")]}')" ] || fail "the taint is there"
    k delete node "$namespace-node" >/dev/null
}
# While a finalizer keeps the pod.
advice_in_service() {
    node_with_ready Unknown
    held_on_it ';s/^metadata: {/&finalizers: [example.com\/backup], /'
    take out-of-service who data
    await 60 "it is said how to remove the taint" advises in-service who data
    take in-service who data
    [ -z "$(k get node "$namespace-node" -o 'jsonpath={.spec.taints[?(@.key=="node.kubernetes.io/out-of-service")]}')" ] || fail "the taint is there"
    k -n "$namespace" patch pod holds --type json -p '[{"op":"remove","path":"/metadata/finalizers"}]' >/dev/null
    delete_pod holds
    scheduled waits
    k delete node "$namespace-node" >/dev/null
}
# Its kubelet answers: no taint, which would let another pod write beside this one.
advice_delete_pod_of_a_node_that_is_not_ready() {
    node_with_ready False
    held_on_it ';s/600/0/'
    advises_not out-of-service who data
    advises see-node who data || fail "$(who_says_of data)"
    take delete-pod who data
    scheduled waits
    k delete node "$namespace-node" >/dev/null
}

# ---- by the claim and its volume ----

# claim_alone_yaml [NAMESPACE] [META] [FIELD]...: the claim data, without a volume of its own. META and FIELDs are one line each.
claim_alone_yaml() {
    cat <<END
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ${1:-$namespace}${2:+, $2}}
spec:
  accessModes: [ReadWriteOncePod]
  resources: {requests: {storage: 1Gi}}
END
    printf '  %s\n' "${@:3}"
}
# volume_yaml CLASS POLICY
volume_yaml() {
    cat <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: $namespace-data}
spec:
  accessModes: [ReadWriteOncePod]
  capacity: {storage: 1Gi}
  storageClassName: $1
  persistentVolumeReclaimPolicy: $2
  csi: {driver: plugin1.example.com, volumeHandle: $namespace-data}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: $namespace, name: data}
END
}
claim_is() { [ "$(k -n "$namespace" get pvc data -o 'jsonpath={.status.phase}')" = "$1" ]; }
claim_is_gone() { [ -z "$(k -n "$namespace" get pvc data --ignore-not-found -o name)" ]; }
volume_is() { [ "$(k get pv "$namespace-data" -o 'jsonpath={.status.phase}')" = "$1" ]; }

# The provisioner makes the volume when a node is chosen; here, the scenario does.
advice_forget_node() {
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: $namespace-late}
provisioner: plugin1.example.com
volumeBindingMode: WaitForFirstConsumer
END
    claim_alone_yaml "$namespace" 'annotations: {volume.kubernetes.io/selected-node: gone}' "storageClassName: $namespace-late" | k apply -f - >/dev/null
    pod waits data
    await 60 "the scheduler has tried it" why_of waits .message
    take forget-node why waits
    await 60 "the scheduler chooses another node" another_node_is_chosen
    volume_yaml "$namespace-late" Retain | k apply -f - >/dev/null
    scheduled waits
    has_its_volume data
}
another_node_is_chosen() { k -n "$namespace" get pvc data -o 'jsonpath={.metadata.annotations.volume\.kubernetes\.io/selected-node}' | has -x 'node-[12]'; }

# The claim's volume has the reclaim policy Delete, and the claim is being deleted; a pod that has ended keeps it.
an_ended_pod_keeps_the_claim() {
    volume_yaml fast-storage Delete | k apply -f - >/dev/null
    claim_alone_yaml "$namespace" '' 'storageClassName: fast-storage' "volumeName: $namespace-data" | k apply -f - >/dev/null
    await 30 "the claim is bound" claim_is Bound
    pod ended data
    scheduled ended
    k -n "$namespace" patch pod ended --subresource status --type merge -p '{"status":{"phase":"Succeeded"}}' >/dev/null
    k -n "$namespace" delete pvc data --wait=false >/dev/null
}
advice_keep_volume() {
    an_ended_pod_keeps_the_claim
    take keep-volume who data
    k -n "$namespace" delete pod ended >/dev/null
    await 60 "the claim is gone" claim_is_gone
    await 60 "its volume stays" volume_is Released
    has_its_volume data
}
# Of a pod that waits for that claim, the same is said.
advice_delete_ended_pod() {
    an_ended_pod_keeps_the_claim
    pod waits data
    take keep-volume why waits
    take delete-ended-pod why waits
    await 60 "the claim is gone" claim_is_gone
    has_its_volume data
}
# A claim of another namespace waits for any volume of the class, and gets none.
advice_reserve_volume() {
    local policy_back
    an_ended_pod_keeps_the_claim
    take keep-volume who data
    policy_back=$undo
    take delete-ended-pod who data
    await 60 "its volume stays" volume_is Released
    k create namespace "$namespace-other" >/dev/null
    claim_alone_yaml "$namespace-other" '' 'storageClassName: fast-storage' | k apply -f - >/dev/null
    claim_alone_yaml "$namespace" '' 'storageClassName: fast-storage' "volumeName: $namespace-data" | k apply -f - >/dev/null
    pod waits data
    take reserve-volume why waits
    await 60 "the claim has its volume again" claim_is Bound
    scheduled waits
    sleep 3 # the other claim is read again
    [ "$(k -n "$namespace-other" get pvc data -o 'jsonpath={.status.phase}')" = Pending ] || fail "another claim has a volume"
    [ "$(k get pv "$namespace-data" -o 'jsonpath={.spec.claimRef.namespace}')" = "$namespace" ] || fail "the volume is of another claim"
    has_its_volume data
    paste_in "$policy_back"
    has_its_volume data Delete
    k delete namespace "$namespace-other" --wait=false >/dev/null
}

lost_claim() {
    claim data
    await 30 "the claim is bound" claim_is Bound
    k delete pv "$namespace-data" --wait=false >/dev/null
    k patch pv "$namespace-data" --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1 || true
    await 60 "the claim is Lost" claim_is Lost
    pod waits data
}
# With the claimRef that is said, it is bound again.
advice_of_a_lost_claim_brings_its_volume_back() {
    local reference
    lost_claim
    reference=$(who_says_of data | jq -er '.[].text | capture("claimRef: (?<it>{[^}]*})").it') || fail "$(who_says_of data)"
    { volume_yaml fast-storage Retain | grep -v claimRef && echo "  claimRef: $reference"; } | k apply -f - >/dev/null
    await 60 "the claim is bound again" claim_is Bound
    scheduled waits
}
advice_delete_lost_claim() {
    lost_claim
    delete_pod waits
    take delete-lost-claim who data
    await 60 "the claim is gone" claim_is_gone
    claim data
    pod waits data
    scheduled waits
}

# ---- an installation ----

doctor_change() { "$claimguard" doctor --kubeconfig "$plane/admin.kubeconfig" -n claimguard -o json | jq -er --arg code "$1" '.findings[] | select(.code == $code).change'; }
doctor_changes_not() { if doctor_change "$1"; then fail "$1 is still there"; fi; }
advice_apply() {
    paste_in "cd '$root' && kubectl apply -k manifests"
    k -n claimguard delete service claimguard >/dev/null
    paste_in "cd '$root' && $(doctor_change CG613)"
    doctor_changes_not CG613
}
advice_apply_rights() {
    paste_in "cd '$root' && kubectl apply -k manifests"
    k patch clusterrole claimguard --type json -p '[{"op":"remove","path":"/rules/0"}]' >/dev/null
    paste_in "cd '$root' && $(doctor_change CG901)"
    doctor_changes_not CG901
}

# The controllers that other scenarios do without.
the_controllers_that_end_pods_run() {
    plane_kill "$plane" controllers
    plane_controllers_start "$plane" ,job-controller,cronjob-controller,replicationcontroller-controller,horizontal-pod-autoscaler-controller,node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller \
        --horizontal-pod-autoscaler-sync-period=2s --node-monitor-grace-period=24h --node-startup-grace-period=24h
}
