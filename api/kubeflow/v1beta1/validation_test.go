// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// breakage is a way to change the valid experiment, and what Validate then
// says: every text must be in its message. No text: it is still valid.
type breakage struct {
	reason string
	change func(*Experiment)
	want   []string
}

func checkBreakages(t *testing.T, cases []breakage) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			e := valid()
			c.change(e)
			got := ""
			if err := e.Validate(algorithms()).ToAggregate(); err != nil {
				got = err.Error()
			}
			if (got == "") != (len(c.want) == 0) {
				t.Fatalf("Validate says %q, want %q", got, c.want)
			}
			for _, text := range c.want {
				if !strings.Contains(got, text) {
					t.Errorf("Validate says %q, want %q in it", got, text)
				}
			}
		})
	}
}

func TestValidateNameAndCounts(t *testing.T) {
	t.Parallel()
	count := func(n int32) *int32 { return &n }
	checkBreakages(t, []breakage{
		{"nothing is wrong", func(*Experiment) {}, nil},
		{"a name must begin with a letter", func(e *Experiment) { e.Name = "1st" }, []string{"metadata.name", "1st", "lowercase letter"}},
		{"a name must not be empty", func(e *Experiment) { e.Name = "" }, []string{"metadata.name"}},
		{"Katib checks only the beginning of a name", func(e *Experiment) { e.Name = "a.b" }, nil},
		{"63 characters fit", func(e *Experiment) { e.Name = strings.Repeat("a", 63) }, nil},
		{"64 do not fit into a label", func(e *Experiment) { e.Name = strings.Repeat("a", 64) }, []string{"metadata.name", "63"}},
		{"a time limit is some time", func(e *Experiment) { e.Spec.TimeLimitSeconds = new(int64) }, []string{"spec.timeLimitSeconds", "greater than 0"}},
		{"so is a trial's", func(e *Experiment) { e.Spec.TrialTemplate.TimeLimitSeconds = new(int64) }, []string{"spec.trialTemplate.timeLimitSeconds"}},
		{"and it fits into a duration", func(e *Experiment) { n := int64(1) << 62; e.Spec.TimeLimitSeconds = &n }, []string{"spec.timeLimitSeconds"}},
		{"retries are some", func(e *Experiment) { e.Spec.TrialTemplate.MaxRetryCount = -1 }, []string{"spec.trialTemplate.maxRetryCount"}},
		{"but not without end", func(e *Experiment) { e.Spec.TrialTemplate.MaxRetryCount = 1001 }, []string{"spec.trialTemplate.maxRetryCount"}},
		{"a policy is one of two", func(e *Experiment) { e.Spec.SuspendPolicy = "Later" }, []string{"spec.suspendPolicy", "Later", "FinishTrials"}},
		{"counts may be left out", func(e *Experiment) { e.Spec.MaxTrialCount, e.Spec.MaxFailedTrialCount = nil, nil }, nil},
		{"no failure may be tolerated", func(e *Experiment) { e.Spec.MaxFailedTrialCount = count(0) }, nil},
		{"failures are not negative", func(e *Experiment) { e.Spec.MaxFailedTrialCount = count(-1) }, []string{"spec.maxFailedTrialCount", "-1"}},
		{"there is at least one trial", func(e *Experiment) { e.Spec.MaxTrialCount = count(0) }, []string{"spec.maxTrialCount", "greater than 0"}},
		{"at least one trial runs", func(e *Experiment) { e.Spec.ParallelTrialCount = count(0) }, []string{"spec.parallelTrialCount", "greater than 0"}},
		{"no more can fail than there are", func(e *Experiment) { e.Spec.MaxFailedTrialCount = count(13) }, []string{"spec.maxFailedTrialCount", "13", "spec.maxTrialCount"}},
		{"no more can run than there are", func(e *Experiment) { e.Spec.ParallelTrialCount = count(13) }, []string{"spec.parallelTrialCount", "13", "spec.maxTrialCount"}},
		{"the number that runs is bounded", func(e *Experiment) { e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = nil, count(2000000000) },
			[]string{"spec.parallelTrialCount", "10000"}},
		{"a resume policy is one of three", func(e *Experiment) { e.Spec.ResumePolicy = "Sometimes" }, []string{"spec.resumePolicy", "Sometimes", "LongRunning"}},
	})
}

