package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A fault: what, to whom, for how long, and after which pause. All of it follows from the seed.
type fault struct {
	number      int
	kind        string
	on          string // a part, or two
	pause, long time.Duration

	began, ended time.Duration // of the run: since the start
	note         string
}

func (f *fault) String() string {
	return fmt.Sprintf("%d %s %s for %.1f s, after %.1f s", f.number, f.kind, f.on, f.long.Seconds(), f.pause.Seconds())
}

// What a fault may be. weight: how often, of all. on: whom it may meet.
type faultKind struct {
	name        string
	weight      int
	on          []string
	least, most float64 // seconds
	do          func(n *nemesis, f *fault)
}

var faultKinds = []faultKind{
	{"kill", 6, []string{"c1", "c2", "a1", "a2", "e1", "e2", "e3", "leader", "s1", "s2", "m"}, 0.2, 4, killPart},
	{"pause", 6, []string{"c1", "c2", "a1", "a2", "leader", "s1", "s2", "m"}, 0.5, 9, pausePart},
	{"cut", 6, []string{"a1 etcd", "a2 etcd", "c1 a1", "c2 a2", "s1 c1", "s2 a2", "leader peers", "e1 e2", "a1 reviews", "a2 reviews"}, 1, 9, cutBoth},
	{"cut-answers", 4, []string{"etcd a1", "etcd a2", "a1 c1", "a2 c2", "c1 s1", "leader peers", "reviews a1"}, 1, 9, cutOneWay},
	{"move-leader", 2, []string{"etcd"}, 0, 0, moveLeader},
	{"reviews-late", 2, []string{"reviews"}, 3, 9, breakReviews(balancerHolds)},
	{"reviews-lost", 2, []string{"reviews"}, 1, 5, breakReviews(balancerLoses)},
	{"reviews-closed", 1, []string{"reviews"}, 1, 5, breakReviews(balancerCloses)},
	{"clock", 1, []string{"c1 +10m", "c2 -10m", "c1 -10m"}, 5, 9, moveClock},
	{"reload", 1, []string{"c1", "c2"}, 0, 0, reload},
	{"certificate", 1, []string{"reviews"}, 0, 0, renewCertificate},
	{"other-version", 1, []string{"c1", "c2"}, 5, 9, changeVersion},
	// made for one hazard each: they wait until a claim is locked, or a Binding was allowed
	{"binding-late", 5, []string{"c1", "c2"}, 6, 9, bindingLate},
	{"stopped-before-binding", 5, []string{"c1", "c2"}, 6, 9, stoppedBeforeBinding},
	{"killed-before-binding", 3, []string{"c1", "c2"}, 0.2, 8, killedBeforeBinding},
	{"binding-lost", 3, []string{"c1", "c2"}, 7, 8, bindingLost},
	{"review-then-late", 4, []string{"reviews"}, 6, 9, reviewThenLate},
}

// schedule: as many faults as fit into the time.
func schedule(seed uint64, seconds float64, only string) []*fault {
	random := rand.New(rand.NewPCG(seed, 2))
	total := 0
	for _, kind := range faultKinds {
		total += kind.weight
	}
	var out []*fault
	for at := 3.0; at < seconds; {
		choice := random.IntN(total)
		kind := faultKinds[0]
		for _, kind = range faultKinds {
			if choice -= kind.weight; choice < 0 {
				break
			}
		}
		f := &fault{number: len(out) + 1, kind: kind.name, on: kind.on[random.IntN(len(kind.on))],
			pause: time.Duration((0.5 + 1.5*random.Float64()) * float64(time.Second)),
			long:  time.Duration((kind.least + (kind.most-kind.least)*random.Float64()) * float64(time.Second))}
		if only != "" && !strings.Contains(","+only+",", ","+kind.name+",") {
			continue
		}
		at += (f.pause + f.long).Seconds() + 0.5
		out = append(out, f)
	}
	return out
}

