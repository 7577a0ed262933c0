// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/chance"
)

// hostileManifests is how many bad manifests the platform is given: those
// below by name, and random ones.
const hostileManifests = 200

// hostile is an experiment that something is wrong with.
type hostile struct {
	shape
	edit func(manifest string) string
	// want is in the answer: an error of the API server, or what conditions
	// and events say.
	want string
	need func(testing.TB) // skips it where something lacks; nil: it runs everywhere
}

// replace edits a manifest.
func replace(old, new string) func(string) string {
	return func(manifest string) string { return strings.Replace(manifest, old, new, 1) }
}

// hostiles by what is wrong.
var hostiles = map[string]hostile{
	"count is a word":            {edit: replace("maxTrialCount: 1", "maxTrialCount: three"), want: "maxTrialCount"},
	"count overflows":            {edit: replace("maxTrialCount: 1", "maxTrialCount: 99999999999999999999"), want: "maxTrialCount"},
	"count is negative":          {edit: replace("maxTrialCount: 1", "maxTrialCount: -1"), want: "maxTrialCount"},
	"more parallel than trials":  {edit: replace("parallelTrialCount: 1", "parallelTrialCount: 7"), want: "parallelTrialCount"},
	"space is not a number":      {edit: replace(`max: "1"`, `max: "one"`), want: "one"},
	"space is infinite":          {edit: replace(`max: "1"`, `max: "1e999"`), want: "1e999"},
	"space is not a number, NaN": {edit: replace(`max: "1"`, `max: "NaN"`), want: "NaN"},
	"space is upside down":       {edit: replace(`min: "0", max: "1"`, `min: "2", max: "1"`), want: "min"},
	"space has a list too":       {edit: replace(`max: "1"`, `max: "1", list: ["1"]`), want: "list"},
	"type is unknown":            {edit: replace("parameterType: double", "parameterType: complex"), want: "complex"},
	"no parameters":              {edit: replace(`- {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}`, "[]"), want: "parameters"},
	"ten thousand parameters":    {edit: manyParameters, want: "parameters"},
	"algorithm is unknown":       {edit: replace("algorithmName: random", "algorithmName: oracle"), want: "oracle"},
	"algorithm lacks a setting":  {edit: replace("algorithmName: random", "algorithmName: hyperband"), want: "resource_name"},
	"setting is unknown":         {edit: replace(`{name: random_state, value: "1"}`, `{name: luck, value: "1"}`), want: "luck"},
	"setting is not a number":    {edit: replace(`{name: random_state, value: "1"}`, `{name: random_state, value: "x"}`), want: "random_state"},
	"grid without step":          {edit: replace("algorithmName: random", "algorithmName: grid"), want: "step"},
	"objective has no direction": {edit: replace("type: minimize", "type: sideways"), want: "sideways"},
	"objective has no metric":    {edit: replace("objectiveMetricName: loss", "goal: 1"), want: "objectiveMetricName"},
	"name is too long":           {shape: shape{name: strings.Repeat("a", 64)}, want: "63"},
	"name has capitals":          {edit: replace("name: hostile", "name: Hostile"), want: "ostile"},
	"kind is unknown":            {edit: replace("kind: Job", "kind: Wish"), want: "successCondition"},
	"no template":                {edit: func(m string) string { return m[:strings.Index(m, "  trialTemplate:")] }, want: "trialTemplate"},
	"template is a word":         {edit: replace("      apiVersion: batch/v1", "      apiVersion: [batch]"), want: "apiVersion"},
	"template has a typo":        {edit: replace("            containers:", "            containres:"), want: "containres"},
	"placeholder is unknown":     {shape: shape{command: "echo loss=${trialParameters.y}"}, want: "trialParameters.y"},
	"placeholder is not used":    {shape: shape{command: "echo loss=1"}, want: "x"},
	"reference is unknown":       {edit: replace("reference: x", "reference: z"), want: "z"},
	"filter does not compile":    {shape: shape{spec: `  metricsCollectorSpec: {collector: {kind: StdOut}, source: {filter: {metricsFormat: ["([(]+)"]}}}`}, want: "metricsFormat"},
	"collector comes later":      {shape: shape{spec: `  metricsCollectorSpec: {collector: {kind: Telepathy}}`}, want: "Telepathy"},
	"template is deep":           {edit: deepTemplate, want: "deep"},

	"command does not exist":   {edit: replace("command: [sh, -c,", "command: [no-such-program, -c,"), want: "no-such-program"},
	"command is empty":         {edit: replace("command: [sh, -c,", `command: ["", -c,`), want: "name is empty"},
	"image without a command":  {edit: func(m string) string { return strings.Replace(m, "command: [sh, -c,", "args: [sh, -c,", 1) }, want: "diwan images map"},
	"directory does not exist": {shape: shape{container: "              workingDir: /no/such/directory"}, want: "/no/such/directory"},
	"variable is huge":         {edit: hugeVariable, want: "too long"},
	"secret does not exist":    {shape: shape{container: "              envFrom: [{secretRef: {name: no-such-secret}}]"}, want: "no-such-secret"},
	"volume does not exist":    {shape: shape{pod: "            volumes: [{name: v, configMap: {name: no-such-map}}]", container: "              volumeMounts: [{name: v, mountPath: /v}]"}, want: "no-such-map"},
	"path does not exist":      {shape: shape{pod: "            volumes: [{name: v, hostPath: {path: /no/such/path, type: Directory}}]", container: "              volumeMounts: [{name: v, mountPath: /v}]"}, want: "/no/such/path"},
	"asks for a data centre":   {shape: shape{container: `              resources: {requests: {cpu: "100000"}}`}, want: "Insufficient cpu"},
	"policy is not for jobs":   {edit: replace("restartPolicy: Never", "restartPolicy: Always"), want: "restartPolicy"},
	"container is not there":   {edit: replace("primaryContainerName: main", "primaryContainerName: other"), want: "other"},

	"fails":                 {shape: shape{command: "echo ${trialParameters.x}; exit 3"}, want: "fail"},
	"crashes":               {shape: shape{command: "echo ${trialParameters.x}; sh -c 'kill -SEGV $PPID'"}, want: "fail"},
	"has no metrics":        {shape: shape{command: "echo ${trialParameters.x}"}, want: "metric"},
	"has another metric":    {shape: shape{command: "echo accuracy=${trialParameters.x}"}, want: "metric"},
	"prints binary only":    {shape: shape{command: "head -c 100000 /dev/urandom; : ${trialParameters.x}"}, want: "metric"},
	"closes its output":     {shape: shape{command: "exec >&- 2>&-; : ${trialParameters.x}"}, want: "metric"},
	"init container fails":  {shape: shape{pod: "            initContainers: [{name: init, image: busybox, command: [sh, -c, exit 4]}]"}, want: "fail"},
	"runs for ever":         {shape: shape{command: "sleep ${trialParameters.x}; sleep 1000", job: "        activeDeadlineSeconds: 1"}, want: "deadline"},
	"stops itself":          {shape: shape{command: "echo ${trialParameters.x}; sh -c 'kill -STOP $PPID'", job: "        activeDeadlineSeconds: 1"}, want: "deadline"},
	"ignores SIGTERM":       {shape: shape{command: "trap '' TERM; echo ${trialParameters.x}; while :; do sleep 1; done", job: "        activeDeadlineSeconds: 1", pod: "            terminationGracePeriodSeconds: 1"}, want: "deadline"},
	"fills its volume":      {shape: shape{command: "echo ${trialParameters.x}; head -c 50000000 /dev/zero >/v/file; sleep 1000", pod: "            volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]", container: "              volumeMounts: [{name: v, mountPath: /v}]"}, want: "fail", need: rootlesstest.NeedNamespaces},
	"takes too much memory": {shape: shape{command: "echo ${trialParameters.x}; exec tail /dev/zero", container: "              resources: {limits: {memory: 32Mi}}"}, want: "fail", need: needLimits},

	"is fine but prints a gigabyte":       {shape: shape{command: "head -c 1000000000 /dev/zero | tr '\\0' 'a\\n'; echo; echo loss=${trialParameters.x}"}, want: "succeeded"},
	"is fine but prints a long line":      {shape: shape{command: "head -c 10000000 /dev/zero | tr '\\0' a; echo; echo loss=${trialParameters.x}"}, want: "succeeded"},
	"is fine but prints binary":           {shape: shape{command: "head -c 1000000 /dev/urandom; echo; echo loss=${trialParameters.x}"}, want: "succeeded"},
	"is fine but reports a hundred times": {shape: shape{command: "for i in $(seq 100000); do echo loss=$i; done; echo loss=${trialParameters.x}"}, want: "succeeded"},
	"is fine but leaves children":         {shape: shape{command: "sleep 1000 & (setsid sleep 1000 &) ; echo loss=${trialParameters.x}"}, want: "succeeded"},
	"is fine but reports nonsense":        {shape: shape{command: "echo loss=; echo loss=+; echo loss=..; echo loss=${trialParameters.x}"}, want: "succeeded"},
}

