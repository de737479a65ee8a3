# shellcheck shell=bash
# Everything at once, for so many seconds: two schedulers race for claims and preempt, hostile objects come and go, clients
# trickle bytes into both ports, the configuration is rewritten, and every request to the API server goes through the fault
# proxy, to a server that stands still now and then. With the limits of manifests/: 256 MiB, and 512 open files. To be sourced.
#
# With a claimguard as it is shipped ($release): sanitizers take more memory than that. In a short run no time is asserted.

soak=${CLAIMGUARD_E2E_SOAK:-120}
soak_long=1800 # seconds: from here on, times are asserted, too
soak_mib=256   # memory
soak_claims=12 # that are raced for
soak_sample=5  # seconds
soak_window=12 # samples that make one figure of memory

soak_goes_on() { [ $SECONDS -lt "$soak_end" ] && kill -0 "$soak_pid" 2>/dev/null; }

# A memory control group of that size below our own, if we may make one. cgroup v1, then v2.
soak_group() {
    local own group limit
    for own in "/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)" "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
        group=${own%/}/claimguard-e2e-$$
        mkdir "$group" 2>/dev/null || continue
        for limit in "$group/memory.limit_in_bytes" "$group/memory.max"; do
            [ -e "$limit" ] && echo $((soak_mib << 20)) >"$limit" && echo "$group" | tee "$work/group" && return 0
        done
        rmdir "$group"
    done
}

# A command that is claimguard with those limits.
soak_limited() {
    cat >"$plane/limited" <<END
#!/usr/bin/env bash
ulimit -n 512
[ -z "$soak_group" ] || echo \$\$ >"$soak_group/cgroup.procs"
exec "$release" "\$@"
END
    chmod +x "$plane/limited"
    echo "$plane/limited"
}

soak_claimguard_start() {
    plane_kill "$plane" claimguard
    soak_group=$(soak_group)
    claimguard=$(soak_limited)
    cp "$e2e/claimguard.yaml" "$plane/soak.yaml"
    claimguard_start claimguard --kubeconfig "$plane/faulty.kubeconfig" --config "$plane/soak.yaml" --log-level info
    soak_pid=$(cat "$plane/claimguard.pid")
    await 20 "it is ready" is_ready claimguard
}

# ---- what happens in it ----

soak_faults() {
    local n=0
    while soak_goes_on; do
        case $((n++ % 8)) in
        0 | 4) echo "faults 10" >"$plane/orders" ;;
        1 | 5) soak_standstill ;;
        2) printf 'cut\ndelay 500\n' >"$plane/orders" ;;
        3) printf 'delay 0\nfaults 30\n' >"$plane/orders" ;;
        6) echo stall >"$plane/orders" ;;
        7) echo cut >"$plane/orders" ;;
        esac
        sleep 4
    done
    printf 'faults 0\ndelay 0\ncut\n' >"$plane/orders"
}
# A slow API server: for two seconds it takes nothing and answers nothing.
soak_standstill() {
    kill -STOP "$(cat "$plane/proxy.pid")"
    sleep 2
    kill -CONT "$(cat "$plane/proxy.pid")"
}

# Two pods for each claim, one for each scheduler; pods of higher priority for some; who was first is deleted, then all.
soak_races() {
    local pods=/api/v1/namespaces/$namespace/pods
    while soak_goes_on; do
        pairs_race "$soak_claims" || true # some may fail
        sleep 1
        soak_preemptors | "$flood" "$plane/admin.kubeconfig" 4 >/dev/null
        sleep 2
        pairs_delete_bound || true
        sleep 2
        echo "DELETE $pods?gracePeriodSeconds=0" | "$flood" "$plane/admin.kubeconfig" 1 >/dev/null
    done
}
soak_preemptors() {
    local i
    for i in 1 2 3 4; do
        printf 'POST /api/v1/namespaces/%s/pods {"metadata":{"name":"high-%d"},"spec":{"priorityClassName":"high","schedulerName":"%s","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c-%d"}}]}}\n' \
            "$namespace" $i "$([ $((i % 2)) = 0 ] && echo default-scheduler || echo claimguard-scheduler)" $i
    done
}

