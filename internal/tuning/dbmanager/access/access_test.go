// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/internal/tuning/dbmanager/access"
)

// bench is a namespace of the real cluster with some trials, Pods and accounts.
type bench struct {
	t         *testing.T
	api       client.Client
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c, namespace := cluster.Namespace(t)
	scheme, err := diwan.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, api, namespace}
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	o.SetNamespace(b.namespace)
	if err := b.api.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// setStatus changes an object's status by a merge patch, so that others may
// write it too.
func (b *bench) setStatus(o client.Object, set func()) {
	b.t.Helper()
	before := o.DeepCopyObject().(client.Object)
	set()
	if err := b.api.Status().Patch(b.t.Context(), o, client.MergeFrom(before)); err != nil {
		b.t.Fatal(err)
	}
}

// trial creates a trial whose Job is suspended, or that has ended.
func (b *bench) trial(name string, ended bool) {
	b.t.Helper()
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec.RunSpec = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name, "namespace": b.namespace}, "spec": map[string]any{
		"suspend": true,
		"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
			map[string]any{"name": "main", "image": "busybox", "command": []any{"true"}},
		}}},
	}}}
	t.Spec.PrimaryContainerName = "main"
	t.Spec.SuccessCondition = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	t.Spec.FailureCondition = `status.conditions.#(type=="Failed")#|#(status=="True")#`
	t.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	b.create(t)
	if ended {
		b.setStatus(t, func() { t.Status.Conditions.Complete(metav1.Now(), v1beta1.ConditionSucceeded, "Test", "") })
	}
}

// pod creates a Pod at an address that no node runs.
func (b *bench) pod(name, trial, ip string, phase corev1.PodPhase, hostNetwork bool) {
	b.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.LabelTrial: trial}}}
	p.Spec = corev1.PodSpec{
		HostNetwork: hostNetwork, SchedulerName: "nobody", RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}
	b.create(p)
	b.setStatus(p, func() { p.Status = corev1.PodStatus{Phase: phase, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}} })
}

// account creates a service account that may do some verbs to trials, and
// returns a token.
func (b *bench) account(name string, verbs ...string) string {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.create(account)
	if len(verbs) > 0 {
		b.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"kubeflow.org"}, Resources: []string{"trials"}, Verbs: verbs},
		}})
		b.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: b.namespace}},
		})
	}
	request := &authenticationv1.TokenRequest{}
	if err := b.api.SubResource("token").Create(b.t.Context(), account, request); err != nil {
		b.t.Fatal(err)
	}
	return request.Status.Token
}

// podToken returns a token of the audience that a Pod of a service account is
// given.
func (b *bench) podToken(account, pod, audience string) string {
	b.t.Helper()
	p := &corev1.Pod{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: pod}, p); err != nil {
		b.t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod, UID: p.UID},
	}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: account}}
	if err := b.api.SubResource("token").Create(b.t.Context(), of, request); err != nil {
		b.t.Fatal(err)
	}
	return request.Status.Token
}

// call is the context of a call from an address, with metadata.
func call(ctx context.Context, from string, pairs ...string) context.Context {
	at := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: at(from), LocalAddr: at("10.250.0.1:6789")})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(pairs...))
}

