// SPDX-License-Identifier: Apache-2.0

// Package domaintest has the conformance tests of domains.
package domaintest

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"diwan.dev/diwan/internal/platform/domain"
)

// Tree locates what a domain is checked against.
type Tree struct {
	// Definitions are the CRDs of all kinds.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Docs and Examples are directories with documentation and examples.
	Docs, Examples string
}

// Run checks a domain: its kinds have CRDs, Go types, RBAC rules, docs and examples; its
// rules refer to existing resources and do not escalate; its webhooks are well-formed,
// and all have handlers after SetUp.
func Run(t *testing.T, d domain.Domain, tree Tree) {
	t.Helper()
	if d.Name == "" || d.SetUp == nil {
		t.Fatal("a domain has a Name and a SetUp")
	}
	t.Run("kinds", func(t *testing.T) { kinds(t, d, tree) })
	t.Run("rights", func(t *testing.T) { rights(t, d, tree) })
	t.Run("webhooks", func(t *testing.T) { webhooks(t, d) })
	t.Run("docs", func(t *testing.T) { documents(t, d, tree) })
	t.Run("set up", func(t *testing.T) { setUp(t, d, tree) })
}

// builtIn reports whether an API group is part of Kubernetes.
func builtIn(group string) bool {
	return group == "" || group == "apps" || group == "batch" || group == "autoscaling" || strings.HasSuffix(group, ".k8s.io") && clientgoscheme.Scheme.IsGroupRegistered(group)
}

// definition returns the CRD of a resource, or nil.
func (tree Tree) definition(group, plural string) *apiextensionsv1.CustomResourceDefinition {
	i := slices.IndexFunc(tree.Definitions, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return c.Spec.Group == group && c.Spec.Names.Plural == plural
	})
	if i < 0 {
		return nil
	}
	return tree.Definitions[i]
}

func kinds(t *testing.T, d domain.Domain, tree Tree) {
	scheme, err := domain.NewScheme(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range d.Kinds {
		if k.Object != nil {
			if known, _, err := scheme.ObjectKinds(k.Object); err != nil || len(known) == 0 || known[0].GroupKind() != k.GroupKind() {
				t.Errorf("%s: AddToScheme registers its type as %v (%v)", k.Kind, known, err)
			}
		}
		if k.Trial != nil && (k.Trial.SuccessCondition == "") != (k.Trial.FailureCondition == "") {
			t.Errorf("%s: trials that run it know how it succeeds, or how it fails, but not both", k.Kind)
		}
		if builtIn(k.Group) {
			continue
		}
		definition := tree.definition(k.Group, k.Plural)
		if definition == nil {
			t.Errorf("%s: there is no definition of %s.%s", k.Kind, k.Plural, k.Group)
			continue
		}
		served := slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == k.Version && v.Served })
		if definition.Spec.Names.Kind != k.Kind || !served {
			t.Errorf("%s: the definition of %s.%s is of %s, and serves version %s: %v", k.Kind, k.Plural, k.Group, definition.Spec.Names.Kind, k.Version, served)
		}
		if k.Users != domain.UsersNone && definition.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s: the roles of a namespace's users name it, but it is in no namespace", k.Kind)
		}
		if len(k.Rules) == 0 && k.Trial == nil {
			t.Errorf("%s: no right and no trial speaks of it", k.Kind)
		}
	}
}

// allRules returns the rules of a domain and its kinds.
func allRules(d domain.Domain) []domain.Rule {
	rules := slices.Clone(d.Rules)
	for _, k := range d.Kinds {
		rules = append(rules, k.Rules...)
	}
	return rules
}

// verbs are the allowed verbs; none of them escalates privileges.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func rights(t *testing.T, d domain.Domain, tree Tree) {
	for _, r := range allRules(d) {
		for _, verb := range r.Verbs {
			if !slices.Contains(verbs, verb) {
				t.Errorf("a right to %s %v: want one of %v", verb, r.Resources, verbs)
			}
		}
		if len(r.APIGroups) != 1 || len(r.Resources) == 0 || len(r.Verbs) == 0 || len(r.NonResourceURLs) > 0 {
			t.Errorf("a right is for resources of one group: %+v", r)
			continue
		}
		for _, resource := range r.Resources {
			plural, _, _ := strings.Cut(resource, "/")
			if plural == "*" || !builtIn(r.APIGroups[0]) && tree.definition(r.APIGroups[0], plural) == nil {
				t.Errorf("a right names %s.%s, which does not exist", resource, r.APIGroups[0])
			}
		}
	}
}

func webhooks(t *testing.T, d domain.Domain) {
	names := map[string]bool{}
	for _, w := range d.Webhooks {
		if names[w.Name] || len(strings.Split(w.Name, ".")) < 3 {
			t.Errorf("webhook %s: want a name of its own with at least three parts", w.Name)
		}
		names[w.Name] = true
		if !strings.HasPrefix(w.Path, "/") {
			t.Errorf("webhook %s: path %q does not begin with /", w.Name, w.Path)
		}
		i := slices.IndexFunc(d.Kinds, func(k domain.Kind) bool {
			return k.Group == w.Resource.Group && k.Version == w.Resource.Version && k.Plural == w.Resource.Resource
		})
		if i < 0 && !builtIn(w.Resource.Group) {
			t.Errorf("webhook %s is about %v, which is none of the domain's", w.Name, w.Resource)
		}
		if i >= 0 && d.Kinds[i].Without != w.Without {
			t.Errorf("webhook %s is left out with %q, its kind with %q", w.Name, w.Without, d.Kinds[i].Without)
		}
	}
}

// documents checks that the docs mention each kind, and that each kind that trials can
// run has an example.
func documents(t *testing.T, d domain.Domain, tree Tree) {
	docs, examples := text(t, tree.Docs, ".md"), text(t, tree.Examples, ".yaml")
	for _, k := range d.Kinds {
		if !regexp.MustCompile(`\b` + k.Kind + `s?\b`).MatchString(docs) {
			t.Errorf("no page of %s speaks of %s", tree.Docs, k.Kind)
		}
		if k.Trial != nil && !regexp.MustCompile(`kind: `+k.Kind+`\b`).MatchString(examples) {
			t.Errorf("no file below %s has a %s", tree.Examples, k.Kind)
		}
	}
}

// text concatenates the files with a suffix below a directory.
func text(t *testing.T, dir, ending string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// setUp sets up the domain with an unreachable API server, which is enough to see what
// it registers.
func setUp(t *testing.T, d domain.Domain, tree Tree) {
	scheme, err := domain.NewScheme(d)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return tree.mapper(d), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(manager.GetConfig(), client.Options{Scheme: scheme, Mapper: manager.GetRESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	offer, err := domain.SetUp(d, domain.Host{
		Manager: manager, Direct: direct, Kinds: d.Kinds, Namespace: "diwan", Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range offer.Servers {
		if s.Name == "" || s.Service.Name == "" || s.Service.Namespace == "" || s.Port == 0 || s.Serve == nil {
			t.Errorf("a server is not whole: %+v", s)
		}
	}
}

// mapper maps the kinds of Kubernetes and of the tree.
func (tree Tree) mapper(d domain.Domain) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range clientgoscheme.Scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, c := range tree.Definitions {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if c.Spec.Scope == apiextensionsv1.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, v := range c.Spec.Versions {
			gv := schema.GroupVersion{Group: c.Spec.Group, Version: v.Name}
			mapper.AddSpecific(gv.WithKind(c.Spec.Names.Kind), gv.WithResource(c.Spec.Names.Plural), gv.WithResource(c.Spec.Names.Singular), scope)
		}
	}
	return mapper
}
