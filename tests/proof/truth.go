package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// etcd's own history, revision by revision: what is checked is not what claimguard or an API server says.

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func decode(from any, path ...string) string {
	bytes, _ := base64.StdEncoding.DecodeString(text(from, path...))
	return string(bytes)
}

// Revisions have no times: the latest one is noted now and then.
type clock struct {
	*background
	times []tick // to be read when it is stopped
}

type tick struct {
	revision int64
	when     time.Duration
}

func startClock(p *plane, h *history) *clock {
	c := &clock{background: newBackground()}
	c.repeat(100*time.Millisecond, func(i int) {
		if revision := revisionOf(p.etcd[i%3]); revision != 0 {
			c.times = append(c.times, tick{revision, h.now()})
		}
	})
	c.repeat(500*time.Millisecond, watchConfirmations(p, h))
	return c
}

func (c *clock) stop() {
	c.background.stop()
	sort.Slice(c.times, func(i, j int) bool { return c.times[i].revision < c.times[j].revision })
}

// when the revision was there, at the latest.
func (c *clock) when(revision int64) time.Duration {
	i := sort.Search(len(c.times), func(i int) bool { return c.times[i].revision >= revision })
	if i == len(c.times) {
		return 0
	}
	return c.times[i].when
}

// watchConfirmations is work that notes when a claimguard has counted a rejection that it could not confirm.
func watchConfirmations(p *plane, h *history) func(int) {
	pattern := regexp.MustCompile(`claimguard_confirmations_total\{result="unknown"\} (\d+)`)
	pages, counts, times := map[string]*server{}, map[string]string{}, map[string]time.Duration{}
	for _, name := range p.claimguards() {
		pages[name] = p.metricsOf(name)
	}
	return func(int) {
		for name, page := range pages {
			began := h.now()
			if found := pattern.FindStringSubmatch(page.text("/metrics", time.Second)); found != nil {
				if counts[name] != found[1] {
					h.noteUnasked(name, times[name])
				}
				counts[name], times[name] = found[1], began
			}
		}
	}
}

func revisionOf(member *server) int64 {
	_, out := member.call(http.MethodPost, "/v3/kv/range", object{"key": encode("x"), "count_only": true}, time.Second)
	revision, _ := strconv.ParseInt(text(out, "header", "revision"), 10, 64)
	return revision
}

// watch calls on each change of keys with the prefix, from the revision on (0: from now on), until it says false,
// or the time is over.
func watch(member *server, prefix string, from int64, timeout time.Duration, on func(key, value string, revision int64) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	last := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
	create := object{"key": encode(prefix), "range_end": encode(last)}
	if from != 0 {
		create["start_revision"] = strconv.FormatInt(from, 10)
	}
	body, _ := json.Marshal(object{"create_request": create})
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, member.base+"/v3/watch", bytes.NewReader(body))
	answer, err := member.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for decoder := json.NewDecoder(answer.Body); ; {
		var out object
		if err := decoder.Decode(&out); err != nil {
			return err
		}
		for _, event := range list(out, "result", "events") {
			revision, _ := strconv.ParseInt(text(event, "kv", "mod_revision"), 10, 64)
			if !on(decode(event, "kv", "key"), decode(event, "kv", "value"), revision) {
				return nil
			}
		}
	}
}

const sentinel = "/proof-sentinel" // not under /registry, where it would be a pod that no API server can read

// ---- the oracle ----

// At no revision do two unfinished pods that are bound name one claim. Nothing else is known here of claimguard, of
// what its clients saw, or of faults.
type oracle struct {
	holders  map[string]map[string]int64 // of a claim: names of pods, and the revisions at which they got it
	created  map[string]int64            // of a claim that there is
	claims   map[string][]string         // of a pod that holds them
	uids     map[string]bool             // of claims that there were
	found    []doubleBinding
	bindings int // pods that got a node
}

