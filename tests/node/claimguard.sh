# shellcheck shell=bash
# claimguard on the nodes, as manifests/README.md has it installed. To be sourced.
#
#   claimguard_install [COMPONENT]...  the lines of README.md, with these components, until it is ready, and the second scheduler asks it
#   claimguard_with [COMPONENT]...     the same, if it is not so already
#   claimguard_gone                    all of it is gone
#   configured_with                    one more file of the ConfigMap, from stdin; it is read
#   doctor_finds_nothing [LEVEL]       nothing of that level (note) or above in the cluster and the second scheduler's file
#   is_ready_and_doctor_finds_nothing  its two pods are ready, of its own image; doctor has checked all but the files in the pod, and has nothing to say

rights=/etc/kubernetes/claimguard # of the scheduler's files; /etc is the node's own

# shellcheck disable=SC2120 # components: variants
claimguard_install() {
    claimguard_gone
    manifests_with "$@"
    k apply -k "$nodes/manifests" >/dev/null
    lock_is_agreed
    k -n claimguard rollout status deployment/claimguard --timeout 120s || {
        k -n claimguard describe pods | tail -20
        return 1
    }
    client_files
    scheduler_start tls/second-scheduler.yaml
    echo "$*" >"$nodes/installed"
}

# As if the lock on the claim had been there for long: nobody waits until it is in force.
lock_is_agreed() {
    k -n claimguard patch configmap claimguard-agreement --type merge -p '{"data": {"claimLock.Annotation": "in force"}}' >/dev/null
}

# With these components and no others: installed again only if it is not so. What that prints is shown only if it fails.
claimguard_with() {
    [ ! -e "$nodes/installed" ] || [ "$(cat "$nodes/installed")" != "$*" ] || return 0
    # in the background, as a scenario is
    (
        set -e
        claimguard_install "$@"
    ) >"$nodes/install.log" 2>&1 &
    wait $! || {
        tail -20 "$nodes/install.log"
        return 1
    }
}

manifests_with() { # [COMPONENT]...
    rm -rf "$nodes/manifests"
    cp -r "$root/manifests" "$nodes/manifests"
    sed -i "s#^components:.*#components: [$(tr ' ' , <<<"$*")]#" "$nodes/manifests/kustomization.yaml"
}

claimguard_gone() {
    plane_kill "$plane" second-scheduler
    rm -f "$nodes/installed"
    [ -e "$nodes/manifests" ] || return 0
    k delete -k "$nodes/manifests" --ignore-not-found --wait >/dev/null
}

# README.md's own lines.
client_files() (
    kubectl() { k "$@"; }
    eval "$(sed -n '/^    umask 077; mkdir -p \/etc\/kubernetes\/claimguard/,/^    done/p' "$root/manifests/README.md")"
    [ -s $rights/client.key ]
)

doctor_finds_nothing() {
    "$claimguard" doctor --kubeconfig "$plane/admin.kubeconfig" --scheduler-config "$plane/second-scheduler.yaml" --probe --fail-on "${1:-note}" "${@:2}"
}

is_ready_and_doctor_finds_nothing() {
    local answer
    [ "$(k -n claimguard get pods -o json | jq -c '[.items[].status.containerStatuses[] | [.image, .ready, .restartCount]]')" = \
        "[[\"$(image_name claimguard)\",true,0],[\"$(image_name claimguard)\",true,0]]" ] || fail "claimguard's pods: $(k -n claimguard get pods -o wide)"
    answer=$(doctor_finds_nothing note -o json) || fail "$answer"
    jq -e '.findings == [] and all(.notChecked[]; startswith("certificates that are not on this machine: "))' <<<"$answer" >/dev/null || fail "$answer"
}

# A file of the ConfigMap reaches its pod's folder, and is read, without a restart.
configured_with() {
    local before
    before=$(reloads_logged)
    echo configured >"$nodes/installed" # so that the next scenario installs it again
    k -n claimguard patch configmap claimguard --type merge -p "$(jq -n --rawfile file /dev/stdin '{data: {"more.yaml": $file}}')" >/dev/null
    await 120 "the configuration is reloaded" reloaded_since "$before"
}
reloads_logged() { k -n claimguard logs -l app.kubernetes.io/name=claimguard --tail=-1 | grep -c 'configuration reloaded' || true; }
reloaded_since() { [ "$(reloads_logged)" -ge $(($1 + 2)) ]; } # by both
