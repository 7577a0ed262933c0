// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// rightsAlone is what the operator may do, one right a line, where nothing that can be
// switched off is on.
const rightsAlone = `
kubeflow.org/experiments,suggestions,trials get,list,watch,create,update,patch,delete
kubeflow.org/experiments/status,suggestions/status,trials/status,experiments/finalizers,suggestions/finalizers,trials/finalizers update,patch
batch/jobs get,list,watch,create,patch,delete
kubeflow.org/tfjobs,pytorchjobs,mpijobs,xgboostjobs,paddlejobs,jaxjobs,mxjobs get,list,watch,create,patch,delete
trainer.kubeflow.org/trainjobs get,list,watch,create,patch,delete
jobset.x-k8s.io/jobsets get,list,watch,create,patch,delete
/configmaps get
/pods get,list,watch,delete
/nodes get,list,watch
/persistentvolumeclaims create
/resourcequotas get,list,watch
/events list,create,patch
events.k8s.io/events list,create,patch
authentication.k8s.io/tokenreviews create
authorization.k8s.io/subjectaccessreviews create
kubeflow:coordination.k8s.io/leases create
kubeflow:coordination.k8s.io/leases=diwan-operator get,update
`

// rightsOfTraining are those that any kind of training job takes.
const rightsOfTraining = `
/pods create
/services get,list,watch,create,delete
/persistentvolumeclaims get,list,watch
`

// TestChartRights switches on one thing at a time, and wants the operator to get
// the rights that it takes, and no others.
func TestChartRights(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "tool", "-modfile="+root+"/tools/go.mod", "-n", "helm").Output()
	if err != nil {
		t.Fatalf("cannot find helm: %v", err)
	}
	helm := strings.TrimSpace(string(out))
	kinds := []string{"trainjobs", "jobsets", "pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs", "mxjobs", "models"}
	without := func(on string) string {
		return "without={" + strings.Join(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == on }), ",") + "}"
	}
	render := func(t *testing.T, settings ...string) map[string]bool {
		t.Helper()
		args := []string{"template", "diwan", root + "/charts/diwan", "--namespace", "kubeflow"}
		for _, s := range append([]string{without(""), "collector.enabled=false", "webhook.certManager.enabled=true", "runtimes.install=false"}, settings...) {
			args = append(args, "--set", s)
		}
		var stderr bytes.Buffer
		cmd := exec.Command(helm, args...)
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		return rightsIn(t, text)
	}
	// job is what a kind of training job takes, with more of its own.
	job := func(kind, more string) string {
		return "kubeflow.org/" + kind + "/status," + kind + "/finalizers update\n" + rightsOfTraining + more
	}
	const scaled = "autoscaling/horizontalpodautoscalers get,list,watch,create,update,delete"
	const image = "katibConfig.runtime.suggestions[0].image=i"
	const service = "apps/deployments get,list,watch,create,delete\n/services get,create,delete"
	const stopping = "/serviceaccounts create\nrbac.authorization.k8s.io/roles,rolebindings create\nkubeflow.org/trials/status get"
	const podGroups = "/podgroups get,list,watch,create,update,delete"
	for name, c := range map[string]struct {
		settings []string
		more     string
	}{
		"Nothing":  {nil, ""},
		"Metrics":  {[]string{"metrics.enabled=false"}, ""},
		"Endpoint": {[]string{"katibConfig.runtime.suggestions[0].endpoint=a:1"}, ""},

		"OwnCertificate": {[]string{"webhook.certManager.enabled=false"}, `
			admissionregistration.k8s.io/mutatingwebhookconfigurations=katib.kubeflow.org,validatingwebhookconfigurations=katib.kubeflow.org get,update
			kubeflow:/secrets=diwan-webhooks get,update`},
		"Collector":         {[]string{"collector.enabled=true"}, "/secrets,serviceaccounts get"},
		"Service":           {[]string{image}, service},
		"ServiceVolume":     {[]string{image, "katibConfig.runtime.suggestions[0].persistentVolumeSpec.capacity.storage=1Gi"}, service + "\n/persistentvolumes create"},
		"ServiceStopping":   {[]string{"katibConfig.runtime.earlyStoppings[0].image=i"}, service + "\n" + stopping},
		"ServicesByHand":    {[]string{"rbac.algorithmServices=true"}, service + "\n" + stopping},
		"GangsOfKubernetes": {[]string{"gangSchedulerName=kubernetes"}, "scheduling.k8s.io" + podGroups},
		"GangsOfVolcano":    {[]string{"gangSchedulerName=volcano"}, "scheduling.volcano.sh" + podGroups},
		"GangsOfAnother":    {[]string{"gangSchedulerName=mine"}, "scheduling.x-k8s.io" + podGroups},
		"GangsOfRuntimes":   {[]string{"rbac.podGroups={scheduling.volcano.sh}"}, "scheduling.volcano.sh" + podGroups},
		"TrialKinds":        {[]string{"rbac.trialResources[0].apiGroups={argoproj.io}", "rbac.trialResources[0].resources={workflows}"}, "argoproj.io/workflows get,list,watch,create,patch,delete"},

		"tfjobs":      {nil, job("tfjobs", "")},
		"xgboostjobs": {nil, job("xgboostjobs", "")},
		"jaxjobs":     {nil, job("jaxjobs", "")},
		"mxjobs":      {nil, job("mxjobs", "")},
		"pytorchjobs": {nil, job("pytorchjobs", scaled)},
		"paddlejobs":  {nil, job("paddlejobs", scaled)},
		"mpijobs": {nil, job("mpijobs", `
			batch/jobs/status patch
			/configmaps,serviceaccounts get,list,watch,create,update
			rbac.authorization.k8s.io/roles,rolebindings get,list,watch,create,update
			/secrets get,create
			/pods/exec create`)},
		"jobsets": {nil, `
			jobset.x-k8s.io/jobsets/status,jobsets/finalizers update
			batch/jobs,jobs/status update
			/services get,list,watch,create`},
		"trainjobs": {nil, rightsOfTrainJobs},
		"models": {nil, `
			models.diwan.dev/models get,list,watch,create
			models.diwan.dev/models/status,models/finalizers update
			models.diwan.dev/modelversions get,list,watch,patch,delete
			models.diwan.dev/modelversions/status patch`},
		"Runtimes": {[]string{without("trainjobs"), "runtimes.install=true"}, rightsOfTrainJobs + "trainer.kubeflow.org/clustertrainingruntimes create,patch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(kinds, name) {
				c.settings = []string{without(name)}
			}
			want := rights(rightsAlone + c.more)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(render(t, c.settings...)))); diff != "" {
				t.Errorf("the rights: -want +got\n%s", diff)
			}
		})
	}
}

