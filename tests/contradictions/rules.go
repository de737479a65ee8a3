package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// differences says where other answers about the same cluster are different.
func (a *answers) differences(other *answers, form string) []contradiction {
	var found []contradiction
	compare := func(command string, mine, others any) {
		if !reflect.DeepEqual(mine, others) {
			found = append(found, contradiction{rule: "form", text: command + " from " + form + ": " + firstDifference(mine, others, "")})
		}
	}
	compare("dry-run", asAny(a.dryRun), asAny(other.dryRun))
	compare("why", asAny(a.why), asAny(other.why))
	compare("who", asAny(a.who), asAny(other.who))
	compare("who --all", asAny(a.all), asAny(other.all))
	compare("audit", withoutPlaces(a.audit), withoutPlaces(other.audit))
	return found
}

// asAny makes one of what JSON is decoded to.
func asAny(value any) any {
	text, _ := json.Marshal(value)
	var out any
	_ = json.Unmarshal(text, &out)
	return out
}

// withoutPlaces leaves out where in its file a finding is.
func withoutPlaces(findings []object) any {
	var texts []string
	for _, finding := range findings {
		copied := copyOf(finding)
		delete(copied, "location")
		text, _ := json.Marshal(copied)
		texts = append(texts, string(text))
	}
	sort.Strings(texts)
	return asAny(texts)
}

