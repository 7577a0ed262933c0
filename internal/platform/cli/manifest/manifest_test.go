// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
)

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     string
		want   []string // kind/name at document:line
		err    string
	}{
		"Several": {
			reason: "Documents that are empty or comments alone do not count, lines do",
			in:     "# head\n---\nkind: A\napiVersion: v1\nmetadata: {name: a}\n---\n\n---\nkind: B\napiVersion: v1\nmetadata: {name: b}\n",
			want:   []string{"A/a document 1 line 3", "B/b document 2 line 9"},
		},
		"List": {
			reason: "A List stands for its items",
			in:     `{"kind":"List","apiVersion":"v1","items":[{"kind":"A","apiVersion":"v1","metadata":{"name":"a"}},{"kind":"B","apiVersion":"v1","metadata":{"generateName":"b-"}}]}`,
			want:   []string{"A/a document 1 line 1", "B/ document 1 line 1"},
		},
		"Empty":         {reason: "No document is no object", in: "\n# nothing\n---\n"},
		"Null":          {reason: "A document that is null is no object", in: "null\n"},
		"BlockScalar":   {reason: "Dashes inside a text do not end the document", in: "kind: A\napiVersion: v1\nmetadata: {name: a}\ndata: |\n  --- not the end\n  ---x\n", want: []string{"A/a document 1 line 1"}},
		"NoKind":        {reason: "kind cannot be guessed", in: "apiVersion: v1\n", err: "f.yaml, document 1 (line 1): kind is missing"},
		"KindNumber":    {reason: "kind must be text", in: "apiVersion: 1\nkind: A\n", err: "apiVersion must be a string, not a number (1)"},
		"NoName":        {reason: "Nothing can be applied without a name", in: "apiVersion: v1\nkind: A\nmetadata: {}\n", err: "metadata.name is missing"},
		"NumberAsName":  {reason: "YAML reads 123 as a number", in: "apiVersion: v1\nkind: A\nmetadata: {name: 123}\n", err: "metadata.name must be a string, not a number (123): put it in quotes"},
		"Twice":         {reason: "A key given twice hides a mistake", in: "---\napiVersion: v1\nkind: A\nkind: B\n", err: `line 4: key "kind" already set`},
		"Overridden":    {reason: "What << brings may be given another value", in: "apiVersion: v1\nkind: A\nmetadata:\n  <<: {name: a}\n  name: b\n", want: []string{"A/b document 1 line 1"}},
		"OverridesLate": {reason: "To kubectl, a << that comes after a key counts", in: "apiVersion: v1\nkind: A\nmetadata:\n  name: b\n  <<: {name: a}\n", want: []string{"A/a document 1 line 1"}},
		"TwiceBeside":   {reason: "But no key is given twice beside it", in: "apiVersion: v1\nkind: A\nmetadata:\n  <<: {name: a}\n  name: b\n  name: c\n", err: "line 6"},
		"Tab":           {reason: "The line is counted from the start of the file", in: "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nb:\n\tc: 1\n", err: "line 6"},
		"Text":          {reason: "A text is not an object", in: "hello\n", err: "must be an object with apiVersion and kind, not text"},
		"ItemsNoObject": {reason: "A List holds objects", in: "kind: List\napiVersion: v1\nitems: [1]\n", err: "items[0] must be an object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := Parse([]byte(tc.in), Source{File: "f.yaml"})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, object := range objects {
				place := strings.NewReplacer("f.yaml, ", "", "(", "", ")", "").Replace(object.Source.String())
				got = append(got, object.GetKind()+"/"+object.GetName()+" "+place)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	object := func(name string) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
	}
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "d.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), object(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Read([]string{dir, Stdin}, strings.NewReader(string(object("stdin"))))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetName())
	}
	if diff := cmp.Diff([]string{"a.yml", "b.yaml", "c.json", "stdin"}, got); diff != "" {
		t.Errorf("objects (-want +got)\n%s", diff)
	}
	if objects[0].Source.Dir != dir {
		t.Errorf("directory is %q, want %q", objects[0].Source.Dir, dir)
	}

	var missing *NotFoundError
	if _, err := Read([]string{filepath.Join(dir, "none.yaml")}, nil); !errors.As(err, &missing) {
		t.Errorf("error for a missing file is %v, want a NotFoundError", err)
	}
	if _, err := Read([]string{t.TempDir()}, nil); err == nil {
		t.Error("an empty directory is read without an error")
	}
}