func TestValidateObjectiveAndAlgorithm(t *testing.T) {
	t.Parallel()
	checkBreakages(t, []breakage{
		{"an objective is needed", func(e *Experiment) { e.Spec.Objective = nil }, []string{"spec.objective", "Required"}},
		{"a direction is needed", func(e *Experiment) { e.Spec.Objective.Type = "" }, []string{"spec.objective.type", "minimize"}},
		{"a direction is one of two", func(e *Experiment) { e.Spec.Objective.Type = "improve" }, []string{"spec.objective.type", "improve", "maximize"}},
		{"a metric is needed", func(e *Experiment) { e.Spec.Objective.ObjectiveMetricName = "" }, []string{"spec.objective.objectiveMetricName"}},
		{"a metric is objective or additional", func(e *Experiment) { e.Spec.Objective.AdditionalMetricNames = []string{"acc", "loss"} },
			[]string{"spec.objective.additionalMetricNames[1]", "loss"}},
		{"a strategy is one of three", func(e *Experiment) { e.Spec.Objective.MetricStrategies[0].Value = "mean" },
			[]string{"spec.objective.metricStrategies[0].value", "mean", "latest"}},
		{"metrics are bounded", func(e *Experiment) { e.Spec.Objective.AdditionalMetricNames = make([]string, MaxNames+1) },
			[]string{"spec.objective.additionalMetricNames", "1000"}},
		{"there may be further objectives, and constraints", func(e *Experiment) {
			e.Spec.Objective.AdditionalObjectives = []AdditionalObjective{{Type: ObjectiveTypeMaximize, MetricName: "speed"}}
			e.Spec.Objective.Constraints = []MetricConstraint{{MetricName: "memory", Max: new(float64)}}
		}, nil},
		{"a further objective has a direction and a name", func(e *Experiment) { e.Spec.Objective.AdditionalObjectives = make([]AdditionalObjective, 1) },
			[]string{"spec.objective.additionalObjectives[0].type", "spec.objective.additionalObjectives[0].metricName"}},
		{"an objective is named once", func(e *Experiment) {
			e.Spec.Objective.AdditionalObjectives = []AdditionalObjective{{Type: ObjectiveTypeMaximize, MetricName: "loss"}}
		}, []string{"spec.objective.additionalObjectives[0].metricName", "Duplicate"}},
		{"objectives are bounded", func(e *Experiment) {
			e.Spec.Objective.AdditionalObjectives = make([]AdditionalObjective, MaxObjectives)
		},
			[]string{"spec.objective.additionalObjectives", "9"}},
		{"a constraint has a bound and a name", func(e *Experiment) { e.Spec.Objective.Constraints = make([]MetricConstraint, 1) },
			[]string{"spec.objective.constraints[0].metricName", "min, max or both"}},
		{"a constraint can be met", func(e *Experiment) {
			one := 1.0
			e.Spec.Objective.Constraints = []MetricConstraint{{MetricName: "memory", Min: &one, Max: new(float64)}}
		}, []string{"spec.objective.constraints[0].min", "greater than max"}},
		{"an algorithm is needed", func(e *Experiment) { e.Spec.Algorithm = nil }, []string{"spec.algorithm", "random"}},
		{"an algorithm has a name", func(e *Experiment) { e.Spec.Algorithm.AlgorithmName = "" }, []string{"spec.algorithm.algorithmName", "known: grid, random"}},
		{"the name is known", func(e *Experiment) { e.Spec.Algorithm.AlgorithmName = "magic" },
			[]string{"spec.algorithm.algorithmName", "magic", "unknown algorithm; known: grid, random"}},
		{"a known name may have to wait", func(e *Experiment) { e.Spec.Algorithm.AlgorithmName = "tpe" },
			[]string{"spec.algorithm.algorithmName", "tpe", "not yet available in this version"}},
		{"settings are bounded", func(e *Experiment) { e.Spec.Algorithm.AlgorithmSettings = make([]AlgorithmSetting, MaxNames+1) },
			[]string{"spec.algorithm.algorithmSettings", "1000"}},
		{"early stopping has a name", func(e *Experiment) { e.Spec.EarlyStopping = &EarlyStoppingSpec{} }, []string{"spec.earlyStopping.algorithmName"}},
		{"early stopping may have to wait", func(e *Experiment) { e.Spec.EarlyStopping = &EarlyStoppingSpec{AlgorithmName: "medianstop"} },
			[]string{"spec.earlyStopping.algorithmName", "not yet available"}},
	})
}