// A nemesis does one fault after another.
type nemesis struct {
	plane   *plane
	history *history
	version int         // of the configuration
	isOver  atomic.Bool // a double binding was found, which is enough
}

// run does the faults that are chosen (nil: all of them), until the time is over.
func (n *nemesis) run(faults []*fault, until time.Duration, report func(*fault)) []*fault {
	var done []*fault
	for _, f := range faults {
		time.Sleep(f.pause)
		if n.history.now() > until || n.isOver.Load() {
			break
		}
		f.began = n.history.now()
		for _, kind := range faultKinds {
			if kind.name == f.kind {
				kind.do(n, f)
			}
		}
		if err := n.plane.mend(); err != nil {
			f.note += err.Error()
		}
		f.ended = n.history.now()
		done = append(done, f)
		report(f)
	}
	return done
}

// part is the process that is meant; nil: there is none now.
func (n *nemesis) part(name string) *process {
	if name == "leader" {
		leader := n.plane.leader()
		if leader < 0 {
			return nil
		}
		name = n.plane.etcd[leader].name
	}
	return n.plane.processes[name]
}

func killPart(n *nemesis, f *fault) {
	if part := n.part(f.on); part != nil {
		part.kill()
		time.Sleep(f.long)
	}
}

func pausePart(n *nemesis, f *fault) {
	if part := n.part(f.on); part != nil {
		part.signal(syscall.SIGSTOP)
		time.Sleep(f.long)
	}
}

// hosts of a word of `on`.
func (n *nemesis) hosts(word string) []string {
	switch word {
	case "etcd", "peers":
		return []string{"11", "12", "13"}
	case "reviews":
		return []string{self}
	}
	if part := n.part(word); part != nil {
		return []string{part.host}
	}
	return nil
}

func (n *nemesis) cut(on string, isBothWays bool) {
	words := strings.Fields(on)
	for _, from := range n.hosts(words[0]) {
		for _, to := range n.hosts(words[1]) {
			if from == to {
				continue
			}
			_ = drop(from, to)
			if isBothWays {
				_ = drop(to, from)
			}
		}
	}
}

func cutBoth(n *nemesis, f *fault) {
	n.cut(f.on, true)
	time.Sleep(f.long)
}

func cutOneWay(n *nemesis, f *fault) {
	n.cut(f.on, false)
	time.Sleep(f.long)
}

func moveLeader(n *nemesis, f *fault) {
	leader := n.plane.leader()
	if leader < 0 {
		return
	}
	next := n.plane.etcd[(leader+1)%3]
	_, status := next.call(http.MethodPost, "/v3/maintenance/status", object{}, time.Second)
	code, _ := n.plane.etcd[leader].call(http.MethodPost, "/v3/maintenance/transfer-leadership",
		object{"targetID": text(status, "header", "member_id")}, 3*time.Second)
	f.note = fmt.Sprintf("%s to %s: %d", n.plane.etcd[leader].name, next.name, code)
}

func breakReviews(how balancerFault) func(*nemesis, *fault) {
	return func(n *nemesis, f *fault) {
		n.plane.balancer.setFault(how)
		time.Sleep(f.long)
	}
}

func (n *nemesis) restart(name string) {
	if part := n.plane.processes[name]; part != nil {
		part.kill()
		_ = part.start()
	}
}

func moveClock(n *nemesis, f *fault) {
	words := strings.Fields(f.on)
	if n.plane.faketime == "" || n.plane.processes[words[0]] == nil {
		f.note = "not possible here"
		return
	}
	n.plane.clocks[words[0]] = words[1]
	n.restart(words[0])
	time.Sleep(f.long)
}

func changeVersion(n *nemesis, f *fault) {
	if n.plane.previous == "" || n.plane.processes[f.on] == nil {
		f.note = "no other version"
		return
	}
	n.plane.programs[f.on] = n.plane.previous
	n.restart(f.on)
	time.Sleep(f.long)
}

