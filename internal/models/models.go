// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"

	"diwan.dev/diwan/api/models/v1alpha1"
	"diwan.dev/diwan/internal/models/model"
	"diwan.dev/diwan/internal/platform/domain"
)

// Name is the name of the domain.
const Name = "models"

// Domain returns the declaration of the domain.
func Domain() domain.Domain {
	return domain.Domain{
		Name:        Name,
		AddToScheme: v1alpha1.AddToScheme,
		Kinds: []domain.Kind{
			{
				GroupVersionKind: v1alpha1.GroupVersion.WithKind(v1alpha1.ModelKind), Plural: "models",
				Object: &v1alpha1.Model{}, Without: withoutModels, Users: domain.UsersEdit,
				Rules: []domain.Rule{
					domain.Allow(v1alpha1.Group, []string{"get", "list", "watch"}, "models"),
					domain.Allow(v1alpha1.Group, []string{"create"}, "models").Because("Models of versions for which nobody made one."),
					domain.Allow(v1alpha1.Group, []string{"update"}, "models/status", "models/finalizers"),
				},
			},
			{
				GroupVersionKind: v1alpha1.GroupVersion.WithKind(v1alpha1.ModelVersionKind), Plural: "modelversions",
				Object: &v1alpha1.ModelVersion{}, Without: withoutModels, Users: domain.UsersEdit,
				Rules: []domain.Rule{
					domain.Allow(v1alpha1.Group, []string{"get", "list", "watch", "patch"}, "modelversions"),
					domain.Allow(v1alpha1.Group, []string{"delete"}, "modelversions").Because("Versions that their Model does not keep."),
					domain.Allow(v1alpha1.Group, []string{"patch"}, "modelversions/status"),
				},
			},
		},
		Webhooks: webhooks(),
		SetUp:    setUp,
	}
}

// withoutModels is the name by which the kinds are left to another controller.
const withoutModels = "models"

func setUp(h *domain.Host) error {
	h.Answer(pathValidateModel, validateModel)
	h.Answer(pathValidateVersion, validateVersion)
	if !h.Runs(withoutModels) {
		return nil
	}
	config := model.DefaultConfig()
	config.Events = h.Events(model.Name)
	return model.SetupWithManager(context.Background(), h, config)
}