func TestValidateAsksTheEarlyStopping(t *testing.T) {
	t.Parallel()
	known := algorithms()
	known.EarlyStopping = map[string]bool{"medianstop": true}
	known.CheckEarlyStopping = func(*EarlyStoppingSpec) error { return errors.New("the moon is full") }
	e := valid()
	e.Spec.EarlyStopping = &EarlyStoppingSpec{AlgorithmName: "medianstop"}
	if err := e.Validate(known).ToAggregate(); err == nil || !strings.Contains(err.Error(), "spec.earlyStopping.algorithmSettings") || !strings.Contains(err.Error(), "the moon is full") {
		t.Errorf("Validate() = %v", err)
	}
}

func TestValidateStart(t *testing.T) {
	t.Parallel()
	when := func(c ParameterCondition) func(*Experiment) {
		return func(e *Experiment) { e.Spec.Parameters[0].When = &c }
	}
	second := valid().Spec.Parameters[1].Name
	checkBreakages(t, []breakage{
		{"a parameter may depend on another", when(ParameterCondition{Parameter: second, Values: []string{"a"}}), nil},
		{"the other is named", when(ParameterCondition{Values: []string{"a"}}), []string{"spec.parameters[0].when.parameter", "Required"}},
		{"the other is there", when(ParameterCondition{Parameter: "color", Values: []string{"red"}}), []string{"spec.parameters[0].when.parameter", "color"}},
		{"it needs values", when(ParameterCondition{Parameter: second}), []string{"spec.parameters[0].when.values", "Required"}},
		{"constraints are bounded", func(e *Experiment) { e.Spec.ParameterConstraints = make([]string, MaxConstraints+1) }, []string{"spec.parameterConstraints", "100"}},
		{"an architecture has no parameters to constrain", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig, e.Spec.ParameterConstraints = nil, network(), []string{"x > 1"}
		}, []string{"spec.parameterConstraints", "nasConfig"}},
		{"an operation has all its parameters", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig = nil, network()
			e.Spec.NasConfig.Operations[0].Parameters = []ParameterSpec{{Name: "f", ParameterType: ParameterTypeCategorical,
				FeasibleSpace: FeasibleSpace{List: []string{"3"}}, When: &ParameterCondition{}}}
		}, []string{"spec.nasConfig.operations[0].parameters[0].when"}},
		{"no more trials are asked for than there are to be", func(e *Experiment) { e.Spec.InitialTrials = make([]InitialTrial, 13) },
			[]string{"spec.initialTrials", "13", "spec.maxTrialCount"}},
		{"nor too many", func(e *Experiment) {
			e.Spec.MaxTrialCount, e.Spec.InitialTrials = nil, make([]InitialTrial, MaxInitialTrials+1)
		}, []string{"spec.initialTrials", "1000"}},
		{"a warm start names experiments", func(e *Experiment) { e.Spec.WarmStart = &WarmStartSpec{} }, []string{"spec.warmStart.experiments", "Required"}},
		{"each of them", func(e *Experiment) { e.Spec.WarmStart = &WarmStartSpec{Experiments: []string{"a", ""}} }, []string{"spec.warmStart.experiments[1]"}},
		{"not too many", func(e *Experiment) { e.Spec.WarmStart = &WarmStartSpec{Experiments: make([]string, MaxSources+1)} }, []string{"spec.warmStart.experiments", "100"}},
	})
}

// TestValidateAsksTheAlgorithmWhere checks that a fault that says where it is
// is told as such.
func TestValidateAsksTheAlgorithmWhere(t *testing.T) {
	t.Parallel()
	known := algorithms()
	known.Check = func(*ExperimentSpec) error { return field.Invalid(field.NewPath("spec", "here"), "x", "it is wrong") }
	if errs := valid().Validate(known); len(errs) != 1 || errs[0].Field != "spec.here" {
		t.Errorf("Validate says %v, want a fault at spec.here", errs)
	}
}

func TestValidateAsksTheAlgorithm(t *testing.T) {
	t.Parallel()
	known := algorithms()
	known.Check = func(*ExperimentSpec) error { return errors.New("the moon is full") }
	if err := valid().Validate(known).ToAggregate(); err == nil || !strings.Contains(err.Error(), "the moon is full") {
		t.Errorf("Validate says %v, want what the algorithm's check says", err)
	}
	known.Check = func(*ExperimentSpec) error { t.Error("the check is asked about a spec with faults"); return nil }
	e := valid()
	e.Spec.Parameters[0].FeasibleSpace.Min = "low"
	if err := e.Validate(known).ToAggregate(); err == nil {
		t.Error("Validate finds no fault")
	}
}

