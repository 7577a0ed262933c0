// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// accountDir is the directory of the Pod's service account token.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// pods is what is read of a list of Pods.
type pods struct {
	Items []pod `json:"items"`
}

type pod struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

// hosts are the addresses of those Pods that may run something. One whose address is not known counts with its name.
func (p pods) hosts() []string {
	var hosts []string
	for _, pod := range p.Items {
		if pod.Spec.NodeName == "" || pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed" {
			continue
		}
		if ip, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
			hosts = append(hosts, ip.String())
		} else {
			hosts = append(hosts, "Pod "+pod.Metadata.Name)
		}
	}
	return hosts
}

// rollCall returns what lists the Pods of a label selector in this Pod's namespace, by its service account.
func rollCall(selector, account string) (func(context.Context) ([]string, error), error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("cannot call the roll: this is not a Pod; omit --roll-call")
	}
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("cannot call the roll: the Pod has no service account: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cannot call the roll: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	address := fmt.Sprintf("https://%s/api/v1/namespaces/%s/pods?labelSelector=%s", net.JoinHostPort(host, port), strings.TrimSpace(string(namespace)), url.QueryEscape(selector))
	return func(ctx context.Context) ([]string, error) {
		token, err := os.ReadFile(filepath.Join(account, "token")) // it is renewed from time to time
		if err != nil {
			return nil, fmt.Errorf("cannot call the roll: %w", err)
		}
		return listHosts(ctx, client, address, strings.TrimSpace(string(token)))
	}, nil
}

// listHosts reads a list of Pods.
func listHosts(ctx context.Context, client *http.Client, address, token string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot call the roll: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot call the roll: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("cannot call the roll: the service account must be allowed to list Pods: %s: %s", response.Status, text)
	}
	var list pods
	if err := json.NewDecoder(io.LimitReader(response.Body, 256<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("cannot call the roll: %w", err)
	}
	return list.hosts(), nil
}
