// extender: a kube-scheduler extender for ReadWriteOncePod claims, as they are usually written in
// Go: net/http, encoding/json, the types of k8s.io/kube-scheduler, and a map under a lock. It only
// filters: it reserves nothing, binds nothing and evicts nobody. Prints its port.
//
//	extender SNAPSHOT
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"claimguard.io/bench/peers/peer"
)

// claim is what a verdict needs of a PersistentVolumeClaim and of the pods that use it.
type claim struct {
	exists    bool
	exclusive bool
	holders   map[types.UID]types.NamespacedName
}

// cache has the claims of the cluster by name.
type cache struct {
	mu     sync.RWMutex
	claims map[types.NamespacedName]*claim
}

// get returns the claim; c.mu is held for writing.
func (c *cache) get(name types.NamespacedName) *claim {
	found := c.claims[name]
	if found == nil {
		found = &claim{}
		c.claims[name] = found
	}
	return found
}

func (c *cache) addClaim(pvc *corev1.PersistentVolumeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.get(types.NamespacedName{Namespace: pvc.Namespace, Name: pvc.Name})
	found.exists = true
	found.exclusive = slices.Contains(pvc.Spec.AccessModes, corev1.ReadWriteOncePod)
}

func (c *cache) addPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range claimNames(pod) {
		found := c.get(name)
		if found.holders == nil {
			found.holders = map[types.UID]types.NamespacedName{}
		}
		found.holders[pod.UID] = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	}
}

func (c *cache) add(kind string, item json.RawMessage) error {
	switch kind {
	case "Pod":
		var pod corev1.Pod
		if err := json.Unmarshal(item, &pod); err != nil {
			return err
		}
		c.addPod(&pod)
	case "PersistentVolumeClaim":
		var pvc corev1.PersistentVolumeClaim
		if err := json.Unmarshal(item, &pvc); err != nil {
			return err
		}
		c.addClaim(&pvc)
	}
	return nil
}

func claimNames(pod *corev1.Pod) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.PersistentVolumeClaim != nil {
			names = append(names, types.NamespacedName{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName})
		} else if volume.Ephemeral != nil {
			names = append(names, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "-" + volume.Name})
		}
	}
	return names
}

// verdict returns why the pod cannot run on any node, and whether preemption would help; "" if it can.
func (c *cache) verdict(pod *corev1.Pod) (reason string, resolvable bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, name := range claimNames(pod) {
		found := c.claims[name]
		if found == nil || !found.exists {
			return fmt.Sprintf("persistentvolumeclaim %q not found", name.Name), false
		}
		if !found.exclusive {
			continue
		}
		for uid, holder := range found.holders {
			if uid != pod.UID {
				return fmt.Sprintf("claim %s is in use by pod %s", name, holder), true
			}
		}
	}
	return "", false
}

func (c *cache) filter(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if args.Pod == nil || args.NodeNames == nil {
		http.Error(w, "no pod, or no node names: nodeCacheCapable must be true", http.StatusBadRequest)
		return
	}
	var result extenderv1.ExtenderFilterResult
	reason, resolvable := c.verdict(args.Pod)
	if reason == "" {
		result.NodeNames = args.NodeNames
	} else {
		failed := make(extenderv1.FailedNodesMap, len(*args.NodeNames))
		for _, name := range *args.NodeNames {
			failed[name] = reason
		}
		result.NodeNames = &[]string{}
		if resolvable {
			result.FailedNodes = failed
		} else {
			result.FailedAndUnresolvableNodes = failed
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(&result); err != nil {
		log.Print(err)
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: extender SNAPSHOT")
	}
	c := cache{claims: map[types.NamespacedName]*claim{}}
	if err := peer.Read(os.Args[1], c.add); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /filter", c.filter)
	log.Fatal(peer.Serve("k8s.io/kube-scheduler"))
}