func TestValidateSpace(t *testing.T) {
	t.Parallel()
	lr := func(change func(*FeasibleSpace)) func(*Experiment) {
		return func(e *Experiment) { change(&e.Spec.Parameters[0].FeasibleSpace) }
	}
	whole := func(f FeasibleSpace) func(*Experiment) {
		return func(e *Experiment) {
			e.Spec.Parameters[0].ParameterType, e.Spec.Parameters[0].FeasibleSpace = ParameterTypeInt, f
		}
	}
	choice := func(t ParameterType, f FeasibleSpace) func(*Experiment) {
		return func(e *Experiment) {
			e.Spec.Parameters[1].ParameterType, e.Spec.Parameters[1].FeasibleSpace = t, f
		}
	}
	const at0, at1 = "spec.parameters[0].feasibleSpace", "spec.parameters[1].feasibleSpace"
	checkBreakages(t, []breakage{
		{"something must vary", func(e *Experiment) { e.Spec.Parameters = nil }, []string{"spec.parameters", "nasConfig"}},
		{"parameters or an architecture vary, not both", func(e *Experiment) { e.Spec.NasConfig = &NasConfig{} }, []string{"spec.nasConfig", "together"}},
		{"an architecture may vary alone", func(e *Experiment) { e.Spec.Parameters, e.Spec.NasConfig = nil, network() }, nil},
		{"it consists of something", func(e *Experiment) { e.Spec.Parameters, e.Spec.NasConfig = nil, &NasConfig{} }, []string{"spec.nasConfig.operations", "at least one"}},
		{"in layers", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig = nil, network()
			e.Spec.NasConfig.GraphConfig.NumLayers = nil
		}, []string{"spec.nasConfig.graphConfig.numLayers"}},
		{"that have names", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig = nil, network()
			e.Spec.NasConfig.Operations[0].OperationType = ""
		}, []string{"spec.nasConfig.operations[0].operationType"}},
		{"and need not vary", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig = nil, network()
			e.Spec.NasConfig.Operations[0].Parameters = nil
		}, nil},
		{"or do by parameters like others", func(e *Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig = nil, network()
			e.Spec.NasConfig.Operations[0].Parameters[0].FeasibleSpace.List = nil
		}, []string{"spec.nasConfig.operations[0].parameters[0].feasibleSpace.list"}},
		{"parameters are bounded", func(e *Experiment) { e.Spec.Parameters = make([]ParameterSpec, 10000) }, []string{"spec.parameters", "1000"}},
		{"a parameter has a name", func(e *Experiment) { e.Spec.Parameters[1].Name = "" }, []string{"spec.parameters[1].name"}},
		{"names are unique", func(e *Experiment) { e.Spec.Parameters[1].Name = "lr" }, []string{"spec.parameters[1].name", "Duplicate"}},
		{"a type is one of four", func(e *Experiment) { e.Spec.Parameters[0].ParameterType = "float" },
			[]string{"spec.parameters[0].parameterType", "float", "double"}},
		{"a type that is unknown could only fail later", func(e *Experiment) { e.Spec.Parameters[0].ParameterType = ParameterTypeUnknown },
			[]string{"spec.parameters[0].parameterType"}},
		{"a distribution is one of four", lr(func(f *FeasibleSpace) { f.Distribution = "beta" }), []string{at0 + ".distribution", "beta", "logNormal"}},
		{"an unknown distribution is uniform, as in Katib", lr(func(f *FeasibleSpace) { f.Distribution = DistributionUnknown }), nil},
		{"a double has no list", lr(func(f *FeasibleSpace) { f.List = []string{"1"} }), []string{at0 + ".list"}},
		{"a double has a min", lr(func(f *FeasibleSpace) { f.Min = "" }), []string{at0 + ".min", "Required"}},
		{"a double has a max", lr(func(f *FeasibleSpace) { f.Max = "" }), []string{at0 + ".max", "Required"}},
		{"min is a number", lr(func(f *FeasibleSpace) { f.Min = "0,01" }), []string{at0 + ".min", "0,01", `"0.01"`}},
		{"min is not infinite", lr(func(f *FeasibleSpace) { f.Min = "-Inf" }), []string{at0 + ".min", "finite"}},
		{"max is not NaN", lr(func(f *FeasibleSpace) { f.Max = "NaN" }), []string{at0 + ".max", "finite"}},
		{"max does not overflow", lr(func(f *FeasibleSpace) { f.Max = "1e999" }), []string{at0 + ".max", "64-bit"}},
		{"min is at most max", lr(func(f *FeasibleSpace) { f.Min = "2" }), []string{at0 + ".min", "max, which is 0.1"}},
		{"min may be max", lr(func(f *FeasibleSpace) { f.Min = "0.1" }), nil},
		{"a step is a number", lr(func(f *FeasibleSpace) { f.Step = "fine" }), []string{at0 + ".step", "fine"}},
		{"a step is not 0", lr(func(f *FeasibleSpace) { f.Step = "0" }), []string{at0 + ".step", "greater than 0"}},
		{"a step is not negative", lr(func(f *FeasibleSpace) { f.Step = "-0.1" }), []string{at0 + ".step", "greater than 0"}},
		{"a step may be larger than the range", lr(func(f *FeasibleSpace) { f.Step = "7" }), nil},
		{"an int is whole", whole(FeasibleSpace{Min: "1.5", Max: "3"}), []string{at0 + ".min", "integer"}},
		{"the step of an int need not be whole, as in Katib", whole(FeasibleSpace{Min: "1", Max: "3", Step: "0.5"}), nil},
		{"but is a number", whole(FeasibleSpace{Min: "1", Max: "3", Step: "one"}), []string{at0 + ".step", "one"}},
		{"and greater than 0", whole(FeasibleSpace{Min: "1", Max: "3", Step: "-0.5"}), []string{at0 + ".step", "greater than 0"}},
		{"an int fits in 64 bits", whole(FeasibleSpace{Min: "1", Max: "99999999999999999999"}), []string{at0 + ".max", "64 bits"}},
		{"an int may be negative", whole(FeasibleSpace{Min: "-5", Max: "5", Step: "5"}), nil},
		{"a choice has no range", choice(ParameterTypeCategorical, FeasibleSpace{List: []string{"a"}, Min: "1", Max: "2", Step: "1"}),
			[]string{at1 + ".min", at1 + ".max", at1 + ".step"}},
		{"a choice has values", choice(ParameterTypeCategorical, FeasibleSpace{Distribution: DistributionUniform}), []string{at1 + ".list", "Required"}},
		{"a discrete choice has numbers", choice(ParameterTypeDiscrete, FeasibleSpace{List: []string{"1", "two"}}), []string{at1 + ".list[1]", "two", "categorical"}},
		{"discrete numbers are fine", choice(ParameterTypeDiscrete, FeasibleSpace{List: []string{"1", "2.5"}}), nil},
		{"values are bounded", choice(ParameterTypeCategorical, FeasibleSpace{List: make([]string, MaxListLength+1)}), []string{at1 + ".list", "10000"}},
	})
}