const rightsOfTrainJobs = `
trainer.kubeflow.org/optimizationjobs,trainingruntimes,clustertrainingruntimes get,list,watch
trainer.kubeflow.org/trainjobs/status,optimizationjobs/status update,patch
trainer.kubeflow.org/trainjobs/finalizers,optimizationjobs/finalizers update
jobset.x-k8s.io/jobsets update
/configmaps,secrets get,create
/persistentvolumeclaims get
`

// rights reads lines of the form GROUP/RESOURCE,… VERB,… as single rights. Those in
// a namespace begin with its name and a colon.
func rights(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		what, verbs, _ := strings.Cut(strings.TrimSpace(line), " ")
		group, resources, ok := strings.Cut(what, "/")
		for resource := range strings.SplitSeq(resources, ",") {
			for verb := range strings.SplitSeq(verbs, ",") {
				if ok {
					all[group+"/"+resource+" "+verb] = true
				}
			}
		}
	}
	return all
}

// rightsIn are those that manifests give to the operator.
func rightsIn(t *testing.T, manifests []byte) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		role := &rbacv1.ClusterRole{} // a Role has the same fields
		err := decoder.Decode(role)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if role.Name != "diwan-operator" || role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		where := ""
		if role.Kind == "Role" {
			where = role.Namespace + ":"
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						right := where + group + "/" + resource
						if len(rule.ResourceNames) > 0 {
							right += "=" + strings.Join(rule.ResourceNames, ";")
						}
						all[right+" "+verb] = true
					}
				}
			}
		}
	}
}
