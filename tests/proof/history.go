package main

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Something that must not be.
type finding struct {
	kind  string // double, order, lost, uid, stale, stuck, ended
	claim string
	text  string
	when  time.Duration // since the start
	pods  []string      // of a double binding: names, as timeline.go draws them
}

// A try to have one pod use a claim, as this program saw it. Times are since the start.
type attempt struct {
	pod, try     string
	began        time.Duration
	bound        time.Duration // seen to be; 0: never
	ended        time.Duration // known to be gone, or to have finished; 0: not yet
	endBegan     time.Duration
	isRefused    bool
	mayBeUnknown bool
}

// A rejection that named a holder.
type rejection struct {
	began, ended time.Duration
	holder       string
}

// A history is what the clients saw.
type history struct {
	started time.Time

	mutex      sync.Mutex
	attempts   map[string][]*attempt // by claim
	rejections []rejection
	unasked    []rejection // when a claimguard could not confirm some: it counts them
	findings   []finding
	undecided  int // claims whose order porcupine did not decide in time
}

func newHistory() *history {
	return &history{started: time.Now(), attempts: map[string][]*attempt{}}
}

func (h *history) now() time.Duration { return time.Since(h.started) }

func (h *history) find(f finding) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if f.when == 0 {
		f.when = h.now()
	}
	h.findings = append(h.findings, f)
}

func (h *history) begin(c *claim, try, pod string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.attempts[c.name] = append(h.attempts[c.name], &attempt{pod: pod, try: try, began: h.now()})
}

// change finds the attempt; one of an earlier run of the worker may have been nobody's any more.
func (h *history) change(c *claim, try string, with func(*attempt)) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, a := range slices.Backward(h.attempts[c.name]) {
		if a.try == try {
			with(a)
			return
		}
	}
}

func (h *history) bound(c *claim, try string) {
	now := h.now()
	h.change(c, try, func(a *attempt) { a.bound = now })
}

func (h *history) refuse(c *claim, try string) {
	h.change(c, try, func(a *attempt) { a.isRefused = true })
}

// end: it is gone, or has finished, not before `began` (0: nobody saw), and not after now; the first that is known.
func (h *history) end(c *claim, try string, began time.Duration) {
	now := h.now()
	h.change(c, try, func(a *attempt) {
		if a.ended == 0 {
			a.endBegan, a.ended = max(began, a.bound, a.began), now
		}
	})
}

// ---- order: a claim is a lock ----

type lockOperation struct {
	isEnd, isUnknown bool
	pod              string // its try
}

// A claim as a lock: a pod that is bound takes it, and its end lets it go. An operation whose outcome nobody saw
// may have happened or not.
var lockModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, _ any) []any {
		holder, operation := state.(string), input.(lockOperation)
		switch {
		case operation.isEnd && holder == operation.pod:
			return []any{""}
		case operation.isEnd:
			return []any{holder}
		case holder == "" && operation.isUnknown:
			return []any{"", operation.pod}
		case holder == "" || holder == operation.pod:
			return []any{operation.pod}
		case operation.isUnknown:
			return []any{holder}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string {
		operation := input.(lockOperation)
		return map[bool]string{false: "bind ", true: "end "}[operation.isEnd] + operation.pod + map[bool]string{true: "?"}[operation.isUnknown]
	},
}).ToModel()

// operations of one claim: of each attempt, that it took the claim, and that it let it go.
func operations(attempts []*attempt) []porcupine.Operation {
	var out []porcupine.Operation
	for i, a := range attempts {
		if a.isRefused {
			continue
		}
		taken, end := int64(a.bound), int64(a.ended)
		if end == 0 {
			end = math.MaxInt64
		}
		isUnknown := taken == 0
		if isUnknown {
			taken = end
		}
		out = append(out, porcupine.Operation{ClientId: 2 * i, Input: lockOperation{isUnknown: isUnknown, pod: a.try},
			Call: int64(a.began), Return: taken})
		if a.ended != 0 {
			out = append(out, porcupine.Operation{ClientId: 2*i + 1, Input: lockOperation{isEnd: true, pod: a.try},
				Call: int64(a.endBegan), Return: end})
		}
	}
	return out
}

// For the operations of one claim. Those that are not decided by then are counted.
const orderPatience = 30 * time.Second

// checkOrder draws what it finds, as porcupine does, into the folder.
func (h *history) checkOrder(dir string) {
	for claim, attempts := range h.attempts {
		switch porcupine.CheckOperationsTimeout(lockModel, operations(attempts), orderPatience) {
		case porcupine.Ok:
			continue
		case porcupine.Unknown:
			h.undecided++
			continue
		}
		_, info := porcupine.CheckOperationsVerbose(lockModel, operations(attempts), orderPatience)
		picture := filepath.Join(dir, "order-"+claim+".html")
		_ = porcupine.VisualizePath(lockModel, info, picture)
		h.find(finding{kind: "order", claim: claim, text: "what the clients of claim " + claim +
			" saw cannot be (" + overlap(attempts) + "): " + picture})
	}
}

// overlap names two pods that were both seen bound before either was ended, if there are such.
func overlap(attempts []*attempt) string {
	for i, a := range attempts {
		for _, b := range attempts[:i] {
			if a.bound != 0 && b.bound != 0 && a.bound < endOf(b) && b.bound < endOf(a) {
				return fmt.Sprintf("%s (%s) and %s (%s) were bound at %.3f s", b.pod, b.try, a.pod, a.try, max(a.bound, b.bound).Seconds())
			}
		}
	}
	return "no two pods were seen bound at once"
}

func endOf(a *attempt) time.Duration {
	if a.ended == 0 {
		return math.MaxInt64
	}
	return a.endBegan
}

// ---- stale rejections ----

var holderText = regexp.MustCompile(`is in use by pod ` + ns + `/([a-z0-9-]+)`)

func (h *history) rejected(began time.Duration, reason string) {
	match := holderText.FindStringSubmatch(reason)
	if match == nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.rejections = append(h.rejections, rejection{began, h.now(), match[1]})
}

// noteUnasked: between these times, that claimguard could not ask the API server about a rejection.
func (h *history) noteUnasked(claimguard string, began time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.unasked = append(h.unasked, rejection{began, h.now(), claimguard})
}

// checkRejections: nobody is rejected for a pod that had ended before the question, unless a fault, or a machine
// that is too slow, kept claimguard from asking the API server.
func (h *history) checkRejections(faults []*fault) {
	lives := map[string][]*attempt{}
	for _, attempts := range h.attempts {
		for _, a := range attempts {
			lives[a.pod] = append(lives[a.pod], a)
		}
	}
	for _, r := range h.rejections {
		if slices.ContainsFunc(faults, func(f *fault) bool { return f.began <= r.ended && f.ended+5*time.Second >= r.began }) ||
			slices.ContainsFunc(h.unasked, func(u rejection) bool { return u.began <= r.ended && u.ended >= r.began }) {
			continue
		}
		if !slices.ContainsFunc(lives[r.holder], func(a *attempt) bool {
			return a.began <= r.ended && (a.ended == 0 || a.ended >= r.began)
		}) {
			h.find(finding{kind: "stale", when: r.ended, text: "a pod was rejected for pod " + r.holder + ", which had ended"})
		}
	}
}
