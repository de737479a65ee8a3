package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ---- what claimguard says ----

// A dry run of one pod, as `-o json` prints it.
type dryRun struct {
	Pod   struct{ Namespace, Name string }
	Nodes []struct {
		Name, Code string
		Reasons    []string
	}
}

type asker struct{ claimguard, dir string }

// write writes the objects as a List, which both sides read.
func (a *asker) write(objects []runtime.Object) (string, error) {
	path := filepath.Join(a.dir, "cluster.json")
	text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}, "", " ")
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}

// dryRun returns for each pending pod, and each node, the first reason for which claimguard rejects it; "": it passes.
func (a *asker) dryRun(path string) (map[string]map[string]string, error) {
	var stderr bytes.Buffer
	command := exec.Command(a.claimguard, "dry-run", "--snapshot", path, "--all-pending", "-o", "json")
	command.Stderr = &stderr
	text, err := command.Output()
	if status := command.ProcessState.ExitCode(); err != nil && status != 1 {
		return nil, fmt.Errorf("claimguard dry-run --snapshot %s: %w: %s", path, err, stderr.String())
	}
	var pods []dryRun
	if err := json.Unmarshal(text, &pods); err != nil {
		return nil, fmt.Errorf("claimguard dry-run --snapshot %s: %w: %s", path, err, text)
	}
	out := map[string]map[string]string{}
	for _, pod := range pods {
		reasons := map[string]string{}
		for _, node := range pod.Nodes {
			reasons[node.Name] = ""
			if node.Code != "Success" {
				reasons[node.Name] = strings.Join(append(node.Reasons[:min(len(node.Reasons), 1)], node.Code)[:1], "")
			}
		}
		out[pod.Pod.Namespace+"/"+pod.Pod.Name] = reasons
	}
	return out, nil
}

// ---- what differs ----

// A class of differences: who rejects a node on which the other one lets the pod pass, and why, without names.
type class string

var names = regexp.MustCompile(`"[^"]*"|\b(?:shop|bank)/[a-z0-9-]+|\b(?:node|pod|claim|pv)-[a-z0-9-]+|\bv[0-9]\b`)

func classOf(who, reason string) class {
	return class(who + ": " + names.ReplaceAllString(reason, "X"))
}

// What was compared.
type tally struct {
	pods, pairs, pass, reject int            // pairs of a pod and a node; on how many both say so
	others                    map[string]int // pairs that pass by all volume plugins, and that another plugin rejects
}

type finding struct {
	class class
	text  string
}

// compare asks both about the objects.
func (a *asker) compare(ctx context.Context, objects []runtime.Object) (tally, []finding, error) {
	out := tally{others: map[string]int{}}
	path, err := a.write(objects)
	if err != nil {
		return out, nil, err
	}
	read, err := readObjects(path)
	if err != nil {
		return out, nil, err
	}
	s, err := newScheduler(ctx, read)
	if err != nil {
		return out, nil, err
	}
	defer s.stop()
	ours, err := a.dryRun(path)
	if err != nil {
		return out, nil, err
	}
	var found []finding
	for _, pod := range s.pending {
		reasons, isKnown := ours[podName(pod)]
		if !isKnown {
			return out, nil, fmt.Errorf("%s: the dry run has no pod %s", path, podName(pod))
		}
		out.pods++
		found = append(found, out.comparePod(pod, s.judge(ctx, pod), reasons)...)
	}
	return out, found, nil
}

// comparePod: a class counts once for each pod.
func (t *tally) comparePod(pod *corev1.Pod, theirs map[string][]rejection, ours map[string]string) []finding {
	var found []finding
	seen := map[class]bool{}
	for node, reason := range ours {
		var volumes, others *rejection
		for i := range theirs[node] {
			if one := &theirs[node][i]; one.isOfVolumes && volumes == nil {
				volumes = one
			} else if !one.isOfVolumes && others == nil {
				others = one
			}
		}
		t.pairs++
		var of class
		switch {
		case volumes == nil && reason == "":
			t.pass++
			if others != nil {
				t.others[others.plugin]++
			}
			continue
		case volumes != nil && reason != "":
			t.reject++
			continue
		case volumes != nil:
			of = classOf("only kube-scheduler: "+volumes.plugin, volumes.reason)
			reason = volumes.reason
		default:
			of = classOf("only claimguard", reason)
		}
		if !seen[of] {
			seen[of] = true
			found = append(found, finding{of, fmt.Sprintf("pod %s on %s: %s", podName(pod), node, reason)})
		}
	}
	return found
}

// shrink leaves out objects as long as the class is still found.
func (a *asker) shrink(ctx context.Context, objects []runtime.Object, of class) ([]runtime.Object, string) {
	text := ""
	has := func(some []runtime.Object) bool {
		_, found, err := a.compare(ctx, some)
		for _, one := range found {
			if err == nil && one.class == of {
				text = one.text
				return true
			}
		}
		return false
	}
	for hasLeftOut := true; hasLeftOut; {
		hasLeftOut = false
		for i := 0; i < len(objects); {
			fewer := append(append([]runtime.Object(nil), objects[:i]...), objects[i+1:]...)
			if has(fewer) {
				objects, hasLeftOut = fewer, true
			} else {
				i++
			}
		}
	}
	has(objects) // leaves its file, and the text
	return objects, text
}
