# shellcheck shell=bash
# The cluster: a control plane as it is run in earnest, with Node and RBAC, service accounts and all controllers; two nodes; schedulers; the
# CSI driver. To be sourced.
#
#   cluster_start   all of it, until both nodes are ready and the driver answers; files in $plane
#   scheduler_start FILE [URL]   the second scheduler, claimguard-scheduler, with that file of manifests/

api=https://10.99.0.11:6443

cluster_start() {
    cluster_certificates
    cluster_users
    plane_etcd_start "$plane" 2379
    cluster_api_start
    plane_run "$plane" controllers "$tools/kube-controller-manager" --kubeconfig "$plane/controllers.kubeconfig" --leader-elect=false \
        --secure-port=0 --root-ca-file "$plane/certs/apiserver.crt" --service-account-private-key-file "$plane/sa.key" \
        --use-service-account-credentials --kube-api-qps 200 --kube-api-burst 400
    # pods of claimguard's own are bound without it
    plane_run "$plane" default-scheduler "$tools/kube-scheduler" --kubeconfig "$plane/scheduler.kubeconfig" --secure-port=0 --leader-elect=false
    node_start 1
    node_start 2
    await 60 "both nodes are ready" nodes_are_ready 2
    driver_start
}

nodes_are_ready() { [ "$(k get nodes -o json | jq '[.items[] | select(any(.status.conditions[]; .type == "Ready" and .status == "True"))] | length')" = "$1" ]; }

# An authority, and the API server's two certificates: as a server, and as the kubelets' client.
cluster_certificates() {
    local certs=$plane/certs
    mkdir -p "$certs"
    openssl genrsa -out "$plane/sa.key" 2048 2>/dev/null
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout "$certs/ca.key" -out "$certs/apiserver.crt" 2>/dev/null
    cluster_sign serving /CN=kube-apiserver 'subjectAltName=IP:10.0.0.1,IP:10.99.0.11,IP:127.0.0.1'
    cluster_sign kubelet-client /O=system:masters/CN=kube-apiserver 'extendedKeyUsage=clientAuth'
}
cluster_sign() { # NAME SUBJECT EXTENSION
    openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$plane/certs/$1.key" -out "$plane/certs/$1.csr" 2>/dev/null
    openssl x509 -req -days 2 -in "$plane/certs/$1.csr" -CA "$plane/certs/apiserver.crt" -CAkey "$plane/certs/ca.key" -CAcreateserial \
        -extfile <(echo "$3") -out "$plane/certs/$1.crt" 2>/dev/null
}

# NodeRestriction knows a kubelet by its user and group. The last one is for the static pod, whose kubeconfig has claimguard's own user.
cluster_users() {
    local user
    cat >"$plane/tokens.csv" <<END
admin-token,admin,admin,"system:masters"
scheduler-token,system:kube-scheduler,scheduler
controllers-token,system:kube-controller-manager,controllers
proxy-token,system:kube-proxy,proxy
node-1-token,system:node:node-1,node-1,"system:nodes"
node-2-token,system:node:node-2,node-2,"system:nodes"
claimguard-token,system:serviceaccount:claimguard:claimguard,claimguard,"system:serviceaccounts"
END
    for user in admin scheduler controllers proxy node-1 node-2 claimguard; do plane_kubeconfig "$plane" "$user" "$api"; done
}

cluster_api_start() {
    local certs=$plane/certs
    plane_run "$plane" apiserver "$tools/kube-apiserver" --etcd-servers http://127.0.0.1:2379 \
        --bind-address 10.99.0.11 --advertise-address 10.99.0.11 --secure-port 6443 --allow-privileged \
        --tls-cert-file "$certs/serving.crt" --tls-private-key-file "$certs/serving.key" --client-ca-file "$certs/apiserver.crt" \
        --kubelet-client-certificate "$certs/kubelet-client.crt" --kubelet-client-key "$certs/kubelet-client.key" \
        --kubelet-preferred-address-types InternalIP --token-auth-file "$plane/tokens.csv" --authorization-mode Node,RBAC \
        --enable-admission-plugins NodeRestriction --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$plane/sa.key" --service-account-signing-key-file "$plane/sa.key" --service-cluster-ip-range 10.0.0.0/24
    await 60 "the API server is ready" k get --raw /readyz
}

driver_start() {
    sed "s#path: VOLUMES#path: $nodes/volumes#" "$node/csi.yaml" | k apply -f - >/dev/null
    await 120 "the CSI driver is on both nodes" driver_is_on 2 node.example.com
    await 120 "provisioner and attacher run" k -n csi rollout status deployment/controller --timeout 1s
}
driver_is_on() { # NODES DRIVER
    [ "$(k get csinodes -o json | jq --arg name "$2" '[.items[] | select(any(.spec.drivers[]?; .name == $name))] | length')" = "$1" ]
}

# The second scheduler, at claimguard's Service, whose name is not known outside of pods: manifests/README.md says what to write.
scheduler_start() {
    local url=${2:-https://$(k -n claimguard get service claimguard -o 'jsonpath={.spec.clusterIP}'):8888}
    plane_kill "$plane" second-scheduler
    sed 's/^  tlsConfig:/&\n    serverName: claimguard.claimguard.svc/' "$nodes/manifests/$1" >"$plane/second.yaml"
    plane_scheduler_start "$plane" second-scheduler "$plane/second.yaml" "$url"
}
