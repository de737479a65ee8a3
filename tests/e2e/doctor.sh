# shellcheck shell=bash
# claimguard doctor, beside the real programs of which it speaks. To be sourced.

# kube_scheduler_says FILE: what the real one does with it, in the words of doctor: CG501 if it refuses the file, else the codes
# of the plugins that it does not have where they matter, in any profile. It stops before it calls anybody.
kube_scheduler_says() {
    local folder=$plane/doctor
    sed -e "s#caData: .*}#caData: $(base64 -w0 "$folder/ca.crt")}#; s#keyData: .*}#keyData: $(base64 -w0 "$folder/client.key")}#" "$1" >"$folder/tried.yaml"
    grep -q ^clientConnection "$1" || echo "clientConnection: {kubeconfig: $plane/admin.kubeconfig}" >>"$folder/tried.yaml"
    if ! (cd "$folder" && "$tools/kube-scheduler" --config tried.yaml --write-config-to written.yaml --secure-port=0 -v=2 >log 2>&1); then
        echo CG501
        return
    fi
    sed -n 's/.*the scheduler starts to work with those plugins" Plugins=//p' "$folder/log" | jq -r '
        def lacks(plugin): any(.[]; (.Enabled // []) | all(.[]; .Name != plugin));
        (if [.PreFilter, .Filter, .Reserve, .PreBind] | lacks("VolumeBinding") then "CG517" else empty end),
        (if [.PreFilter, .Filter] | lacks("NodeVolumeLimits") then "CG518" else empty end),
        (if [.PostFilter] | lacks("DefaultPreemption") then "CG519" else empty end),
        (if [.PreFilter, .Filter] | lacks("VolumeRestrictions") then "CG520" else empty end)' | sort -u
}

what_doctor_says_of_a_scheduler_s_file_is_what_kube_scheduler_does() {
    local file ours its count=0
    mkdir -p "$plane/doctor"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=doctor \
        -keyout "$plane/doctor/client.key" -out "$plane/doctor/client.crt" 2>/dev/null
    cp "$plane/doctor/client.crt" "$plane/doctor/ca.crt"
    cp "$plane/doctor/client.crt" "$plane/doctor/other.crt"
    for file in "$root"/tests/commands/doctor/*/scheduler*.yaml; do
        its=$(kube_scheduler_says "$file")
        ours=$({ "$claimguard" doctor --scheduler-config "$file" -o json || [ $? = 1 ]; } | jq -r ".findings[].code" | sort -u)
        if [ "$its" = CG501 ]; then
            grep -qx CG501 <<<"$ours" || fail "${file#"$root/"}: only kube-scheduler refuses it: $(tail -3 "$plane/doctor/log")"
        else
            ours=$(grep -xE 'CG501|CG51[789]|CG520' <<<"$ours" || true)
            [ "$ours" = "$its" ] || fail "${file#"$root/"}: doctor: $ours, kube-scheduler: $its"
        fi
        count=$((count + 1))
    done
    echo "$count files, $(grep -lr '"CG501"' "$root"/tests/commands/doctor/*/want.json | wc -l) of them refused"
}

# A scheduler that runs with a file in which doctor finds CG510: with the credentials of an administrator, its /configz says the same.
doctor_reads_what_a_running_kube_scheduler_has() {
    local port url status=0
    port=$(($(cat "$plane/port") + 25))
    url=https://127.0.0.1:$port/configz
    mkdir -p "$plane/running"
    sed -e "s#caFile: ca.crt#caFile: $plane/certs/apiserver.crt#" "$root/tests/commands/doctor/cg510_ignorable/scheduler.yaml" >"$plane/running/scheduler.yaml"
    echo "{clientConnection: {kubeconfig: $plane/admin.kubeconfig}, leaderElection: {leaderElect: true, resourceName: asked}}" |
        sed 's/^{//; s/}$//; s/, leaderElection/\nleaderElection/' >>"$plane/running/scheduler.yaml"
    "$claimguard" doctor --scheduler-config "$plane/running/scheduler.yaml" -o json >"$plane/running/file.json" || [ $? = 1 ]
    plane_run "$plane" running "$tools/kube-scheduler" --config "$plane/running/scheduler.yaml" --bind-address 127.0.0.1 --secure-port "$port" \
        --cert-dir "$plane/running" --authentication-kubeconfig "$plane/admin.kubeconfig" --authorization-kubeconfig "$plane/admin.kubeconfig"
    await 30 "it answers" curl -sk -o "$plane/running/answer" "$url"
    KUBECONFIG=$plane/admin.kubeconfig "$claimguard" doctor --scheduler-config "$url" -o json >"$plane/running/url.json" || [ $? = 1 ]
    diff <(jq -c '[.findings[].code]' "$plane/running/file.json") <(jq -c '[.findings[].code]' "$plane/running/url.json") || status=1
    jq -e 'any(.findings[]; .code == "CG510")' "$plane/running/url.json" >/dev/null || status=1
    KUBECONFIG=$plane/claimguard.kubeconfig "$claimguard" doctor --scheduler-config "$url" 2>"$plane/running/refused" && status=1
    grep -q 'status 403' "$plane/running/refused" || status=1
    plane_kill "$plane" running
    [ $status = 0 ] || fail "$(cat "$plane"/running/*.json "$plane/running/refused")"
}

# doctor [ARGUMENT]...: the codes that it finds in the cluster, sorted, in one line; but that claimguard's Deployment has no pods that run:
# claimguard is not in this cluster.
doctor_finds() {
    { "$claimguard" doctor --kubeconfig "$plane/admin.kubeconfig" "$@" -o json || [ $? = 1 ]; } >"$plane/doctor.json"
    jq -r '[.findings[].code | select(. != "CG611" and . != "CG612")] | unique | join(" ")' "$plane/doctor.json"
}
finds() { # CODES [ARGUMENT]...
    local found
    found=$(doctor_finds "${@:2}")
    [ "$found" = "$1" ] || fail "expected $1: $(cat "$plane/doctor.json")"
}

# The cluster as manifests/ make it, then what goes wrong in it.
doctor_finds_what_is_wrong_in_a_cluster() {
    local second=$root/manifests/tls/second-scheduler.yaml
    scheduler='claimguard-scheduler'
    finds "" --scheduler-config "$second"
    [ "$(jq -c '[.notChecked[] | select(startswith("certificates") | not)]' "$plane/doctor.json")" = '[]' ] || fail "$(cat "$plane/doctor.json")"
    jq -e 'any(.findings[]; .code == "CG611" and .where == "Deployment claimguard/claimguard")' "$plane/doctor.json" >/dev/null || fail "$(cat "$plane/doctor.json")"
    # what it is installed with
    k -n claimguard delete service claimguard >/dev/null
    finds CG613 --scheduler-config "$second"
    k apply -f "$root/manifests/service.yaml" >/dev/null
    finds "" --scheduler-config "$second"
    # pods of a scheduler that is not in the file
    claim data
    pod db-0 data
    finds "" --scheduler-config "$second"
    scheduler='default-scheduler'
    claim other
    pod db-1 other
    finds CG805 --scheduler-config "$second"
    jq -e --arg pod "Pod $namespace/db-1" 'any(.findings[]; .where == $pod)' "$plane/doctor.json" >/dev/null
    finds "CG806" --scheduler-config "$root/manifests/tls/default-scheduler.yaml" --scheduler-config "$second"
    delete_pod db-1
    # marks
    sed 's/# managedResources/managedResources/' "$second" >"$plane/marks.yaml"
    scheduler='claimguard-scheduler'
    scheduled db-0
    finds "CG801 CG808" --scheduler-config "$plane/marks.yaml"
    pod waits data 'schedulingGates: [{name: e2e.example.com/wait}]'
    finds "CG801 CG804 CG808" --scheduler-config "$plane/marks.yaml"
    k apply -f "$root/manifests/marks/marks.yaml" >/dev/null
    finds "CG804 CG808" --scheduler-config "$plane/marks.yaml"
    delete_pod waits
    finds CG808 --scheduler-config "$plane/marks.yaml" # the webhooks are not there
    finds "CG802 CG808" --scheduler-config "$second"
    k -n "$namespace" apply -f - >/dev/null <<END
{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, min: {claimguard.io/claims: "1"}}]}}
END
    finds "CG803 CG808" --scheduler-config "$plane/marks.yaml"
    k -n "$namespace" delete limitrange limits >/dev/null
    k delete -f "$root/manifests/marks/marks.yaml" >/dev/null
    # replicas
    finds "CG601" --config "$e2e/claimguard.yaml"
    # webhooks: as they are applied, without a bundle, and nothing is ready
    webhook_yaml "" | sed 's#path: /}#path: /admit/binding}#' | k apply -f - >/dev/null
    finds "CG701 CG703 CG704 CG706"
    k delete validatingwebhookconfiguration claimguard >/dev/null
    # rights: each one of the ClusterRole that the defaults use
    k get clusterrole claimguard -o json | jq "del(.metadata.resourceVersion, .metadata.uid)" >"$plane/clusterrole.json"
    jq '.rules |= map(select(.resources != ["pods/status"]))' "$plane/clusterrole.json" | k apply -f - >/dev/null
    await 10 "it is found" finds CG901
    jq -e '.findings[] | select(.code == "CG901") | .finding == "may not: patch pods/status" and .level == "warning" and .where == "system:serviceaccount:claimguard:claimguard"' "$plane/doctor.json" >/dev/null
    jq '.rules = []' "$plane/clusterrole.json" | k apply -f - >/dev/null
    await 10 "nothing is allowed" finds_no_rights
    k apply -f "$root/manifests/rbac.yaml" >/dev/null
    await 10 "all is allowed again" finds ""
    # credentials that may list pods and claims only
    { "$claimguard" doctor --kubeconfig "$plane/claimguard.kubeconfig" || [ $? = 1 ]; } | grep 'Not checked: Deployments, .* (these credentials may not list them)'
}

finds_no_rights() {
    finds CG901
    jq -e '.findings[] | select(.code == "CG901") | .level == "error" and (.finding | contains("watch pods, get pods") and contains("create pods/binding"))' "$plane/doctor.json"
}
