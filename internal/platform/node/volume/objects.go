// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Objects reads ConfigMaps, Secrets and service accounts for Pods that start. What was read less
// than a moment ago is not read again, so a hundred Pods that start together
// cost one request.
type Objects struct {
	client kubernetes.Interface
	// fresh is how long an answer counts as new.
	fresh time.Duration

	mu      sync.Mutex
	answers map[objectKey]*answer
}

type objectKey struct{ kind, namespace, name string }

// answer is what the API server said, or is about to say.
type answer struct {
	ready  chan struct{}
	at     time.Time
	object any
	err    error
}

// NewObjects returns Objects that read with client.
func NewObjects(client kubernetes.Interface) *Objects {
	return &Objects{client: client, fresh: time.Second, answers: map[objectKey]*answer{}}
}

// ConfigMap reads a ConfigMap. The caller does not change it.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	object, err := o.get(ctx, objectKey{"configmap", namespace, name}, func(ctx context.Context) (any, error) {
		return o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	return object.(*corev1.ConfigMap), nil
}

// Secret reads a Secret. The caller does not change it.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	object, err := o.get(ctx, objectKey{"secret", namespace, name}, func(ctx context.Context) (any, error) {
		return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	return object.(*corev1.Secret), nil
}

// Account returns the UID of a service account: if one is recreated under the
// same name, the tokens of the first are invalid. A missing one has "".
func (o *Objects) Account(ctx context.Context, namespace, name string) (types.UID, error) {
	object, err := o.get(ctx, objectKey{"serviceaccount", namespace, name}, func(ctx context.Context) (any, error) {
		return o.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return object.(*corev1.ServiceAccount).UID, nil
}

// get asks once for all who ask at the same time. Failures are not kept, except
// that an object is missing.
func (o *Objects) get(ctx context.Context, key objectKey, ask func(context.Context) (any, error)) (any, error) {
	o.mu.Lock()
	a, known := o.answers[key]
	if known {
		select {
		case <-a.ready:
			known = time.Since(a.at) < o.fresh && (a.err == nil || apierrors.IsNotFound(a.err))
		default:
		}
	}
	if known {
		o.mu.Unlock()
		select {
		case <-a.ready:
			return a.object, a.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	o.forget()
	a = &answer{ready: make(chan struct{})}
	o.answers[key] = a
	o.mu.Unlock()

	a.object, a.err = ask(ctx)
	a.at = time.Now()
	close(a.ready)
	return a.object, a.err
}

// forget drops old answers, so that secrets do not stay in memory.
func (o *Objects) forget() {
	for key, a := range o.answers {
		select {
		case <-a.ready:
			if time.Since(a.at) > o.fresh {
				delete(o.answers, key)
			}
		default:
		}
	}
}