soak_hostile() {
    local hostile=$namespace-hostile pods=/api/v1/namespaces/$namespace-hostile/pods
    hostile_send() { # as lines for flood
        printf 'POST /api/v1/namespaces/%s/%s ' "$hostile" "$1"
        tr -d '\n'
        echo
    }
    { hostile_objects && soak_large_objects; } >"$plane/hostile.txt"
    while soak_goes_on; do
        "$flood" "$plane/admin.kubeconfig" 4 <"$plane/hostile.txt" >>"$plane/hostile.log"
        sleep 2
        printf 'DELETE %s?gracePeriodSeconds=0\nDELETE %s\n' "$pods" "${pods%pods}persistentvolumeclaims" |
            "$flood" "$plane/admin.kubeconfig" 1 >/dev/null
        sleep 1
    done
}
# More claims than a pod may have here, and the longest names.
soak_large_objects() {
    local many long
    many=$(seq 600 | sed 's/.*/{"name":"v-&","persistentVolumeClaim":{"claimName":"many-&"}}/' | paste -sd,)
    long=$(printf 'n%.0s' $(seq 253))
    hostile_pod many '' ",\"volumes\":[$many]"
    hostile_pod many-bound '' ",\"nodeName\":\"node-1\",\"volumes\":[$many]"
    hostile_claim "$long" ''
    hostile_pod "$long" '' ",\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"$long\"}}]"
}

# More connections than both ports have, each of which sends a byte a second: of its headers, or of its body.
soak_trickle() {
    local -A sockets
    local ports=("$(url_of claimguard address)" "$(url_of claimguard metrics)") heads i
    heads=('POST /filter HTTP/1.1\r\nHost: x\r\nX-More: ' 'POST /bind HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n'
        'GET /metrics HTTP/1.1\r\nHost: x\r\nX-More: ')
    trap '' PIPE
    while soak_goes_on; do
        for i in $(seq 360); do
            if [ -z "${sockets[$i]:-}" ]; then
                soak_connect "${ports[$((i > 280))]##*:}" || continue
                sockets[$i]=$socket
                # shellcheck disable=SC2059 # it is one
                printf "${heads[$((i > 280 ? 2 : i % 2))]}" >&"$socket" || true
            elif ! printf x >&"${sockets[$i]}"; then
                socket=${sockets[$i]}
                exec {socket}>&-
                unset "sockets[$i]"
            fi
        done 2>/dev/null
        sleep 1
    done
}
soak_connect() { exec {socket}<>"/dev/tcp/127.0.0.1/$1"; }

# Good ones, and in between one that is none.
soak_reloads() {
    while soak_goes_on; do
        soak_configure "$e2e/annotation.yaml"
        soak_configure <(cat "$e2e/claimguard.yaml" && printf 'readWriteOncePod:\n  preemptionGrace: 100ms\n')
        soak_configure <(echo 'server: [')
        soak_configure "$e2e/claimguard.yaml"
    done
}
soak_configure() {
    cat "$1" >"$plane/soak.yaml.new"
    mv "$plane/soak.yaml.new" "$plane/soak.yaml"
    sleep 3
}

# ---- what is seen of it from outside ----

# Every change of a pod, in the order in which the API server made it, in $plane/watched.
soak_watch() { watch_pods "$(k -n "$namespace" get pods -o json | jq -r .metadata.resourceVersion)"; }

# soak_ask NAME URL BODY RATE: calls, as many a second; their times go to NAME.ms. A connection for 100 calls.
soak_ask() {
    while soak_goes_on; do
        curl -s --max-time 30 --rate "$4/s" --data @"$3" -o "$plane/$1.answer" -w '%{time_total} %{http_code}\n' "$2#[1-100]" |
            awk '{ print $1 * 1000, $2; fflush() }' >>"$plane/$1.ms" || true
    done
}
soak_request() { # CLAIM: by a pod that no scheduler knows, for a hundred nodes
    jq -cn --arg namespace "$namespace-asks" --arg claim "$1" '{Pod: {metadata: {name: "asks", namespace: $namespace, uid: "asks-\($claim)"},
        spec: {volumes: [{name: "v", persistentVolumeClaim: {claimName: $claim}}]}}, NodeNames: [range(100) | "node-\(.)"]}' >"$plane/ask-$1.json"
}
soak_asks_start() {
    namespace=$namespace-asks
    k create namespace "$namespace" >/dev/null
    claim free
    claim held
    pod holder held 'nodeName: node-1'
    namespace=${namespace%-asks}
    soak_request free
    soak_request held
    plane_run "$plane" noop "$noop"
    await 10 "the no-op listens" grep -q listening "$plane/noop.log"
}

