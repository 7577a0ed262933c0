// SPDX-License-Identifier: Apache-2.0

package nodeobserver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/observation"
)

// Trials returns the trials that a Kubernetes client or cache reads.
func Trials(r client.Reader) collector.Trials { return reader{r} }

type reader struct{ client.Reader }

func (r reader) Spec(ctx context.Context, t observation.Trial) (*collector.Spec, bool, error) {
	var trial v1beta1.Trial
	err := r.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, &trial)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return collector.SpecOf(&trial), true, nil
}
