package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	claimName = "csi.storage.k8s.io/pvc/name" // of csi-provisioner --extra-create-metadata
	ephemeral = "csi.storage.k8s.io/ephemeral"
	// The attributes of a volume (a VolumeAttributesClass's parameters, or an inline volume's volumeAttributes) are a file in it.
	attributesFile = "attributes.json"
)

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, can := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, // else ReadWriteOncePod is not asked for as such
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: can}}})
	}
	return answer, nil
}

// The volume's id is the name of its folder, without a path.
func (d *driver) folder(id string) string { return filepath.Join(d.data, filepath.Base(id)) }

func (d *driver) writeAttributes(id string, attributes map[string]string) error {
	if len(attributes) == 0 {
		return nil
	}
	text, err := json.Marshal(attributes)
	return errors.Join(err, os.WriteFile(filepath.Join(d.folder(id), attributesFile), text, 0o644))
}

// What a VolumeAttributesClass may say. A wrong argument makes a change Infeasible.
func checkParameters(parameters map[string]string) error {
	for key := range parameters {
		if key != "iops" {
			return status.Errorf(codes.InvalidArgument, "unknown parameter %q", key)
		}
	}
	return nil
}

func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkParameters(r.MutableParameters); err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(d.folder(r.Name), 0o777), d.writeAttributes(r.Name, r.MutableParameters)); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: r.Name, CapacityBytes: r.CapacityRange.GetRequiredBytes(),
		VolumeContext: map[string]string{claimName: r.Parameters[claimName]}}}, nil
}

func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, os.RemoveAll(d.folder(r.VolumeId))
}

func (d *driver) ControllerModifyVolume(_ context.Context, r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if err := checkParameters(r.MutableParameters); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, d.writeAttributes(r.VolumeId, r.MutableParameters)
}

func (d *driver) ControllerPublishVolume(context.Context, *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (d *driver) ControllerUnpublishVolume(context.Context, *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: r.VolumeCapabilities}}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, can := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: can}}})
	}
	return answer, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, MaxVolumesPerNode: 16}, nil
}

// Both say yes when it was done before: the kubelet asks again.
func bind(source, target string) error {
	var from, to syscall.Stat_t
	if err := errors.Join(os.MkdirAll(target, 0o750), syscall.Stat(source, &from), syscall.Stat(target, &to)); err != nil {
		return err
	}
	if from.Dev == to.Dev && from.Ino == to.Ino {
		return nil
	}
	return syscall.Mount(source, target, "", syscall.MS_BIND, "")
}

func unbind(target string) error {
	if err := syscall.Unmount(target, 0); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return err
	}
	return os.RemoveAll(target)
}

func (d *driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, bind(d.folder(r.VolumeId), r.StagingTargetPath)
}

func (d *driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, unbind(r.StagingTargetPath)
}

func (d *driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if d.deferral != nil {
		left, err := d.deferral.decide(ctx, r)
		if err != nil {
			return nil, err
		}
		if left { // there is no runtime here that would mount it
			return nil, status.Errorf(codes.FailedPrecondition, "the mount of %s is left to the container runtime, by %s", r.VolumeId, annotation)
		}
	}
	if r.VolumeContext[ephemeral] != "true" {
		return &csi.NodePublishVolumeResponse{}, bind(r.StagingTargetPath, r.TargetPath)
	}
	attributes := maps.Clone(r.VolumeContext)
	maps.DeleteFunc(attributes, func(key, _ string) bool { return len(key) > 18 && key[:18] == "csi.storage.k8s.io" })
	return &csi.NodePublishVolumeResponse{}, errors.Join(os.MkdirAll(d.folder(r.VolumeId), 0o777),
		d.writeAttributes(r.VolumeId, attributes), bind(d.folder(r.VolumeId), r.TargetPath))
}

// An inline volume is gone with its pod.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unbind(r.TargetPath); err != nil {
		return nil, err
	}
	if d.deferral != nil {
		d.deferral.forget(r)
	}
	if len(r.VolumeId) > 4 && r.VolumeId[:4] == "csi-" {
		return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(d.folder(r.VolumeId))
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
