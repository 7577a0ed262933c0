// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"diwan.dev/diwan/internal/platform/node/container"
)

// attend runs the postStart hook and the probes of a run until it has ended. A
// run without them costs nothing.
func (w *worker) attend(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry, run container.Run) {
	if l := c.Lifecycle; l != nil && l.PostStart != nil {
		if err := w.hook(ctx, pod, c, run, l.PostStart); err != nil && ctx.Err() == nil {
			message := "PostStartHook failed: " + err.Error()
			w.warn("FailedPostStartHook", message)
			w.condemn(e, run, "", message, nil)
			return
		}
	}
	if p := c.StartupProbe; p != nil {
		passed := w.probe(ctx, pod, c, run, "Startup", p, func(ok bool) bool { return ok })
		if !passed {
			if ctx.Err() == nil {
				w.condemn(e, run, "", fmt.Sprintf("Container %s failed startup probe", c.Name), p.TerminationGracePeriodSeconds)
			}
			return
		}
	}
	w.change(func() {
		if e.run == run && !e.running.IsZero() {
			e.started = true
		}
	})
	var probes sync.WaitGroup
	defer probes.Wait()
	if p := c.ReadinessProbe; p != nil {
		probes.Go(func() {
			w.probe(ctx, pod, c, run, "Readiness", p, func(ok bool) bool {
				w.change(func() {
					if e.run == run && !e.running.IsZero() {
						e.ready = ok
					}
				})
				return false
			})
		})
	}
	if p := c.LivenessProbe; p != nil {
		probes.Go(func() {
			if !w.probe(ctx, pod, c, run, "Liveness", p, func(ok bool) bool { return false }) && ctx.Err() == nil {
				w.condemn(e, run, "", fmt.Sprintf("Container %s failed liveness probe, will be restarted", c.Name), p.TerminationGracePeriodSeconds)
			}
		})
	}
}

// condemn wants a run to end because it is unhealthy.
func (w *worker) condemn(e *entry, run container.Run, reason, message string, grace *int64) {
	w.change(func() {
		if e.run == run && !e.running.IsZero() {
			e.unhealthy, e.grace = &corev1.ContainerStateTerminated{Reason: reason, Message: message}, grace
		}
	})
}

// probe probes until ctx is done. verdict is called with each change of the
// result, and stops probing by returning true; then probe returns true. A
// liveness or startup probe that reaches its failure threshold stops it with
// false.
func (w *worker) probe(ctx context.Context, pod *corev1.Pod, c *corev1.Container, run container.Run, kind string, p *corev1.Probe, verdict func(ok bool) bool) bool {
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	timer := time.NewTimer(time.Duration(p.InitialDelaySeconds) * time.Second)
	defer timer.Stop()
	good, bad := int32(0), int32(0)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		timer.Reset(period)
		within, cancel := context.WithTimeout(ctx, time.Duration(max(p.TimeoutSeconds, 1))*time.Second)
		err := w.check(within, pod, c, run, p.ProbeHandler)
		cancel()
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			good, bad = good+1, 0
			if good >= max(p.SuccessThreshold, 1) && verdict(true) {
				return true
			}
			continue
		}
		good, bad = 0, bad+1
		w.warn("Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, err))
		if bad >= max(p.FailureThreshold, 1) {
			if verdict(false); kind != "Readiness" {
				return false
			}
		}
	}
}

// check does one probe.
func (w *worker) check(ctx context.Context, pod *corev1.Pod, c *corev1.Container, run container.Run, h corev1.ProbeHandler) error {
	switch {
	case h.Exec != nil:
		var out bytes.Buffer
		err := run.Exec(ctx, h.Exec.Command, container.Streams{Stdout: &out, Stderr: &out})
		if err != nil {
			return fmt.Errorf("%w: %s", err, firstBytes(out.String()))
		}
		return nil
	case h.HTTPGet != nil:
		return w.get(ctx, c, h.HTTPGet)
	case h.TCPSocket != nil:
		address, err := w.address(c, h.TCPSocket.Host, h.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := w.node.cfg.Network.DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	case h.GRPC != nil:
		return w.health(ctx, c, h.GRPC)
	}
	return errors.New("the probe has no action")
}

// get asks for a page; a code from 200 to 399 is good.
func (w *worker) get(ctx context.Context, c *corev1.Container, g *corev1.HTTPGetAction) error {
	address, err := w.address(c, g.Host, g.Port)
	if err != nil {
		return err
	}
	scheme := strings.ToLower(string(g.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	target, err := url.Parse(scheme + "://" + address + "/" + strings.TrimPrefix(g.Path, "/"))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/diwan")
	for _, h := range g.HTTPHeaders {
		if strings.EqualFold(h.Name, "host") {
			request.Host = h.Value
		}
		request.Header.Add(h.Name, h.Value)
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: w.node.cfg.Network.DialContext, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as kubelet
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Hostname() != target.Hostname() || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, 10<<10))
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", answer.StatusCode)
	}
	return nil
}

// health asks the gRPC health service.
func (w *worker) health(ctx context.Context, c *corev1.Container, g *corev1.GRPCAction) error {
	address, err := w.address(c, "", intstr.FromInt32(g.Port))
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return w.node.cfg.Network.DialContext(ctx, "tcp", address)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	if err != nil {
		return err
	}
	defer conn.Close()
	service := ""
	if g.Service != nil {
		service = *g.Service
	}
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		return err
	}
	if answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("service unhealthy (responded with %q)", answer.Status)
	}
	return nil
}

// address is where a port of the Pod is reached from this process.
func (w *worker) address(c *corev1.Container, host string, port intstr.IntOrString) (string, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		number = 0
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
		if number == 0 {
			if n, err := strconv.Atoi(port.StrVal); err == nil {
				number = n
			}
		}
	}
	if number < 1 || number > 65535 {
		return "", fmt.Errorf("container %s has no port %s", c.Name, port.String())
	}
	if host == "" {
		host = w.dialable()
	} else if ip, err := netip.ParseAddr(host); err == nil {
		host = w.node.cfg.Network.Dialable(ip).String()
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// dialable is the IP address at which this process reaches the Pod's ports.
func (w *worker) dialable() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sandbox.Bind.String()
}

// hook runs a lifecycle hook.
func (w *worker) hook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, run container.Run, h *corev1.LifecycleHandler) error {
	switch {
	case h.Sleep != nil:
		timer := time.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-run.Done():
		case <-ctx.Done():
		}
		return nil
	case h.Exec != nil:
		return w.check(ctx, pod, c, run, corev1.ProbeHandler{Exec: h.Exec})
	case h.HTTPGet != nil:
		return w.check(ctx, pod, c, run, corev1.ProbeHandler{HTTPGet: h.HTTPGet})
	}
	return errors.New("the hook has no action that this node supports; use exec, httpGet or sleep")
}

func firstBytes(s string) string { return s[:min(len(s), 1024)] }
