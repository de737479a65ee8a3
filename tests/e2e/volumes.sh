# shellcheck shell=bash
# Volumes decide where: ReadWriteOnce, CSI drivers, VolumeAttributesClasses. CSINodes are written as a kubelet writes
# them, and volumes bound as a provisioner binds them. To be sourced.

volumes_with() { configure volumes.yaml "$@"; }

# ---- ReadWriteOnce ----

# A Deployment of one pod on the claim "data", which rolls: the new pod has to be ready before the old one goes.
deployment() { # IMAGE
    cat <<END | k apply -f - >/dev/null
apiVersion: apps/v1
kind: Deployment
metadata: {name: db, namespace: $namespace}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      schedulerName: $scheduler
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      containers: [{name: c, image: $1}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
END
}
placed() { k -n "$namespace" get pods -l app=db -o json | jq -r '[.items[].spec.nodeName | values] | "\(length) \(unique | length)"'; }
are_placed() { [ "$(placed)" = "$1" ]; }
# The most attempts of one pod that failed.
failed_attempts() {
    k -n "$namespace" get events -o json | jq '[.items[] | select(.reason == "FailedScheduling") |
        {pod: (.involvedObject // .regarding).name, count: (.series.count // .count // 1)}] |
        group_by(.pod) | map(map(.count) | add) | max // 0'
}
bound_on_one_node() { await 60 "$1 pods on one node" are_placed "$1 1" || fail "pods, nodes: $(placed)"; }

all_ready() { # as a kubelet would say
    local pod
    for pod in $(k -n "$namespace" get pods -l app=db -o name); do
        k -n "$namespace" patch "$pod" --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[
            {"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}]}}' >/dev/null 2>&1 || true # it goes
    done
}

many_nodes() { # COUNT LABEL
    seq "$1" | sed "s#.*#POST /api/v1/nodes {\"metadata\":{\"name\":\"$2-&\",\"labels\":{\"size\":\"$2\"}},\"status\":{\"capacity\":{\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"}}}#" |
        "$flood" "$plane/admin.kubeconfig" 32 2 >/dev/null
}

nominated() { metric 'claimguard_nominations_total{result="sent"}'; }
no_namespace_ends() { [ -z "$(k get namespaces --field-selector status.phase=Terminating -o name)" ]; }

# Of 302 nodes, kube-scheduler shows 144 in an attempt, and begins where the last attempt ended. It tries a rejected pod once
# more at once, because of its own change of the pod's status: so of some twenty pods, one is nominated, the others are lucky.
# Each event in the cluster makes it try a rejected pod again. So that there are none, earlier namespaces have to be gone.
a_rolling_deployment_lands_on_the_holder_s_node_though_sampling_hides_it() {
    local before round=0
    volumes_with
    claim data ReadWriteOnce
    many_nodes 300 many
    before=$(nominated)
    deployment "r$round"
    bound_on_one_node 1
    await 60 "what other scenarios leave behind is gone" no_namespace_ends
    until [ "$round" -ge 6 ] && [ "$(nominated)" -gt "$before" ]; do
        round=$((round + 1))
        [ "$round" -le 100 ] || fail "none of 100 pods was nominated"
        deployment "r$round"
        bound_on_one_node 2
        all_ready # so that the old pod goes
        bound_on_one_node 1
    done
    echo "nominated: $(($(nominated) - before)) of $round"
    k delete nodes -l size=many --wait=false >/dev/null # else the scenarios behind this one fail with it
    # two, and one for each event that comes before the nomination
    [ "$(failed_attempts)" -le 4 ] || fail "a pod failed $(failed_attempts) times before it was bound"
}

a_full_holder_s_node_leaves_the_pod_pending_until_there_is_room() {
    volumes_with
    claim data ReadWriteOnce
    pod holder data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled holder
    # one more does not fit beside it; node-2 has room
    k -n "$namespace" run filler --image=i --overrides="{\"spec\":{\"schedulerName\":\"$scheduler\",\"terminationGracePeriodSeconds\":0,\"nodeSelector\":{\"kubernetes.io/hostname\":\"node-1\"},\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"63\"}}}]}}" >/dev/null
    scheduled filler
    pod_yaml second data | sed 's#image: registry.example/app#&, resources: {requests: {cpu: 2}}#' | k apply -f - >/dev/null
    rejected second "claim $namespace/data (ReadWriteOnce) is in use on node-1 by pod $namespace/holder"
    delete_pod filler
    scheduled second
    [ "$(node_of second)" = node-1 ]
}

of_pairs_on_read_write_once_claims_none_is_on_two_nodes() {
    local pairs=${CLAIMGUARD_E2E_PAIRS:-50}
    volumes_with
    pairs_create "$pairs" ReadWriteOnce
    seq "$pairs" | awk -v ns="$namespace" '{
        for (i = 0; i < 2; i++)
            printf "POST /api/v1/namespaces/%s/pods {\"metadata\":{\"name\":\"p-%d-%d\"},\"spec\":{\"schedulerName\":\"%s\",\"terminationGracePeriodSeconds\":0,\"nodeSelector\":{\"kubernetes.io/hostname\":\"node-%d\"},\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c-%d\"}}]}}\n", ns, $1, i, ($1 + i) % 2 ? "default-scheduler" : "claimguard-scheduler", i + 1, $1
    }' | "$flood" "$plane/admin.kubeconfig" 16 2 >/dev/null
    pairs_end "$pairs" 400 # a node each: where one pod is bound, the other one waits
    pairs_second_round "$pairs"
}

with_warn_a_pod_on_another_node_is_bound_and_an_event_says_so() {
    local before
    volumes_with 's/Enforce/Warn/'
    before=$(metric 'claimguard_policy_warnings_total{policy="ReadWriteOnce"}')
    claim data ReadWriteOnce
    pod holder data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    scheduled holder
    pod second data 'nodeSelector: {kubernetes.io/hostname: node-2}'
    scheduled second
    await 10 "an Event says so" has_event VolumeWarning \
        "claim $namespace/data (ReadWriteOnce) is in use on node-1 by pod $namespace/holder"
    [ "$(metric 'claimguard_policy_warnings_total{policy="ReadWriteOnce"}')" = $((before + 1)) ]
}

# ---- CSI drivers ----

# csi_node NODE DRIVERS: as a kubelet registers them: the object is the Node's, and names its plug-ins.
csi_node() {
    local driver
    cat <<END
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata:
  name: $1
  annotations: {storage.alpha.kubernetes.io/migrated-plugins: "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}
  ownerReferences: [{apiVersion: v1, kind: Node, name: $1, uid: "$(k get node "$1" -o 'jsonpath={.metadata.uid}')"}]
spec:
  drivers:
END
    for driver in $2; do echo "  - {name: $driver, nodeID: $1, topologyKeys: []}"; done
    [ -n "$2" ] || echo "  - {name: other.example.com, nodeID: $1, topologyKeys: []}"
}
# registered NODE1-DRIVERS NODE2-DRIVERS: what the two nodes have from now on. Drivers of a CSINode can be added and removed.
registered() { { csi_node node-1 "$1" && csi_node node-2 "$2"; } | k apply -f - >/dev/null; }
drivers_end() { k delete csinodes node-1 node-2 --ignore-not-found >/dev/null; }

inline_pod() { # NAME DRIVER
    pod_yaml "$1" '' 'volumes: [{name: scratch, csi: {driver: '"$2"'}}]' | k apply -f - >/dev/null
}

a_driver_that_registers_later_wakes_the_pod_and_one_that_leaves_and_comes_back() {
    volumes_with
    registered plugin1.example.com plugin1.example.com
    inline_pod first inline.example.com
    rejected first 'CSI driver inline.example.com (volume scratch) is not registered on the node'
    registered plugin1.example.com 'plugin1.example.com inline.example.com'
    await 5 "first is bound" is_scheduled first
    [ "$(node_of first)" = node-2 ]
    registered plugin1.example.com plugin1.example.com
    inline_pod second inline.example.com
    rejected second 'CSI driver inline.example.com (volume scratch) is not registered on the node'
    registered 'plugin1.example.com inline.example.com' plugin1.example.com
    await 5 "second is bound" is_scheduled second
    [ "$(node_of second)" = node-1 ]
    drivers_end
}

a_claim_s_driver_is_looked_for_on_each_node() {
    volumes_with
    registered other.example.com 'plugin1.example.com other.example.com'
    claim data ReadWriteMany
    pod one data
    scheduled one
    [ "$(node_of one)" = node-2 ]
    pod two data 'nodeSelector: {kubernetes.io/hostname: node-1}'
    rejected two "CSI driver plugin1.example.com of claim $namespace/data is not registered on the node"
    drivers_end
}

a_driver_without_inline_volumes_is_refused_and_a_csi_driver_that_appears_wakes_the_pod() {
    volumes_with
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: claims.example.com}
spec: {volumeLifecycleModes: [Persistent]}
END
    inline_pod wrong claims.example.com
    rejected wrong 'CSI driver claims.example.com does not support inline volumes (volume scratch; it supports Persistent)'
    inline_pod early early.example.com
    rejected early 'no CSIDriver object for inline volume scratch (driver early.example.com)'
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: early.example.com}
spec: {volumeLifecycleModes: [Ephemeral]}
END
    await 5 "early is bound" is_scheduled early
    k delete csidriver claims.example.com early.example.com >/dev/null
}

