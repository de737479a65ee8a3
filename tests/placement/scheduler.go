package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// ---- a snapshot ----

// readObjects reads what `claimguard dry-run --snapshot` reads: Lists and objects, as JSON or YAML.
func readObjects(path string) ([]runtime.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 1<<16)
	var objects []runtime.Object
	for {
		var text json.RawMessage
		err := decoder.Decode(&text)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err == nil {
			objects, err = appendObjects(objects, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

func appendObjects(objects []runtime.Object, text json.RawMessage) ([]runtime.Object, error) {
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &list); err == nil && list.Items != nil {
		for _, item := range list.Items {
			if objects, err = appendObjects(objects, item); err != nil {
				return nil, err
			}
		}
		return objects, nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return objects, nil
	}
	return append(objects, object), err
}

// ---- the plugins ----

// A plugin, and how kube-scheduler makes it.
type factory struct {
	isOfVolumes bool
	args        runtime.Object
	make        func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)
}

// In the order of kube-scheduler's default profile.
var factories = []factory{
	{false, nil, nodeunschedulable.New},
	{false, nil, tainttoleration.New},
	{false, &config.NodeAffinityArgs{}, nodeaffinity.New},
	{false, &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{Type: config.LeastAllocated,
		Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}}}, noderesources.NewFit},
	{true, nil, volumerestrictions.New},
	{true, nil, nodevolumelimits.NewCSI},
	{true, &config.VolumeBindingArgs{BindTimeoutSeconds: 600, Shape: []config.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}},
		volumebinding.New},
	{true, nil, volumezone.New},
}

// A scheduler has what kube-scheduler has when it calls its plugins for a pod.
type scheduler struct {
	snapshot *cache.Snapshot
	nodes    []fwk.NodeInfo // by name
	pending  []*corev1.Pod  // by namespace and name
	plugins  []fwk.Plugin   // beside factories
	stop     context.CancelFunc
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// newScheduler fills the informers, which are never started.
func newScheduler(ctx context.Context, objects []runtime.Object) (*scheduler, error) {
	ctx, stop := context.WithCancel(ctx) // ends what the framework starts
	s := &scheduler{stop: stop}
	s.takeSnapshot(objects)
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		return nil, err
	}
	informers := informers.NewSharedInformerFactory(client, 0)
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil, frameworkruntime.WithClientSet(client),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot), frameworkruntime.WithInformerFactory(informers),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(informers.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, err
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	features.EnableDRAExtendedResource = false // no snapshot has devices
	for _, factory := range factories {
		plugin, err := factory.make(ctx, factory.args, handle, features)
		if err != nil {
			return nil, err
		}
		s.plugins = append(s.plugins, plugin)
	}
	for _, object := range objects {
		if indexer := indexerOf(informers, object); indexer != nil {
			if err := indexer.Add(object); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func indexerOf(of informers.SharedInformerFactory, object runtime.Object) toolscache.Indexer {
	core, storage := of.Core().V1(), of.Storage().V1()
	switch object.(type) {
	case *corev1.PersistentVolumeClaim:
		return core.PersistentVolumeClaims().Informer().GetIndexer()
	case *corev1.PersistentVolume:
		return core.PersistentVolumes().Informer().GetIndexer()
	case *storagev1.StorageClass:
		return storage.StorageClasses().Informer().GetIndexer()
	case *storagev1.CSINode:
		return storage.CSINodes().Informer().GetIndexer()
	case *storagev1.CSIDriver:
		return storage.CSIDrivers().Informer().GetIndexer()
	case *storagev1.CSIStorageCapacity:
		return storage.CSIStorageCapacities().Informer().GetIndexer()
	case *storagev1.VolumeAttachment:
		return storage.VolumeAttachments().Informer().GetIndexer()
	}
	return nil
}

// takeSnapshot: as of kube-scheduler, which has no pods that have finished, and of the others those of nodes that exist.
func (s *scheduler) takeSnapshot(objects []runtime.Object) {
	var nodes []*corev1.Node
	names := map[string]bool{}
	for _, object := range objects {
		if node, isNode := object.(*corev1.Node); isNode {
			nodes = append(nodes, node)
			names[node.Name] = true
		}
	}
	var pods []*corev1.Pod
	for _, object := range objects {
		pod, isPod := object.(*corev1.Pod)
		switch {
		case !isPod || isFinished(pod):
		case pod.Spec.NodeName == "":
			s.pending = append(s.pending, pod)
		case names[pod.Spec.NodeName]:
			pods = append(pods, pod)
		}
	}
	s.snapshot = cache.NewSnapshot(pods, nodes)
	for _, node := range nodes {
		info, _ := s.snapshot.NodeInfos().Get(node.Name)
		s.nodes = append(s.nodes, info)
	}
	slices.SortFunc(s.nodes, func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) })
	slices.SortFunc(s.pending, func(a, b *corev1.Pod) int { return strings.Compare(podName(a), podName(b)) })
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// ---- verdicts ----

// A rejection of a node by a plugin.
type rejection struct {
	plugin, reason string
	isOfVolumes    bool
}

// judge asks each plugin by itself, also behind one that rejects the pod. For each node: who rejects it.
func (s *scheduler) judge(ctx context.Context, pod *corev1.Pod) map[string][]rejection {
	out, state := map[string][]rejection{}, framework.NewCycleState()
	for i, plugin := range s.plugins {
		reject := func(node fwk.NodeInfo, status *fwk.Status) {
			if !status.IsSuccess() {
				out[node.Node().Name] = append(out[node.Node().Name], rejection{plugin.Name(), status.Message(), factories[i].isOfVolumes})
			}
		}
		var only *fwk.PreFilterResult
		if before, hasPreFilter := plugin.(fwk.PreFilterPlugin); hasPreFilter {
			result, status := before.PreFilter(ctx, state, pod, s.nodes)
			if status.IsSkip() {
				continue
			}
			if !status.IsSuccess() {
				for _, node := range s.nodes {
					reject(node, status)
				}
				continue
			}
			only = result
		}
		for _, node := range s.nodes {
			if !only.AllNodes() && !only.NodeNames.Has(node.Node().Name) {
				reject(node, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) didn't satisfy the plugin"))
				continue
			}
			reject(node, plugin.(fwk.FilterPlugin).Filter(ctx, state, pod, node))
		}
	}
	return out
}

// show prints for each pending pod the nodes on which it passes, and who rejects the others.
func (s *scheduler) show(ctx context.Context, out io.Writer) {
	for _, pod := range s.pending {
		fmt.Fprintln(out, podName(pod))
		rejections := s.judge(ctx, pod)
		for _, node := range s.nodes {
			of := rejections[node.Node().Name]
			if len(of) == 0 {
				fmt.Fprintf(out, "  %s: passes\n", node.Node().Name)
			}
			for _, one := range of {
				fmt.Fprintf(out, "  %s: %s: %s\n", node.Node().Name, one.plugin, one.reason)
			}
		}
	}
}
