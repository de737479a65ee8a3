# shellcheck shell=bash
# Pods that are deleted by force: gone from the API server while their containers run; a node that is lost. To be sourced.

# writes_on NODE POD CLAIM: a pod that writes its name until it is killed, 8 s after it is asked to end.
writes_on() {
    pod_yaml "$2" "$3" "$(on_node "$1")" | running "$3" "trap : TERM; while sleep 0.2; do echo $2 >>/data/log; done" |
        sed 's/\(terminationGracePeriodSeconds\): 1/\1: 8/' | k apply -f - >/dev/null
}
# The file, as the machine has it: both nodes' volumes are its folders.
log_of() { echo "$nodes/volumes/$(k get pv "$(k -n "$namespace" get pvc "$1" -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.csi.volumeHandle}')/log"; }
lines_of() { { grep -s "^$1\$" "$2" || true; } | wc -l; } # also before there is a file
has_more_lines() { [ "$(lines_of "$1" "$2")" -gt "$3" ]; }
still_writes() { await 10 "pod $1 writes" has_more_lines "$1" "$2" "$(lines_of "$1" "$2")"; } # POD FILE
# wrote FILE NAMES: one after the other, and none beside the next.
wrote() { [ "$(uniq "$1" | paste -sd ' ')" = "$2" ] || fail "they wrote: $(uniq "$1" | paste -sd ' ')"; }
# waits_bound POD EVENT TEXT LOG HOLDER: it is bound, and kept from running by Kubernetes alone, while the one before it still writes.
waits_bound() {
    scheduled "$1"
    await 60 "an event of $1 says: $3" has_event "$2" "$3"
    still_writes "$5" "$4"
    ! is_running "$1" >/dev/null || fail "pod $1 runs beside $5"
}

a_force_deleted_pod_of_a_live_kubelet_never_writes_beside_the_next_one() {
    local log
    claimguard_with
    wanted data
    writes_on 1 first data
    is_up first
    log=$(log_of data)
    still_writes first "$log"
    delete_pod first
    writes_on 2 second data # on another node, it waits for the detach
    scheduled second
    still_writes first "$log" # the one is bound while the other writes, or this would show nothing
    is_up second
    still_writes second "$log"
    delete_pod second
    writes_on 2 third data # on the same one, for the kubelet
    scheduled third
    still_writes second "$log"
    is_up third
    still_writes third "$log"
    wrote "$log" 'first second third'
}

# For the scenarios that follow, also after a failure. Pods end while their driver is there.
node_2_as_before() {
    [ -e "$nodes/2/kubelet.pid" ] || node_kubelet 2
    k taint node node-2 node.kubernetes.io/out-of-service- >/dev/null 2>&1 || true
    k -n "$namespace" delete pods --all --timeout 60s >/dev/null 2>&1 || true
    k -n csi delete daemonset late --ignore-not-found --wait >/dev/null
    await 60 "the driver is on both nodes" driver_is_on 2 node.example.com
}
# without_kubelet COMMAND...: while node-2 has none.
without_kubelet() {
    plane_kill "$nodes/2" kubelet KILL
    "$@"
    node_kubelet 2
}

a_force_deleted_pod_without_its_kubelet_runs_on_and_its_attachment_keeps_the_next_one_out() {
    local log
    trap node_2_as_before EXIT
    claimguard_with
    wanted data
    writes_on 2 first data
    is_up first
    log=$(log_of data)
    without_kubelet deleted_while_it_runs "$log"
    is_up second
    still_writes second "$log"
    wrote "$log" 'first second'
    await 60 "node-2 is ready" nodes_are_ready 2
}
deleted_while_it_runs() {
    delete_pod first
    writes_on 1 second data
    waits_bound second FailedAttachVolume 'Volume is already exclusively attached to one node' "$1" first
    sleep 5
    waits_bound second FailedAttachVolume 'Volume is already exclusively attached to one node' "$1" first
}

# What docs/risks.md warns of.
a_force_deleted_pod_without_its_kubelet_and_without_attachment_writes_beside_the_next_one() {
    local log=$nodes/volumes/late/log
    trap node_2_as_before EXIT
    claimguard_with
    late_claim
    late_driver
    writes_on 2 first late
    is_up first
    without_kubelet both_write "$log"
    await 60 "node-2 is ready" nodes_are_ready 2
}
both_write() {
    delete_pod first
    writes_on 1 second late
    is_up second
    still_writes first "$1"
    still_writes second "$1"
}

node_is_unknown() { k get node "node-$1" -o json | jq -e 'any(.status.conditions[]; .type == "Ready" and .status == "Unknown")'; }
# advised ANSWER END: the command in an answer of `claimguard who` that ends so.
advised() {
    local words
    read -ra words < <(grep -m 1 "^ *kubectl .*$2\$" <<<"$1") || fail "no such command: $1" || return 1
    k "${words[@]:1}" >/dev/null
}

# claimguard's own pod and the controller of the volumes may have been there, too.
with_the_taint_that_who_names_the_pods_of_a_lost_node_end_and_the_next_one_reads_the_file() {
    trap node_2_as_before EXIT
    claimguard_with
    wanted data
    runs first data 'echo first >>/data/log' "$(on_node 2)"
    is_up first
    without_kubelet out_of_service
    await 60 "node-2 is ready" nodes_are_ready 2
    await 60 "the driver runs on both nodes" k -n csi rollout status daemonset/driver --timeout 1s
    k -n claimguard rollout status deployment/claimguard --timeout 60s >/dev/null
}
out_of_service() {
    local answer
    await 120 "node-2 does not answer" node_is_unknown 2
    runs second data 'echo second >>/data/log' "$(on_node 1)"
    rejected second "claim $namespace/data is in use by pod $namespace/first on node-2"
    answer=$("$claimguard" who data -n "$namespace" --kubeconfig "$plane/admin.kubeconfig")
    advised "$answer" ':NoExecute'
    await 120 "pod second runs" is_running second
    contains second 'first second'
    advised "$answer" '/out-of-service-'
}
