# shellcheck shell=bash
# claimguard itself on the nodes, and claims that pods mount. To be sourced.

its_image_runs_by_its_own_deployment_and_doctor_finds_nothing() {
    # shellcheck disable=SC2119 # no components
    claimguard_install
    doctor_finds_nothing
    [ "$(k -n claimguard get pods -o json | jq -r '[.items[] | .status.containerStatuses[0].image] | unique | join(" ")')" = "$(image_name claimguard)" ]
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
