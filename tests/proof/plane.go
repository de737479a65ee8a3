package main

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const ns = "proof"

// What is started, and where it lies.
type settings struct {
	dir, tools, root string // of this run; of kube-apiserver and the others; of the sources
	claimguard       string
	previous         string // another version to change to and back; empty: none
	faketime         string // the library; empty: clocks stay
	local            bool   // one claimguard with claimLock: Local; else two with Annotation
}

// The control plane: etcd e1 to e3, kube-apiserver a1 and a2, kube-scheduler s1 (with claimguard c1 as
// extender) and s2 (without any), the controllers m, claimguard c1 and c2. claimguard cN uses aN, s2 and m
// use a2. API servers ask either claimguard about Bindings, by the balancer of this program, as a Service
// would let them.
type plane struct {
	settings
	processes map[string]*process
	authority *authority
	etcd      []*server
	api       []*server // as a user
	extenders []*server // the verbs of the claimguards
	balancer  *balancer
	slowHook  *slowHook

	// of the claimguards, by name; changed by faults, and read at the next start
	programs map[string]string
	clocks   map[string]string
}

func (p *plane) file(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) host(name string) string { return p.processes[name].host }

func (p *plane) claimguards() []string {
	if p.local {
		return []string{"c1"}
	}
	return []string{"c1", "c2"}
}

func (p *plane) add(name, host string, command func() (string, []string, []string)) {
	p.processes[name] = &process{name: name, host: host, dir: p.dir, command: command}
}

func always(program string, arguments ...string) func() (string, []string, []string) {
	return func() (string, []string, []string) { return program, arguments, nil }
}

func (p *plane) addEtcd(number int) {
	name, host := fmt.Sprint("e", number), fmt.Sprint("1", number)
	url := "http://" + network + host
	p.add(name, host, always(filepath.Join(p.tools, "server"), "--name", name, "--data-dir", p.file(name),
		"--unsafe-no-fsync", "--log-level", "error", "--quota-backend-bytes", "6000000000",
		"--heartbeat-interval", "50", "--election-timeout", "250", // a second of the usual ones is one of three minutes
		"--listen-client-urls", url+":2379,http://127.0.0.1:2379", "--advertise-client-urls", url+":2379",
		"--listen-peer-urls", url+":2380", "--initial-advertise-peer-urls", url+":2380",
		"--initial-cluster", "e1=http://"+network+"11:2380,e2=http://"+network+"12:2380,e3=http://"+network+"13:2380"))
	p.etcd = append(p.etcd, newServer(name, url+":2379", "", nil))
}

