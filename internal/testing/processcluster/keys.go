// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"diwan.dev/diwan/internal/platform/pki"
)

// Names of certificates that are not a part's.
const (
	admin     = "admin"
	kubelet   = "kubelet"
	nodeUser  = "system:node:" + NodeName
	toKubelet = "kube-apiserver-kubelet-client"
)

// life is the lifetime of every certificate: longer than any test.
const life = 24 * time.Hour

// keys are the certificates, keys and kubeconfigs of a cluster, in a directory.
type keys struct {
	dir, url string
	ca       *pki.Pair
}

// newKeys creates the keys of all components.
func newKeys(dir, url string, services netip.Prefix) (*keys, error) {
	k := &keys{dir: filepath.Join(dir, "keys"), url: url}
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if k.ca, err = pki.NewAuthority("kubernetes", time.Now(), life); err != nil {
		return nil, err
	}
	if err := os.WriteFile(k.authority(), k.ca.CertificatePEM(), 0o600); err != nil {
		return nil, err
	}
	if err := k.signingKey(); err != nil {
		return nil, err
	}
	for name, hosts := range map[string][]string{
		string(APIServer): {"127.0.0.1", services.Masked().Addr().Next().String(), "kubernetes.default.svc"},
		kubelet:           {"127.0.0.1", NodeName},
	} {
		if err := k.pair(name, pki.Request{Name: name, Hosts: hosts}); err != nil {
			return nil, err
		}
	}
	for user, groups := range map[string][]string{
		toKubelet:                 {"system:masters"},
		admin:                     {"system:masters"},
		string(ControllerManager): {"system:masters"},
		string(Scheduler):         {"system:masters"},
		// Beside a kubelet it stands for the proxy of Services and for DNS.
		nodeUser: {"system:nodes", "system:masters"},
	} {
		if err := k.user(user, groups...); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *keys) file(name string) string       { return filepath.Join(k.dir, name+".pem") }
func (k *keys) kubeconfig(user string) string { return filepath.Join(k.dir, user+".kubeconfig") }
func (k *keys) authority() string             { return filepath.Join(k.dir, "ca.crt") }
func (k *keys) accounts() string              { return filepath.Join(k.dir, "service-accounts.key") }

// signingKey makes the key of service accounts' tokens.
func (k *keys) signingKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return os.WriteFile(k.accounts(), text, 0o600)
}

// pair writes a certificate and its key into one file.
func (k *keys) pair(name string, r pki.Request) error {
	r.From, r.Life = time.Now(), life
	pair, err := k.ca.Sign(r)
	if err != nil {
		return err
	}
	key, err := pair.KeyPEM()
	if err != nil {
		return err
	}
	return os.WriteFile(k.file(name), append(pair.CertificatePEM(), key...), 0o600)
}

// user writes a certificate and a kubeconfig for a client.
func (k *keys) user(name string, groups ...string) error {
	if err := k.pair(name, pki.Request{Name: name, Groups: groups}); err != nil {
		return err
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: k.url, CertificateAuthorityData: k.ca.CertificatePEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificate: k.file(name), ClientKey: k.file(name)}},
		Contexts:       map[string]*clientcmdapi.Context{"cluster": {Cluster: "cluster", AuthInfo: name}},
		CurrentContext: "cluster",
	})
	if err != nil {
		return fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return os.WriteFile(k.kubeconfig(name), text, 0o600)
}

// config reads the kubeconfig of a user.
func (k *keys) config(user string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig(user))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
