// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/pki"
)

var hosts = []string{"diwan-webhooks.kubeflow.svc", "diwan-metrics.kubeflow.svc"}

// trusted reports whether a client that knows the bundle trusts what is served.
func trusted(bundle []byte, served data, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	pair, err := pki.Parse(served[keyCertificate], served[keyKey])
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if _, err := pair.Certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

// replica is an operator, as far as certificates go.
type replica struct {
	serves data
	missed bool // whether it did not look the last time
}

// TestNeverDistrusted has two replicas look at the Secret at odd times for many
// years, in which API servers learn of authorities late: none ever meets a
// certificate that it does not trust, and nothing is made without need.
func TestNeverDistrusted(t *testing.T) {
	t.Parallel()
	const late = 10 * time.Minute // that an API server learns of an authority
	pauses := []time.Duration{20 * time.Minute, 24 * time.Hour, 13 * 24 * time.Hour}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		end := now.Add(6 * 365 * 24 * time.Hour)
		var secret data
		var known, announced []byte
		replicas, made := make([]replica, 2), 0
		for now.Before(end) {
			for i := range replicas {
				r := &replicas[i]
				if r.missed = !r.missed && r.serves != nil && random.IntN(2) == 0; r.missed {
					continue
				}
				want, err := renew(secret, hosts, now)
				if err != nil {
					t.Fatal(err)
				}
				if string(want[keyCertificate]) != string(secret[keyCertificate]) {
					made++
				}
				secret, r.serves, announced = want, want, want[keyBundle]
			}
			if known == nil {
				known = announced
			}
			for i, r := range replicas {
				if err := trusted(known, r.serves, now); err != nil {
					t.Fatalf("seed %d: at %s replica %d is not trusted: %v", seed, now, i, err)
				}
			}
			pause := pauses[random.IntN(len(pauses))]
			if now = now.Add(pause); pause > late {
				known = announced
			}
		}
		if most := 6*365/(90-30-13) + 2; made > most {
			t.Errorf("seed %d: %d certificates in six years, want at most %d", seed, made, most)
		}
	}
}

// TestRenew looks at single steps.
func TestRenew(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fresh, err := renew(nil, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	without := func(keys ...string) data {
		d := data{}
		for k, v := range fresh {
			d[k] = v
		}
		for _, k := range keys {
			d[k] = []byte("damaged")
		}
		return d
	}
	for name, c := range map[string]struct {
		reason                 string
		have                   data
		hosts                  []string
		at                     time.Time
		authority, certificate bool // recreated
	}{
		"Good":      {"nothing is to be done", fresh, hosts, now.Add(time.Hour), false, false},
		"Nothing":   {"the first start", nil, hosts, now, true, true},
		"Ends":      {"the certificate ends within the month", fresh, hosts, now.Add(certificateLife - certificateMargin + time.Minute), false, true},
		"Hosts":     {"the Service has another name", fresh, []string{"other.kubeflow.svc"}, now, false, true},
		"Damaged":   {"someone edited the certificate", without(keyCertificate), hosts, now, false, true},
		"Keyless":   {"the authority's key is lost: what is served stays for now", without(keyAuthorityKey), hosts, now, true, false},
		"Bundle":    {"the authorities are lost", without(keyBundle), hosts, now, true, true},
		"Authority": {"the authority ends within the year, and so has the certificate", fresh, hosts, now.Add(authorityLife - authorityMargin + time.Minute), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := renew(c.have, c.hosts, c.at)
			if err != nil {
				t.Fatal(err)
			}
			if made := string(got[keyAuthorityKey]) != string(c.have[keyAuthorityKey]); made != c.authority {
				t.Errorf("%s: a new authority is %v, want %v", c.reason, made, c.authority)
			}
			if made := string(got[keyKey]) != string(c.have[keyKey]); made != c.certificate {
				t.Errorf("%s: a new certificate is %v, want %v", c.reason, made, c.certificate)
			}
		})
	}
}

// FuzzRenew gives a Secret that someone wrote.
func FuzzRenew(f *testing.F) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fresh, err := renew(nil, hosts, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil), []byte(nil), []byte(nil), []byte(nil))
	f.Add(fresh[keyBundle], fresh[keyAuthorityKey], fresh[keyCertificate], fresh[keyKey])
	f.Add(fresh[keyCertificate], fresh[keyKey], fresh[keyCertificate], fresh[keyKey])
	f.Fuzz(func(t *testing.T, bundle, authorityKey, certificate, key []byte) {
		got, err := renew(data{keyBundle: bundle, keyAuthorityKey: authorityKey, keyCertificate: certificate, keyKey: key}, hosts, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := trusted(got[keyBundle], got, now); err != nil {
			t.Errorf("what is served is not trusted: %v", err)
		}
	})
}