// TestWhoMayDoWhat asks for trials of a real API server.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), newBench(t)
	b.trial("mine", false)
	b.trial("theirs", false)
	b.trial("over", true)
	other.trial("mine", false)
	other.trial("elsewhere", false)
	b.pod("runs", "mine", "10.250.1.1", corev1.PodRunning, false)
	b.pod("was-here", "theirs", "10.250.1.1", corev1.PodSucceeded, false)
	b.pod("late", "over", "10.250.1.2", corev1.PodRunning, false)
	b.pod("open", "mine", "10.250.1.3", corev1.PodRunning, true)
	viewer, editor, nobody := b.account("viewer", "get"), b.account("editor", "get", "update", "delete"), b.account("nobody")
	collector := b.podToken("default", "runs", dbmanager.Audience)
	bearer := func(token string, more ...string) context.Context {
		return call(t.Context(), "10.250.7.7:1", append([]string{"authorization", "Bearer " + token}, more...)...)
	}
	const pod, host, owner = "10.250.1.1:40000", "10.250.1.3:40000", "10.250.0.1:40000"
	for name, c := range map[string]struct {
		reason string
		ctx    context.Context
		trial  string
		verb   dbmanager.Verb
		code   codes.Code
		where  string // namespace
		want   string // in the error
	}{
		"OwnTrial":          {"a Pod reports for its trial", call(t.Context(), pod), "mine", dbmanager.Update, codes.OK, b.namespace, ""},
		"OtherTrial":        {"but for no other, also of a Pod that had the address before", call(t.Context(), pod), "theirs", dbmanager.Update, codes.PermissionDenied, "", "its own trial, \"mine\""},
		"Reads":             {"it reads others, as early stopping services do", call(t.Context(), pod), "theirs", dbmanager.Get, codes.OK, b.namespace, ""},
		"ReadsElsewhere":    {"of its namespace alone", call(t.Context(), pod), "elsewhere", dbmanager.Get, codes.NotFound, "", "elsewhere"},
		"AsksElsewhere":     {"whatever it asks for", call(t.Context(), pod, access.NamespaceKey, other.namespace), "mine", dbmanager.Update, codes.PermissionDenied, "", ""},
		"Deletes":           {"and deletes nothing", call(t.Context(), pod), "mine", dbmanager.Delete, codes.PermissionDenied, "", ""},
		"Ended":             {"a trial that ended is complete", call(t.Context(), "10.250.1.2:1"), "over", dbmanager.Update, codes.FailedPrecondition, "", "has ended"},
		"HostNetwork":       {"an address that Pods share says nothing", call(t.Context(), host), "mine", dbmanager.Update, codes.Unauthenticated, "", "bearer token"},
		"Stranger":          {"an address of no Pod", call(t.Context(), "10.250.9.9:1"), "mine", dbmanager.Get, codes.Unauthenticated, "", "bearer token"},
		"Nameless":          {"no trial is named", call(t.Context(), pod), "", dbmanager.Get, codes.InvalidArgument, "", "trial_name"},
		"Owner":             {"the owner may do everything", call(t.Context(), owner), "theirs", dbmanager.Delete, codes.OK, b.namespace, ""},
		"OwnerAmbiguous":    {"but must say which of two", call(t.Context(), owner), "mine", dbmanager.Get, codes.FailedPrecondition, "", access.NamespaceKey},
		"OwnerSays":         {"by metadata", call(t.Context(), owner, access.NamespaceKey, other.namespace), "mine", dbmanager.Get, codes.OK, other.namespace, ""},
		"OwnerToken":        {"or by a secret, from anywhere", call(t.Context(), host, "authorization", "Bearer secret"), "theirs", dbmanager.Delete, codes.OK, b.namespace, ""},
		"OwnerUnknown":      {"nobody has it", call(t.Context(), owner), "unknown", dbmanager.Get, codes.NotFound, "", "unknown"},
		"OwnerOdd":          {"a name that no object can have", call(t.Context(), owner, access.NamespaceKey, "../.."), "a/b", dbmanager.Get, codes.NotFound, "", "a/b"},
		"ViewerReads":       {"a token may what RBAC says, in its own namespace", call(t.Context(), host, "authorization", "Bearer "+viewer), "mine", dbmanager.Get, codes.OK, b.namespace, ""},
		"ViewerReports":     {"and no more", call(t.Context(), host, "authorization", "Bearer "+viewer), "mine", dbmanager.Update, codes.PermissionDenied, "", "viewer"},
		"ViewerElsewhere":   {"nor elsewhere", call(t.Context(), host, "authorization", "Bearer "+viewer, access.NamespaceKey, other.namespace), "mine", dbmanager.Get, codes.PermissionDenied, "", other.namespace},
		"EditorDeletes":     {"an editor may", call(t.Context(), host, "authorization", "Bearer "+editor), "over", dbmanager.Delete, codes.OK, b.namespace, ""},
		"EditorReports":     {"report", call(t.Context(), host, "authorization", "Bearer "+editor), "theirs", dbmanager.Update, codes.OK, b.namespace, ""},
		"Nobody":            {"an account without rights has none", call(t.Context(), host, "authorization", "Bearer "+nobody), "mine", dbmanager.Get, codes.PermissionDenied, "", "nobody"},
		"Forged":            {"a token that nobody gave out, though the Pod alone might", call(t.Context(), pod, "authorization", "Bearer x"), "mine", dbmanager.Update, codes.Unauthenticated, "", "not valid"},
		"PodToken":          {"a collector reports for its Pod's trial, from whatever address", bearer(collector), "mine", dbmanager.Update, codes.OK, b.namespace, ""},
		"PodTokenOther":     {"and for no other", bearer(collector), "theirs", dbmanager.Update, codes.PermissionDenied, "", "its own trial, \"mine\""},
		"PodTokenElsewhere": {"nor elsewhere", bearer(collector, access.NamespaceKey, other.namespace), "mine", dbmanager.Update, codes.PermissionDenied, "", ""},
		"PodTokenForged":    {"its signature counts", bearer(collector[:len(collector)-8] + "AAAAAAAA"), "mine", dbmanager.Update, codes.Unauthenticated, "", "not valid"},
		"OtherAudience":     {"a token for someone else is none", bearer(b.podToken("default", "runs", "vault")), "mine", dbmanager.Update, codes.Unauthenticated, "", "not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := access.New(b.api, b.api)
			k.Patience = 100 * time.Millisecond
			k.Owner = "secret"
			k.Local = func(peer, _ netip.AddrPort) bool { return peer.String() == owner }
			got, err := k.Trial(c.ctx, c.trial, c.verb)
			if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.want) {
				t.Fatalf("%s: got %v, want %s with %q", c.reason, err, c.code, c.want)
			}
			if err == nil && (got.Namespace != c.where || got.Name != c.trial) {
				t.Errorf("%s: got trial %s, want that of namespace %s", c.reason, got, c.where)
			}
		})
	}
}