func manyParameters(manifest string) string {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "  - {name: x%d, parameterType: double, feasibleSpace: {min: \"0\", max: \"1\"}}\n", i)
	}
	return strings.Replace(manifest, "  parameters:\n", "  parameters:\n"+b.String(), 1)
}

func deepTemplate(manifest string) string {
	deep := strings.Repeat("{deep: ", 12_000) + "1" + strings.Repeat("}", 12_000)
	return strings.Replace(manifest, "        backoffLimit: 0", "        backoffLimit: 0\n        deep: "+deep, 1)
}

func hugeVariable(manifest string) string {
	return strings.Replace(manifest, "              image: busybox", "              image: busybox\n              env: [{name: HUGE, value: "+strings.Repeat("a", 300_000)+"}]", 1)
}

// TestHostileManifests gives the platform bad manifests of every kind and
// wants a clear answer to each, while other trials go on undisturbed.
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	bystander := shape{name: "bystander", trials: 60, parallel: 2, command: "sleep 0.3; echo loss=${trialParameters.x}"}
	if err := bystander.create(s); err != nil {
		t.Fatal(err)
	}
	s.parts(t, func(part part) {
		number := 0
		for name, h := range hostiles {
			number++
			h.shape = h.filled(fmt.Sprintf("hostile-%d", number))
			part(name, func(t *testing.T, s *server) {
				if h.need != nil {
					h.need(t)
				}
				manifest := h.manifest()
				if h.edit != nil {
					edited := h.edit(manifest)
					if edited == manifest {
						t.Fatal("the edit changes nothing")
					}
					manifest = edited
				}
				answer, err := s.answer(t, manifest, h.want)
				if err != nil {
					t.Error(err)
				} else if !says(answer, h.want) {
					t.Errorf("the answer does not say %q:\n%s", h.want, answer)
				}
			})
		}
		seed := chance.Seed(t)
		for i := number; i < hostileManifests; i++ {
			part(fmt.Sprintf("random %d of seed %d", i, seed), func(t *testing.T, s *server) {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				manifest := mutate(t, random, shape{}.filled(fmt.Sprintf("random-%d", i)).manifest())
				if _, err := s.answer(t, manifest, ""); err != nil {
					t.Errorf("%v\n%s", err, manifest)
				}
			})
		}
	})
	s.alive()
	object := s.ended("default", bystander.name, 2*time.Minute)
	if _, _, ok := condition(object, "Succeeded"); !ok {
		t.Errorf("the bystander was disturbed: %v", object.Object["status"])
	}
	for _, trial := range s.trialsOf(bystander.name) {
		if _, _, ok := condition(&trial, "Succeeded"); !ok {
			t.Errorf("a bystander's trial was disturbed: %v", trial.Object["status"])
		}
	}
}

