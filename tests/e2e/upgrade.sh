# shellcheck shell=bash
# From the previous release to this one, and back. To be sourced.

# previous_build TOOLS: the release that the file previous-release names, from this repository's history, unless TOOLS has it. Its folder, with its
# files, is then $previous; it is empty, and upgrades are skipped, in a shallow clone or without git. $new_key is what it does not know.
previous_build() {
    local release commit
    read -r release new_key < <(grep -v '^#' "$e2e/previous-release")
    previous=
    if ! commit=$(git -C "$root" rev-parse --verify --quiet "$release^{commit}" 2>/dev/null); then
        [ "$(git -C "$root" rev-parse --is-shallow-repository 2>/dev/null)" != false ] || fail "previous-release: there is no $release: git fetch --tags" || return 1
        echo "== SKIPPED: UPGRADES, so nothing that needs ${e2e#"$root/"}/previous-release has run: $release is not in this clone: git fetch --unshallow --tags" >&2
        return 0
    fi
    previous=$1/previous-${commit:0:12}
    [ ! -x "$previous/build/claimguard" ] || return 0
    echo "== building the previous release (${commit:0:12}), once" >&2
    rm -rf "$previous"
    mkdir -p "$previous"
    git -C "$root" archive "$commit" | tar -x -C "$previous"
    cmake -S "$previous" -B "$previous/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug >"$previous/build.log"
    cmake --build "$previous/build" --target claimguard >>"$previous/build.log" || { cat "$previous/build.log" >&2; return 1; }
}
# previously COMMAND...: with the previous release in place of this one.
previously() { claimguard=$previous/build/claimguard "$@"; }
this_release_again() {
    claimguard_restart claimguard
    await 20 "claimguard is ready" is_ready claimguard
}

the_previous_release_s_configuration_means_the_same_and_a_key_that_it_lacks_is_an_error_there() {
    local file count=0 status=0 pid
    trap this_release_again EXIT
    while read -r file; do
        previously check_with "$file" >"$plane/was.yaml"
        "$claimguard" check-config "$file" >"$plane/is.yaml"
        # with all defaults: nothing is changed or missing; more keys may be there
        if { diff "$plane/was.yaml" "$plane/is.yaml" || true; } | grep '^<'; then fail "$file has another meaning"; fi
        count=$((count + 1))
    done < <(grep -rl --include '*.yaml' '^kind: ClaimguardConfiguration' "$previous")
    [ "$count" -gt 50 ] || fail "only $count files"
    # it does not start with a new key
    printf 'apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\nserver: {debugEndpoints: true}\n' >"$plane/upgraded.yaml"
    { cat "$plane/upgraded.yaml" && echo "$new_key"; } >"$plane/newer.yaml"
    "$claimguard" check-config "$plane/newer.yaml" >/dev/null
    "$previous/build/claimguard" serve --config "$plane/newer.yaml" 2>"$plane/refused" || status=$?
    [ $status = 2 ]
    grep -qx "claimguard: $plane/newer.yaml:4:1: unknown key \"${new_key%%:*}\"" "$plane/refused" || fail "$(cat "$plane/refused")"
    # one that runs keeps what it has, and says so
    previously claimguard_restart claimguard --config "$plane/upgraded.yaml"
    await 20 "the previous release is ready" is_ready claimguard
    cp "$plane/newer.yaml" "$plane/upgraded.yaml"
    await 10 "its metric says that the file has an error" reload_is 0
    grep -q "the configuration is not reloaded; the old one stays in force.*unknown key.*${new_key%%:*}" "$plane/claimguard.log"
    is_ready claimguard
    pid=$(cat "$plane/claimguard.pid")
    sed -i "/^${new_key%%:*}:/d" "$plane/upgraded.yaml"
    await 10 "the file is good again" reload_is 1
    kill -0 "$pid"
}
check_with() { "$claimguard" check-config "$1"; }
reload_is() { [ "$(metric claimguard_config_last_reload_successful)" = "$1" ]; }

# exchanged RELEASE: claimguard is killed, and that of the release (`previously`, `now`) starts in its place.
exchanged() {
    "$1" claimguard_restart claimguard --config "$plane/both.yaml"
    await 20 "claimguard is ready" is_ready claimguard
}
now() { "$@"; }

what_one_release_has_written_the_other_reads() {
    local line=$(($(wc -l <"$plane/audit.log") + 1))
    trap 'drop_marks && this_release_again' EXIT
    scheduler='claimguard-scheduler'
    apply_marks
    scheduler_with_marks
    { cat "$e2e/deferral.yaml" && echo 'readWriteOncePod: {claimLock: Annotation}'; } >"$plane/both.yaml"
    claim data
    exchanged previously
    vm web-0 data
    has_the_claim web-0
    pod early missing
    rejected early 'persistentvolumeclaim "missing" not found'
    rejected_by_one_and_bound_by_the_other web-0 web-1 now
    claim missing
    scheduled early
    # no earlier release knows these
    k -n "$namespace" annotate pvc data claimguard.io/admitted=true claimguard.io/later=x claimguard.io/audit-ignore='CG102: a reason' >/dev/null
    k -n "$namespace" annotate pod web-1 claimguard.io/later='{' claimguard.io/audit-ignore='CG102: a reason' >/dev/null
    rejected_by_one_and_bound_by_the_other web-1 web-2 previously
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    # and up again; the former left an annotation of which this one makes a wait of 65 s
    k -n "$namespace" annotate pvc data claimguard.io/admitted- >/dev/null
    rejected_by_one_and_bound_by_the_other web-2 web-3 now
    [ "$(metric claimguard_exclusive_claim_violations)" = 0 ]
    [ "$(refusals_since "$line")" = 0 ] || fail "the rights of this release are not enough for the previous one"
}
# HOLDER POD RELEASE: the pod waits for the holder; then the release changes, and the holder goes.
rejected_by_one_and_bound_by_the_other() {
    vm "$2" data
    rejected "$2" "claim $namespace/data is in use by pod $namespace/$1 on $(node_of "$1")"
    exchanged "$3"
    await 10 "it knows the holder" is_held data
    [ "$(prefilter "$2")" = UnschedulableAndUnresolvable ]
    is_deferred "$1" data
    is_drained "$1" || fail "it does not know why $1 is deferred"
    delete_pod "$1"
    has_the_claim "$2"
}
# It is bound, and both annotations say so.
has_the_claim() {
    local uid
    is_deferred "$1" data
    uid=$(k -n "$namespace" get pod "$1" -o 'jsonpath={.metadata.uid}')
    [ "$(k -n "$namespace" get pvc data -o 'jsonpath={.metadata.annotations.claimguard\.io/holder}')" = "$uid/$1" ] || fail "$1 has no lock"
}

