# shellcheck shell=bash
# Runs with faults: claimguard follows an API server through the fault proxy while objects come and go, and requests and
# streams are cut, delayed and refused, and sometimes another, older API server takes the place of the first. When the
# faults stop, its cache must become, byte for byte, what a fresh claimguard reads. To be sourced.
#
# Two API servers without controllers, so that nothing changes by itself: `newer` is well ahead of `older`, which cannot
# stream lists.

lanes=17 # runs at a time: most of one is waiting, but each takes memory and a part of the machine

faults_start() {
    local side port=$1
    for side in newer older; do
        plane=$work/$side
        local flags=(--disable-admission-plugins 'ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection')
        [ "$side" = newer ] || flags+=(--feature-gates=WatchList=false)
        plane_start "$plane" "$port" "${flags[@]}"
        plane_run "$plane" proxy "$tools/kubectl" --kubeconfig "$plane/admin.kubeconfig" proxy --port $((port + 3))
        k create namespace faults >/dev/null
        k apply -f "$e2e/fixtures.yaml" >/dev/null
        # more than one page of something, where lists come in pages
        [ "$side" = newer ] || seq 700 | sed 's#.*#POST /api/v1/nodes {"metadata":{"name":"page-&"}}#' |
            "$flood" "$plane/admin.kubeconfig" 8 2 >/dev/null
        # a key that is nobody's: each time that it is written, etcd's revision goes up
        [ "$side" = older ] || curl -sSf --fail-early --data '{"key":"YQ==","value":"YQ=="}' "http://127.0.0.1:$port/v3/kv/put#[1-5000]" >/dev/null
        faults_kubeconfig "$port" $((port + 3)) >"$plane/direct.kubeconfig"
        port=$((port + 10))
    done
    plane=$work/newer
    [ "$(faults_version newer)" -gt $(($(faults_version older) + 2000)) ] || fail "newer is not well ahead of older"
}
faults_version() { curl -sSf "http://127.0.0.1:$(($(cat "$work/$1/port") + 3))/api/v1/pods?limit=1" | jq -er .metadata.resourceVersion; }

faults_kubeconfig() { # a name, PORT
    cat <<END
apiVersion: v1
kind: Config
current-context: x
clusters:
- {name: x, cluster: {server: "http://127.0.0.1:$2"}}
users:
- {name: x, user: {}}
contexts:
- {name: x, context: {cluster: x, user: x}}
END
}

# Some forty changes that follow from the seed; some of them cannot succeed, and need not.
faults_changes() {
    awk -v seed="$1" '
        BEGIN {
            srand(seed)
            base = "/api/v1/namespaces/faults"
            for (i = 0; i < 40; i++) {
                pod = "p-" int(rand() * 12); claim = "c-" int(rand() * 6); what = rand()
                if (what < 0.35)
                    printf "POST %s/pods {\"metadata\":{\"name\":\"%s\",\"labels\":{\"n\":\"%d\"}},\"spec\":{%s\"schedulerName\":\"none\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}\n", base, pod, i, rand() < 0.5 ? "\"nodeName\":\"node-1\"," : "", claim
                else if (what < 0.5)
                    printf "POST %s/pods/%s/binding {\"metadata\":{\"name\":\"%s\"},\"target\":{\"kind\":\"Node\",\"name\":\"node-2\"}}\n", base, pod, pod
                else if (what < 0.7)
                    printf "DELETE %s/pods/%s?gracePeriodSeconds=0\n", base, pod
                else if (what < 0.75)
                    printf "PATCH %s/pods/%s/status {\"status\":{\"phase\":\"Succeeded\"}}\n", base, pod
                else if (what < 0.9)
                    printf "POST %s/persistentvolumeclaims {\"metadata\":{\"name\":\"%s\"},\"spec\":{\"accessModes\":[\"%s\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}\n", base, claim, rand() < 0.7 ? "ReadWriteOncePod" : "ReadWriteOnce"
                else
                    printf "DELETE %s/persistentvolumeclaims/%s\n", base, claim
            }
        }'
}

# What a claimguard that has just started reads, without faults in between.
faults_truth() { # KUBECONFIG
    claimguard_start fresh --kubeconfig "$1" || return 1
    await 60 "the fresh one is ready" is_ready fresh || return 1
    cache_of fresh >"$work/truth.json"
    plane_kill "$plane" fresh
}

faults_is_equal() { cache_of "faulted-$1" | cmp -s - "$work/truth.json"; }