type doubleBinding struct {
	claim    string
	pods     []string
	revision int64
	isMoved  bool // the claim was deleted, and created again, between the two Bindings: docs/risks.md
}

func newOracle() *oracle {
	return &oracle{holders: map[string]map[string]int64{}, created: map[string]int64{}, claims: map[string][]string{}, uids: map[string]bool{}}
}

func claimsOf(pod object) []string {
	var out []string
	for _, volume := range list(pod, "spec", "volumes") {
		if name := text(volume, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		} else if at(volume, "ephemeral") != nil {
			out = append(out, text(pod, "metadata", "name")+"-"+text(volume, "name"))
		}
	}
	return out
}

func (o *oracle) see(key, value string, revision int64) {
	var stored object
	if json.Unmarshal([]byte(value), &stored) != nil {
		stored = nil // deleted
	}
	switch {
	case strings.HasPrefix(key, "/registry/pods/"+ns+"/"):
		o.seePod(key[strings.LastIndex(key, "/")+1:], stored, revision)
	case strings.HasPrefix(key, "/registry/persistentvolumeclaims/"+ns+"/"):
		name, uid := key[strings.LastIndex(key, "/")+1:], text(stored, "metadata", "uid")
		if stored == nil {
			delete(o.created, name)
		} else if !o.uids[uid] {
			o.uids[uid] = true
			o.created[name] = revision
		}
	}
}

func (o *oracle) seePod(name string, pod object, revision int64) {
	phase := text(pod, "status", "phase")
	holds := text(pod, "spec", "nodeName") != "" && phase != "Succeeded" && phase != "Failed"
	before := o.claims[name]
	since := revision
	for _, claim := range before {
		since = o.holders[claim][name]
		delete(o.holders[claim], name)
	}
	delete(o.claims, name)
	if !holds {
		return
	}
	if before == nil {
		o.bindings++
	}
	o.claims[name] = claimsOf(pod)
	for _, claim := range o.claims[name] {
		if o.holders[claim] == nil {
			o.holders[claim] = map[string]int64{}
		}
		o.holders[claim][name] = since
		if len(o.holders[claim]) == 1 {
			continue
		}
		found := doubleBinding{claim: claim, revision: revision}
		for holder, got := range o.holders[claim] {
			found.pods = append(found.pods, holder)
			found.isMoved = found.isMoved || got < o.created[claim]
		}
		sort.Strings(found.pods)
		if n := len(o.found); n == 0 || fmt.Sprint(o.found[n-1].claim, o.found[n-1].pods) != fmt.Sprint(claim, found.pods) {
			o.found = append(o.found, found)
		}
	}
}

// watchTruth says when a claim has two pods, at once.
func watchTruth(p *plane, from int64, isFound *atomic.Bool) {
	o := newOracle()
	for i := 0; !isFound.Load(); i++ {
		_ = watch(p.etcd[i%3], "/", from, time.Hour, func(key, value string, revision int64) bool {
			o.see(key, value, revision)
			from = revision + 1
			isFound.Store(len(o.found) != 0)
			return !isFound.Load()
		})
		time.Sleep(100 * time.Millisecond) // that member is down
	}
}

// readTruth is the oracle after all that etcd has stored since the revision.
func readTruth(p *plane, from int64) (*oracle, error) {
	if status, out := p.etcd[0].call(http.MethodPost, "/v3/kv/put", object{"key": encode(sentinel), "value": encode("end")}, 5*time.Second); status != http.StatusOK {
		return nil, fmt.Errorf("etcd takes no sentinel: %d %v", status, out)
	}
	o := newOracle()
	isWhole := false
	err := watch(p.etcd[0], "/", from, 2*time.Minute, func(key, value string, revision int64) bool {
		isWhole = key == sentinel
		o.see(key, value, revision)
		return !isWhole
	})
	if !isWhole {
		return nil, fmt.Errorf("etcd's history ends early: %w", err)
	}
	return o, nil
}