# A verdict of a snapshot that either has written is the same; this release may have more to say.
a_snapshot_of_the_previous_release_is_read() {
    local release
    claim data
    claim free
    pod db-0 data 'priorityClassName: low'
    scheduled db-0
    pod same data 'priorityClassName: low' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod higher data 'priorityClassName: high' 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod fine free 'schedulingGates: [{name: e2e.example.com/wait}]'
    pod lost missing 'schedulingGates: [{name: e2e.example.com/wait}]'
    for release in previously now; do
        "$release" written_snapshot >"$plane/written.json"
        previously verdicts_of written.json >"$plane/was.json"
        verdicts_of written.json >"$plane/is.json"
        [ "$(jq -c 'map(.schedulable)' "$plane/was.json")" = '[true,false,false,false]' ]
        [ -z "$(comm -23 <(leaves "$plane/was.json") <(leaves "$plane/is.json"))" ] ||
            fail "of a snapshot written $release: $(comm -3 <(leaves "$plane/was.json") <(leaves "$plane/is.json"))"
    done
    previously written_snapshot >"$plane/written.json"
    who_in data -n "$namespace" --snapshot "$plane/written.json" -o json | jq -e '.claims[0].heldBy[0].name == "db-0"' >/dev/null
    "$claimguard" why same -n "$namespace" --snapshot "$plane/written.json" >"$plane/why.txt" || [ $? = 1 ]
    grep -q db-0 "$plane/why.txt"
    "$claimguard" audit --snapshot "$plane/written.json" >/dev/null || [ $? = 1 ]
}
# leaves FILE: each scalar of the JSON, with its path, a line each.
leaves() { jq -c 'paths(type | IN("array", "object") | not) as $path | [$path, getpath($path)]' "$1" | sort; }
written_snapshot() { "$claimguard" snapshot --kubeconfig "$plane/claimguard.kubeconfig" -o - 2>/dev/null; }
verdicts_of() {
    { "$claimguard" dry-run --snapshot "$plane/$1" --all-pending -o json 2>/dev/null || [ $? = 1 ]; } |
        jq --arg ns "$namespace" 'map(select(.pod.namespace == $ns))'
}

# ---- under load ----

# Two replicas, with a scheduler each, are exchanged one after the other, and back.
replicas_of_both_releases_race_and_leave_each_claim_one_pod() {
    local pairs=40 race release name ran=previously
    local -A bound=([previously]=0 [now]=0)
    trap one_claimguard_again EXIT
    previously start_replicas
    pairs_create "$pairs"
    pairs_race "$pairs" &
    race=$!
    for release in now previously; do
        for name in one two; do
            sleep 0.3
            bound[$ran]=$((bound[$ran] + $(bound_by "$name")))
            "$release" claimguard_restart "$name" --config "$e2e/annotation.yaml"
        done
        ran=$release
    done
    claimguard_restart two --config "$e2e/annotation.yaml"
    wait $race
    pairs_end "$pairs" 400
    # one of each release: the locks that both have written are taken over
    pairs_second_round "$pairs"
    if [ "$(bound_by two)" = 0 ]; then # on a slow machine the race is over before they are exchanged
        k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
        pairs_race "$pairs"
        pairs_end "$pairs" 400
        pairs_second_round "$pairs"
    fi
    echo "bound while they were exchanged: ${bound[previously]} and ${bound[now]}; since then: $(bound_by one) and $(bound_by two)"
    [ $((bound[previously] + $(bound_by one))) -gt 0 ] || fail "the previous release has bound no pod"
    [ $((bound[now] + $(bound_by two))) -gt 0 ] || fail "this release has bound no pod"
}

bound_by() { metric 'claimguard_extender_requests_total{verb="bind",result="ok"}' "$1"; }

# By a Service: up, and down again.
a_rolling_upgrade_and_a_rolling_rollback_fail_no_call() {
    local first=$namespace way
    variant
    without_reviews "$plane/config"
    for way in "previously now" "now previously"; do
        namespace=$first-${way%% *}
        k create namespace "$namespace" >/dev/null
        "${way% *}" claimguard_start old --config "$plane/config"
        "${way#* }" claimguard_start new --config "$plane/config"
        await 20 "old is ready" is_ready old
        await 20 "new is ready" is_ready new
        rolled_over old new
        k delete namespace "$namespace" --wait=false >/dev/null
    done
    namespace=$first
}
