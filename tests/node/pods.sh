# shellcheck shell=bash
# Pods that really run. To be sourced.

# wanted NAME [MODE] [FIELD: VALUE]...: a claim that the provisioner makes a volume for.
wanted() {
    local name=$1 mode=${2:-ReadWriteOncePod} field
    shift
    shift || true
    {
        cat <<END
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name, namespace: $namespace}
spec:
  accessModes: [$mode]
  storageClassName: folders
  resources: {requests: {storage: 1Mi}}
END
        for field in "$@"; do echo "  $field"; done
    } | k apply -f - >/dev/null
}

# runs NAME CLAIM SCRIPT [FIELD: VALUE]...: a pod of one container, with the claim at /data, that runs a script of the shell, and stays.
runs() {
    local name=$1 claim=$2 script=$3
    shift 3
    pod_yaml "$name" "$claim" "$@" | running "$claim" "$script" | k apply -f - >/dev/null
}
# running VOLUME SCRIPT: what pod_yaml prints, with an image that is there.
running() {
    local mount=
    [ -z "$1" ] || mount="volumeMounts: [{name: $1, mountPath: /data}], "
    # with no time to end in, a pod would be gone at once, also without its kubelet
    sed "s#terminationGracePeriodSeconds: 0#terminationGracePeriodSeconds: 1#; s#containers: .*#containers: [{name: c, image: '$(image_name debian)', ${mount}command: [bash, -c, '$2; exec sleep infinity']}]#"
}

on_node() { echo "nodeSelector: {kubernetes.io/hostname: node-$1}"; }
is_running() { k -n "$namespace" get pod "$1" -o json | jq -e '.status.phase == "Running" and .status.containerStatuses[0].ready'; }
is_up() { await 60 "pod $1 runs" is_running "$1"; }
in_pod() { k -n "$namespace" exec "$1" -- "${@:2}"; }
end_pod() { k -n "$namespace" delete pod "$1" "${@:2}" >/dev/null; }

# contains POD TEXT: what is in the volume's file, in one line, soon: a pod that runs may not have written yet.
contains() { await 10 "pod $1 reads: $2" reads "$1" "$2" || fail "pod $1 reads: $(in_pod "$1" cat /data/log | paste -sd ' ')"; }
reads() { [ "$(in_pod "$1" cat /data/log | paste -sd ' ')" = "$2" ]; }
