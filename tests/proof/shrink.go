package main

import (
	"fmt"
	"strconv"
	"strings"
)

// How often a part of the schedule is tried before it counts as one that does not fail: the same faults meet other
// interleavings each time.
const shrinkTries = 2

// shrink finds fewer faults that fail as well: halves are left out, then quarters, and so on. What the failed run left
// behind stays in its folder.
func (o *options) shrink(failed *run) {
	again := *o
	again.dir += "-shrunk"
	kind := failed.findings[0].kind
	faults := failed.faults
	for size := (len(faults) + 1) / 2; size >= 1 && len(faults) > 1; size /= 2 {
		for begin := 0; begin+size <= len(faults) && len(faults) > 1; {
			fewer := append(append([]*fault{}, faults[:begin]...), faults[begin+size:]...)
			if again.stillFails(fewer, kind) {
				faults = fewer
			} else {
				begin += size
			}
		}
	}
	var numbers []string
	for _, f := range faults {
		numbers = append(numbers, strconv.Itoa(f.number))
	}
	fmt.Printf("\nthese faults are enough:\n")
	for _, f := range faults {
		fmt.Println(" ", f)
	}
	fmt.Printf("again: ./dev proof --seed %d --minutes %g --faults %s\n", o.seed, o.seconds/60, strings.Join(numbers, ","))
}

func (o *options) stillFails(faults []*fault, kind string) bool {
	for range shrinkTries {
		run, err := o.run(faults)
		if err != nil {
			fail(err)
		}
		for _, f := range run.findings {
			if f.kind == kind {
				return true
			}
		}
	}
	return false
}
