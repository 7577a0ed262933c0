// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"diwan.dev/diwan/internal/platform/node"
)

// apiServer is a kube-apiserver, configured or running.
type apiServer struct {
	url    string
	config *app.Config
	within inProcess
	run    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	ready  atomic.Bool // its start is over

	descriptions *openAPI // once it is built
}

// apiServerPairs names the certificates that the server and its clients use.
const (
	pairAPIServer = "apiserver"
	pairAdmin     = "admin"
	pairWebhooks  = "webhooks"
	pairKubelet   = "kubelet"
	pairClient    = "apiserver-kubelet-client"
	keyAccounts   = "service-accounts"
)

// apiServerShutdown is how long requests may go on after a stop. Watches never
// end by themselves, so upstream's minute would be waited out.
const apiServerShutdown = time.Second

// configureAPIServer prepares a server on listener, with its state in etcd, which
// need not answer yet. It warns of what the node will find missing.
func (c *Cluster) configureAPIServer(ctx context.Context, listener net.Listener, etcd string) (*apiServer, error) {
	keys, services := c.keys, c.plan.Services
	port := portOf(listener)
	if err := keys.server(pairAPIServer, "127.0.0.1", "localhost", services.Masked().Addr().Next().String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"); err != nil {
		return nil, err
	}
	if err := keys.client(pairClient, apiServerUser); err != nil {
		return nil, err
	}
	accounts, err := keys.signingKey(keyAccounts)
	if err != nil {
		return nil, err
	}
	authority := keys.dir + "/ca.crt"
	if err := writeFile(authority, keys.authority(), 0o600); err != nil {
		return nil, err
	}
	askAsClient, err := writeAdmissionConfig(keys)
	if err != nil {
		return nil, err
	}

	opts := options.NewServerRunOptions()
	// Not by a flag, which would split the path at commas.
	opts.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	admission := opts.Admission.GenericAdmission
	admission.Plugins.Register(untrackedName, newUntracked(c.untracked(), operatorUser, controllersUser, schedulerUser, nodeUser))
	admission.Plugins.Register(unservedName, newUnserved)
	admission.Plugins.Register(forecastName, newForecaster(node.NewForecast(c.images, os.Environ(), c.decorators()...), operatorUser, controllersUser, schedulerUser, nodeUser))
	admission.RecommendedPluginOrder = append(admission.RecommendedPluginOrder, untrackedName, unservedName, forecastName)
	admission.DefaultOffPlugins.Insert(untrackedName, unservedName, forecastName)
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse([]string{
		// Storage grows to what is written in two intervals; watches that resume
		// after longer begin again with a list.
		"--etcd-compaction-interval=1m",
		// Lists of the past, for which each change keeps a copy of the index, are
		// off; PodGroups, and that the scheduler places them, are on.
		"--feature-gates=ListFromCacheSnapshot=false,GenericWorkload=true",
		"--runtime-config=scheduling.k8s.io/v1beta1=true",
		"--etcd-count-metric-poll-period=0",
		"--etcd-db-metric-poll-interval=0",
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + keys.file(pairAPIServer),
		"--tls-private-key-file=" + keys.file(pairAPIServer),
		"--client-ca-file=" + authority,
		"--token-auth-file=" + c.tokens.file,
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--admission-control-config-file=" + askAsClient,
		"--enable-admission-plugins=ResourceQuota,LimitRanger," + untrackedName + "," + unservedName + "," + forecastName,
		// The storage protection finalizers would need controllers that no
		// local directory has a use for.
		"--disable-admission-plugins=StorageObjectInUseProtection,DefaultIngressClass",
		"--kubelet-client-certificate=" + keys.file(pairClient),
		"--kubelet-client-key=" + keys.file(pairClient),
		"--kubelet-certificate-authority=" + authority,
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + accounts,
		"--service-account-signing-key-file=" + accounts,
		"--service-cluster-ip-range=" + services.String(),
		"--endpoint-reconciler-type=none",
		// One user at a time: fairness between flows costs more than it gives.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--event-ttl=1h",
		"--profiling=false",
		// The node refuses it, with the remedy.
		"--allow-privileged=true",
	}); err != nil {
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = port
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}

	s := &apiServer{url: "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), done: make(chan struct{})}
	s.run, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	completed, err := opts.Complete(s.run)
	if err == nil {
		err = utilerrors.NewAggregate(completed.Validate())
	}
	if err == nil {
		s.config, err = app.NewConfig(completed)
	}
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}
	return s, nil
}

// untracked are the resources whose managed fields nobody needs.
func (c *Cluster) untracked() []string {
	resources := []string{"jobs", "pods", "events"}
	for _, w := range c.wings {
		resources = append(resources, w.Untracked...)
	}
	return resources
}