// needLimits skips a test of limits, which without cgroups are none.
func needLimits(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root has control groups for sure")
	}
}

// filled gives the shape what it does not say.
func (s shape) filled(name string) shape {
	if s.name == "" {
		s.name = name
	}
	if s.command == "" {
		s.command = "echo loss=${trialParameters.x}"
	}
	s.trials, s.parallel = 1, 1
	return s
}

// says reports whether an answer has what is wanted in it.
func says(answer, want string) bool {
	return strings.Contains(strings.ToLower(answer), strings.ToLower(want))
}

// answer gives the manifest to the API server and returns what it says: an
// error at once, or in time what the conditions and events of the experiment
// and all that it started tell, which is looked at until it has ended or a
// warning has come and they say what is wanted. An error means that there was no
// answer.
func (s *server) answer(t *testing.T, manifest, want string) (string, error) {
	object, err := decode(manifest)
	if err != nil {
		return err.Error(), nil
	}
	// Not through the typed client, which would not send what is not valid.
	client := s.client().Resource(experiments).Namespace("default")
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		return err.Error(), nil
	}
	name := created.GetName()
	defer func() {
		foreground := metav1.DeletePropagationForeground
		_ = client.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	}()
	var said []string
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		object, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		said = s.said(t, name)
		for _, kind := range []string{"Succeeded", "Failed"} {
			if reason, message, ok := condition(object, kind); ok {
				return strings.Join(append(said, kind, reason, message), "\n"), nil
			}
		}
		// Without a number of trials an experiment has no end, as in Katib.
		if n, _, _ := unstructured.NestedInt64(object.Object, "status", "trialsSucceeded"); n > 2 {
			return strings.Join(append(said, "trials succeed"), "\n"), nil
		}
		// What can still become right, as a missing ConfigMap, does not end
		// the experiment, but there is a warning.
		warned := slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "Warning") })
		if text := strings.Join(said, "\n"); warned && says(text, want) {
			return text, nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return "", fmt.Errorf("after 90 s no end, and no warning with %q:\n%s", want, strings.Join(said, "\n"))
}

