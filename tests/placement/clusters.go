package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Clusters as an API server would have them: a claim that is Bound has its annotation, and so on.

const (
	disk, file     = "disk.example.com", "file.example.com"
	noProvisioner  = "kubernetes.io/no-provisioner"
	shop           = "shop"
	bindCompleted  = "pv.kubernetes.io/bind-completed"
	selectedNode   = "volume.kubernetes.io/selected-node"
	hostname, rack = "kubernetes.io/hostname", "example.com/rack"
)

// A plug-in that a driver has replaced, and the driver's label of a node's zone.
type plugin struct{ name, driver, zone string }

var (
	plugins = []plugin{{"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"},
		{"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"},
		{"kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"},
		{"kubernetes.io/azure-disk", "disk.csi.azure.com", "topology.disk.csi.azure.com/zone"}}
	sizes   = []string{"1Gi", "5Gi", "10Gi", "20Gi"}
	started = metav1.NewTime(time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC))
)

type maker struct {
	*rand.Rand
	objects []runtime.Object
	volumes int64 // so far
	nodes   []string
	claims  []string
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m *maker, of ...T) T { return of[m.IntN(len(of))] }

func (m *maker) add(object runtime.Object) {
	kinds, _, _ := scheme.Scheme.ObjectKinds(object)
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	m.objects = append(m.objects, object)
}

func (m *maker) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("u-" + name), CreationTimestamp: started, ResourceVersion: "1"}
}

func (m *maker) deletion(meta *metav1.ObjectMeta, percent int) {
	if m.chance(percent) {
		at := metav1.NewTime(started.Add(time.Hour))
		meta.DeletionTimestamp = &at
		meta.Finalizers = []string{"example.com/wait"}
	}
}

func makeCluster(random *rand.Rand) []runtime.Object {
	m := &maker{Rand: random}
	m.addNodes()
	m.addDrivers()
	m.addClasses()
	for i := range 1 + m.IntN(4) {
		m.claims = append(m.claims, fmt.Sprint("claim-", i))
	}
	for _, name := range m.claims {
		m.addClaim(name)
	}
	for i := range m.IntN(5) {
		m.addFreeVolume(fmt.Sprint("pv-free-", i))
	}
	other := m.volume("pv-other", "fast") // what a snapshot has none of is not known
	other.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "bank", Name: "data", UID: "u-data"}
	other.Status.Phase = corev1.VolumeBound
	m.add(other)
	m.add(&storagev1.CSINode{ObjectMeta: m.meta("", "node-8")})
	m.add(&storagev1.CSIStorageCapacity{ObjectMeta: m.meta("kube-system", "room-other"), StorageClassName: "other"})
	for i := range 1 + m.IntN(5) {
		m.addPod(fmt.Sprint("pod-", i))
	}
	m.Shuffle(len(m.objects), func(i, j int) { m.objects[i], m.objects[j] = m.objects[j], m.objects[i] })
	return m.objects
}

// ---- nodes ----

func (m *maker) addNodes() {
	for i := range 1 + m.IntN(4) {
		name := fmt.Sprint("node-", i)
		m.nodes = append(m.nodes, name)
		node := &corev1.Node{ObjectMeta: m.meta("", name), Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: pick(m, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse),
				LastTransitionTime: started}}}}
		node.Labels = map[string]string{hostname: name, rack: fmt.Sprint("r", m.IntN(3))}
		switch {
		case m.chance(75):
			node.Labels[corev1.LabelTopologyZone] = m.zone()
		case m.chance(50):
			node.Labels[corev1.LabelFailureDomainBetaZone] = m.zone()
		}
		if m.chance(20) {
			node.Labels[corev1.LabelTopologyRegion] = "region-a"
		}
		for _, one := range plugins {
			if m.chance(70) {
				node.Labels[one.zone] = m.zone()
			}
		}
		node.Spec.Unschedulable = m.chance(8)
		if m.chance(8) {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		}
		m.add(node)
		if m.chance(92) {
			m.addCSINode(name)
		}
	}
}

func (m *maker) zone() string { return pick(m, "eu-west-a", "eu-west-b") }

