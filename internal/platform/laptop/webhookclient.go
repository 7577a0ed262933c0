// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserver "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeAdmissionConfig writes the configuration that has the API server present
// its client certificate to webhooks, and returns its path.
func writeAdmissionConfig(keys *pki) (string, error) {
	cannot := func(err error) (string, error) {
		return "", fmt.Errorf("cannot configure how the API server asks webhooks: %w", err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificate: keys.file(pairClient), ClientKey: keys.file(pairClient)}
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return cannot(err)
	}
	path := filepath.Join(keys.dir, "webhooks.kubeconfig")
	if err := writeFile(path, text, 0o600); err != nil {
		return cannot(err)
	}
	inner, err := json.Marshal(map[string]string{
		"apiVersion": apiserver.SchemeGroupVersion.String(), "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": path,
	})
	if err != nil {
		return cannot(err)
	}
	config := apiserver.AdmissionConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: apiserver.SchemeGroupVersion.String(), Kind: "AdmissionConfiguration"}}
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		config.Plugins = append(config.Plugins, apiserver.AdmissionPluginConfiguration{Name: plugin, Configuration: &runtime.Unknown{Raw: inner, ContentType: runtime.ContentTypeJSON}})
	}
	if text, err = json.Marshal(config); err != nil {
		return cannot(err)
	}
	path = filepath.Join(keys.dir, "admission.json")
	if err := writeFile(path, text, 0o600); err != nil {
		return cannot(err)
	}
	return path, nil
}
