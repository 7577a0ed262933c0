// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/internal/platform/pki"
)

// testManifests installs without Helm, as the page says, what finds the
// experiments of an earlier installation, and of Katib.
func (f *foreign) testManifests(t *testing.T) {
	f.testTakeover(t, func() { f.follow(t, "manifests") })
	f.reachable(t)
	f.testRefusals(t)
	if err := create(t.Context(), f.any, "default", reporter("by-manifests", 2, 2, "/dev/null")); err != nil {
		t.Fatal(err)
	}
	f.succeeded(t, "default", "by-manifests", 2*time.Minute)
	f.succeeded(t, "default", "later", 2*time.Minute) // made while nothing was installed
	f.follow(t, "manifests-uninstall")
}

// testElsewhere installs in another namespace than Katib's, which is gone, with
// a certificate of cert-manager's that is renewed.
func (f *foreign) testElsewhere(t *testing.T) {
	f.shell(t, `kubectl delete namespace kubeflow --timeout 3m
		sed 's/name: Type$/name: State/' config/crd/kubeflow.org_experiments.yaml | kubectl apply --server-side --force-conflicts --field-manager=katib -f -`)
	f.home = "team-platform"
	issuer := newIssuer(t, f)
	f.follow(t, "elsewhere", "--wait", "--timeout 3m --set webhook.certManager.enabled=true --set resources.requests.cpu=10m")
	issuer.issue()
	f.shell(t, "kubectl -n team-platform rollout status deployment/diwan-operator --timeout 3m")
	f.reachable(t)
	f.testRefusals(t)
	if columns := f.columns(t); !strings.Contains(columns, "Type") {
		t.Errorf("the definition that was there has stayed: %s", columns)
	}
	first := issuer.served(t)
	before := f.operators()
	issuer.issue()

	text := strings.Replace(shape{name: "elsewhere", trials: 2, parallel: 2, command: "echo loss=${trialParameters.x}"}.manifest(), "namespace: default", "namespace: team-platform", 1)
	if err := create(t.Context(), f.any, "team-platform", text); err != nil {
		t.Fatal(err)
	}
	f.succeeded(t, "team-platform", "elsewhere", 2*time.Minute)
	eventually(t, time.Minute, func() error {
		f.testRefusals(t)
		if bytes.Equal(issuer.served(t), first) {
			return errors.New("an operator still serves the certificate that was renewed")
		}
		return nil
	})
	for i, pod := range f.operators() {
		if i >= len(before) || pod.UID != before[i].UID || pod.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("an operator began again for its certificate: %s", pod.Name)
		}
	}
}

// issuer does what cert-manager does: it issues what a Certificate asks for, and
// makes its authority known where an annotation says so.
type issuer struct {
	f         *foreign
	authority *pki.Pair
}

// newIssuer installs cert-manager's definitions.
func newIssuer(t *testing.T, f *foreign) *issuer {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/cert-manager/cert-manager@v1.19.1")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot fetch the definitions of cert-manager: %v\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	definitions := filepath.Join(module.Dir, "deploy", "crds", "cert-manager.io_")
	f.shell(t, fmt.Sprintf("kubectl apply --server-side -f %[1]scertificates.yaml -f %[1]sissuers.yaml", definitions))
	authority, err := pki.NewAuthority("issuer", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{f, authority}
}

// issue issues the certificate of the webhooks, for the first time or again.
func (i *issuer) issue() {
	t, f := i.f.t, i.f
	t.Helper()
	certificates := f.any.Resource(gvr("cert-manager.io/v1", "certificates"))
	var asked *unstructured.Unstructured
	eventually(t, time.Minute, func() (err error) {
		asked, err = certificates.Namespace(f.home).Get(t.Context(), "diwan-webhooks", metav1.GetOptions{})
		return err
	})
	hosts, _, _ := unstructured.NestedStringSlice(asked.Object, "spec", "dnsNames")
	name, _, _ := unstructured.NestedString(asked.Object, "spec", "secretName")
	pair, err := i.authority.Sign(pki.Request{Name: name, Hosts: hosts, From: time.Now(), Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": pair.CertificatePEM(), "tls.key": key, "ca.crt": i.authority.CertificatePEM()},
	}
	secrets := f.kube.CoreV1().Secrets(f.home)
	if _, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	i.inject(name)
}

// inject writes the authority into the configurations that ask for that of a
// certificate.
func (i *issuer) inject(certificate string) {
	t, f := i.f.t, i.f
	t.Helper()
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		client := f.any.Resource(gvr("admissionregistration.k8s.io/v1", resource))
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		injected := 0
		for _, c := range list.Items {
			if c.GetAnnotations()["cert-manager.io/inject-ca-from"] != f.home+"/"+certificate {
				continue
			}
			for _, hook := range c.Object["webhooks"].([]any) {
				hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = base64.StdEncoding.EncodeToString(i.authority.CertificatePEM())
				injected++
			}
			if _, err := client.Update(t.Context(), &c, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if injected == 0 {
			t.Errorf("none of the %s asks for the authority of %s", resource, certificate)
		}
	}
}

// served is the certificate of the first operator's webhooks. The others may
// have another for a moment.
func (i *issuer) served(t *testing.T) []byte {
	t.Helper()
	pods := i.f.operators()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // which one it is, not whether it is right
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pods[0].Status.PodIP, "8443"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
}
