// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
)

// dnsIdle is how long an answer to a question may take.
const dnsIdle = 10 * time.Second

// relay passes the Pods' questions on to this machine's nameservers, where
// Pods cannot reach these themselves. It does not look into them.
type relay struct {
	forwarder
	fronts []*listening
	cancel context.CancelFunc
}

// relayNames starts a relay on port 53 of ip, or returns nil when it is not
// needed, because Pods reach outside servers, or not possible.
func relayNames(via sockets, ip netip.Addr, outside bool, log logr.Logger) *relay {
	servers, reachable := hostNameservers()
	if len(servers) == 0 || reachable && outside {
		return nil
	}
	r, err := startRelay(via, netip.AddrPortFrom(ip, 53), servers, log)
	if err != nil {
		log.Info("Pods cannot resolve names outside the cluster", "reason", err.Error())
		return nil
	}
	return r
}

func startRelay(via sockets, at netip.AddrPort, servers []netip.AddrPort, log logr.Logger) (*relay, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &relay{forwarder: forwarder{sockets: via, udpIdle: dnsIdle, log: log}, cancel: cancel}
	// As resolvers do, ask the first server.
	to := newBalancer(backends{endpoints: servers[:1]})
	tcp, errTCP := r.openTCP(ctx, at, to)
	udp, errUDP := r.openUDP(ctx, at, to)
	for _, front := range []*listening{tcp, udp} {
		if front != nil {
			r.fronts = append(r.fronts, front)
		}
	}
	if err := errors.Join(errTCP, errUDP); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// close stops listening, closes open connections and waits.
func (r *relay) close() {
	for _, front := range r.fronts {
		front.stop()
	}
	r.cancel()
	r.running.Wait()
}
