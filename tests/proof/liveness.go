package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// After the faults have ended, each claim's next pod is bound within this time: a Binding that may still be applied
// keeps a claim for 65 s, and a scheduler then waits for 10 s at most.
const livenessLimit = 90 * time.Second

// checkLiveness has each claim used once more, by each way in turn, and returns how long the slowest took.
func (w *workload) checkLiveness() time.Duration {
	ways := []route{byExtender, byScheduler1, byScheduler2, byBinding, byCreation}
	w.stopping.Store(false)
	times := make(chan time.Duration)
	count := 0
	for _, worker := range w.workers {
		if worker.number != 0 {
			continue
		}
		by := ways[count%len(ways)]
		count++
		go func() { times <- worker.boundOnce(by) }()
	}
	slowest := time.Duration(0)
	for range count {
		slowest = max(slowest, <-times)
	}
	return slowest
}

func (w *worker) boundOnce(by route) time.Duration {
	began := time.Now()
	for time.Since(began) < livenessLimit {
		try := fmt.Sprint("t", w.tries.Add(1))
		w.history.begin(w.claim, try, w.podName())
		pod := w.create(try, by)
		if pod == nil {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		for time.Since(began) < livenessLimit && !isBound(pod) {
			w.ask(pod, by)
			time.Sleep(100 * time.Millisecond)
			if pod = w.get(); pod == nil {
				break
			}
		}
		took := time.Since(began)
		if pod != nil && isBound(pod) {
			w.history.bound(w.claim, try)
			w.remove(pod)
			return took
		}
		w.remove(pod)
	}
	w.history.find(finding{kind: "stuck", claim: w.claim.name, text: fmt.Sprintf(
		"claim %s: %.0f s after the faults, no pod is bound by the %s", w.claim.name, livenessLimit.Seconds(), routeNames[by])})
	return time.Since(began)
}

// electionsOf etcd, since its start: the term counts them.
func electionsOf(p *plane) int {
	for _, member := range p.etcd {
		if _, out := member.call(http.MethodPost, "/v3/maintenance/status", object{}, time.Second); out != nil {
			if term, err := strconv.Atoi(text(out, "raftTerm")); err == nil {
				return term - 1
			}
		}
	}
	return 0
}
