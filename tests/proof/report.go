package main

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"time"
)

// What a run did, and what it found.
type run struct {
	options   *options
	workload  *workload
	history   *history
	faults    []*fault
	findings  []finding
	claims    int // each UID
	bindings  int
	elections int
	end       time.Duration // of the faults
	slowest   time.Duration // claim to get its next pod afterwards
}

func (r *run) kinds() ([]string, map[string]int) {
	counts := map[string]int{}
	for _, f := range r.faults {
		counts[f.kind]++
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, counts
}

func (r *run) pods() int {
	return int(r.workload.tries.Load())
}

func (r *run) print(out io.Writer) {
	lock := "Annotation, two claimguards"
	if r.options.local {
		lock = "Local, one claimguard"
	}
	names, counts := r.kinds()
	fmt.Fprintf(out, "seed %d, %.0f s of faults, claimLock: %s\n\n", r.options.seed, r.end.Seconds(), lock)
	fmt.Fprintf(out, "%6d  claims, of %d names, with %d clients each\n%6d  pods\n%6d  Bindings in etcd's history\n", r.claims,
		r.options.claims, r.options.workers, r.pods(), r.bindings)
	for by := range routes {
		fmt.Fprintf(out, "%6d    by %s (%d refused)\n", r.workload.bound[by].Load(), routeNames[by], r.workload.refused[by].Load())
	}
	fmt.Fprintf(out, "%6d  faults\n", len(r.faults))
	for _, name := range names {
		fmt.Fprintf(out, "%6d    %s\n", counts[name], name)
	}
	fmt.Fprintf(out, "%6d  elections of etcd\n%6d  rejections that named a holder\n%6.1f  s until each claim had its next pod, after the faults\n\n",
		r.elections, len(r.history.rejections), r.slowest.Seconds())
	if r.history.undecided != 0 {
		fmt.Fprintf(out, "%6d  claims whose order was not decided in %.0f s\n\n", r.history.undecided, orderPatience.Seconds())
	}
	for _, f := range r.findings {
		fmt.Fprintf(out, "FOUND   %-7s %7.1f s  %s\n", f.kind, f.when.Seconds(), f.text)
	}
	if r.failures() != 0 {
		fmt.Fprintf(out, "\nnot proven: %d findings; %s, %s\n", r.failures(), r.options.dir+"/timeline.txt", r.options.dir+"/timeline.svg")
		return
	}
	fmt.Fprintln(out, "nothing found: no claim had two pods, no client saw what cannot be, nobody was rejected for a pod that had")
	fmt.Fprintln(out, "ended, and each claim had its next pod")
}

// failures counts what contradicts the guarantee. That a claim which is created again between two Bindings may get two
// pods is no part of it with several claimguards.
func (r *run) failures() int {
	count := 0
	for _, f := range r.findings {
		if f.kind != "moved" || r.options.local {
			count++
		}
	}
	return count
}

// append adds a line to the results of several runs.
func (r *run) append(file string) error {
	_, counts := r.kinds()
	found := map[string]int{}
	for _, f := range r.findings {
		found[f.kind]++
	}
	version, err := exec.Command(r.options.claimguard, "--version").Output()
	if err != nil {
		return err
	}
	line, err := json.Marshal(object{"version": strings.TrimSpace(string(version)), "seed": r.options.seed, "local": r.options.local, "seconds": int(r.end.Seconds()), "claims": r.claims,
		"pods": r.pods(), "bindings": r.bindings, "faults": len(r.faults), "kinds": counts, "elections": r.elections,
		"rejections": len(r.history.rejections), "undecided": r.history.undecided, "slowest": r.slowest.Seconds(), "found": found})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// ---- the timeline ----

func (r *run) draw() error {
	if err := os.WriteFile(r.options.dir+"/timeline.txt", []byte(r.timeline()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(r.options.dir+"/timeline.svg", []byte(r.picture()), 0o644)
}

func (r *run) timeline() string {
	type line struct {
		when time.Duration
		text string
	}
	var lines []line
	for _, f := range r.faults {
		lines = append(lines, line{f.began, fmt.Sprintf("fault %d  %s %s, until %.1f s  %s", f.number, f.kind, f.on, f.ended.Seconds(), f.note)})
	}
	for _, f := range r.findings {
		lines = append(lines, line{f.when, "FOUND    " + f.text})
		for _, a := range r.history.attempts[f.claim] {
			isNear := a.began < f.when && (a.ended == 0 || a.ended > f.when-time.Minute)
			if isNear && (f.pods == nil || slices.Contains(f.pods, a.pod)) {
				lines = append(lines, line{a.began, fmt.Sprintf("pod      %s (%s) is created; seen bound at %.1f s, ended at %.1f s",
					a.pod, a.try, a.bound.Seconds(), a.ended.Seconds())})
			}
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].when < lines[j].when })
	var out strings.Builder
	for i, line := range lines {
		if i == 0 || line != lines[i-1] {
			fmt.Fprintf(&out, "%7.1f s  %s\n", line.when.Seconds(), line.text)
		}
	}
	return out.String()
}

const (
	rowHeight, labelWidth, pictureWidth = 22, 90, 1100
	ink, faultColour, findingColour     = "#333", "#e0a030", "#c62828"
)

// picture: a row for each part, faults as bars; rows of the two pods of double bindings, in red.
func (r *run) picture() string {
	rows := []string{"e1", "e2", "e3", "leader", "a1", "a2", "c1", "c2", "s1", "s2", "m", "reviews"}
	for _, f := range r.findings {
		for _, pod := range f.pods {
			if !slices.Contains(rows, pod) {
				rows = append(rows, pod)
			}
		}
	}
	whole := max(r.history.now().Seconds(), 1)
	x := func(when time.Duration) float64 {
		return labelWidth + (pictureWidth-labelWidth-10)*when.Seconds()/whole
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n",
		pictureWidth, (len(rows)+2)*rowHeight)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="white"/><text x="4" y="15" fill="%s">seed %d: %d faults, %d Bindings</text>`+"\n",
		ink, r.options.seed, len(r.faults), r.bindings)
	bar := func(row int, from, to time.Duration, colour, title string) {
		fmt.Fprintf(&out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" fill-opacity="0.8"><title>%s</title></rect>`+"\n",
			x(from), (row+1)*rowHeight+5, max(x(to)-x(from), 1.5), rowHeight-8, colour, html.EscapeString(title))
	}
	for i, row := range rows {
		fmt.Fprintf(&out, `<text x="4" y="%d" fill="%s">%s</text><line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#ddd"/>`+"\n",
			(i+2)*rowHeight-7, ink, row, labelWidth, pictureWidth-10, (i+2)*rowHeight, (i+2)*rowHeight)
		for _, f := range r.faults {
			if slices.Contains(strings.Fields(strings.ReplaceAll(f.on, "etcd", "e1 e2 e3")), row) {
				bar(i, f.began, f.ended, faultColour, f.kind+" "+f.on+" "+f.note)
			}
		}
		for _, attempts := range r.history.attempts {
			for _, a := range attempts {
				if a.pod == row && a.bound != 0 {
					bar(i, a.bound, max(a.ended, a.bound), findingColour, a.pod+" is bound")
				}
			}
		}
	}
	for _, f := range r.findings {
		fmt.Fprintf(&out, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-dasharray="3"><title>%s</title></line>`+"\n",
			x(f.when), x(f.when), rowHeight, (len(rows)+1)*rowHeight, findingColour, html.EscapeString(f.text))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" fill="%s">0 s</text><text x="%d" y="%d" fill="%s" text-anchor="end">%.0f s</text></svg>`+"\n",
		labelWidth, (len(rows)+2)*rowHeight-7, ink, pictureWidth-10, (len(rows)+2)*rowHeight-7, ink, whole)
	return out.String()
}
