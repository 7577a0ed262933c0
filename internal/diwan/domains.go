// SPDX-License-Identifier: Apache-2.0

// Package diwan lists the domains of an operator. Add new domains here, and to package
// laptop below.
package diwan

import (
	"k8s.io/apimachinery/pkg/runtime"

	"diwan.dev/diwan/internal/models"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/tuning"
)

// Options are the options of the domains.
type Options struct {
	Tuning   tuning.Options
	Training training.Options
}

// Domains returns the domains of an operator.
func Domains(o Options) []domain.Domain {
	return []domain.Domain{
		tuning.New(o.Tuning).Domain(),
		training.Domain(o.Training),
		models.Domain(),
	}
}

// Kinds returns the kinds of all domains.
func Kinds() []domain.Kind { return domain.Kinds(Domains(Options{})...) }

// NewScheme returns a scheme with the types of Kubernetes and of all domains.
func NewScheme() (*runtime.Scheme, error) { return domain.NewScheme(Domains(Options{})...) }