// startAPIServer starts the server. It returns at once; waitReady tells when it serves.
func (c *Cluster) startAPIServer(s *apiServer) error {
	server, handler, err := c.buildAPIServer(s)
	if err != nil {
		return fmt.Errorf("cannot start kube-apiserver: %w", err)
	}
	s.within = inProcess{handler: handler}
	go func() {
		defer close(s.done)
		s.err = server(s.run)
	}()
	return nil
}

// buildAPIServer does what upstream's app.Run does, and keeps the handler, to
// which it adds metrics.k8s.io and the wings'.
func (c *Cluster) buildAPIServer(s *apiServer) (run func(context.Context) error, handler http.Handler, err error) {
	disableDefaults(s.config)
	disableCaches(s.config)
	descriptions := delayOpenAPI(s.config)
	s.descriptions = descriptions
	completed, err := s.config.Complete()
	if err != nil {
		return nil, nil, err
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, nil, err
	}
	chain.GenericAPIServer.ShutdownTimeout = apiServerShutdown
	if err := chain.GenericAPIServer.InstallAPIGroup(c.metrics.Group()); err != nil {
		return nil, nil, err
	}
	served := chain.GenericAPIServer.Handler
	within := inProcess{handler: served}.config(c.tokens.byUser[operatorUser], operatorUser)
	kube, err := typedClient(within)
	if err != nil {
		return nil, nil, err
	}
	if err := writeDefaults(chain.GenericAPIServer, kube); err != nil {
		return nil, nil, err
	}
	if err := descriptions.attach(s.run, chain, within, kube); err != nil {
		return nil, nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, nil, err
	}
	descriptions.detach()
	for _, w := range c.wings {
		if w.Handler != nil {
			served.FullHandlerChain = w.Handler(served.FullHandlerChain, kube)
		}
	}
	return prepared.Run, served, nil
}

// startPatience bounds the wait for the end of a start that is interrupted.
const startPatience = 20 * time.Second

// stop ends the server and waits for it. A start is let come to its end: some of
// upstream's hooks end the process when they are interrupted. token is that of a
// user who may ask for it.
func (s *apiServer) stop(token string) {
	if !s.ready.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), startPatience)
		_ = s.waitReady(ctx, s.within.config(token, operatorUser), readyPath)
		cancel()
	}
	s.cancel()
	<-s.done
	if s.descriptions != nil {
		s.descriptions.running.Wait()
	}
}

const (
	readyPath = "/readyz"
	// almostReadyPath leaves out the two hooks that write upstream's default roles and
	// priority classes. None of the cluster's own parts needs these.
	almostReadyPath = readyPath + "?exclude=poststarthook/" + rolesHook + "&exclude=poststarthook/" + priorityClassesHook
)

// waitReady returns when the server says at path that it is ready, asked with
// config.
func (s *apiServer) waitReady(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot reach kube-apiserver: %w", err)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return fmt.Errorf("cannot start kube-apiserver: %w", errors.Join(s.err, errors.New("it ended")))
		case <-ctx.Done():
			return fmt.Errorf("cannot start kube-apiserver: %w", ctx.Err())
		case <-ticker.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if path == readyPath {
				s.ready.Store(true)
			}
			return nil
		}
	}
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// listen opens the API server's port: the one asked for, or the one that the
// home had before, so that kubeconfigs stay good, or any.
func (h Home) listen(port int) (net.Listener, error) {
	if port != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("cannot listen on 127.0.0.1:%d: another program has that port; choose another with --port, or leave it out", port)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot listen on 127.0.0.1:%d: %w", port, err)
		}
		return l, nil
	}
	l, err := h.keptPort("port")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for requests: %w", err)
	}
	return l, nil
}

// keptPort listens on the port of loopback that a file of the home names, or if that is
// taken on any, which the file then names.
func (h Home) keptPort(file string) (net.Listener, error) {
	if text, err := os.ReadFile(h.Path(file)); err == nil {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(text)))); err == nil {
			return l, nil
		}
	}
	l, err := listenLoopback()
	if err != nil {
		return nil, err
	}
	if err := writeFile(h.Path(file), []byte(strconv.Itoa(portOf(l))+"\n"), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// errNoPort says that the system has no port to give.
var errNoPort = errors.New("no port of 127.0.0.1 is free: end programs that hold many connections, or widen net.ipv4.ip_local_port_range")

// freePorts is how many ports must be free, for what listens and for what
// connects to that.
const freePorts = 16

// checkPorts reports whether there are ports enough: kube-apiserver would end the
// process, half a minute later.
func checkPorts() error {
	for range freePorts {
		l, err := listenLoopback()
		if err != nil {
			return fmt.Errorf("cannot listen: %w", err)
		}
		defer l.Close()
	}
	return nil
}

// listenLoopback listens on any port of loopback.
func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errNoPort
	}
	return l, err
}