// TestPodSpeaksEarly has a Pod speak before the API server knows its address.
func TestPodSpeaksEarly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.trial("early", false)
	done := make(chan error, 1)
	go func() {
		_, err := access.New(b.api, b.api).Trial(call(t.Context(), "10.250.2.1:1"), "early", dbmanager.Update)
		done <- err
	}()
	b.pod("p", "early", "10.250.2.1", corev1.PodPending, false)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWhoMayAsk asks a real API server in which namespace a caller may do
// something.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), newBench(t)
	editor, viewer := b.account("editor", "get", "update"), b.account("viewer", "get")
	const owner, stranger = "10.250.0.1:40000", "10.250.9.9:40000"
	for name, c := range map[string]struct {
		reason string
		ctx    context.Context
		asked  string
		code   codes.Code
		want   string
	}{
		"Owner":     {"the owner means the default namespace", call(t.Context(), stranger, "authorization", "Bearer secret"), "", codes.OK, "default"},
		"OwnerSays": {"or the one that they name", call(t.Context(), owner, "authorization", "Bearer secret"), other.namespace, codes.OK, other.namespace},
		"Local":     {"a connection alone says nothing: a page in a browser has the owner's, too", call(t.Context(), owner), "", codes.Unauthenticated, ""},
		"Stranger":  {"an address says nothing", call(t.Context(), stranger), b.namespace, codes.Unauthenticated, ""},
		"Editor":    {"a token means its own namespace", call(t.Context(), stranger, "authorization", "Bearer "+editor), "", codes.OK, b.namespace},
		"Elsewhere": {"where alone it has rights", call(t.Context(), stranger, "authorization", "Bearer "+editor), other.namespace, codes.PermissionDenied, ""},
		"Viewer":    {"who may read may not take trials", call(t.Context(), stranger, "authorization", "Bearer "+viewer), "", codes.PermissionDenied, ""},
		"Forged":    {"a token that nobody gave out, though the address alone might", call(t.Context(), owner, "authorization", "Bearer x"), "", codes.Unauthenticated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := access.New(b.api, b.api)
			k.Owner = "secret"
			k.Local = func(peer, _ netip.AddrPort) bool { return peer.String() == owner }
			got, err := k.Namespace(c.ctx, c.asked, "update", "trials")
			if status.Code(err) != c.code || got != c.want {
				t.Errorf("Namespace() = %q, %v; want %q, %v: %s", got, err, c.want, c.code, c.reason)
			}
		})
	}
}
