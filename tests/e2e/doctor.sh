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
