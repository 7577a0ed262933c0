// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
)

// config is Katib's, shortened.
const config = `
runtime:
  suggestions:
    - algorithmName: hyperband
      image: ghcr.io/kubeflow/katib/suggestion-hyperband:latest
      imagePullPolicy: Always
      serviceAccountName: own
      resources: {limits: {memory: 1Gi}}
      args: [--x]
      volumeMountPath: /data
      persistentVolumeClaimSpec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 3Gi}}, storageClassName: fast}
      persistentVolumeSpec: {capacity: {storage: 3Gi}}
      persistentVolumeLabels: {a: b}
    - algorithmName: plain
      image: plain
  earlyStoppings:
    - algorithmName: stop
      image: stopper
      resource: {requests: {cpu: "1"}}
`

func TestObjects(t *testing.T) {
	t.Parallel()
	services, err := algorithm.ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	hyperband, plain, stop := services.Suggestions["hyperband"], services.Suggestions["plain"], services.EarlyStoppings["stop"]
	for name, c := range map[string]struct {
		reason    string
		algorithm string
		policy    v1beta1.ResumePolicyType
		parts     Parts
		kinds     []string
		account   string
		ports     []int32
		mount     string
	}{
		"Search": {"a Deployment and a Service", "plain", v1beta1.NeverResume, Parts{Search: &plain},
			[]string{"*v1.Service ns/e-plain", "*v1.Deployment ns/e-plain"}, "", []int32{6789}, ""},
		"Stopping": {"and an account that may stop trials", "plain", v1beta1.LongRunning, Parts{&plain, &stop},
			[]string{"*v1.ServiceAccount ns/e-plain", "*v1.Role ns/e-plain", "*v1.RoleBinding ns/e-plain", "*v1.Service ns/e-plain", "*v1.Deployment ns/e-plain"},
			"e-plain", []int32{6789, 6788}, ""},
		"StoppingAlone": {"beside an algorithm of the library's", "tpe", v1beta1.FromVolume, Parts{Stopping: &stop},
			[]string{"*v1.ServiceAccount ns/e-tpe", "*v1.Role ns/e-tpe", "*v1.RoleBinding ns/e-tpe", "*v1.Service ns/e-tpe", "*v1.Deployment ns/e-tpe"},
			"e-tpe", []int32{6788}, ""},
		"Volume": {"a volume, by default of the storage class", "plain", v1beta1.FromVolume, Parts{Search: &plain},
			[]string{"*v1.PersistentVolumeClaim ns/e-plain", "*v1.Service ns/e-plain", "*v1.Deployment ns/e-plain"}, "", []int32{6789}, "/opt/katib/data"},
		"Configured": {"all that the configuration may say", "hyperband", v1beta1.FromVolume, Parts{&hyperband, &stop},
			[]string{"*v1.PersistentVolume /e-hyperband-ns", "*v1.PersistentVolumeClaim ns/e-hyperband", "*v1.Service ns/e-hyperband", "*v1.Deployment ns/e-hyperband"},
			"own", []int32{6789, 6788}, "/data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &v1beta1.Suggestion{}
			s.Namespace, s.Name, s.UID = "ns", "e", "u"
			s.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: c.algorithm}
			s.Spec.ResumePolicy = c.policy
			var kinds []string
			var d *appsv1.Deployment
			var ports []int32
			for _, o := range Objects(s, c.parts) {
				if v, ok := o.(*corev1.PersistentVolume); ok && (v.Spec.ClaimRef == nil || v.Spec.ClaimRef.Namespace != "ns" || v.Spec.ClaimRef.Name != "e-hyperband") {
					t.Errorf("%s: any claim gets the volume: %v", c.reason, v.Spec.ClaimRef)
				}
				kinds = append(kinds, fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)))
				switch o := o.(type) {
				case *appsv1.Deployment:
					d = o
				case *corev1.Service:
					for _, p := range o.Spec.Ports {
						ports = append(ports, p.Port)
					}
				}
			}
			if diff := cmp.Diff(c.kinds, kinds); diff != "" {
				t.Errorf("%s: objects: -want +got\n%s", c.reason, diff)
			}
			pod := d.Spec.Template
			want := map[string]string{"katib.kubeflow.org/deployment": "e-" + c.algorithm, "katib.kubeflow.org/experiment": "e", "katib.kubeflow.org/suggestion": "e"}
			if !cmp.Equal(pod.Labels, want) || pod.Spec.ServiceAccountName != c.account || !cmp.Equal(ports, c.ports) {
				t.Errorf("%s: labels %v, account %q, ports %v", c.reason, pod.Labels, pod.Spec.ServiceAccountName, ports)
			}
			mount := ""
			for _, m := range pod.Spec.Containers[0].VolumeMounts {
				mount = m.MountPath
			}
			if mount != c.mount {
				t.Errorf("%s: the volume is at %q, want %q", c.reason, mount, c.mount)
			}
		})
	}
	own := func(change func(*corev1.Service)) error {
		s := &v1beta1.Suggestion{Spec: v1beta1.SuggestionSpec{Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "plain"}}}
		o := service(s, Parts{Search: &plain})
		change(o)
		return LeadsToPod(s, o)
	}
	if err := own(func(*corev1.Service) {}); err != nil {
		t.Errorf("the Service that is made: %v", err)
	}
	for reason, change := range map[string]func(*corev1.Service){
		"another host": func(o *corev1.Service) {
			o.Spec.Type, o.Spec.ExternalName = corev1.ServiceTypeExternalName, "metadata.internal"
		},
		"endpoints of a tenant's": func(o *corev1.Service) { o.Spec.Selector = nil },
		"another's Pods":          func(o *corev1.Service) { o.Spec.Selector = map[string]string{"app": "x"} },
	} {
		if err := own(change); err == nil {
			t.Errorf("a Service that leads to %s is used", reason)
		}
	}
	if at := SearchAddress(&v1beta1.Suggestion{Spec: v1beta1.SuggestionSpec{Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "a"}}}); at != "-a.:6789" {
		t.Errorf("the address is %s", at)
	}
	c := container(&stop, "early-stopping", "earlystop-api", 6788)
	if c.Resources.Requests.Cpu().String() != "1" || c.Name != "early-stopping" || c.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("the container of early stopping is %+v", c)
	}
	if h := container(&hyperband, "suggestion", "katib-api", 6789); h.Args[0] != "--x" || len(h.Resources.Requests) > 0 || h.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the container of the search is %+v", h)
	}
}