func TestSetWorkingDirectory(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		in     string
		want   []string
	}{
		"Pod":        {reason: "A Pod is annotated itself", in: "kind: Pod\nspec: {containers: []}", want: []string{"/w"}},
		"Job":        {reason: "A Job's Pod template is annotated", in: "kind: Job\nspec: {template: {spec: {containers: []}}}", want: []string{"/w"}},
		"Experiment": {reason: "The template of a trial's Job lies deeper", in: "kind: Experiment\nspec: {trialTemplate: {trialSpec: {kind: Job, spec: {template: {spec: {containers: []}}}}}}", want: []string{"/w"}},
		"Training":   {reason: "Kinds that are not known here have Pod templates too", in: "kind: XJob\nspec: {replicaSpecs: {Worker: {template: {spec: {containers: []}}}, Chief: {template: {spec: {containers: []}}}}}", want: []string{"/w", "/w"}},
		"Kept":       {reason: "What the user wrote stays", in: "kind: Pod\nmetadata: {annotations: {diwan.dev/working-directory: /mine}}\nspec: {containers: []}", want: []string{"/mine"}},
		"TrainJob":   {reason: "A TrainJob has no Pod template: its runtime has", in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: {}", want: []string{"/w"}},
		"Trial":      {reason: "The TrainJob of a trial lies deeper", in: "kind: Experiment\nspec: {trialTemplate: {trialSpec: {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob}}}", want: []string{"/w"}},
		"Search":     {reason: "So does that of an OptimizationJob, which names no kind", in: "kind: OptimizationJob\nspec: {trainJobTemplate: {spec: {}}}", want: []string{"/w"}},
		"Other":      {reason: "A template that is not a Pod's is left alone", in: "kind: X\nspec: {template: {spec: {replicas: 1}}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, tc.in)
			SetWorkingDirectory(object, "/w")
			var got []string
			collect(object, &got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: annotations (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMountDirectory(t *testing.T) {
	t.Parallel()
	const volume = `{"hostPath":{"path":"/w","type":"Directory"},"name":"manifest-directory"}`
	const at = `"volumeMounts":[{"mountPath":"/w","name":"manifest-directory"}]`
	cases := map[string]struct {
		reason string
		in     string
		want   string // the object's spec
		err    string
	}{
		"Pod": {reason: "Every container has it, and starts there", in: "kind: Pod\nspec: {initContainers: [{name: i}], containers: [{name: a}]}",
			want: `{"containers":[{"name":"a",` + at + `,"workingDir":"/w"}],"initContainers":[{"name":"i",` + at + `,"workingDir":"/w"}],"volumes":[` + volume + `]}`},
		"Job": {reason: "So have those of a template", in: "kind: Job\nspec: {template: {spec: {containers: [{name: a, workingDir: /x}]}}}",
			want: `{"template":{"spec":{"containers":[{"name":"a",` + at + `,"workingDir":"/x"}],"volumes":[` + volume + `]}}}`},
		"Kept": {reason: "What is mounted there stays", in: "kind: Pod\nspec: {volumes: [{name: v}], containers: [{name: a, volumeMounts: [{name: v, mountPath: /w}]}]}",
			want: `{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/w","name":"v"}],"workingDir":"/w"}],"volumes":[{"name":"v"},` + volume + `]}`},
		"TrainJob": {reason: "A TrainJob has no templates to mount it in", in: "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec: {}",
			want: `{}`, err: "spec.runtimePatches"},
		"Volumes":    {reason: "What is no list of volumes is an error", in: "kind: Pod\nspec: {volumes: 1, containers: []}", want: `{"containers":[],"volumes":1}`, err: "spec.volumes is not a list"},
		"Mounts":     {reason: "So is what is no list of mounts", in: "kind: Job\nspec: {template: {spec: {containers: [{name: a, volumeMounts: {}}]}}}", want: `{"template":{"spec":{"containers":[{"name":"a","volumeMounts":{}}],"volumes":[` + volume + `]}}}`, err: "container a is not a list"},
		"Containers": {reason: "What is no container is left to the API server", in: "kind: Pod\nspec: {containers: [1]}", want: `{"containers":[1],"volumes":[` + volume + `]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, tc.in)
			err := MountDirectory(object, "/w")
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			got, err := json.Marshal(object["spec"])
			if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
				t.Errorf("%s: spec (-want +got), %v\n%s", tc.reason, err, diff)
			}
		})
	}
}

// parsed is an object of a test, which gets an apiVersion and a name where it has none.
func parsed(t *testing.T, in string) map[string]any {
	t.Helper()
	if !strings.HasPrefix(in, "apiVersion") {
		in = "apiVersion: v1\n" + in
	}
	if strings.Contains(in, "metadata: {annotations") {
		in = strings.Replace(in, "metadata: {", "metadata: {name: x, ", 1)
	} else {
		in += "\nmetadata: {name: x}"
	}
	objects, err := Parse([]byte(in), Source{})
	if err != nil {
		t.Fatal(err)
	}
	return objects[0].Object
}

// collect gathers the annotation's values at whatever depth.
func collect(value any, into *[]string) {
	switch value := value.(type) {
	case map[string]any:
		if dir, ok := value[kubeflow.AnnotationWorkingDirectory].(string); ok {
			*into = append(*into, dir)
		}
		for _, child := range value {
			collect(child, into)
		}
	case []any:
		for _, child := range value {
			collect(child, into)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("kind: A\napiVersion: v1\nmetadata: {name: a}\n---\n{}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [{kind: List, apiVersion: v1, items: [1]}]\n"))
	f.Add([]byte("\xef\xbb\xbf---\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Parse(data, Source{File: "f"})
		if err != nil {
			return
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("an object without kind or apiVersion came through: %v", object.Object)
			}
			SetWorkingDirectory(object.Object, "/w")
			_ = MountDirectory(object.Object, "/w")
		}
	})
}

func TestSetWorkingDirectoryMalformed(t *testing.T) {
	t.Parallel()
	pod := map[string]any{"kind": "Pod", "metadata": []any{}, "spec": map[string]any{"containers": []any{}}}
	want := map[string]any{"kind": "Pod", "metadata": []any{}, "spec": map[string]any{"containers": []any{}}}
	SetWorkingDirectory(pod, "/w")
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("a malformed object changed (-want +got)\n%s", diff)
	}
}