# What a kubelet (which waits for a second) and Prometheus do, from an address of their own; and what is seen of the process.
soak_samples() {
    local metrics failures=0 patience=$((soak < soak_long ? 10 : 1))
    metrics=$(url_of claimguard metrics)
    while soak_goes_on; do
        if curl -sf --max-time $patience --interface 127.0.0.2 "$metrics/livez" >/dev/null; then failures=0; else failures=$((failures + 1)); fi
        curl -s --max-time 5 --interface 127.0.0.2 "$metrics/metrics" >"$plane/scraped" || true
        echo "$((SECONDS - soak_end + soak)) $(awk '/^VmRSS/ { print $2 }' "/proc/$soak_pid/status") $(soak_files) $failures" >>"$plane/samples"
        sleep $soak_sample
    done
}
soak_files() { find "/proc/$soak_pid/fd" -mindepth 1 2>/dev/null | wc -l; }

# ---- what must be true at its end ----

# From the watch: how often a pod got a claim, and where two had one at a time.
soak_bindings() {
    jq -n '
        reduce (inputs | select(.object.kind == "Pod")) as $event ({held: {}, bindings: 0, evicted: 0, double: []};
            $event.object as $pod | $pod.metadata.uid as $uid
            | ($event.type != "DELETED" and $pod.spec.nodeName != null) as $holds
            | if $event.type == "DELETED" and any($pod.status.conditions[]?; .type == "DisruptionTarget") then .evicted += 1 else . end
            | reduce ($pod.spec.volumes[]?.persistentVolumeClaim.claimName // empty) as $claim (.;
                if $holds | not then del(.held[$claim][$uid])
                elif .held[$claim][$uid] then .
                else .held[$claim][$uid] = $pod.metadata.name | .bindings += 1
                    | if .held[$claim] | length > 1 then .double += [{($claim): .held[$claim]}] else . end
                end))
        | del(.held)' "$plane/watched"
}

soak_no_two_pods_had_a_claim() {
    pod last ""
    await 10 "the watch is complete" grep -q '"name":"last"' "$plane/watched"
    touch "$plane/seen-enough"
    wait "$soak_watcher"
    soak_bindings >"$plane/bindings.json"
    echo "the API server's watch: $(jq -c . "$plane/bindings.json")"
    jq -e '.bindings > 0 and .double == []' "$plane/bindings.json" >/dev/null || fail "two pods had a claim"
}

# It races on once more without faults, and then its cache is what a fresh one reads.
soak_comes_to_rest() {
    cp "$e2e/claimguard.yaml" "$plane/soak.yaml"
    await 10 "the good configuration is in force" soak_is_configured
    k -n "$namespace" delete pods --all --grace-period=0 --force >/dev/null 2>&1
    pairs_race "$soak_claims"
    pairs_end "$soak_claims" 400
    stop_schedulers
    claimguard=$release
    await 60 "the cache equals a fresh list" soak_cache_is_fresh || { cache_of claimguard | diff - "$work/truth.json" | head -20; return 1; }
}
soak_is_configured() { [ "$(metric config_last_reload_successful)" = 1 ]; }
soak_cache_is_fresh() { # a fresh one each time: what other scenarios left may still be going
    faults_truth "$plane/claimguard.kubeconfig" && cache_of claimguard | cmp -s - "$work/truth.json"
}

# soak_times NAME: "COUNT calls, MEDIAN, P99, MOST ms, OTHERS not 200"
soak_times() {
    sort -n "$plane/$1.ms" | awk '{ ms[NR] = $1; others += $2 != 200 }
        END { printf "%d calls, median %.2f, p99 %.2f, most %.1f ms; not 200: %d\n", NR, ms[int((NR + 1) / 2)], ms[int(NR * 0.99 + 0.5)], ms[NR], others }'
}
soak_filter_is_quick() {
    echo "no-op extender, for comparison: $(soak_times noop)"
    echo "filter that passes:   $(soak_times free)"
    echo "filter that rejects, and asks the API server: $(soak_times held)"
    echo "by claimguard's own histogram, of all filter calls: $(sed -n 's/.*duration_seconds_bucket{verb="filter",le="\([^"]*\)"} /\1 /p' "$plane/scraped" |
        awk '$2 != last { printf("%d within %s s, ", $2, $1); last = $2 }') no more"
    [ "$soak" -lt "$soak_long" ] || soak_is_quick || fail "filter's p99 is over 10 ms, and over that of the no-op by as much"
}
# On a machine that does all the rest as well, a program that does nothing may take longer than that.
soak_is_quick() { awk -v noop="$(soak_p99 noop)" -v filter="$(soak_p99 free)" 'BEGIN { exit filter > noop + 10 && filter > 10 }'; }
soak_p99() { soak_times "$1" | sed 's/.*p99 \([^,]*\),.*/\1/'; }

