// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServer is a running kube-apiserver.
type apiServer struct {
	url    string
	within inProcess
	done   chan struct{}
	err    error
	cancel context.CancelFunc
}

// apiServerPairs names the certificates that the server and its clients use.
const (
	pairAPIServer = "apiserver"
	pairAdmin     = "admin"
	pairWebhooks  = "webhooks"
	pairStatus    = "status-server"
	pairKubelet   = "kubelet"
	pairToKubelet = "apiserver-kubelet-client"
	keyAccounts   = "service-accounts"
)

// apiServerShutdown is how long requests may go on after a stop. Watches never
// end by themselves, so upstream's minute would be waited out.
const apiServerShutdown = time.Second

// startAPIServer serves on listener, with its state in etcd and the Services'
// addresses in services. It returns at once; waitReady tells when it serves.
func startAPIServer(ctx context.Context, listener net.Listener, etcd string, services netip.Prefix, keys *pki, tokens tokens) (*apiServer, error) {
	port := portOf(listener)
	if err := keys.server(pairAPIServer, "127.0.0.1", "localhost", services.Masked().Addr().Next().String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"); err != nil {
		return nil, err
	}
	if err := keys.client(pairToKubelet, toKubeletUser); err != nil {
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

	opts := options.NewServerRunOptions()
	admission := opts.Admission.GenericAdmission
	admission.Plugins.Register(untrackedName, newUntracked(operatorUser, controllersUser, schedulerUser, nodeUser))
	admission.RecommendedPluginOrder = append(admission.RecommendedPluginOrder, untrackedName)
	admission.DefaultOffPlugins.Insert(untrackedName)
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse([]string{
		"--etcd-servers=" + etcd,
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
		"--token-auth-file=" + tokens.file,
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--enable-admission-plugins=ResourceQuota,LimitRanger," + untrackedName,
		// The storage protection finalizers would need controllers that no
		// local directory has a use for.
		"--disable-admission-plugins=StorageObjectInUseProtection,DefaultIngressClass",
		"--kubelet-client-certificate=" + keys.file(pairToKubelet),
		"--kubelet-client-key=" + keys.file(pairToKubelet),
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
	}); err != nil {
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = port
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}

	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	completed, err := opts.Complete(run)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		cancel()
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	server, handler, err := buildAPIServer(completed, tokens)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot configure kube-apiserver: %w", err)
	}
	s := &apiServer{
		url:    "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		within: inProcess{handler: handler},
		done:   make(chan struct{}),
		cancel: cancel,
	}
	go func() {
		defer close(s.done)
		s.err = server(run)
	}()
	return s, nil
}

// buildAPIServer does what upstream's app.Run does, and keeps the handler, to
// which it adds the collectors' logs.
func buildAPIServer(opts options.CompletedOptions, tokens tokens) (run func(context.Context) error, handler http.Handler, err error) {
	config, err := app.NewConfig(opts)
	if err != nil {
		return nil, nil, err
	}
	disableDefaults(config)
	disableCaches(config)
	completed, err := config.Complete()
	if err != nil {
		return nil, nil, err
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, nil, err
	}
	chain.GenericAPIServer.ShutdownTimeout = apiServerShutdown
	if err := writeDefaults(chain.GenericAPIServer); err != nil {
		return nil, nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, nil, err
	}
	served := chain.GenericAPIServer.Handler
	kube, err := typedClient(inProcess{handler: served}.config(tokens.byUser[operatorUser], operatorUser))
	if err != nil {
		return nil, nil, err
	}
	served.FullHandlerChain = collectorLogs{next: served.FullHandlerChain, kube: kube}
	return prepared.Run, served, nil
}

// stop ends the server and waits for it.
func (s *apiServer) stop() {
	s.cancel()
	<-s.done
}

// readyPath leaves out the two hooks that look a second after the start
// whether upstream's default roles and priority classes are in the store.
// After the first start they are, and nothing here needs them before.
const readyPath = "/readyz?exclude=poststarthook/" + rolesHook + "&exclude=poststarthook/" + priorityClassesHook

// waitReady returns when the server says that it is ready, asked with config.
func (s *apiServer) waitReady(ctx context.Context, config *rest.Config) error {
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
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+readyPath, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
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
	if text, err := os.ReadFile(h.Path("port")); err == nil {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strings.TrimSpace(string(text)))); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen on a loopback port: %w", err)
	}
	return l, writeFile(h.Path("port"), []byte(strconv.Itoa(portOf(l))+"\n"), 0o600)
}