func TestValidateTemplateFrame(t *testing.T) {
	t.Parallel()
	change := func(f func(*TrialTemplate)) func(*Experiment) {
		return func(e *Experiment) { f(e.Spec.TrialTemplate) }
	}
	const at = "spec.trialTemplate"
	checkBreakages(t, []breakage{
		{"a template is needed", func(e *Experiment) { e.Spec.TrialTemplate = nil }, []string{at, "Required"}},
		{"a primary container is needed", change(func(t *TrialTemplate) { t.PrimaryContainerName = "" }), []string{at + ".primaryContainerName"}},
		{"a success condition is needed", change(func(t *TrialTemplate) { t.SuccessCondition = "" }), []string{at + ".successCondition", "GJSON"}},
		{"a failure condition is needed", change(func(t *TrialTemplate) { t.FailureCondition = "" }), []string{at + ".failureCondition", "GJSON"}},
		{"a condition is bounded", change(func(t *TrialTemplate) { t.FailureCondition = strings.Repeat("#", 5000) }), []string{at + ".failureCondition", "4096"}},
		{"a source is needed", change(func(t *TrialTemplate) { t.TrialSpec = nil }), []string{at + ".trialSpec", "configMap"}},
		{"there is one source", change(func(t *TrialTemplate) { t.ConfigMap = &ConfigMapSource{} }), []string{at + ".configMap", "together"}},
		{"a ConfigMap is named in full", change(func(t *TrialTemplate) { t.TrialSpec, t.ConfigMap = nil, &ConfigMapSource{} }),
			[]string{"configMap.configMapName", "configMap.configMapNamespace", "configMap.templatePath"}},
		{"trial parameters are needed", change(func(t *TrialTemplate) { t.TrialParameters = nil }), []string{at + ".trialParameters", "Required"}},
		{"a trial parameter has a name", change(func(t *TrialTemplate) { t.TrialParameters[0].Name = "" }), []string{"trialParameters[0].name"}},
		{"a name has no braces", change(func(t *TrialTemplate) { t.TrialParameters[0].Name = "a}b" }), []string{"trialParameters[0].name", "a}b"}},
		{"a trial parameter has a reference", change(func(t *TrialTemplate) { t.TrialParameters[1].Reference = "" }), []string{"trialParameters[1].reference"}},
		{"programs run the trials", func(e *Experiment) {
			*e.Spec.TrialTemplate = TrialTemplate{TrialSource: TrialSource{External: &ExternalTrials{}}}
			e.Spec.MetricsCollectorSpec = nil
		}, nil},
		{"of which there is no template then", change(func(t *TrialTemplate) { t.External = &ExternalTrials{} }), []string{at + ".trialSpec", at + ".primaryContainerName", "omit it"}},
		{"a lease lasts", change(func(t *TrialTemplate) {
			*t = TrialTemplate{TrialSource: TrialSource{External: &ExternalTrials{LeaseSeconds: new(int32), MaxAttempts: new(int32)}}}
		}), []string{at + ".external.leaseSeconds", at + ".external.maxAttempts"}},
		{"they have no output to collect", func(e *Experiment) {
			*e.Spec.TrialTemplate = TrialTemplate{TrialSource: TrialSource{External: &ExternalTrials{}}}
			e.Spec.MetricsCollectorSpec = &MetricsCollectorSpec{Collector: &CollectorSpec{Kind: StdOutCollector}}
		}, []string{"spec.metricsCollectorSpec.collector.kind", "Push"}},
		{"names are unique", change(func(t *TrialTemplate) { t.TrialParameters[1].Name = "rate" }), []string{"trialParameters[1].name", "Duplicate"}},
		{"references are unique", change(func(t *TrialTemplate) { t.TrialParameters[1].Reference = "lr" }), []string{"trialParameters[1].reference", "Duplicate"}},
	})
}

