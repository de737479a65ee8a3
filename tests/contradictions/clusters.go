package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

type object = map[string]any

// A cluster is a configuration of claimguard, and objects in any order.
type cluster struct {
	config  string
	objects []object
}

// ---- made from nothing ----

type maker struct {
	*rand.Rand
	cluster cluster
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m *maker, of ...T) T { return of[m.IntN(len(of))] }

func (m *maker) add(apiVersion, kind string, meta object, rest object) {
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	for key, value := range rest {
		o[key] = value
	}
	m.cluster.objects = append(m.cluster.objects, o)
}

const (
	disk, file = "disk.example.com", "file.example.com"
	zoneLabel  = "topology.kubernetes.io/zone"
	started    = "2026-11-22T09:30:00Z"
	deleted    = "2026-11-22T10:00:00Z"
)

var (
	nodes      = []string{"node-1", "node-2", "node-3"}
	claimNames = []string{"data", "cache", "logs"}
	configs    = []string{"", "", "readWriteOnce: {mode: Enforce}\n", "csiVolumes: {missingCSINode: Reject}\n", "csiVolumes: {mode: Off}\n",
		"volumeAttributesClasses: {mode: Warn, waitForModify: true}\n", "readWriteOncePod: {claimLock: Annotation}\n",
		"deferFSMount: {entries: [{storageClass: fast, runtimeClass: microvm, nonExclusiveClaims: Exclusive}]}\n" +
			"readWriteOncePod: {claimLock: Annotation}\n"}
)

func makeCluster(random *rand.Rand) cluster {
	m := &maker{Rand: random}
	m.cluster.config = pick(m, configs...)
	m.addNodes()
	m.addClasses()
	for _, ns := range []string{"shop", "bank"}[:1+m.IntN(2)] {
		for _, name := range claimNames[:1+m.IntN(3)] {
			m.addClaim(ns, name)
		}
		for i := range 1 + m.IntN(5) {
			m.addPod(ns, fmt.Sprint("p-", i))
		}
	}
	return m.cluster
}

func (m *maker) addNodes() {
	for i, name := range nodes[:1+m.IntN(3)] {
		spec := object{}
		if m.chance(10) {
			spec["unschedulable"] = true
		}
		m.add("v1", "Node", object{"name": name, "uid": "n-" + name, "labels": object{zoneLabel: fmt.Sprint("zone-", i%2), "kubernetes.io/hostname": name}},
			object{"spec": spec, "status": object{"conditions": []any{object{"type": "Ready", "status": pick(m, "True", "True", "True", "False", "Unknown"),
				"lastTransitionTime": started}}}})
		if m.chance(90) {
			drivers := []any{}
			for _, driver := range []string{disk, file} {
				if m.chance(85) {
					entry := object{"name": driver, "nodeID": name}
					if m.chance(20) {
						entry["allocatable"] = object{"count": m.IntN(3)}
					}
					drivers = append(drivers, entry)
				}
			}
			m.add("storage.k8s.io/v1", "CSINode", object{"name": name, "ownerReferences": []any{object{"apiVersion": "v1", "kind": "Node", "name": name,
				"uid": "n-" + name}}}, object{"spec": object{"drivers": drivers}})
		}
	}
}

func (m *maker) addClasses() {
	if m.chance(90) {
		m.add("storage.k8s.io/v1", "CSIDriver", object{"name": disk}, object{"spec": object{"attachRequired": true,
			"volumeLifecycleModes": pick(m, []any{"Persistent"}, []any{"Persistent", "Ephemeral"})}})
	}
	if m.chance(80) {
		m.add("storage.k8s.io/v1", "CSIDriver", object{"name": file}, object{"spec": object{"attachRequired": false,
			"volumeLifecycleModes": pick(m, []any{"Persistent"}, []any{"Ephemeral"}, []any{"Persistent", "Ephemeral"})}})
	}
	m.add("storage.k8s.io/v1", "StorageClass", object{"name": "fast"}, object{"provisioner": disk, "volumeBindingMode": pick(m, "Immediate", "WaitForFirstConsumer")})
	if m.chance(80) {
		m.add("storage.k8s.io/v1", "StorageClass", object{"name": "shared"}, object{"provisioner": file, "volumeBindingMode": "WaitForFirstConsumer"})
	}
	m.add("storage.k8s.io/v1", "VolumeAttributesClass", object{"name": "silver"}, object{"driverName": pick(m, disk, file)})
	m.add("scheduling.k8s.io/v1", "PriorityClass", object{"name": "high"}, object{"value": 1000})
}

