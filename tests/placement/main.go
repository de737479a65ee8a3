// placement: kube-scheduler's plugins as a library, and whether `claimguard dry-run` says the same about volumes (README.md).
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"

	"k8s.io/klog/v2"
)

// The differences that are known. README.md has the reasons.
var known = []*regexp.Regexp{
	regexp.MustCompile(`^only kube-scheduler: NodeVolumeLimits: PVC X was not created for pod X`),
	regexp.MustCompile(`^only claimguard: claim X is in use by pod X, nominated to X`),
	regexp.MustCompile(`^only claimguard: claim X is in use by pod X on X`),
	regexp.MustCompile(`^only claimguard: CSI driver \S+ .*is not registered on the node`),
	regexp.MustCompile(`^only claimguard: (CSI driver \S+ does not support |no CSIDriver object )`),
	regexp.MustCompile(`^only claimguard: VolumeAttributesClass `),
}

func (c class) isKnown() bool {
	return slices.ContainsFunc(known, func(one *regexp.Regexp) bool { return one.MatchString(string(c)) })
}

type options struct {
	snapshot, claimguard, dir string
	count, first, workers     int
	seed                      uint64
}

func parse() *options {
	o := &options{}
	flag.StringVar(&o.snapshot, "snapshot", "", "only print what kube-scheduler's plugins say of the pending pods of this file")
	flag.StringVar(&o.claimguard, "claimguard", "build/claimguard", "the program")
	flag.StringVar(&o.dir, "dir", "", "folder for files; it has the smallest example of each class")
	flag.IntVar(&o.count, "clusters", 2000, "how many")
	flag.IntVar(&o.first, "first", 0, "the number of the first one")
	flag.IntVar(&o.workers, "workers", 2, "how many at a time")
	flag.Uint64Var(&o.seed, "seed", 1, "clusters follow from it and their number")
	flag.Parse()
	return o
}

// Of a class: how many pods, and the smallest of the clusters.
type example struct {
	pods, number, objects int
}

type results struct {
	sync.Mutex
	tally   tally
	classes map[class]*example
	err     error
}

func (r *results) take(n, objects int, t *tally, found []finding) {
	r.tally.pods += t.pods
	r.tally.pairs += t.pairs
	r.tally.pass += t.pass
	r.tally.reject += t.reject
	for plugin, count := range t.others {
		r.tally.others[plugin] += count
	}
	for _, one := range found {
		of := r.classes[one.class]
		if of == nil {
			of = &example{number: n, objects: objects}
			r.classes[one.class] = of
		}
		of.pods++
		if objects < of.objects || (objects == of.objects && n < of.number) {
			of.number, of.objects = n, objects
		}
	}
}

func (o *options) random(n int) *rand.Rand { return rand.New(rand.NewPCG(o.seed, uint64(n))) }

func (o *options) asker(name string) *asker {
	a := &asker{claimguard: o.claimguard, dir: fmt.Sprintf("%s/%s", o.dir, name)}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		fail(err)
	}
	return a
}

// compareAll compares all clusters, some at a time.
func (o *options) compareAll(ctx context.Context) *results {
	out := &results{tally: tally{others: map[string]int{}}, classes: map[class]*example{}}
	numbers := make(chan int)
	var wait sync.WaitGroup
	for worker := range o.workers {
		a := o.asker(fmt.Sprint("worker-", worker))
		wait.Go(func() {
			for n := range numbers {
				objects := makeCluster(o.random(n))
				t, found, err := a.compare(ctx, objects)
				out.Lock()
				if err != nil {
					out.err = fmt.Errorf("cluster %d: %w", n, err)
				}
				out.take(n, len(objects), &t, found)
				out.Unlock()
			}
		})
	}
	for n := range o.count {
		numbers <- o.first + n
	}
	close(numbers)
	wait.Wait()
	return out
}

// show prints the classes, the most frequent ones first, with the smallest example. It returns how many are not known.
func (o *options) show(ctx context.Context, r *results) int {
	classes := make([]class, 0, len(r.classes))
	for of := range r.classes {
		classes = append(classes, of)
	}
	slices.SortFunc(classes, func(a, b class) int { return r.classes[b].pods - r.classes[a].pods })
	unknown := 0
	for i, of := range classes {
		word := "known"
		if !of.isKnown() {
			word = "NEW"
			unknown++
		}
		example := r.classes[of]
		a := o.asker(fmt.Sprint("class-", i))
		_, text := a.shrink(ctx, makeCluster(o.random(example.number)), of)
		fmt.Printf("%-5s %5d pods  %s\n                  cluster %d, %s/cluster.json: %s\n", word, example.pods, of, example.number, a.dir, text)
	}
	for i, one := range known {
		if !slices.ContainsFunc(classes, func(of class) bool { return one.MatchString(string(of)) }) {
			fmt.Printf("known difference %d was not seen: %s\n", i, one)
		}
	}
	fmt.Printf("%d clusters, seed %d: %d pods, %d pairs of a pod and a node: on %d both pass, on %d both reject. ", o.count, o.seed, r.tally.pods, r.tally.pairs,
		r.tally.pass, r.tally.reject)
	fmt.Printf("Of those that pass, other plugins reject: %v. %d new classes\n", r.tally.others, unknown)
	return unknown
}

func main() {
	klog.SetOutput(os.Stderr)
	o, ctx := parse(), context.Background()
	if o.snapshot != "" {
		objects, err := readObjects(o.snapshot)
		if err != nil {
			fail(err)
		}
		s, err := newScheduler(ctx, objects)
		if err != nil {
			fail(err)
		}
		s.show(ctx, os.Stdout)
		return
	}
	r := o.compareAll(ctx)
	if r.err != nil {
		fail(r.err)
	}
	if o.show(ctx, r) != 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "placement:", err)
	os.Exit(2)
}