# ---- VolumeAttributesClass ----

# A claim that a provisioner has to make a volume for, once its pod has a node.
unprovisioned_claim() { # NAME CLASS
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: provisioned}
provisioner: plugin1.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1, namespace: $namespace}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: provisioned
  volumeAttributesClassName: $2
  resources: {requests: {storage: 1Gi}}
END
}
selected_node() { k -n "$namespace" get pvc "$1" -o 'jsonpath={.metadata.annotations.volume\.kubernetes\.io/selected-node}'; }
is_selected() { [ -n "$(selected_node "$1")" ]; }

a_missing_class_that_appears_wakes_the_pod_within_a_second() {
    local started took
    volumes_with
    unprovisioned_claim data gold
    pod db data
    rejected db "VolumeAttributesClass gold of claim $namespace/data does not exist"
    sleep 6 # the scheduler's own back-off is over
    started=$(date +%s%N)
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: gold}
driverName: plugin1.example.com
parameters: {iops: "3000"}
END
    await 5 "the claim has a node" is_selected data
    took=$((($(date +%s%N) - started) / 1000000))
    echo "$took ms from the class to the node, kubectl's own time among them"
    [ "$took" -lt 2500 ]
    unprovisioned_claim other silver
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: silver}
driverName: other.example.com
parameters: {iops: "1000"}
END
    pod wrong other
    rejected wrong "VolumeAttributesClass silver is for driver other.example.com, claim $namespace/other is provisioned by plugin1.example.com"
    k -n "$namespace" delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
    k delete volumeattributesclass gold silver --wait=false >/dev/null
}
