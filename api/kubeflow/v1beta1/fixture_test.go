// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// valid returns a small experiment with defaults set in which Validate finds no
// fault. Each call returns a new one.
func valid() *Experiment {
	three, twelve := int32(3), int32(12)
	e := &Experiment{}
	e.Name = "tune"
	e.Spec = ExperimentSpec{
		Objective:           &ObjectiveSpec{Type: ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
		Algorithm:           &AlgorithmSpec{AlgorithmName: "random"},
		ParallelTrialCount:  &three,
		MaxTrialCount:       &twelve,
		MaxFailedTrialCount: &three,
		Parameters: []ParameterSpec{
			{Name: "lr", ParameterType: ParameterTypeDouble, FeasibleSpace: FeasibleSpace{Min: "0.01", Max: "0.1"}},
			{Name: "optimizer", ParameterType: ParameterTypeCategorical, FeasibleSpace: FeasibleSpace{List: []string{"sgd", "adam"}}},
		},
		TrialTemplate: &TrialTemplate{
			PrimaryContainerName: "main",
			TrialSource:          TrialSource{TrialSpec: object("batch/v1", "Job")},
			TrialParameters: []TrialParameterSpec{
				{Name: "rate", Reference: "lr"}, {Name: "optimizer", Reference: "optimizer"},
			},
		},
	}
	e.SetDefaults()
	return e
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
}

// algorithms are the names that the tests know.
func algorithms() Algorithms {
	return Algorithms{
		Search:        map[string]bool{"random": true, "grid": true, "tpe": false},
		EarlyStopping: map[string]bool{"medianstop": false},
	}
}