func (m *maker) addCSINode(name string) {
	csiNode := &storagev1.CSINode{ObjectMeta: m.meta("", name)}
	drivers, migrated := []string{disk, file}, []string{}
	for _, one := range plugins {
		drivers = append(drivers, one.driver)
		if m.chance(70) {
			migrated = append(migrated, one.name)
		}
	}
	if m.chance(90) {
		csiNode.Annotations = map[string]string{corev1.MigratedPluginsAnnotationKey: strings.Join(migrated, ",")}
	}
	for _, driver := range drivers {
		if !m.chance(88) {
			continue
		}
		entry := storagev1.CSINodeDriver{Name: driver, NodeID: name}
		if m.chance(30) {
			entry.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(m.IntN(4)))}
		}
		csiNode.Spec.Drivers = append(csiNode.Spec.Drivers, entry)
	}
	m.add(csiNode)
}

// ---- drivers and classes ----

func (m *maker) addDrivers() {
	for _, name := range []string{disk, file} {
		if !m.chance(92) {
			continue
		}
		driver := &storagev1.CSIDriver{ObjectMeta: m.meta("", name), Spec: storagev1.CSIDriverSpec{AttachRequired: new(name == disk),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}}}
		if m.chance(50) {
			driver.Spec.VolumeLifecycleModes = append(driver.Spec.VolumeLifecycleModes, storagev1.VolumeLifecycleEphemeral)
		}
		if m.chance(60) {
			driver.Spec.StorageCapacity = new(m.chance(60))
		}
		if m.chance(30) {
			driver.Spec.PreventPodSchedulingIfMissing = new(m.chance(70))
		}
		m.add(driver)
	}
}

func (m *maker) addClasses() {
	m.addClass("fast", disk, 70)
	m.addClass("local", noProvisioner, 80)
	if m.chance(90) {
		m.addClass("shared", file, 50)
	}
	for i := range m.IntN(4) {
		m.addCapacity(fmt.Sprint("room-", i))
	}
}

func (m *maker) addClass(name, provisioner string, waits int) {
	class := &storagev1.StorageClass{ObjectMeta: m.meta("", name), Provisioner: provisioner, VolumeBindingMode: new(storagev1.VolumeBindingImmediate)}
	if m.chance(waits) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if m.chance(25) {
		for range 1 + m.IntN(2) {
			class.AllowedTopologies = append(class.AllowedTopologies, m.topologyTerm())
		}
	}
	m.add(class)
}

func (m *maker) topologyTerm() corev1.TopologySelectorTerm {
	term := corev1.TopologySelectorTerm{}
	if m.chance(80) {
		term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: corev1.LabelTopologyZone,
			Values: pick(m, []string{"eu-west-a"}, []string{"eu-west-b"}, []string{"eu-west-a", "eu-west-b"})})
	}
	if m.chance(30) {
		term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: rack, Values: []string{"r0", "r1"}})
	}
	return term
}

func (m *maker) addCapacity(name string) {
	capacity := &storagev1.CSIStorageCapacity{ObjectMeta: m.meta("kube-system", name), StorageClassName: pick(m, "fast", "fast", "shared")}
	if m.chance(90) {
		capacity.NodeTopology = pick(m, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: m.zone()}}, &metav1.LabelSelector{},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: rack, Operator: pick(m, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
				Values: []string{"r0"}}}})
	}
	if m.chance(90) {
		capacity.Capacity = new(resource.MustParse(pick(m, sizes...)))
	}
	if m.chance(20) {
		capacity.MaximumVolumeSize = new(resource.MustParse(pick(m, sizes...)))
	}
	m.add(capacity)
}

// ---- volumes ----