# The median of VmRSS of the samples from a second on, in MiB.
soak_rss() {
    awk -v from="$1" '$1 >= from { print $2 / 1024 }' "$plane/samples" | head -$soak_window | sort -n |
        awk '{ mib[NR] = $1 } END { printf "%.1f", mib[int((NR + 1) / 2)] }'
}
# After five minutes, or half of a short run, and at the end: a minute each.
soak_memory_is_kept() {
    local from=$((soak >= soak_long ? 300 : soak / 2)) first last peak
    first=$(soak_rss "$from")
    last=$(soak_rss $((soak - soak_window * soak_sample)))
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$soak_pid/status")
    echo "memory: $first MiB from second $from on, $last MiB at its end, at most $((peak / 1024)) MiB; ${soak_group:+$(cat "$soak_group"/memory.{max_usage_in_bytes,peak} 2>/dev/null) bytes in its control group, limited to $soak_mib MiB}"
    echo "open files: at most $(awk '$3 > most { most = $3 } END { print most }' "$plane/samples"), of 512"
    [ "$peak" -le $((soak_mib << 10)) ] || fail "it took more than $soak_mib MiB"
    awk -v first="$first" -v last="$last" 'BEGIN { exit last > first * 1.1 }' || fail "it grows"
}

soak_it_lives() {
    kill -0 "$soak_pid" || fail "claimguard is dead"
    awk '$4 >= 3 { exit 1 }' "$plane/samples" || fail "a kubelet would have restarted it: /livez failed three times in a row"
}

# What would have machines of its own elsewhere gives way to claimguard, the no-op and those who measure: all that was
# started here so far, and all that this shell starts from now on.
soak_gives_way() {
    local name
    for name in "$plane"/*.pid; do
        case ${name##*/} in claimguard.pid | noop.pid) continue ;; esac
        # shellcheck disable=SC2046 # words
        renice -n 10 -p $(ls "/proc/$(cat "$name")/task") >/dev/null # each thread has a priority of its own
    done
    renice -n 10 -p "$BASHPID" >/dev/null
}

soak_everything() {
    local part parts=()
    soak_ask noop "$(url_of noop address)/filter" "$plane/ask-free.json" 20 &
    parts+=($!)
    soak_ask free "$(url_of claimguard address)/filter" "$plane/ask-free.json" 20 &
    parts+=($!)
    soak_ask held "$(url_of claimguard address)/filter" "$plane/ask-held.json" 5 &
    parts+=($!)
    soak_gives_way
    for part in faults races hostile trickle reloads samples; do
        "soak_$part" &
        parts+=($!)
    done
    for part in "${parts[@]}"; do wait "$part" || fail "a part of the load failed"; done
}

everything_at_once() {
    local soak_group soak_pid soak_end soak_watcher
    [ -x "$release" ] && [ -x "$noop" ] || fail "build $release and $noop first: see ./dev" || return 1
    start_fault_proxy
    k create namespace "$namespace-hostile" >/dev/null
    stop_schedulers # they ask another claimguard
    soak_claimguard_start
    start_schedulers
    pairs_create "$soak_claims"
    soak_asks_start
    rm -f "$plane/watched" "$plane/seen-enough"
    soak_watch &
    soak_watcher=$!
    soak_end=$((SECONDS + soak))
    soak_everything
    soak_it_lives
    soak_memory_is_kept
    soak_comes_to_rest
    soak_no_two_pods_had_a_claim
    soak_it_lives
    echo "hostile objects: $(awk '$1 == "201:" { sum += $2 } END { print sum }' "$plane/hostile.log") accepted; restarts of lists and watches: $(metric watch_restarts_total); configurations: $(grep -c 'configuration reloaded' "$plane/claimguard.log") taken, $(grep -c 'is not reloaded' "$plane/claimguard.log") refused; refused binds: $(metric bind_conflicts_total); preemptions: $(metric preemption_attempts_total); false alarms: $(grep -c "two pods hold" "$plane/claimguard.log")"
    soak_filter_is_quick
}
