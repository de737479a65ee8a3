package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
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

// checkEvictions has a pod of each claim of the plainest kind evicted by one of a higher priority, while a third one
// waits for the claim: who evicts has it next, or two were evicted for one.
func (w *workload) checkEvictions() {
	var wait sync.WaitGroup
	for i, holder := range w.workers {
		if holder.number == 0 && holder.claim.kind == plainClaim && i+2 < len(w.workers) && w.workers[i+2].claim == holder.claim {
			wait.Go(func() { holder.evictedOnce(w.workers[i+1], w.workers[i+2]) })
		}
	}
	wait.Wait()
}

func (w *worker) evictedOnce(preemptor, waiter *worker) {
	began := time.Now()
	create := func(w *worker, priority string, by route) object {
		w.priority = priority
		for time.Since(began) < livenessLimit {
			try := fmt.Sprint("t", w.tries.Add(1))
			w.history.begin(w.claim, try, w.podName())
			if pod := w.create(try, by); pod != nil {
				return pod
			}
		}
		return nil
	}
	isBoundNow := func(w *worker) bool { return isBound(w.get()) }
	holder := create(w, "low", byExtender)
	for holder != nil && !isBound(holder) && time.Since(began) < livenessLimit {
		w.ask(holder, byExtender)
		if read := w.get(); read != nil { // nil: no answer
			holder = read
		}
	}
	if !isBound(holder) {
		w.history.find(finding{kind: "stuck", claim: w.claim.name, text: fmt.Sprintf(
			"claim %s: pod %s, which is alone, is not bound", w.claim.name, w.podName())})
		w.remove(holder)
		return
	}
	wanted := create(preemptor, "high", byScheduler1)
	waiting := create(waiter, "low", byScheduler1)
	for time.Since(began) < livenessLimit && !isBoundNow(preemptor) && !isBoundNow(waiter) {
		time.Sleep(50 * time.Millisecond)
	}
	if isBoundNow(waiter) && !isBoundNow(preemptor) {
		w.history.find(finding{kind: "evicted", claim: w.claim.name, text: fmt.Sprintf("claim %s: pod %s was evicted for pod %s, and pod %s was bound",
			w.claim.name, w.podName(), preemptor.podName(), waiter.podName())})
	} else if !isBoundNow(preemptor) {
		w.history.find(finding{kind: "stuck", claim: w.claim.name, text: fmt.Sprintf(
			"claim %s: pod %s is not bound, which has priority over its holder %s", w.claim.name, preemptor.podName(), w.podName())})
	}
	for worker, pod := range map[*worker]object{w: holder, preemptor: wanted, waiter: waiting} {
		worker.remove(pod)
	}
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
