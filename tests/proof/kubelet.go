package main

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// What a kubelet and a provisioner do, as far as it matters here: a pod that is bound and being deleted ends a
// while later; a claim gets a volume.
type keeper struct {
	*background
	plane  *plane
	random *rand.Rand
}

func startKeeper(p *plane, seed uint64) *keeper {
	k := &keeper{newBackground(), p, rand.New(rand.NewPCG(seed, 1))}
	k.repeat(200*time.Millisecond, func(i int) {
		k.restart("s1", "s2", "m")
		k.endPods(k.plane.api[i%2])
		k.provision(k.plane.api[i%2])
	})
	return k
}

// restart starts again what has ended by itself: a kube-scheduler does when a pod that it was about to bind is bound to
// another node by somebody else.
func (k *keeper) restart(names ...string) {
	for _, name := range names {
		if process := k.plane.processes[name]; process.hasEnded() {
			process.kill()
			_ = process.start()
		}
	}
}

func (k *keeper) endPods(api *server) {
	_, pods := api.call(http.MethodGet, podPath(""), nil, 2*time.Second)
	for _, pod := range list(pods, "items") {
		if text(pod, "metadata", "deletionTimestamp") == "" || k.random.IntN(3) == 0 {
			continue
		}
		api.call(http.MethodDelete, podPath(text(pod, "metadata", "name")), object{"gracePeriodSeconds": 0,
			"preconditions": object{"uid": text(pod, "metadata", "uid")}}, 2*time.Second)
	}
}

func (k *keeper) provision(api *server) {
	_, claims := api.call(http.MethodGet, claimsPath, nil, 2*time.Second)
	for _, claim := range list(claims, "items") {
		if text(claim, "spec", "volumeName") != "" || text(claim, "metadata", "deletionTimestamp") != "" {
			continue
		}
		name, volume := text(claim, "metadata", "name"), "pv-"+text(claim, "metadata", "uid")
		api.call(http.MethodPost, "/api/v1/persistentvolumes", volumeOf(volume, name, "ReadWriteOncePod", "fast"), 2*time.Second)
		api.call(http.MethodPatch, claimsPath+"/"+name, object{"spec": object{"volumeName": volume},
			"metadata": object{"annotations": object{"pv.kubernetes.io/bind-completed": "yes"}}}, 2*time.Second)
		api.call(http.MethodPatch, claimsPath+"/"+name+"/status", object{"status": object{"phase": "Bound"}}, 2*time.Second)
	}
}