# A claimguard for each seed, behind a fault proxy of its own, which takes orders from $work/orders-SEED.
faults_lanes_start() { # SIDE FIRST-SEED LAST-SEED
    local seed port upstream
    upstream=$(($(cat "$work/$1/port") + 3))
    port=$(($(cat "$work/newer/port") + 20))
    for seed in $(seq "$2" "$3"); do
        mkfifo "$work/orders-$seed"
        plane_run "$plane" "fault-proxy-$seed" "$fault_proxy" $((port + seed % 50)) "$upstream" "$seed" <>"$work/orders-$seed"
    done
    for seed in $(seq "$2" "$3"); do
        # else the orders have no reader
        await 30 "seed $seed: its fault proxy listens" listens $((port + seed % 50)) || return 1
        echo "faults $((10 + seed % 50))" >"$work/orders-$seed"
        faults_kubeconfig x $((port + seed % 50)) >"$work/faulted-$seed.kubeconfig"
        claimguard_launch "faulted-$seed" --kubeconfig "$work/faulted-$seed.kubeconfig"
    done
    for seed in $(seq "$2" "$3"); do claimguard_listens "faulted-$seed" || return 1; done
}

listens() { : <"/dev/tcp/127.0.0.1/$1"; }

# A scheduler of a kind, which asks twice a second: rejections, with their confirmation, while the cache is written. A curl
# for 100 calls: to start one takes more of the machine than all that the call does.
faults_ask() { # SEED...
    local seed url
    for seed in "$@"; do
        url=$(url_of "faulted-$seed" address)/prefilter
        while nice curl -s --fail-early --max-time 5 --rate 2/s -o "$work/answer-$seed" --data @"$work/request.json" "$url#[1-100]"; do :; done &
    done
    wait
}

# faults_group FIRST-SEED LAST-SEED: these runs at the same time, with the same changes and faults of their own.
faults_group() {
    local first=$1 last=$2 side=newer seed port changes
    port=$(cat "$work/newer/port")
    [ $((first / lanes % 3)) != 2 ] || side=older # all the time: lists in pages, with faults
    faults_lanes_start "$side" "$first" "$last" || return 1
    # shellcheck disable=SC2046
    faults_ask $(seq "$first" "$last") & # until they are gone
    faults_changes "$first" | "$flood" "$work/$side/admin.kubeconfig" 1 >/dev/null
    case $((first / lanes % 3)) in
    0) for seed in $(seq "$first" "$last"); do echo cut >"$work/orders-$seed"; done ;;
    1)
        side=older
        for seed in $(seq "$first" "$last"); do
            await 180 "seed $seed: it has read the newer one" is_ready "faulted-$seed" || return 1
            echo "upstream $((port + 13))" >"$work/orders-$seed"
        done
        ;;
    esac
    for changes in 1000 2000; do
        faults_changes $((first + changes)) | "$flood" "$work/$side/admin.kubeconfig" 1 >/dev/null
    done
    for seed in $(seq "$first" "$last"); do echo "faults 0" >"$work/orders-$seed"; done
    faults_truth "$work/$side/direct.kubeconfig" || return 1
    for seed in $(seq "$first" "$last"); do faults_lane_check "$seed" || return 1; done
    for seed in $(seq "$first" "$last"); do kill "$(cat "$plane/faulted-$seed.pid")"; done # all at once, then each is waited for
    for seed in $(seq "$first" "$last"); do faults_lane_end "$seed" || return 1; done
}

faults_lane_check() { # SEED
    local seed=$1
    await 60 "seed $seed: the cache equals a fresh list" faults_is_equal "$seed" || {
        cache_of "faulted-$seed" | diff - "$work/truth.json" | head -20 || true
        tail -5 "$plane/faulted-$seed.log"
        return 1
    }
    # the cache may be right before the last watch has come back
    await 60 "seed $seed: it is ready" is_ready "faulted-$seed" || return 1
    asked=$((asked + $(metric 'confirmations_total' "faulted-$seed")))
}

faults_lane_end() { # SEED
    local seed=$1
    plane_kill "$plane" "faulted-$seed"
    plane_kill "$plane" "fault-proxy-$seed"
    if grep -hE -A20 '(ERROR|WARNING): (Address|Leak|Thread)Sanitizer|:[0-9]+:[0-9]+: runtime error:' "$plane/faulted-$seed.log"; then return 1; fi
    restarts=$((restarts + $(grep -c 'starts again' "$plane/faulted-$seed.log" || true)))
}

# faults_runs COUNT FIRST-SEED
faults_runs() {
    local first last restarts=0 asked=0
    jq -n '{NodeNames: ["node-1"], Pod: {metadata: {name: "asks", namespace: "faults", uid: "1"},
        spec: {volumes: [range(6) | {name: "v\(.)", persistentVolumeClaim: {claimName: "c-\(.)"}}]}}}' >"$work/request.json"
    for first in $(seq "$2" "$lanes" $(($2 + $1 - 1))); do
        last=$((first + lanes <= $2 + $1 ? first + lanes - 1 : $2 + $1 - 1))
        faults_group "$first" "$last" || fail "a run among seeds $first to $last failed" || return 1
    done
    echo "lists and watches were started again $restarts times; the API server was asked before $asked rejections"
    [ "$asked" -ge "$1" ] && [ "$restarts" -ge "$1" ]
}