func (m *maker) deletion(meta object) {
	if m.chance(8) {
		meta["deletionTimestamp"] = deleted
	}
}

func (m *maker) addClaim(ns, name string) {
	if m.chance(6) {
		return
	}
	uid := "c-" + ns + "-" + name
	mode := pick(m, "ReadWriteOncePod", "ReadWriteOncePod", "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany")
	class := pick(m, "fast", "fast", "shared", "missing", "")
	meta := object{"name": name, "namespace": ns, "uid": uid, "creationTimestamp": started, "finalizers": []any{"kubernetes.io/pvc-protection"}}
	m.deletion(meta)
	if m.chance(12) {
		holder := fmt.Sprint("p-", m.IntN(4))
		meta["annotations"] = object{"claimguard.io/holder": pick(m, ns+"-"+holder, "gone") + "/" + holder, "claimguard.io/locked-at": "7"}
	}
	spec, status := object{"accessModes": []any{mode}, "storageClassName": class}, object{"phase": "Pending"}
	if m.chance(8) {
		spec["volumeAttributesClassName"] = pick(m, "silver", "gold")
	}
	if m.chance(75) {
		volume := "pv-" + ns + "-" + name
		spec["volumeName"] = volume
		status["phase"] = pick(m, "Bound", "Bound", "Bound", "Bound", "Bound", "Lost")
		m.addVolume(volume, ns, name, uid, mode, class)
	}
	m.add("v1", "PersistentVolumeClaim", meta, object{"spec": spec, "status": status})
}

func (m *maker) addVolume(volume, ns, name, uid, mode, class string) {
	if m.chance(6) {
		return
	}
	driver := disk
	if class == "shared" {
		driver = file
	}
	meta := object{"name": volume, "uid": "v-" + volume}
	m.deletion(meta)
	if m.chance(10) {
		meta["labels"] = object{zoneLabel: pick(m, "zone-0", "zone-1")}
	}
	spec := object{"accessModes": []any{mode}, "storageClassName": class, "persistentVolumeReclaimPolicy": pick(m, "Delete", "Retain"),
		"claimRef": object{"namespace": ns, "name": name, "uid": pick(m, uid, uid, uid, uid, uid, uid, "earlier")}}
	if m.chance(90) {
		spec["csi"] = object{"driver": driver, "volumeHandle": "h-" + volume}
	} else {
		spec["nfs"] = object{"server": "nfs.example.com", "path": "/" + volume}
	}
	if m.chance(15) {
		spec["nodeAffinity"] = object{"required": object{"nodeSelectorTerms": []any{object{"matchExpressions": []any{object{"key": zoneLabel, "operator": "In",
			"values": []any{pick(m, "zone-0", "zone-1", "zone-9")}}}}}}}
	}
	m.add("v1", "PersistentVolume", meta, object{"spec": spec, "status": object{"phase": "Bound"}})
	for range m.IntN(3) - 1 {
		status := object{"attached": m.chance(90)}
		m.add("storage.k8s.io/v1", "VolumeAttachment", object{"name": fmt.Sprint("a-", volume)}, object{"spec": object{"attacher": driver,
			"nodeName": pick(m, nodes...), "source": object{"persistentVolumeName": volume}}, "status": status})
	}
}

func (m *maker) addPod(ns, name string) {
	meta := object{"name": name, "namespace": ns, "uid": ns + "-" + name, "creationTimestamp": started}
	m.deletion(meta)
	if m.chance(30) {
		meta["ownerReferences"] = []any{object{"apiVersion": "apps/v1", "kind": pick(m, "ReplicaSet", "StatefulSet"), "name": "web", "uid": "o", "controller": true}}
	}
	volumes := []any{}
	for i := range 1 + m.IntN(2) {
		volume := object{"name": fmt.Sprint("v", i)}
		switch m.IntN(12) {
		case 0:
			volume["ephemeral"] = object{"volumeClaimTemplate": object{"spec": object{"accessModes": []any{"ReadWriteOncePod"}, "storageClassName": "fast"}}}
		case 1:
			volume["csi"] = object{"driver": pick(m, disk, file)}
		default:
			volume["persistentVolumeClaim"] = object{"claimName": pick(m, claimNames...)}
		}
		volumes = append(volumes, volume)
	}
	priority := pick(m, 0, 0, 1000)
	spec := object{"schedulerName": "default-scheduler", "priority": priority, "volumes": volumes, "containers": []any{object{"name": "c", "image": "i",
		"volumeMounts": []any{object{"name": "v0", "mountPath": "/v"}}}}}
	if m.chance(15) {
		spec["runtimeClassName"] = "microvm"
	}
	status := object{"phase": "Pending"}
	scheduled := object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available.", "lastTransitionTime": started}
	if m.chance(50) {
		spec["nodeName"] = pick(m, nodes...)
		status["phase"] = pick(m, "Running", "Running", "Running", "Pending", "Succeeded", "Failed")
		scheduled = object{"type": "PodScheduled", "status": "True", "lastTransitionTime": started}
	} else if m.chance(15) {
		status["nominatedNodeName"] = pick(m, nodes...)
	}
	status["conditions"] = []any{scheduled}
	m.add("v1", "Pod", meta, object{"spec": spec, "status": status})
}