// said collects what events and conditions tell of an experiment's objects.
func (s *server) said(t *testing.T, name string) []string {
	var said []string
	list, err := s.client().Resource(events).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
		if about == name || strings.HasPrefix(about, name+"-") {
			kind, _, _ := unstructured.NestedString(event.Object, "type")
			reason, _, _ := unstructured.NestedString(event.Object, "reason")
			message, _, _ := unstructured.NestedString(event.Object, "message")
			said = append(said, kind+" "+reason+": "+message)
		}
	}
	for _, trial := range s.trialsOf(name) {
		conditions, _, _ := unstructured.NestedSlice(trial.Object, "status", "conditions")
		for _, item := range conditions {
			c, _ := item.(map[string]any)
			said = append(said, fmt.Sprintf("trial %v %v: %v", c["type"], c["reason"], c["message"]))
		}
	}
	return said
}

// nasty are values that do not belong where they are put.
var nasty = []any{
	nil, true, int64(-1), int64(1) << 62, 1e300, "", " ", "\x00", "NaN", "-0", "1e400", "../../etc", "${trialParameters.x", "${trialSpec.Name}",
	strings.Repeat("x", 5000), "日本語", []any{}, map[string]any{}, []any{[]any{map[string]any{"a": nil}}}, "99999999999999999999999",
}

// mutate puts one to three nasty values into random places of a manifest.
func mutate(t *testing.T, random *rand.Rand, manifest string) string {
	t.Helper()
	object, err := decode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + random.IntN(3) {
		spec := object.Object["spec"]
		object.Object["spec"] = mutateValue(random, spec, 0)
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nastyValue is a copy: one that is put into itself would have no end.
func nastyValue(random *rand.Rand) any {
	return runtime.DeepCopyJSONValue(nasty[random.IntN(len(nasty))])
}

func mutateValue(random *rand.Rand, value any, depth int) any {
	if depth > 0 && random.IntN(6) == 0 {
		return nastyValue(random)
	}
	switch v := value.(type) {
	case map[string]any:
		var keys []string
		for key := range v {
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return nastyValue(random)
		}
		// Sorted, so that a seed repeats.
		slices.Sort(keys)
		key := keys[random.IntN(len(keys))]
		if random.IntN(12) == 0 {
			delete(v, key)
		} else {
			v[key] = mutateValue(random, v[key], depth+1)
		}
		return v
	case []any:
		if len(v) == 0 {
			return nastyValue(random)
		}
		i := random.IntN(len(v))
		v[i] = mutateValue(random, v[i], depth+1)
		return v
	default:
		return nastyValue(random)
	}
}