// volume: no two have one size, for kube-scheduler takes any of the smallest ones.
func (m *maker) volume(name, class string) *corev1.PersistentVolume {
	size := resource.MustParse(pick(m, sizes...))
	size.Add(*resource.NewQuantity(m.volumes, resource.BinarySI))
	m.volumes++
	volume := &corev1.PersistentVolume{ObjectMeta: m.meta("", name), Spec: corev1.PersistentVolumeSpec{StorageClassName: class,
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
		AccessModes:                   m.accessModes(),
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain}}
	switch class {
	case "local":
		volume.Spec.Local = &corev1.LocalVolumeSource{Path: "/mnt/" + name}
	case "":
		volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + name}
	case "shared":
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: file, VolumeHandle: "h-" + name}
	default:
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: disk, VolumeHandle: "h-" + name}
	}
	if m.chance(50) || class == "local" {
		volume.Spec.NodeAffinity = m.volumeAffinity()
	}
	volume.Labels = map[string]string{}
	if class == "fast" && m.chance(50) {
		m.setInTree(volume)
	}
	if m.chance(40) {
		volume.Labels["tier"] = pick(m, "gold", "silver")
	}
	if m.chance(15) {
		volume.Labels[pick(m, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone)] = pick(m, "eu-west-a", "eu-west-b", "eu-west-a__eu-west-b")
	}
	m.deletion(&volume.ObjectMeta, 6)
	return volume
}

func (m *maker) setInTree(volume *corev1.PersistentVolume) {
	source, zone := &volume.Spec.PersistentVolumeSource, pick(m, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone)
	source.CSI = nil
	if m.chance(60) {
		expressions := []corev1.NodeSelectorRequirement{{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{m.zone()}}}
		if m.chance(30) {
			expressions = append(expressions, m.nodeRequirement())
		}
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}}}}
	}
	if m.chance(30) {
		volume.Labels[zone] = pick(m, "eu-west-a", "eu-west-b", "eu-west-a__eu-west-b")
	}
	switch m.IntN(4) {
	case 0:
		source.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: volume.Name}
	case 1:
		source.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + volume.Name}
	case 2:
		source.Cinder = &corev1.CinderPersistentVolumeSource{VolumeID: volume.Name}
	case 3:
		source.AzureDisk = &corev1.AzureDiskVolumeSource{DiskName: volume.Name, DataDiskURI: "/" + volume.Name}
	}
}

func (m *maker) accessModes() []corev1.PersistentVolumeAccessMode {
	return pick(m, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
		[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadWriteOncePod})
}

func (m *maker) volumeAffinity() *corev1.VolumeNodeAffinity {
	selector := &corev1.NodeSelector{}
	for range 1 + m.IntN(2) {
		expressions := []corev1.NodeSelectorRequirement{m.nodeRequirement()}
		if m.chance(20) {
			expressions = append(expressions, m.nodeRequirement())
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: expressions})
	}
	return &corev1.VolumeNodeAffinity{Required: selector}
}

func (m *maker) nodeRequirement() corev1.NodeSelectorRequirement {
	return pick(m, corev1.NodeSelectorRequirement{Key: hostname, Operator: corev1.NodeSelectorOpIn, Values: []string{pick(m, m.nodes...)}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{m.zone()}},
		corev1.NodeSelectorRequirement{Key: rack, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"r0"}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelFailureDomainBetaZone, Operator: corev1.NodeSelectorOpIn, Values: []string{m.zone()}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelFailureDomainBetaRegion, Operator: corev1.NodeSelectorOpIn, Values: []string{"region-a"}},
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyRegion, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpDoesNotExist})
}

// addFreeVolume adds a volume that no claim has: for anyone, kept for a claim, or of a claim that is gone.
func (m *maker) addFreeVolume(name string) {
	volume := m.volume(name, pick(m, "local", "local", "local", "fast", "shared", ""))
	volume.Status.Phase = corev1.VolumeAvailable
	claim := pick(m, m.claims...)
	switch m.IntN(12) {
	case 0:
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: shop, Name: claim}
	case 1:
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: shop, Name: claim, UID: types.UID("u-" + claim)}
	case 2:
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: shop, Name: claim, UID: "earlier"}
		volume.Status.Phase = corev1.VolumeReleased
	case 3:
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "bank", Name: claim}
	case 4:
		volume.Status.Phase = pick(m, corev1.VolumePending, corev1.VolumeFailed)
	}
	if m.chance(8) {
		volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	if m.chance(6) {
		volume.Spec.VolumeAttributesClassName = new("silver")
	}
	m.add(volume)
}

