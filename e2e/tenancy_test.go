// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/testing/clustertest"
)

// tenant is a user with a client certificate of their own.
type tenant struct {
	kube kubernetes.Interface
	any  dynamic.Interface
}

// tenant makes a user who has a built-in role in a namespace.
func (f *foreign) tenant(t *testing.T, name, role, namespace string) tenant {
	t.Helper()
	_, config := f.cluster.User(name)
	f.bind(t, namespace, name, role, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name})
	kube, anything := f.clients(config)
	return tenant{kube, anything}
}

func (f *foreign) bind(t *testing.T, namespace, name, role string, subject rbacv1.Subject) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := f.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testTenancy has users with Kubernetes' own roles in two namespaces: each sees
// and does what the role says in their own, and nothing in the other.
func (f *foreign) testTenancy(t *testing.T) {
	for _, namespace := range []string{"red", "blue"} {
		f.namespace(namespace)
	}
	editor, viewer := f.tenant(t, "rita", "edit", "red"), f.tenant(t, "vera", "view", "red")
	admin := f.tenant(t, "bob", "admin", "blue")
	// Roles are put together from their parts by a controller.
	eventually(t, time.Minute, func() error { return create(t.Context(), editor.any, "red", reporter("x", 2, 2, "/dev/null")) })
	eventually(t, time.Minute, func() error { return create(t.Context(), admin.any, "blue", reporter("x", 2, 2, "/dev/null")) })
	red, blue := f.succeeded(t, "red", "x", 2*time.Minute), f.succeeded(t, "blue", "x", 2*time.Minute)
	if len(red) != 2 || len(blue) != 2 {
		t.Fatalf("%d and %d trials, want 2 each", len(red), len(blue))
	}

	ctx, patch := t.Context(), []byte(`{"spec":{"maxTrialCount":3}}`)
	for name, c := range map[string]struct {
		reason  string
		allowed bool
		try     func() error
	}{
		"EditorLists":     {"an editor sees their own", true, func() error { return list(ctx, editor, "red") }},
		"EditorElsewhere": {"and not another's", false, func() error { return list(ctx, editor, "blue") }},
		"EditorCreates":   {"nor makes any there", false, func() error { return create(ctx, editor.any, "blue", reporter("y", 1, 1, "/dev/null")) }},
		"EditorReadsLogs": {"an editor reads the logs of their trials", true, func() error { return logsOf(ctx, editor, "red") }},
		"LogsElsewhere":   {"and not another's", false, func() error { return logsOf(ctx, editor, "blue") }},
		"ViewerLists":     {"a viewer sees", true, func() error { return list(ctx, viewer, "red") }},
		"ViewerCreates":   {"and makes none", false, func() error { return create(ctx, viewer.any, "red", reporter("y", 1, 1, "/dev/null")) }},
		"ViewerEdits": {"nor changes any", false, func() error {
			_, err := viewer.any.Resource(experiments).Namespace("red").Patch(ctx, "x", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}},
		"ViewerDeletes": {"nor deletes any", false, func() error {
			return viewer.any.Resource(trials).Namespace("red").Delete(ctx, red[0].GetName(), metav1.DeleteOptions{})
		}},
		"EditorBinds":    {"an editor gives nobody a role", false, func() error { return grant(ctx, editor, "red") }},
		"AdminBinds":     {"an admin does", true, func() error { return grant(ctx, admin, "blue") }},
		"AdminElsewhere": {"in their own namespace", false, func() error { return grant(ctx, admin, "red") }},
		"EditorForges": {"nobody but the operator writes what came of an experiment", false, func() error {
			_, err := editor.any.Resource(experiments).Namespace("red").Patch(ctx, "x", types.MergePatchType, []byte(`{"status":{"trials":9}}`), metav1.PatchOptions{}, "status")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.try(); c.allowed && err != nil || !c.allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
	f.testTenantMetrics(t, red[0].GetName(), blue[0].GetName())
	f.testReferences(t, editor, admin)
}

// testQuota wants a quota to hold trials back, and none of them to fail of it.
func (f *foreign) testQuota(t *testing.T) {
	f.namespace("poor")
	clustertest.Quota(t, f.kube, "poor", corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
	if err := create(t.Context(), f.any, "poor", reporter("x", 3, 3, "/dev/null")); err != nil {
		t.Fatal(err)
	}
	if list := f.succeeded(t, "poor", "x", 2*time.Minute); len(list) != 3 {
		t.Errorf("%d trials, want 3", len(list))
	}
}

func list(ctx context.Context, who tenant, namespace string) error {
	for _, resource := range []string{"experiments", "trials", "suggestions"} {
		items, err := who.any.Resource(experiments.GroupVersion().WithResource(resource)).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(items.Items) == 0 {
			return fmt.Errorf("there are no %s", resource)
		}
	}
	return nil
}

// logsOf reads the log of a trial's Pod.
func logsOf(ctx context.Context, who tenant, namespace string) error {
	pods, err := who.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "katib.kubeflow.org/trial"})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no Pod of a trial is left")
	}
	_, err = who.kube.CoreV1().Pods(namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return err
}

// grant gives someone the role to view.
func grant(ctx context.Context, who tenant, namespace string) error {
	_, err := who.kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeflow-katib-view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "guest"}},
	}, metav1.CreateOptions{})
	return err
}

