// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	definitionsinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapiv3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// openAPI has the API server describe its kinds when somebody first asks for
// that, as kubectl apply and kubectl explain do, and not at the start. Until
// then the servers behind the aggregator say that they have no kinds to
// describe.
type openAPI struct {
	v2               *common.Config
	v3               *common.OpenAPIV3Config
	kube, extensions *genericapiserver.GenericAPIServer
	custom           *handler3.OpenAPIService // of custom resources
	aggregated       http.Handler             // what clients are answered
	client           kubernetes.Interface

	describe func() // once: it closes ready
	asked    sync.Once
	opened   atomic.Bool
	ready    chan struct{}
	running  sync.WaitGroup // ends after the context of attach
}

// openAPIPath is the root of descriptions in the form that the aggregator asks for.
const openAPIPath = "/openapi/v3"

// openAPIPatience bounds how long the first who asks for a description waits for
// what is not there yet. The aggregator looks for it every second.
const openAPIPatience = 5 * time.Second

// delayOpenAPI keeps the server of a config from describing its kinds at the start.
func delayOpenAPI(config *app.Config) *openAPI {
	kube, front := config.KubeAPIs.ControlPlane.Generic, config.Aggregator.GenericConfig
	o := &openAPI{v2: kube.OpenAPIConfig, v3: kube.OpenAPIV3Config, ready: make(chan struct{})}
	kube.SkipOpenAPIInstallation = true
	build := front.BuildHandlerChainFunc
	front.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		o.aggregated = handler
		return build(http.HandlerFunc(o.serveClients), c)
	}
	return o
}

// attach makes the servers known, before they are prepared to run. They run until
// ctx ends; config and kube are ways in.
func (o *openAPI) attach(ctx context.Context, chain *apiserver.APIAggregator, config *rest.Config, kube kubernetes.Interface) error {
	var ok bool
	if o.kube, ok = chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer); ok {
		o.extensions, ok = o.kube.NextDelegate().(*genericapiserver.GenericAPIServer)
	}
	if !ok {
		return errors.New("cannot find the servers behind the aggregator")
	}
	next := o.kube.Handler.Director
	o.kube.Handler.Director = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == openAPIPath && !o.opened.Load() {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"paths":{}}`))
			return
		}
		next.ServeHTTP(w, r)
	})
	definitions, err := definitionsclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	o.client = kube
	o.describe = func() {
		if err := o.open(ctx, definitions); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Descriptions of kinds are incomplete")
		}
		close(o.ready)
	}
	return nil
}

// detach takes the description of custom resources, each of which would be built
// at the start, from the servers, once they are prepared to run.
func (o *openAPI) detach() {
	o.custom, o.extensions.OpenAPIV3VersionedService = o.extensions.OpenAPIV3VersionedService, nil
}

// serveClients serves clients, and has the kinds described once one asks for that.
func (o *openAPI) serveClients(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/openapi/") && o.matters(r.Context()) {
		o.asked.Do(func() { o.running.Go(o.describe) })
		select {
		case <-o.ready:
		case <-r.Context().Done():
		}
	}
	o.aggregated.ServeHTTP(w, r)
}

// matters tells whether who asks for a description will use it. The API server
// itself asks every five seconds, for the sake of MutatingAdmissionPolicies.
func (o *openAPI) matters(ctx context.Context) bool {
	if asker, ok := request.UserFrom(ctx); !ok || asker.GetName() != user.APIServerUser || o.opened.Load() {
		return true
	}
	policies, err := o.client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(policies.Items) > 0
}

// open does what the servers' own start would have done, and returns when clients
// find what it made.
func (o *openAPI) open(ctx context.Context, client definitionsclient.Interface) error {
	shared := definitionsinformers.NewSharedInformerFactory(client, 0)
	definitions := shared.Apiextensions().V1().CustomResourceDefinitions()
	controller := openapiv3.NewController(definitions)
	shared.Start(ctx.Done())
	o.running.Go(func() {
		controller.Run(o.custom, ctx.Done())
		shared.Shutdown()
	})
	container, mux := o.kube.Handler.GoRestfulContainer, o.kube.Handler.NonGoRestfulMux
	o.kube.OpenAPIVersionedService, o.kube.StaticOpenAPISpec = routes.OpenAPI{Config: o.v2}.InstallV2(container, mux)
	o.kube.OpenAPIV3VersionedService = routes.OpenAPI{V3Config: o.v3}.InstallV3(container, mux)
	o.opened.Store(true)

	shared.WaitForCacheSync(ctx.Done())
	all, err := definitions.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, openAPIPatience, true, func(ctx context.Context) (bool, error) {
		paths, err := o.paths(ctx)
		return describes(paths, all), err
	})
}

// paths are the groups and versions whose descriptions clients find.
func (o *openAPI) paths(ctx context.Context) (map[string]handler3.OpenAPIV3DiscoveryGroupVersion, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, openAPIPath, nil)
	if err != nil {
		return nil, err
	}
	resp, err := inProcess{handler: o.aggregated}.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var root handler3.OpenAPIV3Discovery
	err = json.NewDecoder(resp.Body).Decode(&root)
	return root.Paths, err
}

// describes tells whether paths have the built-in kinds and all custom ones.
func describes(paths map[string]handler3.OpenAPIV3DiscoveryGroupVersion, definitions []*apiextensionsv1.CustomResourceDefinition) bool {
	if _, builtIn := paths["api/v1"]; !builtIn {
		return false
	}
	for _, d := range definitions {
		for _, v := range d.Spec.Versions {
			_, there := paths["apis/"+d.Spec.Group+"/"+v.Name]
			if v.Served && !there && apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) {
				return false
			}
		}
	}
	return true
}
