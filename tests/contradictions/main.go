package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"sync"
)

type options struct {
	claimguard, tests, dir string
	count, first, workers  int
	seed                   uint64
	liveEach, show         int
}

func parse() *options {
	o := &options{}
	flag.StringVar(&o.claimguard, "claimguard", "build/claimguard", "the program")
	flag.StringVar(&o.tests, "tests", "..", "the folder that has cases and commands")
	flag.StringVar(&o.dir, "dir", "", "folder for files; that of a contradiction is kept")
	flag.IntVar(&o.count, "clusters", 2000, "how many")
	flag.IntVar(&o.first, "first", 0, "the number of the first one")
	flag.IntVar(&o.workers, "workers", 2, "how many at a time")
	flag.Uint64Var(&o.seed, "seed", 1, "clusters follow from it and their number")
	flag.IntVar(&o.liveEach, "live-each", 20, "also a running claimguard is asked about each so-many-th cluster")
	flag.IntVar(&o.show, "show", 3, "of each rule, so many contradictions are shown")
	flag.Parse()
	return o
}

// clusterOf makes cluster number n: half of them from nothing, half from cases, with up to three changes.
func (o *options) clusterOf(n int, cases []cluster) cluster {
	random := rand.New(rand.NewPCG(o.seed, uint64(n)))
	var c cluster
	if n%2 == 0 {
		c = makeCluster(random)
	} else {
		c = cases[random.IntN(len(cases))]
		c.config = configs[random.IntN(len(configs))]
		c.objects = append([]object(nil), c.objects...)
	}
	for range random.IntN(4) {
		c.mutate(random)
	}
	return c
}

type contradiction struct {
	number     int
	rule, text string
}

// check asks about cluster n in all forms, and returns what cannot all be true.
func (o *options) check(n int, cases []cluster) ([]contradiction, error) {
	c := o.clusterOf(n, cases)
	a := &asker{claimguard: o.claimguard, dir: fmt.Sprintf("%s/%d", o.dir, n)}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return nil, err
	}
	if err := a.configure(c.config); err != nil {
		return nil, err
	}
	whole, err := a.ask(&c, c.json(), "cluster.json")
	if err != nil {
		return nil, err
	}
	found := whole.contradictions(&c)
	reversed, err := a.ask(&c, c.yaml(), "reversed.yaml")
	if err != nil {
		return nil, err
	}
	found = append(found, whole.differences(reversed, "the reverse order, as YAML")...)
	if o.liveEach > 0 && n%o.liveEach == 0 {
		live, err := a.askLive(&c)
		if err != nil {
			return nil, err
		}
		found = append(found, live...)
	}
	for i := range found {
		found[i].number = n
	}
	if len(found) == 0 {
		err = os.RemoveAll(a.dir)
	}
	return found, err
}

func main() {
	o := parse()
	cases, err := readCases(o.tests)
	if err != nil {
		fail(err)
	}
	numbers, results := make(chan int), make(chan []contradiction)
	var wait sync.WaitGroup
	for range o.workers {
		wait.Go(func() {
			for n := range numbers {
				found, err := o.check(n, cases)
				if err != nil {
					found = append(found, contradiction{n, "answer", err.Error()})
				}
				results <- found
			}
		})
	}
	go func() {
		for n := range o.count {
			numbers <- o.first + n
		}
		close(numbers)
		wait.Wait()
		close(results)
	}()
	rules, clusters := map[string][]contradiction{}, 0
	for found := range results {
		if len(found) != 0 {
			clusters++
		}
		for _, one := range found {
			rules[one.rule] = append(rules[one.rule], one)
		}
	}
	for _, rule := range sortedKeys(rules) {
		of := rules[rule]
		sort.Slice(of, func(i, j int) bool { return of[i].number < of[j].number })
		fmt.Printf("%s: %d\n", rule, len(of))
		for _, one := range of[:min(len(of), o.show)] {
			fmt.Printf("  %s/%d: %s\n", o.dir, one.number, one.text)
		}
	}
	fmt.Printf("%d clusters, seed %d: %d with contradictions\n", o.count, o.seed, clusters)
	if clusters != 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "contradictions:", err)
	os.Exit(2)
}
