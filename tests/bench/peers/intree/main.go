// intree: kube-scheduler's VolumeRestrictions as a library. Answers a filter call as an extender
// would, so that verdicts can be compared, and measures the plugin alone. Prints its port.
//
//	intree SNAPSHOT
//
//	POST /filter             ExtenderArgs in, ExtenderFilterResult out
//	POST /measure?calls=N    ExtenderArgs in, what N calls took out: {"P50", "P99", "CPU"}, in µs
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"claimguard.io/bench/peers/peer"
)

// scheduler has what kube-scheduler has when it calls the plugin.
type scheduler struct {
	snapshot *cache.Snapshot
	plugin   *volumerestrictions.VolumeRestrictions
}

// newScheduler reads the objects. The informers are filled here and never started.
func newScheduler(ctx context.Context, path string) (*scheduler, error) {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer()
	var pods []*corev1.Pod
	var nodes []*corev1.Node
	err = peer.Read(path, func(kind string, item json.RawMessage) error {
		switch kind {
		case "Node":
			nodes = append(nodes, &corev1.Node{})
			return json.Unmarshal(item, nodes[len(nodes)-1])
		case "PersistentVolumeClaim":
			pvc := &corev1.PersistentVolumeClaim{}
			if err := json.Unmarshal(item, pvc); err != nil {
				return err
			}
			return claims.Add(pvc)
		case "Pod":
			pod := &corev1.Pod{}
			if err := json.Unmarshal(item, pod); err != nil {
				return err
			}
			if pod.Spec.NodeName != "" {
				pods = append(pods, pod)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s := &scheduler{snapshot: cache.NewSnapshot(pods, nodes)}
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithSnapshotSharedLister(s.snapshot), frameworkruntime.WithInformerFactory(factory))
	if err != nil {
		return nil, err
	}
	plugin, err := volumerestrictions.New(ctx, nil, handle, feature.Features{})
	if err != nil {
		return nil, err
	}
	s.plugin = plugin.(*volumerestrictions.VolumeRestrictions)
	return s, nil
}

// judge runs PreFilter, and Filter on each node unless PreFilter made it needless, as the framework
// does. state is new: the framework makes one for each pod, and all plugins use it. The statuses
// stand beside the nodes; nil: each node passes.
func (s *scheduler) judge(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, statuses []*fwk.Status) []*fwk.Status {
	_, status := s.plugin.PreFilter(ctx, state, pod, nodes)
	if status.IsSkip() {
		return nil
	}
	for i, node := range nodes {
		if status.IsSuccess() {
			statuses[i] = s.plugin.Filter(ctx, state, pod, node)
		} else {
			statuses[i] = status
		}
	}
	return statuses
}

// call is a filter call with the nodes that it names.
type call struct {
	pod   *corev1.Pod
	nodes []fwk.NodeInfo
}

func (s *scheduler) read(r *http.Request) (*call, error) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		return nil, err
	}
	if args.Pod == nil || args.NodeNames == nil {
		return nil, fmt.Errorf("no pod, or no node names")
	}
	c := &call{pod: args.Pod}
	for _, name := range *args.NodeNames {
		node, err := s.snapshot.NodeInfos().Get(name)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, node)
	}
	return c, nil
}

func (s *scheduler) filter(c *call, r *http.Request) (any, error) {
	statuses := s.judge(r.Context(), framework.NewCycleState(), c.pod, c.nodes, make([]*fwk.Status, len(c.nodes)))
	result := extenderv1.ExtenderFilterResult{
		NodeNames:                  &[]string{},
		FailedNodes:                extenderv1.FailedNodesMap{},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{},
	}
	for i, node := range c.nodes {
		name := node.Node().Name
		switch {
		case statuses == nil || statuses[i].IsSuccess():
			*result.NodeNames = append(*result.NodeNames, name)
		case statuses[i].Code() == fwk.UnschedulableAndUnresolvable:
			result.FailedAndUnresolvableNodes[name] = statuses[i].Message()
		case statuses[i].Code() == fwk.Unschedulable:
			result.FailedNodes[name] = statuses[i].Message()
		default:
			return nil, statuses[i].AsError()
		}
	}
	return &result, nil
}

// cost is what a call takes, in microseconds.
type cost struct {
	P50, P99, CPU float64
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (s *scheduler) measure(c *call, r *http.Request) (any, error) {
	calls, err := strconv.Atoi(r.URL.Query().Get("calls"))
	if err != nil || calls < 1 {
		return nil, fmt.Errorf("calls: expected a number")
	}
	statuses := make([]*fwk.Status, len(c.nodes))
	times := make([]time.Duration, calls)
	states := make([]fwk.CycleState, calls)
	for i := range states {
		states[i] = framework.NewCycleState()
	}
	started := cpuTime()
	for i := range times {
		began := time.Now()
		s.judge(r.Context(), states[i], c.pod, c.nodes, statuses)
		times[i] = time.Since(began)
	}
	cpu := cpuTime() - started
	slices.Sort(times)
	return &cost{
		P50: float64(times[(calls-1)/2].Nanoseconds()) / 1e3,
		P99: float64(times[(calls-1)*99/100].Nanoseconds()) / 1e3,
		CPU: float64(cpu.Nanoseconds()) / 1e3 / float64(calls),
	}, nil
}

// handler reads a call and writes the answer.
func (s *scheduler) handler(answer func(*call, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := s.read(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result, err := answer(c, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := json.NewEncoder(w).Encode(result); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: intree SNAPSHOT")
	}
	s, err := newScheduler(context.Background(), os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /filter", s.handler(s.filter))
	http.HandleFunc("POST /measure", s.handler(s.measure))
	log.Fatal(peer.Serve("k8s.io/kubernetes"))
}
