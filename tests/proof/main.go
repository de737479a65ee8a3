// proof tears a control plane apart, and checks what etcd has stored: docs/proof.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

type options struct {
	settings
	seconds         float64
	seed            uint64
	claims, workers int
	kinds           string // of faults; empty: all
	faults          string // numbers of the schedule; empty: all
	untilFound      bool
	results         string
	shrinks         bool
	showsSchedule   bool
}

func parse() *options {
	o := &options{}
	minutes := flag.Float64("minutes", 3, "how long faults are made")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "of the faults and the clients")
	flag.StringVar(&o.dir, "dir", "", "for logs and the report; what is in it is removed")
	flag.StringVar(&o.tools, "tools", "", "folder of kube-apiserver and the others")
	flag.StringVar(&o.root, "root", ".", "folder of the sources")
	flag.StringVar(&o.claimguard, "claimguard", "", "the program")
	flag.StringVar(&o.previous, "previous", "", "another version of it, to which a fault changes")
	flag.StringVar(&o.faketime, "faketime", "", "libfaketime.so.1: clocks of claimguard are moved")
	flag.BoolVar(&o.local, "local", false, "one claimguard with claimLock: Local; else two with Annotation")
	flag.IntVar(&o.claims, "claims", 8, "how many claims")
	flag.IntVar(&o.workers, "workers", 4, "clients of each claim")
	flag.StringVar(&o.kinds, "kinds", "", "only these kinds of faults: kill,pause")
	flag.StringVar(&o.faults, "faults", "", "only these faults of the schedule: 3,7; none: without any")
	flag.BoolVar(&o.untilFound, "until-found", false, "look for double bindings meanwhile, and end with the first")
	flag.StringVar(&o.results, "results", "", "a file to which a line about this run is added")
	flag.BoolVar(&o.shrinks, "shrink", false, "of a run that fails, find the fewest faults that fail as well")
	flag.BoolVar(&o.showsSchedule, "schedule", false, "print the faults, and do nothing")
	flag.Parse()
	o.seconds = *minutes * 60
	return o
}

// chosen are the faults of the schedule that are done.
func (o *options) chosen() []*fault {
	all := schedule(o.seed, o.seconds, o.kinds)
	if o.faults == "" {
		return all
	}
	numbers := strings.Split(o.faults, ",")
	return slices.DeleteFunc(all, func(f *fault) bool { return !slices.Contains(numbers, strconv.Itoa(f.number)) })
}

func main() {
	o := parse()
	faults := o.chosen()
	if o.showsSchedule {
		for _, f := range faults {
			fmt.Println(f)
		}
		return
	}
	if err := enterSandbox(); err != nil {
		fail(err)
	}
	run, err := o.run(faults)
	if err != nil {
		fail(err)
	}
	run.print(os.Stdout)
	if o.results != "" {
		if err := run.append(o.results); err != nil {
			fail(err)
		}
	}
	if run.failures() == 0 {
		return
	}
	if o.shrinks {
		o.shrink(run)
	}
	os.Exit(1)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "proof:", err)
	os.Exit(2)
}

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

// run is one run, on a plane of its own.
func (o *options) run(faults []*fault) (*run, error) {
	if err := os.RemoveAll(o.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	o.dir = absolute
	p, err := startPlane(o.settings)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	h := newHistory()
	from := revisionOf(p.etcd[0])
	ticks, keeper := startClock(p, h), startKeeper(p, o.seed)
	w := newWorkload(p, h, o.seed, o.claims, o.workers)
	if err := w.start(); err != nil {
		return nil, err
	}
	n := &nemesis{plane: p, history: h}
	if o.untilFound {
		go watchTruth(p, from, &n.isOver)
	}
	until := h.now() + time.Duration(o.seconds*float64(time.Second))
	done := n.run(faults, until, func(f *fault) { say("%7.1f s  %s %s  %s", f.began.Seconds(), f.kind, f.on, f.note) })
	for h.now() < until && !n.isOver.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	endOfFaults := h.now()
	say("%7.1f s  the faults have ended", endOfFaults.Seconds())
	w.stop()
	slowest := time.Duration(0)
	if !n.isOver.Load() {
		slowest = w.checkLiveness()
		w.checkEvictions()
	}
	keeper.stop()
	ticks.stop()
	truth, err := readTruth(p, from)
	if err != nil {
		return nil, err
	}
	for name, process := range p.processes {
		if process.hasEnded() {
			h.find(finding{kind: "ended", text: name + " has ended by itself: " + p.file(name+".log")})
		}
	}
	for _, found := range truth.found {
		kind := "double"
		if found.isMoved {
			kind = "moved"
		}
		h.find(finding{kind: kind, claim: found.claim, when: ticks.when(found.revision), pods: found.pods,
			text: fmt.Sprintf("claim %s has two pods, %s, at revision %d", found.claim, strings.Join(found.pods, " and "), found.revision)})
	}
	h.checkOrder(o.dir)
	h.checkRejections(done)
	sort.Slice(h.findings, func(i, j int) bool { return h.findings[i].when < h.findings[j].when })
	r := &run{options: o, workload: w, faults: done, findings: h.findings, bindings: truth.bindings, claims: len(truth.uids), elections: electionsOf(p),
		end: endOfFaults, slowest: slowest, history: h}
	return r, r.draw()
}