func TestValidateCollector(t *testing.T) {
	t.Parallel()
	collect := func(m MetricsCollectorSpec) func(*Experiment) {
		return func(e *Experiment) { e.Spec.MetricsCollectorSpec = &m; e.SetDefaults() }
	}
	file := func(kind CollectorKind, p FileSystemPath, formats ...string) func(*Experiment) {
		s := &SourceSpec{FileSystemPath: &p}
		if len(formats) > 0 {
			s.Filter = &FilterSpec{MetricsFormat: formats}
		}
		return collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: kind}, Source: s})
	}
	serves := func(path string, port intstr.IntOrString) func(*Experiment) {
		return collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: PrometheusMetricCollector},
			Source: &SourceSpec{HttpGet: &corev1.HTTPGetAction{Path: path, Port: port}}})
	}
	custom := func(c *corev1.Container, p *FileSystemPath) func(*Experiment) {
		m := MetricsCollectorSpec{Collector: &CollectorSpec{Kind: CustomCollector, CustomCollector: c}}
		if p != nil {
			m.Source = &SourceSpec{FileSystemPath: p}
		}
		return collect(m)
	}
	const at = "spec.metricsCollectorSpec."
	checkBreakages(t, []breakage{
		{"the program may push", collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: PushCollector}}), nil},
		{"nothing may be collected", collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: NoneCollector}}), nil},
		{"a kind is one of seven", collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: "Pull"}}), []string{at + "collector.kind", "Pull", "StdOut"}},
		{"a file has defaults", file(FileCollector, FileSystemPath{}), nil},
		{"a file's path is absolute", file(FileCollector, FileSystemPath{Path: "metrics.log"}), []string{at + "source.fileSystemPath.path", "absolute"}},
		{"a file is a file", file(FileCollector, FileSystemPath{Kind: DirectoryKind}), []string{at + "source.fileSystemPath.kind", "File"}},
		{"a format is one of two", file(FileCollector, FileSystemPath{Format: "CSV"}), []string{at + "source.fileSystemPath.format", "CSV", "TEXT"}},
		{"JSON needs no filter", file(FileCollector, FileSystemPath{Format: JSONFormat}, `(\w+)=(\d+)`), []string{at + "source.filter", "TEXT"}},
		{"JSON without a filter is fine", file(FileCollector, FileSystemPath{Format: JSONFormat}), nil},
		{"a filter finds name and value", file(FileCollector, FileSystemPath{}, `{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}`), nil},
		{"a filter compiles", file(FileCollector, FileSystemPath{}, `(a)(b)`, `(`), []string{at + "source.filter.metricsFormat[1]", "regular expression"}},
		{"a filter has two groups", file(FileCollector, FileSystemPath{}, `loss=(\d+)`), []string{at + "source.filter.metricsFormat[0]", "two groups"}},
		{"filters hold for standard output too", collect(MetricsCollectorSpec{Collector: &CollectorSpec{Kind: StdOutCollector},
			Source: &SourceSpec{Filter: &FilterSpec{MetricsFormat: []string{"x"}}}}), []string{at + "source.filter.metricsFormat[0]"}},
		{"event files have defaults", file(TfEventCollector, FileSystemPath{}), nil},
		{"event files are in a directory", file(TfEventCollector, FileSystemPath{Kind: FileKind}), []string{at + "source.fileSystemPath.kind", "Directory"}},
		{"event files have their own format", file(TfEventCollector, FileSystemPath{Format: TextFormat}), []string{at + "source.fileSystemPath.format"}},
		{"served metrics have defaults", serves("", intstr.IntOrString{}), nil},
		{"a port is a number", serves("/metrics", intstr.FromString("http")), []string{at + "source.httpGet.port", "http"}},
		{"a port is positive", serves("/metrics", intstr.FromInt32(-1)), []string{at + "source.httpGet.port", "-1"}},
		{"a port is one that there is", serves("/metrics", intstr.FromInt32(65536)), []string{at + "source.httpGet.port", "65536"}},
		{"a path may have a query", serves("/metrics?name=a", intstr.FromInt32(1)), nil},
		{"a path is a URL's", serves("/%zz", intstr.FromInt32(1)), []string{at + "source.httpGet.path", "%zz"}},
		{"a path begins with a slash", serves("metrics", intstr.FromInt32(1)), []string{at + "source.httpGet.path", "metrics"}},
		{"a custom collector is a container", custom(nil, nil), []string{at + "collector.customCollector"}},
		{"a custom collector has a name", custom(&corev1.Container{Image: "i"}, nil), []string{at + "collector.customCollector.name"}},
		{"a custom collector has an image", custom(&corev1.Container{Name: "c"}, nil), []string{at + "collector.customCollector.image"}},
		{"a custom collector may read a directory", custom(&corev1.Container{Name: "c", Image: "i"}, &FileSystemPath{Path: "/m", Kind: DirectoryKind}), nil},
		{"a custom collector's path is absolute", custom(&corev1.Container{Name: "c", Image: "i"}, &FileSystemPath{Path: "m", Kind: FileKind}), []string{at + "source.fileSystemPath.path"}},
		{"a custom collector's path has a kind", custom(&corev1.Container{Name: "c", Image: "i"}, &FileSystemPath{Path: "/m"}), []string{at + "source.fileSystemPath.kind"}},
	})
}

func TestMessagesStayShort(t *testing.T) {
	t.Parallel()
	e := valid()
	huge := strings.Repeat("ü", 1<<20)
	e.Name, e.Spec.Algorithm.AlgorithmName, e.Spec.Parameters[0].FeasibleSpace.Min = huge, huge, huge
	e.Spec.Objective.Type, e.Spec.ResumePolicy = ObjectiveType(huge), ResumePolicyType(huge)
	if n := len(e.Validate(algorithms()).ToAggregate().Error()); n > 4096 {
		t.Errorf("the message of huge values has %s bytes", strconv.Itoa(n))
	}
}

// network is what an architecture may be.
func network() *NasConfig {
	layers := int32(2)
	return &NasConfig{
		GraphConfig: GraphConfig{NumLayers: &layers, InputSizes: []int32{28, 28, 1}, OutputSizes: []int32{10}},
		Operations: []Operation{{OperationType: "convolution", Parameters: []ParameterSpec{
			{Name: "filter_size", ParameterType: ParameterTypeCategorical, FeasibleSpace: FeasibleSpace{List: []string{"3", "5"}}},
		}}},
	}
}
