// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// TestStrangers finds every socket that `diwan up` listens on and tries it as another user. A listener that is not
// declared in listeners fails the test: say there, and in docs/security.md, who may use it. The home has a path that
// must be quoted everywhere.
func TestStrangers(t *testing.T) {
	t.Parallel()
	if !rootless.Root() {
		t.Skip("only root can become another user")
	}
	s := newServerOn(t, filepath.Join(t.TempDir(), "it's a \"home\",\nof %41 #1?"))
	s.servesReadyz(t)
	s.exposesAService(t)
	listeners := s.listeners(t)
	for at, l := range s.listening(t) {
		check, ok := listeners[at]
		switch {
		case !ok && strings.HasPrefix(at, "unix:"):
			check = refusesUnix
		case !ok:
			t.Errorf("%s is a listener that nothing declares", at)
			continue
		}
		if err := check(t.Context(), l); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	experiment := shape{name: "quoted", trials: 1, parallel: 1, command: "echo loss=${trialParameters.x}"}
	if err := experiment.create(s); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := condition(s.ended("default", experiment.name, time.Minute), "Succeeded"); !ok {
		t.Error("the experiment has not succeeded")
	}
	s.stop()
	if strings.Contains(s.log.String(), "the observation store has no metrics") {
		t.Error("metrics are said to be lost")
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(s.home), "*", "observations.db*"))
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	if said := s.log.String(); len(files) == 0 || !strings.Contains(said, "the observation store has no metrics of the 1 trials") {
		t.Errorf("without the %d files of its metrics diwan said:\n%s", len(files), said)
	}
}

// servesReadyz wants what is ready to say so.
func (s *server) servesReadyz(t *testing.T) {
	kube := kubernetes.NewForConfigOrDie(s.config())
	if text, err := kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err != nil {
		t.Errorf("diwan up said that it is ready: %v\n%s", err, text)
	}
}

// exposesAService makes a Service of every kind of front, and waits until they listen.
func (s *server) exposesAService(t *testing.T) {
	kube := kubernetes.NewForConfigOrDie(s.config())
	service, err := kube.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "open"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{
			{Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP}, {Name: "udp", Port: 81, Protocol: corev1.ProtocolUDP},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "open", Labels: map[string]string{discoveryv1.LabelServiceName: "open"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"203.0.113.1"}}}, // nobody's
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("tcp"), Port: ptr.To[int32](80), Protocol: ptr.To(corev1.ProtocolTCP)},
			{Name: ptr.To("udp"), Port: ptr.To[int32](81), Protocol: ptr.To(corev1.ProtocolUDP)},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		all := s.listening(t)
		for i, network := range []string{"tcp", "udp"} {
			if at := fmt.Sprintf("%s:%s:%d", network, service.Spec.ClusterIP, 80+i); all[at] == "" {
				return fmt.Errorf("nothing listens on %s", at)
			}
		}
		return nil
	})
}

// try tries a listener as a stranger, and returns what is wrong with its answer.
type try func(ctx context.Context, address string) error

// listeners are those that may be, as NETWORK:ADDRESS, and how each has to meet strangers.
func (s *server) listeners(t *testing.T) map[string]try {
	kube := kubernetes.NewForConfigOrDie(s.config())
	all := map[string]try{}
	api, err := url.Parse(s.config().Host)
	if err != nil {
		t.Fatal(err)
	}
	all["tcp:"+api.Host] = wantsCredentials("https://", "/version", http.MethodGet)

	hooks, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, configuration := range hooks.Items {
		for _, hook := range configuration.Webhooks {
			if at, err := url.Parse(*hook.ClientConfig.URL); err == nil {
				all["tcp:"+at.Host] = wantsCertificate
			}
		}
	}
	nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatal(err)
	}
	all[fmt.Sprintf("tcp:127.0.0.1:%d", nodes.Items[0].Status.DaemonEndpoints.KubeletEndpoint.Port)] = wantsCredentials("https://", "/pods", http.MethodGet)

	all["tcp:"+s.dbManager(t)] = wantsMetadata
	ask := strings.TrimPrefix(strings.TrimSpace(read(t, filepath.Join(s.home, "ask-url"))), "http://")
	all["tcp:"+ask] = wantsCredentials("http://", "/v1/ask", http.MethodPost)
	for name, ports := range map[string]map[string]try{
		"kubeflow/katib-db-manager":                           {"api": wantsMetadata, "ask": all["tcp:"+ask]},
		"kubeflow-system/kubeflow-trainer-controller-manager": {"status-server": wantsCredentials("https://", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/x/status", http.MethodPost)},
	} {
		namespace, service, _ := strings.Cut(name, "/")
		slices, err := kube.DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil || len(slices.Items) != 1 {
			t.Fatalf("%s: %d, %v", name, len(slices.Items), err)
		}
		for _, port := range slices.Items[0].Ports {
			all[fmt.Sprintf("tcp:%s:%d", slices.Items[0].Endpoints[0].Addresses[0], *port.Port)] = ports[*port.Name]
		}
	}
	registry := strings.TrimSpace(read(t, filepath.Join(s.home, "registry-port")))
	for _, ip := range []string{"127.0.0.1", "::1"} {
		all["tcp:"+net.JoinHostPort(ip, registry)] = refusesToRead
	}
	s.fronts(t, all)
	return all
}

// fronts adds where Services are reached: what answers there is the user's own affair, but for the API server.
func (s *server) fronts(t *testing.T, all map[string]try) {
	kube := kubernetes.NewForConfigOrDie(s.config())
	services, err := kube.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ips := []string{"127.0.0.1"}
	for at := range all {
		if ip, err := netip.ParseAddrPort(strings.TrimPrefix(at, "tcp:")); err == nil {
			ips = append(ips, ip.Addr().String()) // also that of Pods for this machine
		}
	}
	for _, service := range services.Items {
		check := func(context.Context, string) error { return nil }
		if service.Name == "kubernetes" {
			check = wantsCredentials("https://", "/version", http.MethodGet)
		}
		for _, port := range service.Spec.Ports {
			network := strings.ToLower(string(port.Protocol))
			all[fmt.Sprintf("%s:%s:%d", network, service.Spec.ClusterIP, port.Port)] = check
			for _, ip := range ips {
				all[fmt.Sprintf("%s:%s:%d", network, ip, port.NodePort)] = check
			}
		}
	}
}

// listening returns the sockets of the server that others can connect to, as NETWORK:ADDRESS and as ADDRESS. If
// Pods have a network separate from the machine's, as with ordinary users, no stranger is there.
func (s *server) listening(t *testing.T) map[string]string {
	t.Helper()
	own, all := map[string]bool{}, map[string]string{}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.cmd.Process.Pid, file.Name()))
		if inode, ok := strings.CutPrefix(link, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		for _, fields := range s.table(t, table) {
			// A socket for packets that has no peer takes them from anyone.
			network, alone := table[:3], table[:3] == "udp" && strings.HasSuffix(fields[2], ":0000")
			if listens := fields[3] == "0A"; len(fields) > 9 && own[fields[9]] && (listens || alone) {
				at := address(t, fields[1])
				all[network+":"+at] = at
			}
		}
	}
	for _, fields := range s.table(t, "unix") {
		// Num RefCount Protocol Flags Type St Inode Path; a name of its own has an @ at its beginning.
		const accepts, packets = "00010000", "0002"
		if len(fields) > 7 && own[fields[6]] && (fields[3] == accepts || fields[4] == packets) {
			all["unix:"+fields[7]] = fields[7]
		}
	}
	return all
}

