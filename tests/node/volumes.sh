# shellcheck shell=bash
# CSI drivers, inline volumes, VolumeAttributesClasses and deferred mounts, with a driver that mounts. To be sourced.

# late_driver: a second driver, for static volumes that need no attacher.
late_driver() {
    k create --dry-run=client -o json -f "$node/csi.yaml" | jq --arg volumes "$nodes/volumes" 'select(.kind == "DaemonSet") |
        .metadata.name = "late" | .spec.selector.matchLabels.app = "late" | .spec.template.metadata.labels.app = "late" |
        .spec.template.spec.containers[0].args = ["-name=late.example.com", "-data=/volumes"] |
        .spec.template.spec.volumes[1].hostPath.path = $volumes' | k apply -f - >/dev/null
}
late_claim() {
    mkdir -p "$nodes/volumes/late"
    rm -f "$nodes/volumes/late/log" # of another scenario
    claim_yaml late | sed 's/plugin1.example.com/late.example.com/; s/volumeHandle: [^}]*/volumeHandle: late/; s/fast-storage/late/' | k apply -f - >/dev/null
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: late.example.com}
spec: {attachRequired: false}
END
}

a_driver_that_comes_lets_the_pod_run_and_one_that_goes_keeps_the_next_out() {
    claimguard_with
    late_claim
    runs first late 'echo first >>/data/log'
    rejected first 'driver late.example.com'
    late_driver
    is_up first
    contains first first
    end_pod first
    k -n csi delete daemonset late --wait >/dev/null
    await 60 "no CSINode names the driver" driver_is_on 0 late.example.com
    runs second late 'echo second >>/data/log'
    rejected second 'driver late.example.com'
    late_driver
    is_up second
    contains second 'first second'
    end_pod second
    k -n csi delete daemonset late --wait >/dev/null
}

an_inline_volume_is_mounted_and_gone_with_its_pod() {
    claimguard_with
    pod_yaml inline '' 'volumes: [{name: scratch, csi: {driver: node.example.com, volumeAttributes: {color: red}}}]' |
        running scratch 'echo inline >>/data/log' | k apply -f - >/dev/null
    is_up inline
    contains inline inline
    in_pod inline grep -q '"color":"red"' /data/attributes.json
    end_pod inline
    ! ls -d "$nodes"/volumes/csi-* 2>/dev/null || fail "its folder is still there"
    pod_yaml other '' 'volumes: [{name: scratch, csi: {driver: nobody.example.com}}]' | running scratch true | k apply -f - >/dev/null
    rejected other 'nobody.example.com'
}

a_volume_attributes_class_is_applied_and_a_missing_one_is_named() {
    claimguard_with
    wanted data ReadWriteOncePod 'volumeAttributesClassName: gold'
    runs first data 'echo first >>/data/log'
    rejected first "VolumeAttributesClass gold of claim $namespace/data does not exist"
    attributes_class gold 'iops: "9000"'
    is_up first
    in_pod first grep -q '"iops":"9000"' /data/attributes.json
    [ "$(k -n "$namespace" get pvc data -o 'jsonpath={.status.currentVolumeAttributesClassName}')" = gold ]
}

attributes_class() { # NAME PARAMETERS
    k apply -f - >/dev/null <<END
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: $1}
driverName: node.example.com
parameters: {$2}
END
}
change_class() { k -n "$namespace" patch pvc data --type merge -p '{"spec": {"volumeAttributesClassName": "'"$1"'"}}' >/dev/null; }
class_is() { [ "$(k -n "$namespace" get pvc data -o json | jq -r '.status | "\(.currentVolumeAttributesClassName) \(.modifyVolumeStatus.status)"')" = "$1" ]; }

a_class_that_is_changed_under_a_running_pod_is_applied_and_one_that_is_refused_is_named() {
    claimguard_with
    attributes_class bronze 'iops: "100"'
    attributes_class silver 'iops: "500"'
    attributes_class odd 'color: red' # the driver knows iops alone
    wanted data ReadWriteOncePod 'volumeAttributesClassName: bronze'
    runs first data true
    is_up first
    in_pod first grep -q '"iops":"100"' /data/attributes.json
    change_class silver
    await 60 "class silver is applied" class_is 'silver null'
    in_pod first grep -q '"iops":"500"' /data/attributes.json
    change_class odd
    await 60 "class odd is refused" class_is 'silver Infeasible'
    end_pod first
    runs second data true
    is_up second
    await 60 "an event says so" has_event VolumeWarning "claim $namespace/data keeps class silver: driver node.example.com refused class odd"
    in_pod second grep -q '"iops":"500"' /data/attributes.json
}

# The driver refuses what the annotation names, since no runtime here mounts it.
the_driver_reads_the_annotation_and_leaves_the_mount() {
    claimguard_with
    configured_with <<END
apiVersion: claimguard.io/v1alpha1
kind: ClaimguardConfiguration
deferFSMount:
  entries:
  - {storageClass: folders, runtimeClass: microvm}
END
    wanted data
    wanted other
    runs left data true 'runtimeClassName: microvm'
    await 60 "the driver says that it leaves the mount" has_event FailedMount 'is left to the container runtime, by claimguard.io/defer-fs-mount'
    [ "$(k -n "$namespace" get pod left -o 'jsonpath={.metadata.annotations.claimguard\.io/defer-fs-mount}')" = data ]
    k -n "$namespace" annotate pod left claimguard.io/defer-fs-mount- >/dev/null # decided once
    pod_yaml mounted other 'runtimeClassName: microvm' | running other 'echo mounted >>/data/log' |
        sed 's#^metadata: {#&annotations: {claimguard.io/defer-fs-mount: disabled}, #' | k apply -f - >/dev/null
    is_up mounted
    contains mounted mounted
    ! is_running left >/dev/null || fail "the driver has mounted what it had left"
    end_pod left
}