// ---- claims ----

func (m *maker) addClaim(name string) {
	if m.chance(7) {
		return
	}
	claim := m.claim(name)
	m.deletion(&claim.ObjectMeta, 6)
	switch m.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6:
		m.bind(claim)
	case 7:
		claim.Spec.VolumeName = "pv-" + name
		claim.Status.Phase = corev1.ClaimLost
		claim.Annotations = map[string]string{bindCompleted: "yes"}
	case 8:
		claim.Spec.VolumeName = fmt.Sprint("pv-free-", m.IntN(4)) // its user has named it
	case 9:
		claim.Annotations = map[string]string{selectedNode: pick(m, m.nodes...)}
	}
	m.add(claim)
}

func (m *maker) claim(name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: m.meta(shop, name), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: m.accessModes(), Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(m, sizes...))}}}}
	if class := pick(m, "fast", "fast", "fast", "local", "local", "local", "shared", "gone", "", "none"); class != "none" {
		claim.Spec.StorageClassName = &class
	}
	if m.chance(12) {
		claim.Spec.Selector = pick(m, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier",
				Operator: pick(m, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}})
	}
	if m.chance(6) {
		claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	if m.chance(6) {
		claim.Spec.VolumeAttributesClassName = new("silver")
	}
	return claim
}

func (m *maker) bind(claim *corev1.PersistentVolumeClaim) {
	name, class := "pv-"+claim.Name, ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	claim.Spec.VolumeName = name
	claim.Status.Phase = corev1.ClaimBound
	claim.Annotations = map[string]string{bindCompleted: "yes"}
	if m.chance(6) { // it is gone
		return
	}
	volume := m.volume(name, class)
	volume.Spec.AccessModes = claim.Spec.AccessModes
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Status.Phase = corev1.VolumeBound
	m.add(volume)
	if volume.Spec.CSI != nil && m.chance(30) {
		m.add(&storagev1.VolumeAttachment{ObjectMeta: m.meta("", "at-"+name), Spec: storagev1.VolumeAttachmentSpec{Attacher: volume.Spec.CSI.Driver,
			NodeName: pick(m, m.nodes...), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}})
	}
}

// ---- pods ----

func (m *maker) addPod(name string) {
	pod := &corev1.Pod{ObjectMeta: m.meta(shop, name), Status: corev1.PodStatus{Phase: corev1.PodPending},
		Spec: corev1.PodSpec{SchedulerName: "default-scheduler", Priority: new(pick(m, int32(0), 0, 0, 1000)),
			Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if cpu := pick(m, "", "", "500m", "1500m"); cpu != "" {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
	if m.chance(10) {
		pod.Spec.NodeSelector = map[string]string{rack: "r0"}
	}
	if m.chance(20) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	for i := range 1 + m.IntN(3) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, m.podVolume(pod, fmt.Sprint("v", i)))
	}
	switch {
	case m.chance(35):
		pod.Spec.NodeName = pick(m, append(m.nodes, m.nodes...)...)
		if m.chance(3) {
			pod.Spec.NodeName = "node-9"
		}
		pod.Status.Phase = pick(m, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
		m.deletion(&pod.ObjectMeta, 10)
	case m.chance(4):
		pod.Status.NominatedNodeName = pick(m, m.nodes...)
	}
	m.add(pod)
}

func (m *maker) podVolume(pod *corev1.Pod, name string) corev1.Volume {
	volume := corev1.Volume{Name: name}
	switch m.IntN(14) {
	case 0:
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case 1:
		volume.CSI = &corev1.CSIVolumeSource{Driver: pick(m, disk, file)}
	case 2:
		template := m.claim(pod.Name + "-" + name)
		volume.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: template.Spec}}
		if m.chance(80) {
			owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)}
			if m.chance(6) {
				owner.UID = "earlier"
			}
			template.OwnerReferences = []metav1.OwnerReference{owner}
			m.add(template)
		}
	default:
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(m, m.claims...)}
	}
	return volume
}
