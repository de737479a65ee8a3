package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const annotation = "claimguard.io/defer-fs-mount"

// The four steps of docs/deferfsmount.md, "A driver that reads the annotation".
type deferral struct {
	api       kubernetes.Interface
	decisions string // a file for each mount: "left" or "mounted"
}

func newDeferral(folder string) *deferral {
	config, err := rest.InClusterConfig()
	if err != nil {
		panic(err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		panic(err)
	}
	return &deferral{api: kubernetes.NewForConfigOrDie(config), decisions: folder}
}

// The pod and the volume are in the path: .../pods/UID/volumes/kubernetes.io~csi/VOLUME/mount.
func (f *deferral) file(target string) string {
	return filepath.Join(f.decisions, strings.ReplaceAll(strings.Trim(target, "/"), "/", "_"))
}

// decide: is the mount left to the runtime? Decided at the first call, and kept: who may patch the pod changes nothing afterwards.
func (f *deferral) decide(ctx context.Context, r *csi.NodePublishVolumeRequest) (bool, error) {
	kept, err := os.ReadFile(f.file(r.TargetPath))
	if err == nil {
		return string(kept) == "left", nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	info := r.VolumeContext
	pod, err := f.api.CoreV1().Pods(info["csi.storage.k8s.io/pod.namespace"]).Get(ctx, info["csi.storage.k8s.io/pod.name"], meta.GetOptions{})
	if err != nil {
		return false, err
	}
	if string(pod.UID) != info["csi.storage.k8s.io/pod.uid"] {
		return false, status.Error(codes.FailedPrecondition, "another pod has this name")
	}
	decision := "mounted"
	if names(pod, info[claimName]) {
		decision = "left"
	}
	return decision == "left", os.WriteFile(f.file(r.TargetPath), []byte(decision), 0o640)
}

func (f *deferral) forget(r *csi.NodeUnpublishVolumeRequest) { _ = os.Remove(f.file(r.TargetPath)) }

// names: does the annotation name the pod's volume with this claim?
func names(pod *core.Pod, claim string) bool {
	named := strings.Split(pod.Annotations[annotation], ",")
	return slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool {
		uses := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim ||
			v.Ephemeral != nil && pod.Name+"-"+v.Name == claim
		return uses && slices.Contains(named, v.Name)
	})
}
