// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tokenKey identifies interchangeable tokens. One for a custom audience
// includes the Pod that it is bound to.
type tokenKey struct {
	namespace, account, audience string
	accountUID                   types.UID
	seconds                      int64
	pod                          string
	uid                          types.UID
}

// accountOf is the name of a Pod's service account.
func accountOf(pod *corev1.Pod) string { return cmp.Or(pod.Spec.ServiceAccountName, "default") }

// hasToken reports whether a volume has a token.
func hasToken(v *corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
		return p.ServiceAccountToken != nil
	})
}

// bound reports whether a volume has a token that is bound to its Pod.
func bound(v *corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
		return p.ServiceAccountToken != nil && p.ServiceAccountToken.Audience != ""
	})
}

// token is a service account token and when it should be replaced.
type token struct {
	text  string
	renew time.Time
}

// token adds a service account token to the content.
func (b *builder) token(ctx context.Context, s *corev1.ServiceAccountTokenProjection, mode fs.FileMode) error {
	key := tokenKey{namespace: b.pod.Namespace, account: accountOf(b.pod), audience: s.Audience, seconds: 3600}
	var err error
	if key.accountUID, err = b.m.objects.Account(ctx, key.namespace, key.account); err != nil {
		return err
	}
	if s.ExpirationSeconds != nil {
		key.seconds = *s.ExpirationSeconds
	}
	if key.audience != "" {
		key.pod, key.uid = b.pod.Name, b.pod.UID
	}
	t, err := b.m.tokenFor(ctx, key)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return b.pending(fmt.Sprintf("failed to fetch token: %v", err))
	}
	if err != nil {
		return err
	}
	if b.expires.IsZero() || t.renew.Before(b.expires) {
		b.expires = t.renew
	}
	if err := b.out.add(s.Path, []byte(t.text), mode); err != nil {
		return b.pending(err.Error())
	}
	return nil
}

// tokenFor returns a token from memory, or requests one. Requests follow one
// another: they are rare.
func (m *Manager) tokenFor(ctx context.Context, key tokenKey) (token, error) {
	m.tokenMu.Lock()
	defer m.tokenMu.Unlock()
	if t, ok := m.tokens[key]; ok && time.Now().Before(t.renew) {
		return t, nil
	}
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &key.seconds}}
	if key.audience != "" {
		request.Spec.Audiences = []string{key.audience}
		request.Spec.BoundObjectRef = &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: key.pod, UID: key.uid}
	}
	asked := time.Now()
	got, err := m.cfg.Client.CoreV1().ServiceAccounts(key.namespace).CreateToken(ctx, key.account, request, metav1.CreateOptions{})
	if err != nil {
		return token{}, err
	}
	life := min(got.Status.ExpirationTimestamp.Sub(asked), 24*time.Hour)
	t := token{text: got.Status.Token, renew: asked.Add(life * 4 / 5)}
	maps.DeleteFunc(m.tokens, func(_ tokenKey, old token) bool { return asked.After(old.renew) })
	m.tokens[key] = t
	return t, nil
}
