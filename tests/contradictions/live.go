package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// The plural of a kind, and its path.
var resources = []struct{ kind, group, plural string }{
	{"Pod", "api/v1", "pods"}, {"PersistentVolumeClaim", "api/v1", "persistentvolumeclaims"}, {"PersistentVolume", "api/v1", "persistentvolumes"},
	{"Node", "api/v1", "nodes"}, {"StorageClass", "apis/storage.k8s.io/v1", "storageclasses"}, {"CSIDriver", "apis/storage.k8s.io/v1", "csidrivers"},
	{"CSINode", "apis/storage.k8s.io/v1", "csinodes"}, {"VolumeAttachment", "apis/storage.k8s.io/v1", "volumeattachments"},
	{"VolumeAttributesClass", "apis/storage.k8s.io/v1", "volumeattributesclasses"},
	{"PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets"}, {"PriorityClass", "apis/scheduling.k8s.io/v1", "priorityclasses"},
	{"Deployment", "apis/apps/v1", "deployments"}, {"ReplicaSet", "apis/apps/v1", "replicasets"}, {"StatefulSet", "apis/apps/v1", "statefulsets"},
	{"DaemonSet", "apis/apps/v1", "daemonsets"}, {"Job", "apis/batch/v1", "jobs"}, {"CronJob", "apis/batch/v1", "cronjobs"},
	{"HorizontalPodAutoscaler", "apis/autoscaling/v2", "horizontalpodautoscalers"},
}

// An apiServer answers with the cluster's objects, which do not change, and takes no writes.
type apiServer struct{ cluster *cluster }

func (s *apiServer) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	path := strings.TrimPrefix(request.URL.Path, "/")
	out.Header().Set("Content-Type", "application/json")
	for _, r := range resources {
		rest, isGroup := strings.CutPrefix(path, r.group+"/")
		if !isGroup || request.Method != http.MethodGet {
			continue
		}
		ns, name := "", ""
		if below, isNamespaced := strings.CutPrefix(rest, "namespaces/"); isNamespaced {
			ns, rest, _ = strings.Cut(below, "/")
		}
		plural, name, _ := strings.Cut(rest, "/")
		if plural == r.plural && !strings.Contains(name, "/") {
			s.answer(out, request, r.kind, r.group, ns, name)
			return
		}
	}
	status(out, http.StatusNotFound)
}

func status(out http.ResponseWriter, code int) {
	out.WriteHeader(code)
	fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"NotFound"}`, code)
}

func (s *apiServer) answer(out http.ResponseWriter, request *http.Request, kind, group, ns, name string) {
	query := request.URL.Query()
	items := []object{}
	for _, o := range s.cluster.objects {
		of := text(o, "metadata", "namespace")
		if text(o, "kind") != kind || (ns != "" && of != ns) || (name != "" && text(o, "metadata", "name") != name) {
			continue
		}
		isWanted := true
		for _, selector := range strings.Split(query.Get("fieldSelector"), ",") {
			if phase, isPhase := strings.CutPrefix(selector, "status.phase!="); isPhase && text(o, "status", "phase") == phase {
				isWanted = false
			}
		}
		if isWanted {
			o = copyOf(o)
			o["metadata"].(object)["resourceVersion"] = "1"
			items = append(items, o)
		}
	}
	if name != "" {
		if len(items) == 0 {
			status(out, http.StatusNotFound)
		} else {
			_ = json.NewEncoder(out).Encode(items[0])
		}
		return
	}
	version := strings.TrimPrefix(strings.TrimPrefix(group, "apis/"), "api/")
	if query.Get("watch") == "" {
		text, _ := json.Marshal(items)
		fmt.Fprintf(out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":%s}`, kind, version, text)
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		for _, o := range items {
			_ = json.NewEncoder(out).Encode(object{"type": "ADDED", "object": o})
		}
		_ = json.NewEncoder(out).Encode(object{"type": "BOOKMARK", "object": object{"kind": kind, "apiVersion": version, "metadata": object{
			"resourceVersion": "1", "annotations": object{"k8s.io/initial-events-end": "true"}}}})
	}
	out.(http.Flusher).Flush()
	<-request.Context().Done()
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// askLive asks the same of a running claimguard, of its debug page, and of what `claimguard snapshot` writes. These do
// not have pods that have ended.
func (a *asker) askLive(c *cluster) ([]contradiction, error) {
	c = &cluster{config: c.config, objects: slices.DeleteFunc(slices.Clone(c.objects), func(o object) bool {
		return text(o, "kind") == "Pod" && (text(o, "status", "phase") == "Succeeded" || text(o, "status", "phase") == "Failed")
	})}
	whole, err := a.ask(c, c.json(), "unfinished.json")
	if err != nil {
		return nil, err
	}
	api := httptest.NewServer(&apiServer{c})
	defer api.Close()
	defer api.CloseClientConnections()
	kubeconfig := a.file("kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", api.URL), 0o600); err != nil {
		return nil, err
	}
	snapshot := a.file("snapshot.json")
	if out, err := exec.Command(a.claimguard, "snapshot", "--kubeconfig", kubeconfig, "-o", snapshot).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("snapshot: %w: %s", err, out)
	}
	written, err := os.ReadFile(snapshot)
	if err != nil {
		return nil, err
	}
	fromSnapshot, err := a.ask(c, written, "snapshot.json")
	if err != nil {
		return nil, err
	}
	for name, pod := range whole.why { // a snapshot also says of which kinds there are none
		if isComplete, _ := at(pod, "complete").(bool); !isComplete {
			delete(whole.why, name)
			delete(fromSnapshot.why, name)
		}
	}
	found := whole.differences(fromSnapshot, "claimguard snapshot")
	if strings.Contains(c.config, "claimLock: Annotation") {
		return found, nil // a server writes down what claimguards agree on, and this API server takes no writes
	}
	served, err := a.askServer(c, kubeconfig, whole)
	return append(found, served...), err
}

