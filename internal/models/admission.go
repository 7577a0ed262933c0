// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"

	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/models/v1alpha1"
	"diwan.dev/diwan/internal/platform/admission"
)

// Where the API server asks about models and versions.
const (
	pathValidateModel   = "/validate-models-diwan-dev-v1alpha1-model"
	pathValidateVersion = "/validate-models-diwan-dev-v1alpha1-modelversion"
)

func webhooks() []admission.Webhook {
	all := []admission.Webhook{
		admission.Validator("validator.model.models.diwan.dev", pathValidateModel, v1alpha1.GroupVersion.WithResource("models")),
		admission.Validator("validator.modelversion.models.diwan.dev", pathValidateVersion, v1alpha1.GroupVersion.WithResource("modelversions")),
	}
	for i := range all {
		all[i].Without = withoutModels
	}
	return all
}

func validateModel(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	m := &v1alpha1.Model{}
	warnings, err := admission.Decode(req.Object.Raw, m)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	return admission.Decide(req, m.Validate()).WithWarnings(warnings...)
}

func validateVersion(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	v := &v1alpha1.ModelVersion{}
	warnings, err := admission.Decode(req.Object.Raw, v)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	old, err := admission.Before[v1alpha1.ModelVersion](req)
	if err != nil {
		return admission.Unreadable(err, nil)
	}
	return admission.Decide(req, v.Validate(old)).WithWarnings(warnings...)
}
