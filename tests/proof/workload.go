package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var (
	nodeNames  = []string{"n1", "n2"}
	priorities = []string{"low", "mid", "high"}
)

// Kinds of claims: each has at most one unfinished pod that is bound.
type claimKind int

const (
	plainClaim    claimKind = iota // ReadWriteOncePod
	deferredClaim                  // ReadWriteOnce, exclusive by its storage class; some of its pods are of microvms
	movedClaim                     // ReadWriteOncePod, deleted and created again now and then
	ownedClaim                     // of a generic ephemeral volume of its first worker's pods
	claimKinds
)

// Ways in which a pod gets its node.
type route int

const (
	byExtender          route = iota // bind of the worker's claimguard, as a scheduler calls it
	byBinding                        // a Binding, posted to the worker's API server: admission decides
	byBindingWithoutUID              // the same, without the pod's UID, which is always denied
	byScheduler1                     // with the extender
	byScheduler2                     // without: admission decides
	byCreation                       // the pod names its node: admission decides
	routes
)

var routeNames = [routes]string{"extender", "Binding", "Binding without UID", "scheduler with extender", "scheduler without", "nodeName"}

// For a request that may be late and still be executed (reviewThenLate): who gives up before ends it.
const patience = 15 * time.Second

// A workload is all clients: of each claim, some workers, who create a pod, have it bound, let it live, and
// end it, again and again.
type workload struct {
	plane    *plane
	history  *history
	workers  []*worker
	stopping atomic.Bool
	tries    atomic.Int64 // pods that were created, or tried
	bound    [routes]atomic.Int64
	refused  [routes]atomic.Int64
	unknown  atomic.Int64
	wait     sync.WaitGroup
}

type claim struct {
	name       string
	kind       claimKind
	generation int
}

type worker struct {
	*workload
	claim    *claim
	number   int // within the claim
	random   *rand.Rand
	priority string // of its pods; "": any
}

func (w *worker) podName() string { return fmt.Sprintf("%s-w%d", w.claim.name, w.number) }

// Each worker keeps to one claimguard and its API server, as a scheduler does: else a pod overtakes itself, and
// nothing is ever late.
func (w *worker) home() int { return w.number % len(w.plane.extenders) }

func homeOf(podName string, claimguards int) int {
	return int(podName[len(podName)-1]-'0') % claimguards
}

func (c *claim) claimName() string {
	if c.kind == ownedClaim {
		return c.name + "-w0-v"
	}
	return c.name
}

func podPath(name string) string { return "/api/v1/namespaces/" + ns + "/pods/" + name }

const claimsPath = "/api/v1/namespaces/" + ns + "/persistentvolumeclaims"

func newWorkload(p *plane, h *history, seed uint64, claims, workers int) *workload {
	w := &workload{plane: p, history: h}
	for i := range claims {
		c := &claim{name: fmt.Sprint("c", i), kind: claimKind(i % int(claimKinds))}
		for j := range workers {
			w.workers = append(w.workers, &worker{w, c, j, rand.New(rand.NewPCG(seed, uint64(i*100+j))), ""})
		}
	}
	return w
}

// ---- claims ----

// createClaim makes a claim that is bound to a volume of its own.
func (w *workload) createClaim(c *claim, api *server) error {
	mode, class, volume := "ReadWriteOncePod", "fast", fmt.Sprintf("%s-%d", c.name, c.generation)
	if c.kind == deferredClaim {
		mode, class = "ReadWriteOnce", "deferred"
	}
	if err := api.must(http.MethodPost, "/api/v1/persistentvolumes", volumeOf(volume, c.name, mode, class)); err != nil {
		return err
	}
	body := object{"metadata": object{"name": c.name, "annotations": object{"pv.kubernetes.io/bind-completed": "yes"}},
		"spec": object{"accessModes": []any{mode}, "storageClassName": class, "volumeName": volume,
			"resources": object{"requests": object{"storage": "1Gi"}}}}
	if err := api.must(http.MethodPost, claimsPath, body); err != nil {
		return err
	}
	return api.must(http.MethodPatch, claimsPath+"/"+c.name+"/status", object{"status": object{"phase": "Bound"}})
}