func reload(n *nemesis, f *fault) {
	n.version++
	if err := n.plane.configure(n.version); err != nil {
		f.note = err.Error()
	}
	if part := n.plane.processes[f.on]; part != nil {
		part.signal(syscall.SIGHUP)
	}
}

func renewCertificate(n *nemesis, f *fault) {
	if err := n.plane.authority.issue(n.plane.file("webhook.crt"), n.plane.file("webhook.key"), self); err != nil {
		f.note = err.Error()
	}
}

// ---- faults with a trigger ----

// awaitLock returns when a claim is locked for a pod of that claimguard's workers: its Binding comes next. False: within some seconds, none is.
func (n *nemesis) awaitLock(claimguard string, f *fault) bool {
	isSeen := false
	before := map[string]string{}
	_ = watch(n.plane.etcd[f.number%3], "/registry/persistentvolumeclaims/"+ns+"/", 0, 4*time.Second, func(key, value string, _ int64) bool {
		_, holder, _ := strings.Cut(value, `"claimguard.io/holder":"`)
		holder, _, _ = strings.Cut(holder, `"`)
		isNew := holder != "" && holder != before[key]
		before[key] = holder
		if isNew && n.isHome(holder, claimguard) {
			isSeen, f.note = true, "lock for "+holder[strings.Index(holder, "/")+1:]
		}
		return !isSeen
	})
	return isSeen
}

func apiOf(claimguard string) string { return "a" + claimguard[1:] }

const claimguardUser = "system:serviceaccount:claimguard:claimguard"

// catchBinding holds the next Binding that this claimguard posts, when it has been allowed by all that decide. Nil: none
// came.
func (n *nemesis) catchBinding(claimguard string, f *fault) func() {
	pod, letGo := n.plane.slowHook.catch(func(user, pod string) bool {
		return user == claimguardUser && n.isHome(pod, claimguard)
	}, 4*time.Second)
	f.note = "Binding of " + pod
	return letGo
}

func (n *nemesis) isHome(pod, claimguard string) bool {
	return fmt.Sprint("c", 1+homeOf(pod, len(n.plane.extenders))) == claimguard
}

// The Binding is executed when its client has given up, and another pod may have taken the lock over.
func bindingLate(n *nemesis, f *fault) {
	if n.plane.processes[f.on] == nil {
		return
	}
	if letGo := n.catchBinding(f.on, f); letGo != nil {
		time.Sleep(time.Second)
		n.cut(apiOf(f.on)+" "+f.on, true) // else the end of the client's connection ends the request
		time.Sleep(f.long)
		letGo()
		time.Sleep(time.Second)
	}
}

// The Binding is executed, and its answer is an error, or none.
func bindingLost(n *nemesis, f *fault) {
	if n.plane.processes[f.on] == nil {
		return
	}
	if letGo := n.catchBinding(f.on, f); letGo != nil {
		n.cut("etcd "+apiOf(f.on), false)
		letGo()
		time.Sleep(f.long)
	}
}

// What claimguard allowed somebody else is executed when the lock of a Binding of its own would be old.
func reviewThenLate(n *nemesis, f *fault) {
	pod, letGo := n.plane.slowHook.catch(func(user, _ string) bool { return user != claimguardUser }, 4*time.Second)
	if f.note = "of " + pod; letGo != nil {
		time.Sleep(f.long)
		letGo()
		time.Sleep(time.Second)
	}
}

// claimguard stands still between the lock and the Binding, and continues when the lock may have been taken over.
func stoppedBeforeBinding(n *nemesis, f *fault) {
	if part := n.plane.processes[f.on]; part != nil && n.awaitLock(f.on, f) {
		part.signal(syscall.SIGSTOP)
		time.Sleep(f.long)
	}
}

func killedBeforeBinding(n *nemesis, f *fault) {
	if part := n.plane.processes[f.on]; part != nil && n.awaitLock(f.on, f) {
		part.kill()
		time.Sleep(f.long)
	}
}