// table reads a table of the kernel's sockets, as the server sees it.
func (s *server) table(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", s.cmd.Process.Pid, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without IPv6
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		rows = append(rows, strings.Fields(lines.Text()))
	}
	return rows[1:]
}

// address reads an address as the kernel writes it: 0100007F:1A85.
func address(t *testing.T, text string) string {
	t.Helper()
	ip, port, _ := strings.Cut(text, ":")
	var raw []byte
	for ; len(ip) >= 8; ip = ip[8:] {
		word, err := strconv.ParseUint(ip[:8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(at.Unmap(), uint16(number)).String()
}

// dial connects as a user who has nothing on this machine.
func dial(_ context.Context, network, address string) (conn net.Conn, err error) {
	err = thread.Run(func() error {
		for call, id := range map[uintptr]uintptr{unix.SYS_SETGROUPS: 0, unix.SYS_SETRESGID: rootlesstest.User} {
			if _, _, errno := unix.RawSyscall(call, id, id, id); errno != 0 {
				return errno
			}
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, rootlesstest.User, rootlesstest.User, rootlesstest.User); errno != 0 {
			return errno
		}
		conn, err = net.DialTimeout(network, address, 10*time.Second)
		return err
	})
	return conn, err
}

// wantsCredentials wants a page to be for those whom the server knows.
func wantsCredentials(scheme, path, method string) try {
	return func(ctx context.Context, address string) error {
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		request, err := http.NewRequestWithContext(ctx, method, scheme+address+path, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if code := response.StatusCode; code != http.StatusUnauthorized && code != http.StatusForbidden {
			text, _ := io.ReadAll(response.Body)
			return fmt.Errorf("a stranger is answered %s: %s", response.Status, text)
		}
		return nil
	}
}

// refusesToRead wants a registry to be for those with its token, and to be called by its own name.
func refusesToRead(ctx context.Context, address string) error {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	for _, path := range []string{"/v2/", "/v2/_catalog", "/v2/mine/shell/manifests/latest"} {
		for host, want := range map[string]int{address: http.StatusUnauthorized, "rebound.example": http.StatusForbidden} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
			if err != nil {
				return err
			}
			request.Host = host
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			response.Body.Close()
			if response.StatusCode != want {
				return fmt.Errorf("a stranger who asks %s for %s is answered %s", host, path, response.Status)
			}
		}
	}
	return nil
}

// wantsCertificate wants connections to end if the client does not show who it is.
func wantsCertificate(ctx context.Context, address string) error {
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	// The client's part of the handshake ends before the server has judged it.
	_, err = client.Read(make([]byte, 1))
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		return fmt.Errorf("a stranger without a certificate meets %v", err)
	}
	return nil
}

// wantsMetadata wants gRPC calls to be refused.
func wantsMetadata(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = v1beta1.NewDBManagerClient(conn).GetObservationLog(ctx, &v1beta1.GetObservationLogRequest{TrialName: "x"})
	_, askErr := asktell.NewAskTellClient(conn).Get(ctx, &asktell.GetRequest{Experiment: "x"})
	for _, err := range []error{err, askErr} {
		if status.Code(err) != codes.Unauthenticated {
			return fmt.Errorf("a stranger is answered %v", err)
		}
	}
	return nil
}

// refusesUnix wants a socket to be where strangers cannot go.
func refusesUnix(ctx context.Context, path string) error {
	conn, err := dial(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return errors.New("a stranger can connect")
	}
	if !errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("a stranger meets %w", err)
	}
	return nil
}
