# shellcheck shell=bash
# manifests/chart in the real cluster: helm takes over what kustomize has applied, upgrades and removes it; the chart's second scheduler
# runs with the rights that the chart gives it. And the objects of manifests/monitoring, with the Prometheus Operator's kinds. To be sourced.

operator=github.com/prometheus-operator/prometheus-operator@v0.85.0

# operator_kinds TOOLS: the CustomResourceDefinitions of the kinds of manifests/monitoring, from the operator's module, in TOOLS.
operator_kinds() {
    local folder
    [ ! -e "$1/$(basename $operator).yaml" ] || return 0
    folder=$(go mod download -json $operator | jq -r .Dir)/example/prometheus-operator-crd
    cat "$folder"/monitoring.coreos.com_{podmonitors,prometheusrules}.yaml >"$1/$(basename $operator).yaml.new"
    mv "$1/$(basename $operator).yaml.new" "$1/$(basename $operator).yaml" # all of it, or none
}

the_api_server_takes_what_the_prometheus_operator_reads() {
    local kinds
    kinds=$tools/$(basename $operator).yaml
    k apply --server-side -f "$kinds" >/dev/null
    await 20 "the kinds are served" k get podmonitors,prometheusrules -A
    variant monitoring
    rendered '[.items[].kind] | contains(["PodMonitor", "PrometheusRule"])'
    rendered '.items[] | select(.kind == "ConfigMap" and .metadata.name == "claimguard-dashboard") |
        .metadata.labels.grafana_dashboard == "1" and (.data["claimguard.json"] | fromjson.panels | length > 40)'
    k delete -f "$kinds" >/dev/null
}

the_chart_renders_what_kustomize_does() {
    "$root/tests/checks/chart-holds" "$tools/helm" "$tools/kubectl" "$claimguard"
}

ca_bundles() { k get validatingwebhookconfiguration claimguard -o json | jq -r '[.webhooks[].clientConfig.caBundle // "none"] | unique | join(" ")'; }
# What has claimguard's label, by any name of a kind.
labelled() {
    k get -A -o name -l app.kubernetes.io/name=claimguard \
        "deployments,services,configmaps,networkpolicies,poddisruptionbudgets,resourcequotas,serviceaccounts,clusterroles,clusterrolebindings,\
roles,rolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,validatingwebhookconfigurations,mutatingadmissionpolicies"
}

uninstalled() {
    with_helm uninstall claimguard >/dev/null
    [ -z "$(labelled)" ] || fail "left behind: $(labelled)"
}
its_deployment_has() { # TEST
    k -n claimguard get deployment claimguard -o json | jq -e "$1" >/dev/null || fail "the Deployment has not: $1"
}

helm_takes_over_from_kustomize_installs_upgrades_and_leaves_nothing() {
    local bundles
    with_helm install claimguard "$root/manifests/chart" --take-ownership --force-conflicts >"$plane/helm.out"
    grep -q 'no pod is bound outside kube-system, calico-system' "$plane/helm.out" # the notes
    its_deployment_has '.metadata.annotations["meta.helm.sh/release-name"] == "claimguard"'
    uninstalled
    with_helm install claimguard "$root/manifests/chart" --set profile=scheduler >/dev/null
    its_deployment_has '.spec.replicas == 2'
    "$claimguard" certificates --kubeconfig "$plane/admin.kubeconfig" >/dev/null
    bundles=$(ca_bundles)
    [[ $bundles != *none* && $bundles != *' '* ]] || fail "the webhooks have the bundles $bundles"
    with_helm upgrade claimguard "$root/manifests/chart" --set profile=observe,replicas=3,logLevel=debug >/dev/null
    [ "$(ca_bundles)" = "$bundles" ] || fail "an upgrade changes the caBundle to $(ca_bundles)"
    its_deployment_has '.spec.replicas == 3 and (.spec.template.spec.containers[0].args | contains(["--log-level=debug"]))'
    if labelled | grep scheduler; then fail "the second scheduler is not removed"; fi
    with_helm upgrade claimguard "$root/manifests/chart" --reset-then-reuse-values --set image.tag=next >/dev/null
    its_deployment_has '.spec.template.spec.containers[0] | (.image | endswith(":next")) and (.args | contains(["--log-level=debug"]))'
    with_helm rollback claimguard 2 >/dev/null
    its_deployment_has '.spec.template.spec.containers[0] | (.image | endswith(":next") | not) and (.args | contains(["--log-level=debug"]))'
    [ "$(ca_bundles)" = "$bundles" ] || fail "a rollback changes the caBundle to $(ca_bundles)"
    uninstalled
    manifests_apply
    new_token token-after-helm >"$plane/token" # of the new service account
    await 30 "claimguard is ready again" is_ready claimguard
}