func (p *plane) addAPI(number int, roots *x509.CertPool) {
	name, host := fmt.Sprint("a", number), fmt.Sprint("2", number)
	p.add(name, host, always(filepath.Join(p.tools, "kube-apiserver"),
		"--etcd-servers", "http://"+network+"11:2379,http://"+network+"12:2379,http://"+network+"13:2379",
		"--bind-address", "0.0.0.0", "--advertise-address", network+host, "--secure-port", "6443",
		"--endpoint-reconciler-type", "none", "--cert-dir", p.file(name),
		"--tls-cert-file", p.file("api.crt"), "--tls-private-key-file", p.file("api.key"),
		"--token-auth-file", p.file("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", p.file("sa.key"),
		"--service-account-signing-key-file", p.file("sa.key"), "--service-cluster-ip-range", "10.0.0.0/24",
		"--etcd-compaction-interval", "0", "--storage-media-type", "application/json", // history.go reads all of it
		"--max-requests-inflight", "2000", "--max-mutating-requests-inflight", "1000",
		"--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"))
	p.api = append(p.api, newServer(name, "https://"+network+host+":6443", "client-token", roots))
}

func (p *plane) addClaimguard(number int) {
	name, host := fmt.Sprint("c", number), fmt.Sprint("4", number)
	p.programs[name] = p.claimguard
	p.add(name, host, func() (string, []string, []string) {
		var environment []string
		if p.clocks[name] != "" {
			environment = []string{"LD_PRELOAD=" + p.faketime, "FAKETIME=" + p.clocks[name], "DONT_FAKE_MONOTONIC=1"}
		}
		return p.programs[name], []string{"serve", "--kubeconfig", p.file(name + ".kubeconfig"), "--log-level", "debug",
			"--config", p.file("claimguard.yaml")}, environment
	})
	p.extenders = append(p.extenders, newServer(name, "http://"+network+host+":8888", "", nil))
}

func (p *plane) addOthers() error {
	for _, scheduler := range []struct{ name, host, file, extender string }{
		{"s1", "31", "second-scheduler.yaml", "http://" + network + "41:8888"},
		{"s2", "32", "", ""},
	} {
		config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection:\n" +
			"  kubeconfig: x\nprofiles:\n- schedulerName: plain\n"
		if scheduler.file != "" {
			bytes, err := os.ReadFile(filepath.Join(p.root, "manifests/scheduler", scheduler.file))
			if err != nil {
				return err
			}
			config = string(bytes)
		}
		lines := strings.Split(config, "\n")
		for i, line := range lines {
			trimmed := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(trimmed, "kubeconfig:"):
				lines[i] = "  kubeconfig: " + p.file(scheduler.name+".kubeconfig") + "\n  qps: 500\n  burst: 500"
			case strings.HasPrefix(trimmed, "- urlPrefix:"):
				lines[i] = "- urlPrefix: " + scheduler.extender
			}
		}
		if scheduler.file == "" { // it is not to know the claims' modes: admission alone keeps it from them
			lines = append(lines, "  plugins: {multiPoint: {disabled: [{name: VolumeRestrictions}]}}", "leaderElection: {leaderElect: false}")
		}
		if err := os.WriteFile(p.file(scheduler.name+".yaml"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			return err
		}
		p.add(scheduler.name, scheduler.host, always(filepath.Join(p.tools, "kube-scheduler"), "--config",
			p.file(scheduler.name+".yaml"), "--secure-port=0"))
	}
	p.add("m", "33", always(filepath.Join(p.tools, "kube-controller-manager"), "--kubeconfig", p.file("m.kubeconfig"),
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps", "500", "--kube-api-burst", "1000", "--controllers",
		"garbage-collector-controller,ephemeral-volume-controller,persistentvolumeclaim-protection-controller"))
	return nil
}

func (p *plane) writeKubeconfig(name, user, apiHost string) error {
	return os.WriteFile(p.file(name+".kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: proof
clusters:
- {name: proof, cluster: {server: "https://%s%s:6443", certificate-authority: "%s"}}
users:
- {name: proof, user: {token: %s-token}}
contexts:
- {name: proof, context: {cluster: proof, user: proof, namespace: claimguard}}
`, network, apiHost, p.file("ca.crt"), user), 0o600)
}

// configure writes claimguard's configuration. Two versions differ in what changes no verdict.
func (p *plane) configure(version int) error {
	lock := "Annotation"
	if p.local {
		lock = "Local"
	}
	config := fmt.Sprintf(`apiVersion: claimguard.io/v1alpha1
kind: ClaimguardConfiguration
server: {listen: ":8888", metricsListen: ":8889", debugEndpoints: true}
readWriteOncePod: {claimLock: %s, reservationTTL: %ds}
deferFSMount:
  entries:
  - storageClass: deferred
    runtimeClass: microvm
    postMountConfig: {fsGroup: true, fsGroupChangePolicies: [Always, OnRootMismatch], subPath: true}
    nonExclusiveClaims: Exclusive
admission:
  listen: ":8443"
  tls: {certFile: %s, keyFile: %s}
`, lock, 30+version%2, p.file("webhook.crt"), p.file("webhook.key"))
	if err := os.WriteFile(p.file("claimguard.new"), []byte(config), 0o644); err != nil {
		return err
	}
	return os.Rename(p.file("claimguard.new"), p.file("claimguard.yaml"))
}

func (p *plane) writeFiles() error {
	var err error
	if p.authority, err = newAuthority(); err != nil {
		return err
	}
	tokens := "client-token,client,client,\"system:masters\"\nscheduler-token,system:kube-scheduler,scheduler\n" +
		"controllers-token,system:kube-controller-manager,controllers,\"system:masters\"\n" +
		"claimguard-token,system:serviceaccount:claimguard:claimguard,claimguard,\"system:masters\"\n"
	for name, content := range map[string]string{"tokens.csv": tokens, "ca.crt": string(p.authority.pem)} {
		if err := os.WriteFile(p.file(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if out, err := exec.Command("openssl", "genrsa", "-out", p.file("sa.key"), "2048").CombinedOutput(); err != nil {
		return fmt.Errorf("openssl: %w: %s", err, out)
	}
	if err := p.authority.issue(p.file("api.crt"), p.file("api.key"), "21", "22"); err != nil {
		return err
	}
	if err := p.authority.issue(p.file("webhook.crt"), p.file("webhook.key"), self); err != nil {
		return err
	}
	if err := p.authority.issue(p.file("hook.crt"), p.file("hook.key"), self); err != nil {
		return err
	}
	for name, of := range map[string][2]string{"s1": {"scheduler", "21"}, "s2": {"scheduler", "22"}, "m": {"controllers", "22"},
		"c1": {"claimguard", "21"}, "c2": {"claimguard", "22"}} {
		if err := p.writeKubeconfig(name, of[0], of[1]); err != nil {
			return err
		}
	}
	return p.configure(0)
}

// webhooks is manifests/webhooks.yaml with the balancer's address; and the slow one.
func (p *plane) webhooks() object {
	hook := func(name, address, failurePolicy string, seconds int, resources []any, conditions ...any) object {
		return object{
			"name": name, "matchPolicy": "Equivalent", "sideEffects": "NoneOnDryRun", "timeoutSeconds": seconds, "failurePolicy": failurePolicy,
			"admissionReviewVersions": []any{"v1"},
			"clientConfig": object{"url": "https://" + network + self + address,
				"caBundle": base64.StdEncoding.EncodeToString(p.authority.pem)},
			"namespaceSelector": object{"matchLabels": object{"kubernetes.io/metadata.name": ns}},
			"matchConditions":   conditions,
			"rules": []any{object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
				"scope": "Namespaced", "resources": resources}},
		}
	}
	bindings := []any{"pods/binding", "bindings"}
	namesNode := object{"name": "names-its-node", "expression": `has(object.spec.nodeName) && object.spec.nodeName != ""`}
	return object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": object{"name": "claimguard"},
		"webhooks": []any{
			hook("binding.claimguard.io", ":8443/admit/binding", "Fail", 5, bindings, object{"name": "is-not-of-claimguard",
				"expression": `request.userInfo.username != "` + claimguardUser + `"`}),
			hook("node-name.claimguard.io", ":8443/admit/pod", "Fail", 5, []any{"pods"}, namesNode),
			hook("binding.slow.example.com", slowHookPort, "Ignore", 30, bindings),
			hook("node-name.slow.example.com", slowHookPort, "Ignore", 30, []any{"pods"}, namesNode),
		}}
}

func (p *plane) createObjects() error {
	data := object{"claimLock.Annotation": "in force", "exclusive.deferred": "in force"}
	if p.local {
		data = object{"claimLock.Local": "in force"}
	}
	objects := []struct {
		path string
		body object
	}{
		{"/api/v1/namespaces", object{"metadata": object{"name": "claimguard"}}},
		{"/api/v1/namespaces", object{"metadata": object{"name": ns}}},
		{"/api/v1/namespaces/claimguard/configmaps", object{"metadata": object{"name": "claimguard-agreement"}, "data": data}},
		{"/apis/node.k8s.io/v1/runtimeclasses", object{"metadata": object{"name": "microvm"}, "handler": "microvm"}},
	}
	for _, name := range []string{"fast", "deferred"} {
		objects = append(objects, struct {
			path string
			body object
		}{"/apis/storage.k8s.io/v1/storageclasses", object{"metadata": object{"name": name}, "provisioner": "proof.example.com"}})
	}
	for i, name := range priorities {
		objects = append(objects, struct {
			path string
			body object
		}{"/apis/scheduling.k8s.io/v1/priorityclasses", object{"metadata": object{"name": name}, "value": 10 * i}})
	}
	for _, created := range objects {
		if err := p.api[0].must(http.MethodPost, created.path, created.body); err != nil {
			return err
		}
	}
	for _, name := range nodeNames {
		status := object{"capacity": object{"pods": "1000", "cpu": "64", "memory": "64Gi"}, "allocatable": object{"pods": "1000", "cpu": "64", "memory": "64Gi"},
			"conditions": []any{object{"type": "Ready", "status": "True"}}}
		if err := p.api[0].must(http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": name}}); err != nil {
			return err
		}
		if err := p.api[0].must(http.MethodPatch, "/api/v1/nodes/"+name+"/status", object{"status": status}); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) awaitReady(s *server, path string) error {
	for until := time.Now().Add(90 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		request, _ := http.NewRequest(http.MethodGet, s.base+path, nil)
		request.Header.Set("Authorization", "Bearer "+s.token)
		if answer, err := s.client.Do(request); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not ready after 90 s; its log is %s", s.name, p.file(s.name+".log"))
}

func (p *plane) metricsOf(name string) *server {
	return newServer(name, "http://"+network+p.host(name)+":8889", "", nil)
}

// startPlane returns when all of it is ready.
func startPlane(s settings) (*plane, error) {
	p := &plane{settings: s, processes: map[string]*process{}, programs: map[string]string{}, clocks: map[string]string{}}
	if err := p.writeFiles(); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(p.authority.certificate)
	for number := 1; number <= 3; number++ {
		p.addEtcd(number)
	}
	for number := 1; number <= 2; number++ {
		p.addAPI(number, roots)
	}
	for number := range p.claimguards() {
		p.addClaimguard(number + 1)
	}
	if err := p.addOthers(); err != nil {
		return nil, err
	}
	for _, part := range p.processes {
		if err := addPart(part.name, part.host); err != nil {
			return nil, err
		}
	}
	if err := p.start("e1", "e2", "e3", "a1", "a2"); err != nil {
		return nil, err
	}
	for _, api := range p.api {
		if err := p.awaitReady(api, "/readyz"); err != nil {
			return nil, err
		}
	}
	if err := p.createObjects(); err != nil {
		return nil, err
	}
	var err error
	if p.balancer, err = newBalancer(p); err != nil {
		return nil, err
	}
	if p.slowHook, err = newSlowHook(p.file("hook.crt"), p.file("hook.key")); err != nil {
		return nil, err
	}
	if err := p.start(append(p.claimguards(), "s1", "s2", "m")...); err != nil {
		return nil, err
	}
	for _, name := range p.claimguards() {
		if err := p.awaitReady(p.metricsOf(name), "/readyz"); err != nil {
			return nil, err
		}
	}
	return p, p.api[0].must(http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", p.webhooks())
}

func (p *plane) start(names ...string) error {
	for _, name := range names {
		if err := p.processes[name].start(); err != nil {
			return err
		}
	}
	return nil
}

// mend ends all faults: everything runs, and reaches everything. The controllers start again: where a pod ended, and
// another of its name was created, while the watch of their garbage collector was broken, it sees an update of one pod,
// and keeps what the first one owned for good.
func (p *plane) mend() error {
	if err := heal(); err != nil {
		return err
	}
	p.balancer.setFault(balancerWorks)
	for name, process := range p.processes {
		process.signal(syscall.SIGCONT)
		if (p.programs[name] != "" && p.programs[name] != p.claimguard) || p.clocks[name] != "" || name == "m" {
			process.kill()
			p.programs[name] = p.claimguard
			delete(p.clocks, name)
		}
		if err := process.start(); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) stop() {
	if p.balancer != nil {
		p.balancer.listener.Close()
		p.slowHook.listener.Close()
	}
	for name, process := range p.processes {
		process.kill()
		// the kernel takes a namespace down later, and the next plane has the same names
		_ = runAll("ip link del v-"+name, "ip netns del "+name)
	}
}

// leader is the index of etcd's leader; -1: none that answers.
func (p *plane) leader() int {
	for i, member := range p.etcd {
		status, out := member.call(http.MethodPost, "/v3/maintenance/status", object{}, time.Second)
		if status == http.StatusOK && text(out, "leader") != "0" && text(out, "leader") == text(out, "header", "member_id") {
			return i
		}
	}
	return -1
}