// token makes a service account, with a role if one is named, and returns a
// token of it.
func (f *foreign) token(t *testing.T, namespace, account, role string) string {
	t.Helper()
	accounts := f.kube.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if role != "" {
		f.bind(t, namespace, account, role, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
	}
	request, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// testTenantMetrics wants metrics to be for whom the trial is.
func (f *foreign) testTenantMetrics(t *testing.T, red, blue string) {
	viewer, nobody := f.token(t, "red", "viewer", "view"), f.token(t, "red", "nobody", "")
	pods := f.operators()
	if len(pods) == 0 {
		t.Fatal("there are no operators")
	}
	conn, err := grpc.NewClient(pods[0].Status.PodIP+":6789", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := v1beta1.NewDBManagerClient(conn)
	for name, c := range map[string]struct {
		reason, token, namespace, trial string
		code                            codes.Code
	}{
		"Own":       {"a viewer reads the metrics of their namespace", viewer, "red", red, codes.OK},
		"Elsewhere": {"and no other's", viewer, "blue", blue, codes.PermissionDenied},
		"Nobody":    {"an account without a role reads none", nobody, "red", red, codes.PermissionDenied},
		"Anonymous": {"nor does who is not known", "", "red", red, codes.Unauthenticated},
	} {
		t.Run("Metrics"+name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "diwan-namespace", c.namespace)
			if c.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
			}
			reply, err := client.GetObservationLog(ctx, &v1beta1.GetObservationLogRequest{TrialName: c.trial})
			if status.Code(err) != c.code {
				t.Errorf("%s: got %v, want %s", c.reason, err, c.code)
			}
			if n := len(reply.GetObservationLog().GetMetricLogs()); err == nil && n != 1 {
				t.Errorf("%s: got %d points, want 1", c.reason, n)
			}
		})
	}
}

// testMetrics wants Prometheus' metrics to be served, to whom the role lets. What
// is counted is in the memory of the operator that works, so all of an experiment
// is counted where the same one has worked to its end.
func (f *foreign) testMetrics(t *testing.T) {
	prometheus, nobody := f.token(t, "kubeflow", "prometheus", ""), f.token(t, "kubeflow", "nobody", "")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "diwan-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kubeflow", Name: "prometheus"}},
	}
	if _, err := f.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret, err := f.kube.CoreV1().Secrets("kubeflow").Get(t.Context(), "diwan-webhooks", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "diwan-operator.kubeflow.svc"},
	}}
	for token, want := range map[string]int{nobody: http.StatusForbidden, "": http.StatusUnauthorized} {
		eventually(t, time.Minute, func() error {
			_, err := f.scrape(t, &client, token, want)
			return err
		})
	}
	counting, namespace, runs := "", "", 0
	eventually(t, 3*time.Minute, func() error {
		leader, err := f.leader(t)
		if err != nil {
			return err
		}
		if leader != counting {
			runs++
			namespace = fmt.Sprintf("counted-%d", runs)
			f.namespace(namespace)
			if err := create(t.Context(), f.any, namespace, reporter("x", 2, 2, "/dev/null")); err != nil {
				return err
			}
			f.succeeded(t, namespace, "x", 2*time.Minute)
			counting = leader
		}
		text, err := f.scrape(t, &client, prometheus, http.StatusOK)
		if err != nil {
			return err
		}
		for _, metric := range []string{
			"katib_experiment_created_total{namespace=%q} 1\n", "katib_experiment_succeeded_total{namespace=%q} 1\n",
			"katib_trial_created_total{namespace=%q} 2\n", "katib_trial_succeeded_total{namespace=%q} 2\n",
			"katib_experiments_current{namespace=%q,status=\"Succeeded\"} 1\n", "katib_trials_current{namespace=%q,status=\"Succeeded\"} 2\n",
		} {
			if metric = fmt.Sprintf(metric, namespace); !strings.Contains(text, metric) {
				return fmt.Errorf("no operator has the metric %s", metric)
			}
		}
		return nil
	})
}

// scrape reads the metrics of all operators, one after another. Each must answer
// with a code; an error means that one cannot answer now.
func (f *foreign) scrape(t *testing.T, client *http.Client, token string, want int) (string, error) {
	t.Helper()
	var all strings.Builder
	for _, pod := range f.operators() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+pod.Status.PodIP+":8444/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return "", err
		}
		if response.StatusCode >= http.StatusInternalServerError {
			return "", fmt.Errorf("%s answers %s: %s", pod.Name, response.Status, text)
		}
		if response.StatusCode != want {
			t.Fatalf("%s answers with %d, want %d", pod.Name, response.StatusCode, want)
		}
		all.Write(text)
	}
	return all.String(), nil
}
