// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/trialname"
)

// Katib's names and ports.
const (
	searchContainer   = "suggestion"
	stoppingContainer = "early-stopping"
	searchPortName    = "katib-api"
	stoppingPortName  = "earlystop-api"
	volume            = "suggestion-volume"

	searchPort   = 6789
	stoppingPort = 6788

	probed          = "manager.v1beta1.Suggestion"
	defaultMount    = "/opt/katib/data"
	defaultCapacity = "1Gi"
)

// Parts are the services that are run; nil is one that is not.
type Parts struct{ Search, Stopping *algorithm.Service }

// Any reports whether something is run.
func (p Parts) Any() bool { return p.Search != nil || p.Stopping != nil }

// Name is the name of the Deployment, the Service and the other objects. A
// Service's name is shorter than an experiment's can be.
func Name(s *v1beta1.Suggestion) string {
	return trialname.Prefix(s.Name) + "-" + s.Spec.Algorithm.AlgorithmName
}

// SearchAddress and StoppingAddress are where the services answer, host:port.
func SearchAddress(s *v1beta1.Suggestion) string { return address(s, searchPort) }

// StoppingAddress is the address of the service of early stopping.
func StoppingAddress(s *v1beta1.Suggestion) string { return address(s, stoppingPort) }

func address(s *v1beta1.Suggestion, port int) string {
	return net.JoinHostPort(Name(s)+"."+s.Namespace, strconv.Itoa(port))
}

// Objects returns the objects that run the services of a suggestion, in
// creation order.
func Objects(s *v1beta1.Suggestion, p Parts) []client.Object {
	var objects []client.Object
	if s.Spec.ResumePolicy == v1beta1.FromVolume && p.Search != nil {
		objects = append(objects, claim(s, p.Search)...)
	}
	if p.account(s) == Name(s) {
		objects = append(objects, permissions(s)...)
	}
	objects = append(objects, service(s, p), deployment(s, p))
	for _, o := range objects {
		if _, cluster := o.(*corev1.PersistentVolume); !cluster {
			o.SetNamespace(s.Namespace)
			o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s, v1beta1.GroupVersion.WithKind(v1beta1.SuggestionKind))})
		}
	}
	return objects
}

// labels returns the labels of the Pod.
func labels(s *v1beta1.Suggestion) map[string]string {
	l := maps.Clone(s.Labels)
	if l == nil {
		l = map[string]string{}
	}
	l[v1beta1.LabelDeployment], l[v1beta1.LabelExperiment], l[v1beta1.LabelSuggestion] = Name(s), s.Name, s.Name
	return l
}

// account is the service account of the Pod, "" for the namespace's default.
func (p Parts) account(s *v1beta1.Suggestion) string {
	own := ""
	if p.Search != nil {
		own = p.Search.ServiceAccountName
	}
	if p.Stopping != nil {
		return cmp.Or(own, p.Stopping.ServiceAccountName, Name(s))
	}
	return own
}

func service(s *v1beta1.Suggestion, p Parts) *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: Name(s), Labels: labels(s)}}
	o.Spec.Selector, o.Spec.Type = labels(s), corev1.ServiceTypeClusterIP
	if p.Search != nil {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: searchPortName, Port: searchPort})
	}
	if p.Stopping != nil {
		o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: stoppingPortName, Port: stoppingPort})
	}
	return o
}

// LeadsToPod checks that a Service with a suggestion's name selects its Pods.
// Otherwise anyone who may write Services could make the operator connect to any
// host.
func LeadsToPod(s *v1beta1.Suggestion, o *corev1.Service) error {
	if o.Spec.Type != corev1.ServiceTypeClusterIP || o.Spec.Selector[v1beta1.LabelDeployment] != Name(s) {
		return fmt.Errorf("cannot use the algorithm service: Service %s/%s does not select its Pod; delete the Service", o.Namespace, o.Name)
	}
	return nil
}

func deployment(s *v1beta1.Suggestion, p Parts) *appsv1.Deployment {
	annotations := maps.Clone(s.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["sidecar.istio.io/inject"] = "false"
	o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: Name(s), Labels: labels(s), Annotations: annotations}}
	o.Spec.Replicas = ptr.To[int32](1)
	// The service may be stateful: there are never two.
	o.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(s)}
	o.Spec.Template.Labels, o.Spec.Template.Annotations = labels(s), annotations
	pod := &o.Spec.Template.Spec
	pod.ServiceAccountName = p.account(s)
	if p.Search != nil {
		pod.Containers = append(pod.Containers, search(s, p.Search))
		pod.SecurityContext = p.Search.PodSecurityContext
		if s.Spec.ResumePolicy == v1beta1.FromVolume {
			source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Name(s)}
			pod.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}}
		}
	}
	if p.Stopping != nil {
		c := container(p.Stopping, stoppingContainer, stoppingPortName, stoppingPort)
		pod.Containers = append(pod.Containers, c)
	}
	return o
}

// search is the container of a search algorithm.
func search(s *v1beta1.Suggestion, from *algorithm.Service) corev1.Container {
	c := container(from, searchContainer, searchPortName, searchPort)
	probe := corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: searchPort, Service: ptr.To(probed)}}
	if c.ReadinessProbe == nil {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: probe, PeriodSeconds: 2, FailureThreshold: 30}
	}
	if c.LivenessProbe == nil {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: probe, InitialDelaySeconds: 10, PeriodSeconds: 120, FailureThreshold: 12}
	}
	mounted := func(m corev1.VolumeMount) bool { return m.Name == volume }
	if s.Spec.ResumePolicy == v1beta1.FromVolume && !slices.ContainsFunc(c.VolumeMounts, mounted) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: cmp.Or(from.VolumeMountPath, defaultMount)})
	}
	return c
}

// container returns the container of a service, with Katib's additions. It has
// Katib's resource requests, but no limits.
func container(from *algorithm.Service, name, portName string, port int32) corev1.Container {
	c := *from.Container.DeepCopy()
	c.Name = cmp.Or(c.Name, name)
	c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, corev1.PullIfNotPresent)
	has := func(p corev1.ContainerPort) bool { return p.Name == portName || p.ContainerPort == port }
	if !slices.ContainsFunc(c.Ports, has) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: portName, ContainerPort: port})
	}
	if len(c.Resources.Requests)+len(c.Resources.Limits) == 0 {
		c.Resources = *from.Resource.DeepCopy()
	}
	if len(c.Resources.Requests)+len(c.Resources.Limits) == 0 {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("10Mi")}
	}
	return c
}

// claim is the volume of the policy FromVolume.
func claim(s *v1beta1.Suggestion, from *algorithm.Service) []client.Object {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: Name(s)}, Spec: *from.PersistentVolumeClaimSpec.DeepCopy()}
	if len(c.Spec.AccessModes) == 0 {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if len(c.Spec.Resources.Requests) == 0 {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultCapacity)}
	}
	if from.PersistentVolumeSpec == nil {
		return []client.Object{c}
	}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: Name(s) + "-" + s.Namespace, Labels: from.PersistentVolumeLabels}}
	v.Spec = *from.PersistentVolumeSpec.DeepCopy()
	// No claim of another namespace gets it.
	v.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.Namespace, Name: c.Name}
	return []client.Object{v, c}
}
