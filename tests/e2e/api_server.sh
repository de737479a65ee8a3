# shellcheck shell=bash
# An API server that is killed, old, compacted, or does not take the token any more. To be sourced.

the_api_server_is_killed_and_restarted() {
    claim data
    pod db-0 data
    scheduled db-0
    k -n "$namespace" get pod db-0 -o json |
        jq '{Pod: (.metadata.name = "db-1" | .metadata.uid = "1" | del(.spec.nodeName))}' >"$plane/request.json"
    plane_kill "$plane" apiserver KILL
    sleep 2
    # verdicts continue from the cache, whose age is shown
    await 20 "it is ready" is_ready claimguard
    await 20 "the cache's age is shown" shows_its_age
    await 20 "the claim is in use, by the cache" rejects_from_the_cache
    api_restart
    pod db-1 data
    in_use_by db-1 db-0
    delete_pod db-0
    scheduled db-1
}

shows_its_age() {
    curl -s "$(url_of claimguard metrics)/metrics" | awk -v now="$(date +%s)" '
        /^claimguard_cache_last_event_timestamp_seconds{resource="pods"}/ { is_so = $2 > now - 3600 && $2 <= now + 1 } END { exit !is_so }'
}
rejects_from_the_cache() {
    curl -s --data @"$plane/request.json" "$(url_of claimguard address)/prefilter" |
        jq -e '.code == "UnschedulableAndUnresolvable"' >/dev/null
}

an_older_api_server_is_followed_in_pages_and_without_what_it_lacks() {
    claim data
    pod db-0 data
    scheduled db-0
    api_restart --feature-gates=WatchList=false --runtime-config=storage.k8s.io/v1/volumeattributesclasses=false
    claimguard_start older
    await 20 "it is ready" is_ready older
    curl -s "$(url_of older metrics)/readyz?verbose" | has -x '\[+\] volumeattributesclasses not served by this API server'
    [ "$(metric 'reason="fallback"' older)" = 8 ]
    [ "$(grep -c 'so it is ignored' "$plane/older.log")" = 1 ]
    cache_of older | jq -e --arg key "$namespace/data" '.claims[$key].refs == 1' >/dev/null
    plane_kill "$plane" older
    api_restart
}

a_compaction_makes_the_watches_expire_and_nothing_is_lost() {
    local before port revision
    before=$(metric 'reason="expired"')
    claim data
    pod db-0 data
    scheduled db-0
    kill -STOP "$(cat "$plane/claimguard.pid")"
    delete_pod db-0
    plane_kill "$plane" apiserver KILL
    port=$(cat "$plane/port")
    for _ in 1 2 3; do
        revision=$(curl -s "http://127.0.0.1:$port/v3/kv/put" -d '{"key": "anVuaw==", "value": "anVuaw=="}' | jq -r .header.revision)
    done
    curl -s "http://127.0.0.1:$port/v3/kv/compaction" -d "{\"revision\": \"$revision\", \"physical\": true}" >/dev/null
    api_restart
    kill -CONT "$(cat "$plane/claimguard.pid")"
    await 30 "watches expired" eval "[ \$(metric 'reason=\"expired\"') -gt $before ]"
    pod db-1 data
    scheduled db-1
}

a_rotated_token_is_used_and_a_revoked_one_recovered_from() {
    local before
    before=$(metric 'reason="unauthorized"')
    new_token "token-$namespace" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    k -n claimguard delete secret token-first --ignore-not-found >/dev/null # the old token is good no longer
    claim data
    pod db-0 data
    scheduled db-0
    pod db-1 data
    in_use_by db-1 db-0
    # and now the one in use is revoked before there is another
    k -n claimguard delete secret "token-$namespace" >/dev/null
    sleep 10 # the API server remembers tokens for so long
    api_restart # ends the watches
    await 20 "claimguard was refused" eval "[ \$(metric 'reason=\"unauthorized\"') -gt $before ]"
    new_token "token-last" >"$plane/token.new"
    mv "$plane/token.new" "$plane/token"
    delete_pod db-0
    scheduled db-1
    await 20 "the watches are back" is_current
}