# chart_scheduler_start SED-EXPRESSION: as its Deployment runs it, with the token of its service account; its port is another one, and the extender
# is another one's.
chart_scheduler_start() {
    k -n claimguard create token claimguard-scheduler >"$plane/chart-scheduler.token"
    claimguard_kubeconfig "https://127.0.0.1:$(($(cat "$plane/port") + 2))" "$plane/chart-scheduler.token" >"$plane/chart-scheduler.kubeconfig"
    k -n claimguard get configmap claimguard-scheduler -o json | jq -r '.data["scheduler.yaml"]' >"$plane/chart-scheduler.yaml"
    sed -i "$1" "$plane/chart-scheduler.yaml"
    echo "clientConnection: {kubeconfig: $plane/chart-scheduler.kubeconfig}" >>"$plane/chart-scheduler.yaml"
    plane_run "$plane" chart-scheduler "$tools/kube-scheduler" --config "$plane/chart-scheduler.yaml" --bind-address 127.0.0.1 \
        --authentication-skip-lookup --secure-port $(($(cat "$plane/port") + 9)) --authentication-kubeconfig "$plane/chart-scheduler.kubeconfig" \
        --authorization-kubeconfig "$plane/chart-scheduler.kubeconfig"
}
chart_scheduler_stop() {
    plane_kill "$plane" chart-scheduler
    k delete -f "$plane/chart-scheduler-objects.yaml" --ignore-not-found >/dev/null
}

the_chart_s_second_scheduler_binds_pods_with_the_rights_that_it_has() {
    local line refused
    scheduler='of-the-chart'
    with_helm template claimguard "$root/manifests/chart" -s templates/scheduler.yaml -s templates/scheduler-rights.yaml \
        --set profile=scheduler,scheduler.name=$scheduler,scheduler.replicas=2 >"$plane/chart-scheduler-objects.yaml"
    k apply -f "$plane/chart-scheduler-objects.yaml" >/dev/null
    trap chart_scheduler_stop EXIT
    k -n claimguard get deployment claimguard-scheduler -o json |
        jq '{apiVersion: "v1", kind: "Pod", metadata: {name: "try", namespace: "claimguard"}, spec: .spec.template.spec}' |
        k create --dry-run=server -f - >/dev/null # Pod Security takes it
    line=$(($(wc -l <"$plane/audit.log") + 1))
    chart_scheduler_start "s#urlPrefix: .*#urlPrefix: $(url_of claimguard address)#; /enableHTTPS/d; /tlsConfig/,/keyFile/d"
    claim data
    pod first data
    scheduled first
    pod second data
    rejected second "claim $namespace/data is in use by pod $namespace/first on $(node_of first)"
    k -n claimguard get lease claimguard-scheduler -o name >/dev/null # its leader's
    refused=$(tail -n "+$line" "$plane/audit.log" | jq -r 'select(.user.username == "system:serviceaccount:claimguard:claimguard-scheduler" and
        .responseStatus.code == 403) | .requestURI' | sort -u)
    [ -z "$refused" ] || fail "the API server refuses it $refused"
}
