// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestSetDefaults(t *testing.T) {
	t.Parallel()
	thing := func(version, role string) RunDefaults {
		return RunDefaults{
			Kind:             schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Thing"},
			SuccessCondition: "done", FailureCondition: "broken", PrimaryPodLabels: map[string]string{"role": role},
		}
	}
	things := []RunDefaults{thing("v1", "first"), thing("v2", "second")}
	cases := []struct {
		reason string
		given  ExperimentSpec
		got    func(*ExperimentSpec) any
		want   any
	}{
		{"three trials run at the same time", ExperimentSpec{},
			func(s *ExperimentSpec) any { return *s.ParallelTrialCount }, int32(3)},
		{"an experiment ends for good", ExperimentSpec{},
			func(s *ExperimentSpec) any { return s.ResumePolicy }, NeverResume},
		{"a resume policy that is set stays", ExperimentSpec{ResumePolicy: FromVolume},
			func(s *ExperimentSpec) any { return s.ResumePolicy }, FromVolume},
		{"values are drawn uniformly", ExperimentSpec{Parameters: []ParameterSpec{{}, {FeasibleSpace: FeasibleSpace{Distribution: DistributionNormal}}}},
			func(s *ExperimentSpec) any {
				return []Distribution{s.Parameters[0].FeasibleSpace.Distribution, s.Parameters[1].FeasibleSpace.Distribution}
			}, []Distribution{DistributionUniform, DistributionNormal}},
		{"minimizing takes the least value of every metric", ExperimentSpec{Objective: &ObjectiveSpec{
			Type: ObjectiveTypeMinimize, ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"acc"}}},
			strategies, []MetricStrategy{{"loss", ExtractByMin}, {"acc", ExtractByMin}}},
		{"maximizing takes the greatest value of every metric", ExperimentSpec{Objective: &ObjectiveSpec{
			Type: ObjectiveTypeMaximize, ObjectiveMetricName: "acc", AdditionalMetricNames: []string{"loss"}}},
			strategies, []MetricStrategy{{"acc", ExtractByMax}, {"loss", ExtractByMax}}},
		{"without a direction the latest value counts", ExperimentSpec{Objective: &ObjectiveSpec{ObjectiveMetricName: "acc"}},
			strategies, []MetricStrategy{{"acc", ExtractByLatest}}},
		{"strategies that are set stay, and one without a value gets it", ExperimentSpec{Objective: &ObjectiveSpec{
			Type: ObjectiveTypeMinimize, ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"acc"},
			MetricStrategies: []MetricStrategy{{"acc", ExtractByMax}, {"loss", ""}}}},
			strategies, []MetricStrategy{{"acc", ExtractByMax}, {"loss", ExtractByMin}}},
		{"programs that run trials report by themselves", ExperimentSpec{TrialTemplate: &TrialTemplate{TrialSource: TrialSource{External: &ExternalTrials{}}}},
			func(s *ExperimentSpec) any { return s.MetricsCollectorSpec.Collector.Kind }, PushCollector},
		{"a Job is complete or failed", template("batch/v1", "Job"), ends, []any{QueryComplete, QueryFailed, map[string]string(nil)}},
		{"another kind ends as it is said to", template("example.com/v1", "Thing"), ends, []any{"done", "broken", map[string]string{"role": "first"}}},
		{"so does a version of its own", template("example.com/v2", "Thing"), ends, []any{"done", "broken", map[string]string{"role": "second"}}},
		{"and a version that is not known, as in Katib", template("example.com/v3", "Thing"), ends, []any{"done", "broken", map[string]string{"role": "first"}}},
		{"of other kinds nothing is known", template("argoproj.io/v1alpha1", "Workflow"), ends, []any{"", "", map[string]string(nil)}},
		{"standard output is read", ExperimentSpec{}, collector, &MetricsCollectorSpec{Collector: &CollectorSpec{Kind: StdOutCollector}}},
		{"a collector without a kind stays, and is refused later", ExperimentSpec{MetricsCollectorSpec: &MetricsCollectorSpec{Collector: &CollectorSpec{}}},
			collector, &MetricsCollectorSpec{Collector: &CollectorSpec{}}},
		{"a file is text in Katib's place", collects(FileCollector), collector, &MetricsCollectorSpec{
			Collector: &CollectorSpec{Kind: FileCollector},
			Source:    &SourceSpec{FileSystemPath: &FileSystemPath{Path: "/var/log/katib/metrics.log", Kind: FileKind, Format: TextFormat}}}},
		{"event files are in Katib's directory", collects(TfEventCollector), collector, &MetricsCollectorSpec{
			Collector: &CollectorSpec{Kind: TfEventCollector},
			Source:    &SourceSpec{FileSystemPath: &FileSystemPath{Path: "/var/log/katib/tfevent/", Kind: DirectoryKind}}}},
		{"metrics are served at /metrics on 8080", collects(PrometheusMetricCollector), collector, &MetricsCollectorSpec{
			Collector: &CollectorSpec{Kind: PrometheusMetricCollector},
			Source:    &SourceSpec{HttpGet: &corev1.HTTPGetAction{Path: "/metrics", Port: intstr.FromInt32(8080)}}}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			e := &Experiment{Spec: c.given}
			e.SetDefaults(things...)
			if diff := cmp.Diff(c.want, c.got(&e.Spec)); diff != "" {
				t.Errorf("SetDefaults (-want +got):\n%s", diff)
			}
			again := e.DeepCopy()
			again.SetDefaults(things...)
			if diff := cmp.Diff(e, again); diff != "" {
				t.Errorf("defaults set twice differ (-once +twice):\n%s", diff)
			}
		})
	}
}

func strategies(s *ExperimentSpec) any { return s.Objective.MetricStrategies }
func collector(s *ExperimentSpec) any  { return s.MetricsCollectorSpec }

func ends(s *ExperimentSpec) any {
	t := s.TrialTemplate
	return []any{t.SuccessCondition, t.FailureCondition, t.PrimaryPodLabels}
}

func template(apiVersion, kind string) ExperimentSpec {
	return ExperimentSpec{TrialTemplate: &TrialTemplate{TrialSource: TrialSource{TrialSpec: object(apiVersion, kind)}}}
}

func collects(kind CollectorKind) ExperimentSpec {
	return ExperimentSpec{MetricsCollectorSpec: &MetricsCollectorSpec{Collector: &CollectorSpec{Kind: kind}}}
}

// FuzzDefaultsAndValidation holds that no experiment that decodes makes
// defaulting or validation panic, and that defaulting is idempotent.
func FuzzDefaultsAndValidation(f *testing.F) {
	seed, err := json.Marshal(valid())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"spec":{"parameters":[{"parameterType":"int","feasibleSpace":{"min":"9e999","max":"-1","step":"NaN"}}]}}`))
	f.Add([]byte(`{"spec":{"metricsCollectorSpec":{"collector":{"kind":"File"},"source":{"filter":{"metricsFormat":["(("]}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := &Experiment{}
		if json.Unmarshal(text, e) != nil {
			return
		}
		_ = e.Validate(algorithms())
		e.SetDefaults()
		once := e.DeepCopy()
		e.SetDefaults()
		if diff := cmp.Diff(once, e); diff != "" {
			t.Errorf("defaults set twice differ:\n%s", diff)
		}
		_ = e.Validate(algorithms())
		_ = e.ValidateUpdate(once)
	})
}
