// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestConfigurations(t *testing.T) {
	t.Parallel()
	local := Target{URL: "https://127.0.0.1:9443", CABundle: []byte("ca"), Controller: `o"p`}
	cluster := Target{Service: &admissionregistrationv1.ServiceReference{Namespace: "diwan", Name: "operator"}}

	served := Handlers(Config{})
	for _, target := range []Target{local, cluster} {
		var clients []admissionregistrationv1.WebhookClientConfig
		for _, h := range Mutating(target).Webhooks {
			clients = append(clients, h.ClientConfig)
		}
		for _, h := range Validating(target).Webhooks {
			clients = append(clients, h.ClientConfig)
		}
		for _, c := range clients {
			if (c.URL == nil) == (c.Service == nil) {
				t.Errorf("exactly one of URL and Service must be set: %+v", c)
				continue
			}
			path := ""
			if c.URL != nil {
				path = (*c.URL)[len(local.URL):]
			} else {
				path = *c.Service.Path
			}
			if served[path] == nil {
				t.Errorf("%s is not served", path)
			}
		}
	}
	if cluster.Service.Path != nil {
		t.Error("the target's Service was changed")
	}
	conditions := Validating(local).Webhooks[1].MatchConditions
	if len(conditions) != 1 || conditions[0].Expression != `request.userInfo.username != "o\"p"` {
		t.Errorf("the match conditions are %+v", conditions)
	}
	if conditions := Validating(cluster).Webhooks[1].MatchConditions; conditions != nil {
		t.Errorf("without a controller all must be asked about: %+v", conditions)
	}
}