func volumeOf(name, claimName, mode, class string) object {
	return object{"metadata": object{"name": name}, "spec": object{
		"accessModes": []any{mode}, "capacity": object{"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain",
		"storageClassName": class, "csi": object{"driver": "proof.example.com", "volumeHandle": name},
		"claimRef": object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": ns, "name": claimName}}}
}

// moveClaim deletes the claim, and creates it again when it is gone, which it is when no pod uses it.
func (w *worker) moveClaim() {
	for i := w.home(); ; i++ {
		api := w.plane.api[i%2]
		status, out := api.call(http.MethodGet, claimsPath+"/"+w.claim.name, nil, 2*time.Second)
		if status == http.StatusNotFound {
			w.claim.generation++
			_ = w.createClaim(w.claim, api) // with the faults, it may take a while
			return
		}
		if status == http.StatusOK && text(out, "metadata", "deletionTimestamp") == "" {
			_, _ = api.call(http.MethodDelete, claimsPath+"/"+w.claim.name,
				object{"preconditions": object{"uid": at(out, "metadata", "uid")}}, 2*time.Second)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ---- pods ----

func (w *worker) pod(try string, by route) object {
	volume := object{"name": "v", "persistentVolumeClaim": object{"claimName": w.claim.claimName()}}
	if w.claim.kind == ownedClaim && w.number == 0 {
		volume = object{"name": "v", "ephemeral": object{"volumeClaimTemplate": object{"spec": object{
			"accessModes": []any{"ReadWriteOncePod"}, "storageClassName": "fast",
			"resources": object{"requests": object{"storage": "1Gi"}}}}}}
	}
	spec := object{
		"containers":        []any{object{"name": "c", "image": "registry.example/app", "volumeMounts": []any{object{"name": "v", "mountPath": "/v"}}}},
		"volumes":           []any{volume},
		"priorityClassName": priorities[w.random.IntN(len(priorities))],
		"schedulerName":     "nobody", "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
	}
	switch by {
	case byScheduler1:
		spec["schedulerName"] = "claimguard-scheduler"
	case byScheduler2:
		spec["schedulerName"] = "plain"
	case byCreation:
		spec["nodeName"] = w.node()
	}
	if w.claim.kind == deferredClaim && w.number%2 == 0 && by != byCreation { // with a node, nobody can defer its volume
		spec["runtimeClassName"] = "microvm"
	}
	if w.priority != "" {
		spec["priorityClassName"] = w.priority
	}
	return object{"metadata": object{"name": w.podName(), "labels": object{"try": try}}, "spec": spec}
}

func (w *worker) node() string { return nodeNames[w.random.IntN(len(nodeNames))] }

// get reads the pod, until an API server answers; nil: there is none of that name.
func (w *worker) get() object {
	for i := w.home(); ; i++ {
		status, out := w.plane.api[i%2].call(http.MethodGet, podPath(w.podName()), nil, 2*time.Second)
		switch status {
		case http.StatusOK:
			return out
		case http.StatusNotFound:
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// remove ends the pod that is stored, if there is one, and returns when it is gone.
func (w *worker) remove(pod object) {
	if pod == nil {
		return
	}
	begin, try, uid := w.history.now(), text(pod, "metadata", "labels", "try"), text(pod, "metadata", "uid")
	if now := w.get(); text(now, "metadata", "uid") != uid || text(now, "metadata", "deletionTimestamp") != "" {
		begin = 0 // it was evicted before; nobody saw when
	}
	if w.random.IntN(3) == 0 {
		status := object{"status": object{"phase": "Succeeded"}, "metadata": object{"uid": uid}}
		if code, _ := w.plane.api[w.random.IntN(2)].call(http.MethodPatch, podPath(w.podName())+"/status", status, 3*time.Second); code == http.StatusOK {
			w.history.end(w.claim, try, begin)
			time.Sleep(time.Duration(w.random.IntN(200)) * time.Millisecond)
		}
	}
	options := object{"preconditions": object{"uid": uid}}
	if w.random.IntN(3) != 0 {
		options["gracePeriodSeconds"] = 0 // else the kubelet lets it go: see kubelet.go
	}
	for i := w.random.IntN(2); ; i++ {
		_, _ = w.plane.api[i%2].call(http.MethodDelete, podPath(w.podName()), options, 3*time.Second)
		if now := w.get(); now == nil || text(now, "metadata", "uid") != uid {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.history.end(w.claim, try, begin)
}

// create returns the pod that is stored, or nil: it was refused, or it is not known whether it was, and it is
// not there now. One that appears later is removed by the next try.
func (w *worker) create(try string, by route) object {
	w.remove(w.get())
	status, out := w.plane.api[w.home()].call(http.MethodPost, podPath(""), w.pod(try, by), patience)
	if status == http.StatusCreated {
		return out
	}
	if now := w.get(); now != nil && text(now, "metadata", "labels", "try") == try {
		return now
	}
	if status == http.StatusForbidden || status == http.StatusConflict || status == http.StatusNotFound {
		w.history.refuse(w.claim, try)
		if by == byCreation {
			w.refused[by].Add(1)
		}
	} else {
		w.unknown.Add(1)
	}
	return nil
}

func isBound(pod object) bool { return text(pod, "spec", "nodeName") != "" }

// ask has the pod bound once. Whether it is known to be.
func (w *worker) ask(pod object, by route) bool {
	uid, name := text(pod, "metadata", "uid"), w.podName()
	status := 0
	switch by {
	case byExtender:
		var out object
		w.filter(pod)
		status, out = w.plane.extenders[w.home()].call(http.MethodPost, "/bind",
			object{"PodName": name, "PodNamespace": ns, "PodUID": uid, "Node": w.node()}, 6*time.Second)
		if status == http.StatusOK && text(out, "Error") == "" {
			return true
		}
	case byBinding, byBindingWithoutUID:
		metadata := object{"name": name}
		if by == byBinding {
			metadata["uid"] = uid
		}
		status, _ = w.plane.api[w.home()].call(http.MethodPost, podPath(name)+"/binding",
			object{"metadata": metadata, "target": object{"kind": "Node", "name": w.node()}}, patience)
		if status == http.StatusCreated && by == byBindingWithoutUID {
			w.history.find(finding{kind: "uid", claim: w.claim.name,
				text: "a Binding of pod " + name + " without its UID was accepted, which may bind a later pod of that name"})
		}
		if status == http.StatusCreated {
			return true
		}
	default:
		return false // a scheduler does
	}
	if status != 0 {
		w.refused[by].Add(1)
	}
	return false
}

// filter asks the worker's claimguard whether the pod could be bound; history.go looks at who it names.
func (w *worker) filter(pod object) {
	begin := w.history.now()
	status, out := w.plane.extenders[w.home()].call(http.MethodPost, "/filter",
		object{"Pod": pod, "NodeNames": nodeNames}, 6*time.Second)
	if status != http.StatusOK {
		return
	}
	for _, failed := range []string{"FailedNodes", "FailedAndUnresolvableNodes"} {
		if reason := text(out, failed, nodeNames[0]); reason != "" {
			w.history.rejected(begin, reason)
			return
		}
	}
}

// awaitBound has the pod bound; the pod as it is then, or as it was at the deadline. Nil: it is gone.
func (w *worker) awaitBound(pod object, by route) object {
	uid := text(pod, "metadata", "uid")
	long := time.Duration(3000+w.random.IntN(9000)) * time.Millisecond
	if by == byBindingWithoutUID {
		long = time.Second // it is always denied
	}
	for until := time.Now().Add(long); ; {
		asked := w.ask(pod, by)
		now := w.get()
		if now == nil || text(now, "metadata", "uid") != uid {
			return nil
		}
		if asked && !isBound(now) {
			w.history.find(finding{kind: "lost", claim: w.claim.name,
				text: fmt.Sprintf("the %s said that pod %s is bound, and it is not", routeNames[by], w.podName())})
		}
		if isBound(now) || time.Now().After(until) || w.stopping.Load() {
			return now
		}
		time.Sleep(time.Duration(50+w.random.IntN(200)) * time.Millisecond)
	}
}

// cycle is the life of one pod.
func (w *worker) cycle(by route) {
	try := fmt.Sprint("t", w.tries.Add(1))
	w.history.begin(w.claim, try, w.podName())
	pod := w.create(try, by)
	if pod == nil {
		return
	}
	bound := w.awaitBound(pod, by)
	switch {
	case bound == nil: // evicted; nobody saw when
		w.history.end(w.claim, try, 0)
		return
	case isBound(bound):
		w.history.bound(w.claim, try)
		w.bound[by].Add(1)
		time.Sleep(time.Duration(w.random.IntN(400)) * time.Millisecond)
	}
	w.remove(bound)
	if w.claim.kind == movedClaim && w.number == 0 && w.random.IntN(4) == 0 {
		w.moveClaim()
	}
}

func (w *worker) route() route {
	if w.plane.local && w.random.IntN(3) != 0 {
		return byExtender // what it binds itself has the least to hold on to
	}
	return [...]route{byExtender, byExtender, byExtender, byBinding, byBinding, byScheduler1, byScheduler2, byCreation,
		byExtender, byBindingWithoutUID}[w.random.IntN(10)]
}

func (w *workload) start() error {
	for _, worker := range w.workers {
		if worker.number != 0 || worker.claim.kind == ownedClaim {
			continue
		}
		if err := w.createClaim(worker.claim, w.plane.api[0]); err != nil {
			return err
		}
	}
	for _, worker := range w.workers {
		w.wait.Go(func() {
			for !w.stopping.Load() {
				worker.cycle(worker.route())
				time.Sleep(time.Duration(worker.random.IntN(100)) * time.Millisecond)
			}
			worker.remove(worker.get())
		})
	}
	return nil
}

func (w *workload) stop() {
	w.stopping.Store(true)
	w.wait.Wait()
}