func firstDifference(a, b any, path string) string {
	switch x := a.(type) {
	case object:
		y, isObject := b.(object)
		if !isObject {
			break
		}
		keys := sortedKeys(x)
		for _, key := range sortedKeys(y) {
			if _, isThere := x[key]; !isThere {
				return fmt.Sprintf("%s.%s is only there: %v", path, key, y[key])
			}
		}
		for _, key := range keys {
			if !reflect.DeepEqual(x[key], y[key]) {
				return firstDifference(x[key], y[key], path+"."+key)
			}
		}
	case []any:
		y, isList := b.([]any)
		if !isList || len(x) != len(y) {
			break
		}
		for i := range x {
			if !reflect.DeepEqual(x[i], y[i]) {
				return firstDifference(x[i], y[i], fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	return fmt.Sprintf("%s: %v, and %v", path, a, b)
}

// ---- what one cluster's answers must have in common ----

// A reason of a verdict, and the cause by which `why` says the same. The first group is the claim, if it names one.
var reasons = []struct {
	pattern *regexp.Regexp
	cause   string
}{
	{regexp.MustCompile(`^claim (\S+) is (?:in use by|reserved for) pod`), "ClaimInUse"},
	{regexp.MustCompile(`^claim (\S+)(?: \(\S+\))? is in use on `), "VolumeInUseElsewhere"},
	{regexp.MustCompile(`^persistentvolumeclaim "(\S*)" not found`), "ClaimMissing"},
	{regexp.MustCompile(`^persistentvolumeclaim "(\S+)" was not created for pod`), "ClaimOfAnotherPod"},
	{regexp.MustCompile(`^persistentvolumeclaim "(\S+)" is being deleted`), "ClaimDeleting"},
	{regexp.MustCompile(`^VolumeAttributesClass \S+ of claim (\S+) `), "VolumeAttributesClass"},
	{regexp.MustCompile(`^VolumeAttributesClass \S+ is for driver \S+ claim (\S+) `), "VolumeAttributesClass"},
	{regexp.MustCompile(`^claim (\S+) .*class `), "VolumeAttributesClass"},
	{regexp.MustCompile(`CSIDriver|inline volume|does not support`), "DriverMode"},
	{regexp.MustCompile(`^CSI driver \S+ (?:of|\().* is not registered|has no CSINode`), "DriverNotRegistered"},
	{ofScheduler, ""},
	{regexp.MustCompile(`^and \d+ more$`), ""},
	{regexp.MustCompile(`^pod \S+ is being deleted`), ""},
	{regexp.MustCompile(`^the pods, claims and PodDisruptionBudgets of namespace \S+ take too much memory`), "NamespaceGivenUp"},
	{regexp.MustCompile(`scheduling group|cannot lock more|is deferred by the pod's user, and other claimguards`), ""},
}

// The reasons of kube-scheduler's VolumeBinding: a server does not have them, and /debug/snapshot not what they read.
var ofScheduler = regexp.MustCompile(`^pod has unbound immediate |bound to non-existent |^node\(s\) `)

func isOfScheduler(verdict object) bool {
	for _, of := range append(list(verdict, "nodes"), verdict["preFilter"]) {
		for _, reason := range list(of, "reasons") {
			if ofScheduler.MatchString(reason.(string)) {
				return true
			}
		}
	}
	return false
}

func isRejection(code string) bool {
	return code == "Unschedulable" || code == "UnschedulableAndUnresolvable"
}

// said is what verdicts or `why` say: a cause, of a claim if they name one.
type said map[string]bool

func (s said) add(cause, claim string) {
	s[strings.TrimSpace(cause+" "+claim)] = true
	s[cause] = true
}

// ofVerdict collects the reasons for which the pod passes nowhere, or not on a node.
func ofVerdict(pod string, verdict object, out said) []string {
	var unknown []string
	ns, _, _ := strings.Cut(pod, "/")
	read := func(of any) {
		if !isRejection(text(of, "code")) {
			return
		}
		for _, reason := range list(of, "reasons") {
			isKnown := false
			for _, row := range reasons {
				if group := row.pattern.FindStringSubmatch(reason.(string)); group != nil {
					claim := ""
					if len(group) > 1 {
						claim = group[1]
						if !strings.Contains(claim, "/") || strings.HasPrefix(claim, "text-of-") { // a name that is too long has a slash
							claim = ns + "/" + claim
						}
					}
					out.add(row.cause, claim)
					isKnown = true
					break
				}
			}
			if !isKnown {
				unknown = append(unknown, reason.(string))
			}
		}
	}
	read(verdict["preFilter"])
	for _, node := range list(verdict, "nodes") {
		read(node)
	}
	return unknown
}

// ofWhy collects the causes that stop the pod, or rule out nodes.
func ofWhy(pod object) said {
	out := said{}
	for _, cause := range list(pod, "causes") {
		if effect := text(cause, "effect"); effect != "Blocks" && effect != "Narrows" {
			continue
		}
		claim := ""
		if text(cause, "object", "kind") == "PersistentVolumeClaim" {
			claim = nameOf(at(cause, "object"))
		}
		out.add(text(cause, "cause"), claim)
	}
	return out
}

func (a *answers) contradictions(c *cluster) []contradiction {
	var found []contradiction
	add := func(rule, format string, arguments ...any) {
		found = append(found, contradiction{rule: rule, text: fmt.Sprintf(format, arguments...)})
	}
	for _, name := range sortedKeys(a.dryRun) {
		a.checkVerdict(name, add)
	}
	for _, name := range sortedKeys(a.who) {
		a.checkHolders(name, add)
	}
	a.checkAudit(add)
	return found
}

type adder = func(rule, format string, arguments ...any)

// checkVerdict: `why` has the verdict of the dry run, and a cause of a policy if and only if the verdict has its reason.
func (a *answers) checkVerdict(name string, add adder) {
	dry, why := a.dryRun[name], a.why[name]
	if why == nil {
		add("verdict", "pod %s: why does not know it", name)
		return
	}
	if at(why, "verdict") != nil {
		for _, key := range []string{"schedulable", "preFilter", "warnings", "preemption"} {
			mine := at(dry, key)
			if key == "warnings" {
				mine = slices.DeleteFunc(slices.Clone(list(dry, key)), isSaidElsewhere)
			}
			if !reflect.DeepEqual(mine, at(why, "verdict", key)) {
				add("verdict", "pod %s: %s", name, firstDifference(mine, at(why, "verdict", key), "verdict."+key))
			}
		}
	}
	verdict, causes := said{}, ofWhy(why)
	for _, reason := range ofVerdict(name, dry, verdict) {
		add("reason", "pod %s: %q is no known reason", name, reason)
	}
	if text(why, "stage") != "Scheduling" {
		return
	}
	for _, reason := range sortedKeys(verdict) {
		if isComplete, _ := at(why, "complete").(bool); isComplete && reason != "" && !causes[reason] {
			add("cause", "pod %s: the verdict rejects it for %s, and why says %v", name, reason, sortedKeys(causes))
		}
	}
	for _, cause := range sortedKeys(causes) {
		switch strings.Fields(cause)[0] {
		case "ClaimInUse", "VolumeInUseElsewhere", "ClaimMissing", "ClaimDeleting", "VolumeAttributesClass", "DriverMode", "DriverNotRegistered":
			if len(verdict) == 0 { // it stops at the first policy that rejects the pod
				add("reason", "pod %s: why says %s, and the verdict nothing", name, cause)
			}
		}
	}
}

// isSaidElsewhere: `why` has it in notKnown, or as stage Gated.
func isSaidElsewhere(warning any) bool {
	said := warning.(string)
	return strings.HasPrefix(said, "the snapshot has no ") || strings.Contains(said, "and the snapshot has none") || strings.Contains(said, "and the snapshot has no ") ||
		strings.HasPrefix(said, "it has scheduling gates") || strings.HasPrefix(said, "claimguard has given namespaces up")
}

// holderOf finds who has the claim in a reason, which may be about several claims.
func holderOf(claim string) *regexp.Regexp {
	return regexp.MustCompile("claim " + regexp.QuoteMeta(claim) + ` .*?pod ([a-z0-9.-]+/[a-z0-9.-]*[a-z0-9])`)
}

// checkHolders: `who`, `why` and the dry run name the same holders, and the same waiters.
func (a *answers) checkHolders(name string, add adder) {
	who := a.who[name]
	holders, waiting := map[string]bool{}, map[string]bool{}
	for _, holder := range list(who, "heldBy") {
		holders[nameOf(holder)] = true
	}
	for _, pod := range list(who, "waiting") {
		if text(pod, "node") != "" || text(pod, "nominatedNode") != "" { // it has the claim, and waits on its node; or will have it
			holders[nameOf(pod)] = true
		}
		if text(pod, "waitsFor") != "Other" {
			waiting[nameOf(pod)] = true
		}
	}
	if reserved := at(who, "reservedFor"); reserved != nil {
		holders[nameOf(reserved)] = true
	}
	isFree, _ := at(who, "free").(bool)
	if isFree && len(list(who, "heldBy")) != 0 {
		add("who", "claim %s is free, and held by %v", name, sortedKeys(holders))
	}
	for _, pod := range sortedKeys(a.why) {
		for _, cause := range list(a.why[pod], "causes") {
			if nameOf(at(cause, "object")) != name || text(cause, "object", "kind") != "PersistentVolumeClaim" {
				continue
			}
			kind := text(cause, "cause")
			if kind == "ClaimInUse" && isFree {
				add("free", "who says that claim %s is free, and why that pod %s waits for it: %s", name, pod, text(cause, "text"))
			}
			if kind == "ClaimInUse" || kind == "VolumeInUseElsewhere" {
				for _, group := range holderOf(name).FindAllStringSubmatch(text(cause, "text"), -1) {
					if !holders[group[1]] {
						add("holder", "why says that pod %s waits for pod %s, and who says that claim %s is held by %v", pod, group[1], name, sortedKeys(holders))
					}
				}
			}
			if kind == "ClaimInUse" && text(cause, "effect") == "Blocks" && text(a.why[pod], "stage") == "Scheduling" && !waiting[pod] {
				add("waiter", "why says that pod %s waits for claim %s, and who says that %v do", pod, name, sortedKeys(waiting))
			}
		}
	}
	for _, pod := range sortedKeys(waiting) {
		// without CSIDrivers, who believes the scheduler's message, and why prints it, and says that not all is known
		isSaid := strings.Contains(text(a.why[pod], "message"), "claim "+name+" (") && at(a.why[pod], "complete") == false
		if stage := text(a.why[pod], "stage"); stage == "Scheduling" && len(list(a.why[pod], "causes")) == 0 && !isSaid {
			add("waiter", "who says that pod %s waits for claim %s, and why has no cause", pod, name)
		}
	}
	for _, pod := range sortedKeys(a.dryRun) {
		for _, claim := range list(a.dryRun[pod], "claims") {
			isExclusive, _ := at(claim, "exclusive").(bool)
			ns, _, _ := strings.Cut(pod, "/")
			if ns+"/"+text(claim, "name") != name || !isExclusive {
				continue
			}
			for _, holder := range list(claim, "heldBy") {
				if !holders[nameOf(holder)] {
					add("holder", "the dry run of pod %s says that pod %s holds claim %s, and who says %v", pod, nameOf(holder), name, sortedKeys(holders))
				}
			}
		}
	}
}

// checkAudit: a finding about live objects is what `who` or `why` says of them, too.
func (a *answers) checkAudit(add adder) {
	twice := map[string]bool{}
	for _, finding := range a.audit {
		if text(finding, "code") == "CG101" {
			twice[text(finding, "object", "namespace")+"/"+text(finding, "object", "name")] = true
		}
	}
	for _, name := range sortedKeys(a.who) {
		who := a.who[name]
		count := 0
		for _, holder := range list(who, "heldBy") {
			if as := text(holder, "as"); as == "Bound" || as == "Terminating" {
				count++
			}
		}
		for _, pod := range list(who, "waiting") {
			if text(pod, "node") != "" {
				count++
			}
		}
		isOnePod := slices.Contains(list(who, "accessModes"), any("ReadWriteOncePod"))
		if isOnePod && count > 1 && !twice[name] {
			add("audit", "who says that %d pods hold claim %s, and audit has no CG101", count, name)
		}
		if twice[name] && (count < 2 || !isOnePod) {
			add("audit", "audit has CG101 for claim %s, and who says that %d pods hold it (%s)", name, count, text(who, "usableBy"))
		}
	}
}

// differencesOfVerdicts compares what does not need owners, messages, times, and labels.
func (a *answers) differencesOfVerdicts(other *answers, form string) []contradiction {
	var found []contradiction
	add := func(format string, arguments ...any) {
		found = append(found, contradiction{rule: "form", text: "from " + form + ": " + fmt.Sprintf(format, arguments...)})
	}
	for _, name := range sortedKeys(a.dryRun) {
		if isOfScheduler(a.dryRun[name]) {
			continue
		}
		for _, key := range []string{"schedulable", "preFilter", "nodes", "claims", "preemption"} {
			if mine, others := at(a.dryRun[name], key), at(other.dryRun[name], key); !reflect.DeepEqual(mine, others) {
				add("dry-run of pod %s: %s", name, firstDifference(mine, others, "."+key))
			}
		}
	}
	for _, name := range sortedKeys(a.who) {
		var names [2][]string // the page has no VolumeAttachments, so that a holder may wait for a detach is not known
		for i, answer := range []*answers{a, other} {
			for _, pod := range append(slices.Clone(list(answer.who[name], "heldBy")), list(answer.who[name], "waiting")...) {
				names[i] = append(names[i], nameOf(pod))
			}
			sort.Strings(names[i])
		}
		if !slices.Equal(names[0], names[1]) {
			add("who of claim %s: %v, and %v", name, names[0], names[1])
		}
	}
	return found
}