// ---- the cases of other tests, and changes of any cluster ----

// readCases returns the clusters of all cases below the folder of tests, without those that no API server would have taken: audit does not
// read these objects, and says so with its exit code.
func readCases(tests string) ([]cluster, error) {
	var all []cluster
	for _, pattern := range []string{"cases/*/*/cluster.yaml", "commands/why/*/cluster.yaml", "commands/who/*/cluster.yaml"} {
		paths, err := filepath.Glob(filepath.Join(tests, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			c, err := readCase(path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if !strings.HasSuffix(filepath.Dir(path), "/details_of_a_wrong_type") {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

func readCase(path string) (cluster, error) {
	var c cluster
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(document, &o); err != nil {
			return c, err
		}
		if items, isList := o["items"].([]any); isList {
			for _, item := range items {
				c.objects = append(c.objects, copyOf(item.(object)))
			}
		} else if o["metadata"] != nil {
			c.objects = append(c.objects, copyOf(o))
		}
	}
	if pod, err := os.ReadFile(filepath.Join(filepath.Dir(path), "pod.json")); err == nil {
		var o object
		if json.Unmarshal(pod, &o) == nil && o["kind"] == "Pod" && !slices.Contains(c.names("Pod"), nameOf(o["metadata"])) {
			c.objects = append(c.objects, o)
		}
	}
	return c, nil
}

// mutate changes one thing: an object is gone, a field is gone, or a text is another one that the cluster has.
func (c *cluster) mutate(random *rand.Rand) {
	if len(c.objects) == 0 {
		return
	}
	m := &maker{Rand: random}
	at := m.IntN(len(c.objects))
	if len(c.objects) > 1 && m.chance(15) {
		c.objects = append(c.objects[:at:at], c.objects[at+1:]...)
		return
	}
	var texts []string
	collect(c.objects, &texts)
	o := copyOf(c.objects[at])
	m.change(o, texts, 0)
	c.objects[at] = o
}

func collect(value any, texts *[]string) {
	switch v := value.(type) {
	case []object:
		for _, item := range v {
			collect(item, texts)
		}
	case []any:
		for _, item := range v {
			collect(item, texts)
		}
	case object:
		for _, key := range sortedKeys(v) {
			collect(v[key], texts)
		}
	case string:
		*texts = append(*texts, v)
	}
}

// change one value below o, which is chosen by a random walk.
func (m *maker) change(o object, texts []string, depth int) {
	keys := sortedKeys(o)
	if len(keys) == 0 {
		return
	}
	key := keys[m.IntN(len(keys))]
	if depth == 0 {
		key = pick(m, "metadata", "spec", "status")
	}
	switch v := o[key].(type) {
	case object:
		if !m.chance(10) || depth == 0 {
			m.change(v, texts, depth+1)
			return
		}
	case []any:
		if len(v) != 0 {
			at := m.IntN(len(v))
			if inner, isObject := v[at].(object); isObject && !m.chance(10) {
				m.change(inner, texts, depth+1)
				return
			} else if _, isText := v[at].(string); isText && m.chance(70) {
				v[at] = texts[m.IntN(len(texts))]
				return
			}
			o[key] = append(v[:at:at], v[at+1:]...)
			return
		}
	case string:
		if key != "name" && key != "namespace" && key != "kind" && key != "apiVersion" && key != "uid" && m.chance(70) {
			o[key] = texts[m.IntN(len(texts))]
			return
		}
	case bool:
		o[key] = !v
		return
	}
	if depth != 0 && key != "name" && key != "namespace" && key != "uid" {
		delete(o, key)
	}
}

func copyOf(o object) object {
	text, _ := json.Marshal(o)
	var out object
	_ = json.Unmarshal(text, &out)
	return out
}