func (a *asker) askServer(c *cluster, kubeconfig string, whole *answers) ([]contradiction, error) {
	server, err := a.serve(c, kubeconfig)
	for range 2 { // another process may have taken a port meanwhile
		if errors.Is(err, errEnded) {
			server, err = a.serve(c, kubeconfig)
		}
	}
	if err != nil {
		return nil, err
	}
	defer server.stop()
	page, err := get("http://" + server.pages + "/debug/snapshot")
	if err != nil {
		return nil, err
	}
	of, err := a.ask(c, page, "debug-snapshot.json")
	if err != nil {
		return nil, err
	}
	found := whole.differencesOfVerdicts(of, "/debug/snapshot")
	filtered, err := whole.checkFilter(c, "http://"+server.verbs+"/filter")
	return append(found, filtered...), err
}

// A server is a claimguard that runs.
type server struct {
	verbs, pages string // addresses
	process      *exec.Cmd
	ended        chan struct{} // closed when it has ended
}

func (s *server) stop() {
	_ = s.process.Process.Kill()
	<-s.ended
}

const readySeconds = 300 // on a machine that does much else

var errEnded = errors.New("claimguard serve has ended")

// serve starts a claimguard of this cluster, and waits until it is ready.
func (a *asker) serve(c *cluster, kubeconfig string) (*server, error) {
	s := &server{ended: make(chan struct{})}
	for _, address := range []*string{&s.verbs, &s.pages} {
		var err error
		if *address, err = freePort(); err != nil {
			return nil, err
		}
	}
	config := a.file("serve.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n%s"+
		"server: {listen: %q, metricsListen: %q, debugEndpoints: true}\n", c.config, s.verbs, s.pages), 0o600); err != nil {
		return nil, err
	}
	var log bytes.Buffer
	s.process = exec.Command(a.claimguard, "serve", "--config", config, "--kubeconfig", kubeconfig)
	s.process.Stderr, s.process.Stdout = &log, &log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.process.Wait()
		close(s.ended)
	}()
	if err := s.awaitReady(); err != nil {
		s.stop()
		return nil, fmt.Errorf("%w: %s", err, log.String())
	}
	return s, nil
}

func (s *server) awaitReady() error {
	for until := time.Now().Add(readySeconds * time.Second); ; {
		_, err := get("http://" + s.pages + "/readyz")
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("not ready after %d s: %w", readySeconds, err)
		}
		select {
		case <-s.ended:
			return errEnded
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func get(url string) ([]byte, error) {
	response, err := http.Get(url) //nolint:gosec // of this program
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, body.String())
	}
	return body.Bytes(), nil
}

// checkFilter: a filter call rejects the pods that the dry run rejects, on the same nodes, for the same reasons. A pod
// that passes reserves its claims, so it is asked about last, and it alone.
func (a *answers) checkFilter(c *cluster, url string) ([]contradiction, error) {
	var found []contradiction
	names := sortedKeys(a.dryRun)
	slices.SortStableFunc(names, func(x, y string) int { return a.passing(x) - a.passing(y) })
	for i, name := range names {
		if i > 0 && a.passing(names[i-1]) != 0 {
			break
		}
		said, err := c.filter(url, name, a.dryRun[name])
		if err != nil {
			return nil, err
		}
		if said != "" {
			found = append(found, contradiction{rule: "filter", text: fmt.Sprintf("pod %s: %s", name, said)})
		}
	}
	return found, nil
}

func (a *answers) passing(name string) int {
	count := 0
	for _, node := range list(a.dryRun[name], "nodes") {
		if !isRejection(text(node, "code")) {
			count++
		}
	}
	return count
}

// filter returns how the answer differs from the dry run; "": it does not.
func (c *cluster) filter(url, name string, dry object) (string, error) {
	nodes := []string{}
	for _, node := range list(dry, "nodes") {
		nodes = append(nodes, text(node, "name"))
	}
	if len(nodes) == 0 || isOfScheduler(dry) {
		return "", nil
	}
	var pod object
	for _, o := range c.objects {
		if text(o, "kind") == "Pod" && nameOf(o["metadata"]) == name {
			pod = o
		}
	}
	body, _ := json.Marshal(object{"Pod": pod, "NodeNames": nodes})
	response, err := http.Post(url, "application/json", bytes.NewReader(body)) //nolint:gosec // of this program
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer object
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	for _, node := range list(dry, "nodes") {
		in := map[string]string{"Success": "", "Unschedulable": "FailedNodes", "UnschedulableAndUnresolvable": "FailedAndUnresolvableNodes"}[text(node, "code")]
		passes := slices.Contains(list(answer, "NodeNames"), any(text(node, "name")))
		if (in == "") != passes {
			return fmt.Sprintf("%s on %s, and filter says %v", text(node, "code"), text(node, "name"), answer), nil
		}
		for _, reason := range list(node, "reasons") {
			if in != "" && !strings.Contains(text(answer, in, text(node, "name")), reason.(string)) {
				return fmt.Sprintf("%q on %s, and filter says %v", reason, text(node, "name"), answer), nil
			}
		}
	}
	return "", nil
}
