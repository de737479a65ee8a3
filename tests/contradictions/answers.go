package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What claimguard's commands say of one cluster.
type answers struct {
	dryRun map[string]object // by "namespace/name", of pods without a node
	why    map[string]object // of all pods
	who    map[string]object // of all claims
	all    []string          // the claims that `who --all` lists
	audit  []object          // findings
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// at follows the path; nil: it ends before.
func at(from any, path ...string) any {
	for _, key := range path {
		o, _ := from.(object)
		from = o[key]
	}
	return from
}

func text(from any, path ...string) string {
	s, _ := at(from, path...).(string)
	return s
}

func list(from any, path ...string) []any {
	items, _ := at(from, path...).([]any)
	return items
}

func nameOf(o any) string { return text(o, "namespace") + "/" + text(o, "name") }

func (c *cluster) names(kind string) []string {
	var names []string
	for _, o := range c.objects {
		if text(o, "kind") == kind {
			names = append(names, nameOf(o["metadata"]))
		}
	}
	sort.Strings(names)
	return names
}

// ---- the forms of an input ----

func (c *cluster) json() []byte {
	out, _ := json.MarshalIndent(object{"apiVersion": "v1", "kind": "List", "items": c.objects}, "", " ")
	return out
}

// yaml writes the objects in the reverse order, as documents.
func (c *cluster) yaml() []byte {
	var out bytes.Buffer
	for i := range c.objects {
		document, _ := yaml.Marshal(c.objects[len(c.objects)-1-i])
		fmt.Fprintf(&out, "---\n%s", document)
	}
	return out.Bytes()
}

// ---- calls ----

// An asker calls claimguard in a folder of its own.
type asker struct {
	claimguard string
	dir        string
	config     []string // --config, and its file
}

func (a *asker) file(name string) string { return filepath.Join(a.dir, name) }

func (a *asker) configure(config string) error {
	a.config = nil
	if config == "" {
		return nil
	}
	a.config = []string{"--config", a.file("config.yaml")}
	return os.WriteFile(a.file("config.yaml"), []byte("apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"+config), 0o600)
}

// call returns what the command prints as JSON. Status 1 is an answer.
func (a *asker) call(out any, arguments ...string) error {
	var stderr bytes.Buffer
	command := exec.Command(a.claimguard, append(arguments, "-o", "json")...)
	command.Stderr = &stderr
	text, err := command.Output()
	if status := command.ProcessState.ExitCode(); err != nil && status != 1 {
		return fmt.Errorf("claimguard %s: status %d: %s", strings.Join(arguments, " "), status, stderr.String())
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("claimguard %s: %w: %s", strings.Join(arguments, " "), err, text)
	}
	return nil
}

// ask asks all commands about the input.
func (a *asker) ask(c *cluster, input []byte, name string) (*answers, error) {
	snapshot := a.file(name)
	if err := os.WriteFile(snapshot, input, 0o600); err != nil {
		return nil, err
	}
	out := &answers{dryRun: map[string]object{}, why: map[string]object{}, who: map[string]object{}}
	var pods []object
	if err := a.call(&pods, append([]string{"dry-run", "-s", snapshot, "-a"}, a.config...)...); err != nil {
		return nil, err
	}
	for _, pod := range pods {
		out.dryRun[nameOf(pod["pod"])] = pod
	}
	var answer object
	if names := c.names("Pod"); len(names) != 0 {
		if err := a.call(&answer, append(append([]string{"why", "-s", snapshot}, names...), a.config...)...); err != nil {
			return nil, err
		}
		for _, pod := range list(answer, "pods") {
			out.why[nameOf(pod)] = pod.(object)
		}
	}
	if names := c.names("PersistentVolumeClaim"); len(names) != 0 {
		if err := a.call(&answer, append(append([]string{"who", "-s", snapshot}, names...), a.config...)...); err != nil {
			return nil, err
		}
		for _, claim := range list(answer, "claims") {
			out.who[nameOf(claim)] = claim.(object)
		}
	}
	if err := a.call(&answer, append([]string{"who", "-s", snapshot, "--all"}, a.config...)...); err != nil {
		return nil, err
	}
	for _, claim := range list(answer, "claims") {
		out.all = append(out.all, nameOf(claim))
	}
	sort.Strings(out.all)
	if err := a.call(&answer, append([]string{"audit", "-s", snapshot, "--fail-on", "never"}, a.config...)...); err != nil {
		return nil, err
	}
	for _, finding := range list(answer, "findings") {
		out.audit = append(out.audit, finding.(object))
	}
	return out, nil
}
