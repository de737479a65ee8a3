# shellcheck shell=bash
# Runs with faults: claimguard follows an API server through the fault proxy while objects come and go, and requests and
# streams are cut, delayed and refused, and sometimes another, older API server takes the place of the first. When the
# faults stop, its cache must become, byte for byte, what a fresh claimguard reads. To be sourced.
#
# Two API servers without controllers, so that nothing changes by itself: `newer` is well ahead of `older`.

faults_start() {
    local side port=$1
    for side in newer older; do
        plane=$work/$side
        plane_start "$plane" "$port" --disable-admission-plugins \
            ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection
        plane_run "$plane" proxy "$tools/kubectl" --kubeconfig "$plane/admin.kubeconfig" proxy --port $((port + 3))
        k create namespace faults >/dev/null
        k apply -f "$e2e/fixtures.yaml" >/dev/null
        [ "$side" = older ] || seq 3000 | sed 's#.*#PUT /api/v1/nodes/node-1/status {"metadata":{"name":"node-1","annotations":{"n":"&"}}}#' |
            "$flood" "$plane/admin.kubeconfig" 8 2 >/dev/null
        faults_kubeconfig "$port" $((port + 3)) >"$plane/direct.kubeconfig"
        port=$((port + 10))
    done
    plane=$work/newer
}

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

faults_serve() { # NAME KUBECONFIG
    rm -f "$plane/$1.log"
    plane_run "$plane" "$1" "$claimguard" serve --kubeconfig "$2" --config "$e2e/claimguard.yaml" \
        --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0
    await 20 "$1 listens" grep -q listening "$plane/$1.log"
}

# What a claimguard that has just started reads, without faults in between.
faults_truth() { # KUBECONFIG
    faults_serve fresh "$1"
    await 20 "the fresh one is ready" is_ready fresh
    cache_of fresh >"$work/truth.json"
    plane_kill "$plane" fresh
}

faults_is_equal() { cache_of faulted | cmp -s - "$work/truth.json"; }

# faults_run SEED
faults_run() {
    local seed=$1 port side=newer proxy
    port=$(cat "$work/newer/port")
    mkfifo "$work/orders.$seed"
    "$fault_proxy" $((port + 5)) $((port + 3)) "$seed" <"$work/orders.$seed" &
    proxy=$!
    exec 9>"$work/orders.$seed"
    rm "$work/orders.$seed"
    faults_kubeconfig x $((port + 5)) >"$work/faulted.kubeconfig"
    echo "faults $((10 + seed % 50))" >&9
    faults_serve faulted "$work/faulted.kubeconfig"
    faults_changes "$seed" | "$flood" "$work/newer/admin.kubeconfig" 1 >/dev/null
    if [ $((seed % 3)) = 0 ]; then
        echo cut >&9
    elif [ $((seed % 3)) = 1 ]; then
        side=older
        await 20 "it has read the newer one" is_ready faulted
        echo "upstream $((port + 13))" >&9
        faults_changes $((seed + 1000)) | "$flood" "$work/older/admin.kubeconfig" 1 >/dev/null
    fi
    faults_changes $((seed + 2000)) | "$flood" "$work/$side/admin.kubeconfig" 1 >/dev/null
    echo "faults 0" >&9
    faults_truth "$work/$side/direct.kubeconfig"
    await 40 "seed $seed: the cache equals a fresh list" faults_is_equal || {
        cache_of faulted | diff - "$work/truth.json" | head -20 || true
        tail -5 "$plane/faulted.log"
        return 1
    }
    is_ready faulted
    plane_kill "$plane" faulted
    exec 9>&-
    wait "$proxy"
    if grep -hE 'ERROR: (Address|Leak|Thread)Sanitizer|runtime error' "$plane"/f*.log; then return 1; fi
}

# faults_runs COUNT FIRST-SEED
faults_runs() {
    local seed
    for seed in $(seq "$2" $(($2 + $1 - 1))); do
        faults_run "$seed" || fail "seed $seed failed" || return 1
    done
}
