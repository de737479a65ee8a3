# shellcheck shell=bash
# claimguard itself on the nodes, and claims that pods mount. To be sourced.

by_kubectl_apply_its_own_image_is_ready_and_doctor_finds_nothing() {
    # shellcheck disable=SC2119 # no components
    claimguard_install
    is_ready_and_doctor_finds_nothing
    first_then_second
}

pods_take_turns_across_nodes_and_read_what_the_last_one_wrote() {
    local i n
    claimguard_with
    wanted data
    runs turn-0 data 'echo turn-0 >>/data/log' "$(on_node 1)"
    is_up turn-0
    for i in 1 2 3; do
        n=$((i % 2 + 1))
        runs "turn-$i" data "echo turn-$i >>/data/log" "$(on_node "$n")"
        rejected "turn-$i" "claim $namespace/data is in use by pod $namespace/turn-$((i - 1)) on node-$((n % 2 + 1))"
        end_pod "turn-$((i - 1))"
        is_up "turn-$i"
        contains "turn-$i" "$(seq 0 "$i" | sed 's/^/turn-/' | paste -sd ' ')"
    done
}

a_kubelet_that_dies_with_the_holder_keeps_the_claim_until_it_is_back() {
    claimguard_with
    wanted data
    runs first data 'echo first >>/data/log' "$(on_node 2)"
    is_up first
    trap '[ -e "$nodes/2/kubelet.pid" ] || node_kubelet 2' EXIT # for those that follow
    plane_kill "$nodes/2" kubelet KILL
    runs second data 'echo second >>/data/log' "$(on_node 1)"
    rejected second "claim $namespace/data is in use by pod $namespace/first on node-2"
    end_pod first --wait=false
    rejected second "claim $namespace/data is in use by pod $namespace/first, terminating on node-2"
    sleep 3
    rejected second "claim $namespace/data is in use by pod $namespace/first, terminating on node-2"
    node_kubelet 2
    is_up second
    contains second 'first second'
    await 60 "node-2 is ready" nodes_are_ready 2
}

has_succeeded() { [ "$(k -n "$namespace" get pod "$1" -o 'jsonpath={.status.phase}')" = Succeeded ]; }
claim_is_gone() { [ -z "$(k -n "$namespace" get pvc "$1" --ignore-not-found -o name)" ]; }

# Its kubelet unmounts the volume when a pod has ended, and not when it is deleted: so it holds nothing. But it keeps a claim from being deleted,
# and its data from the next pod, until somebody deletes the pod.
a_pod_that_has_ended_gives_its_claim_up_and_keeps_it_from_being_deleted() {
    local volume
    claimguard_with
    wanted data
    runs ended data 'echo ended >>/data/log; exit 0' "$(on_node 1)" 'restartPolicy: Never'
    await 60 "pod ended has ended" has_succeeded ended
    runs next data 'echo next >>/data/log' "$(on_node 2)"
    is_up next
    contains next 'ended next'
    k -n "$namespace" delete pvc data --wait=false >/dev/null
    end_pod next
    runs late data 'echo late >>/data/log' "$(on_node 2)"
    rejected late 'is being deleted'
    # what is advised keeps the data, and gives it to the claim of that name
    volume=$(k -n "$namespace" get pvc data -o 'jsonpath={.spec.volumeName}')
    take keep-volume why late
    take delete-ended-pod why late
    await 60 "the claim is gone" claim_is_gone data
    wanted data ReadWriteOncePod "volumeName: $volume"
    await 60 "the volume can be reserved" advises reserve-volume why late
    take reserve-volume why late
    is_up late
    contains late 'ended next late'
}

# rolling SCHEDULER TEXT: a Deployment of one pod whose new one is started before the old one ends. It prefers another node, as pods do that
# are to be spread, whatever else the nodes run.
rolling() {
    k apply -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: db, namespace: $namespace}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      schedulerName: $1
      terminationGracePeriodSeconds: 0
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 100, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}}
      containers:
      - name: c
        image: $(image_name debian)
        command: [bash, -c, "echo $2 >>/data/log; exec sleep infinity"]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
END
}
is_rolled_out() { k -n "$namespace" rollout status deployment/db --timeout 1s; }

a_rolling_deployment_ends_in_multi_attach_and_with_enforce_it_ends() {
    local first
    claimguard_with
    wanted data ReadWriteOnce
    rolling default-scheduler first
    await 60 "the first pod runs" is_rolled_out
    rolling default-scheduler second
    await 60 "the second pod is stuck" has_event FailedAttachVolume 'Volume is already used by pod(s)' # once "Multi-Attach error"; 1.37 says it so
    ! is_rolled_out || fail "it is rolled out"
    k -n "$namespace" delete deployment db --cascade=foreground >/dev/null
    configured_with <<END
apiVersion: claimguard.io/v1alpha1
kind: ClaimguardConfiguration
readWriteOnce: {mode: Enforce}
END
    rolling claimguard-scheduler first
    await 60 "the first pod runs" is_rolled_out
    first=$(k -n "$namespace" get pods -l app=db -o 'jsonpath={.items[0].spec.nodeName}')
    k -n "$namespace" delete events --all >/dev/null
    rolling claimguard-scheduler second
    await 60 "the second pod runs" is_rolled_out
    ! has_event FailedAttachVolume '' || fail "a volume could not be attached"
    [ "$(k -n "$namespace" get pods -l app=db --field-selector=status.phase=Running -o json | jq -r '.items[-1].spec.nodeName')" = "$first" ]
}
