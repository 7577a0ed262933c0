// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"diwan.dev/diwan/elastic"
	"diwan.dev/diwan/elastic/agreement"
)

// membership is one worker's time as a member, from joining to leaving.
type membership struct {
	config  Config
	self    elastic.Member
	gossip  *memberlist.Memberlist
	node    *agreement.Node
	publish func(State)

	received chan agreement.Message
	refused  chan string   // members at whose address nobody listens
	changed  chan struct{} // somebody came or went
	broken   chan elastic.View
	blocked  atomic.Pointer[elastic.View] // the view that has no quorum, nil if it has
	rolls    chan roll
	leave    chan struct{}
	sends    sync.WaitGroup
	sending  chan struct{} // one token for each message that may be under way

	mu     sync.Mutex
	living map[string]elastic.Member // whom gossip holds to be alive, by their IDs
}

// roll is the roll call taken in a view: who may be alive.
type roll struct {
	view  elastic.View
	hosts []string
}

const (
	tick       = 50 * time.Millisecond
	seedEvery  = time.Second
	rollEvery  = 2 * time.Second
	lingerMost = 3 * time.Second // to hand over to a view without this member
)

// newMembership begins to gossip. publish is called with each new state.
func newMembership(config Config, self elastic.Member, publish func(State)) (*membership, error) {
	m := &membership{
		config: config, self: self, publish: publish,
		received: make(chan agreement.Message, 1024), refused: make(chan string, 64), changed: make(chan struct{}, 1),
		broken: make(chan elastic.View, 1), rolls: make(chan roll), leave: make(chan struct{}), sending: make(chan struct{}, 64),
		living: map[string]elastic.Member{},
	}
	host, port, err := splitAddress(config.Gossip)
	if err != nil {
		return nil, err
	}
	settings := memberlist.DefaultLANConfig()
	settings.Name, settings.Label, settings.SecretKey = self.ID, config.Job, config.Key
	settings.BindAddr, settings.BindPort = host, port
	settings.AdvertiseAddr, settings.AdvertisePort = config.Advertise, port
	settings.ProbeInterval, settings.ProbeTimeout = 500*time.Millisecond, 300*time.Millisecond
	settings.SuspicionMult, settings.SuspicionMaxTimeoutMult = 3, 2
	settings.GossipInterval, settings.GossipToTheDeadTime = 100*time.Millisecond, 10*time.Second
	settings.PushPullInterval, settings.TCPTimeout = 10*time.Second, time.Second
	settings.LogOutput = io.Discard // what matters of it is in the states
	settings.Delegate, settings.Events = delegate{m}, delegate{m}
	m.gossip, err = memberlist.Create(settings)
	if err != nil {
		return nil, fmt.Errorf("cannot gossip at %s: %w", config.Gossip, err)
	}
	local := m.gossip.LocalNode()
	m.self.Gossip = local.Address()
	if err := m.gossip.UpdateNode(time.Second); err != nil {
		return nil, fmt.Errorf("cannot announce %s: %w", self.ID, err)
	}
	rules := agreement.DefaultConfig(m.self)
	rules.Found, rules.Limit, rules.Force = config.Found, config.Maximum, config.Force
	if len(config.Seeds) == 0 {
		rules.FoundAfter = 0 // nobody to look for
	}
	rules.Seed = uint64(time.Now().UnixNano())
	m.node = agreement.New(rules, time.Now())
	return m, nil
}

// run takes part until ctx ends or the worker leaves; then it hands over, and ends.
func (m *membership) run(ctx context.Context) {
	seeking, stop := context.WithCancel(ctx)
	var seekers sync.WaitGroup
	seekers.Go(func() { m.seek(seeking) })
	if m.config.RollCall != nil {
		seekers.Go(func() { m.callRoll(seeking) })
	}
	m.participate(ctx)
	stop()
	m.gossip.Leave(500 * time.Millisecond)
	m.gossip.Shutdown()
	seekers.Wait()
	m.sends.Wait()
}

// participate turns events into calls of the node, and the node's output into messages and states.
func (m *membership) participate(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	ctxDone, leave := ctx.Done(), m.leave
	var linger <-chan time.Time
	var told State
	first := true
	begin := func() {
		m.node.Leave(time.Now())
		linger, ctxDone, leave = time.After(lingerMost), nil, nil
	}
	for {
		select {
		case <-ctxDone:
			begin()
		case <-leave:
			begin()
		case <-linger:
			return
		case <-m.changed:
			m.node.Alive(m.alive(), time.Now())
		case message := <-m.received:
			m.node.Receive(message, time.Now())
		case id := <-m.refused:
			m.node.Unreachable(id, time.Now())
		case view := <-m.broken:
			m.node.Renew(view, time.Now())
		case r := <-m.rolls:
			m.node.RollCall(r.view, r.hosts, time.Now())
		case <-ticker.C:
			m.node.Tick(time.Now())
		}
		m.send(m.node.Take())
		state := stateOf(m.node.View(), m.self.ID, m.config.Minimum, m.node.Blocked())
		var blocked *elastic.View
		if m.node.Blocked() {
			blocked = &state.View
		}
		m.blocked.Store(blocked)
		if first || !state.View.Same(told.View) || state.Ready != told.Ready || state.Waiting != told.Waiting {
			if v := state.View; !v.Same(told.View) {
				m.config.Log.Info("a view holds", "view", v.Number, "rank", state.Rank, "members", v.IDs(), "left", v.Left, "lost", v.Lost)
			}
			first, told = false, state
			m.publish(state)
		}
		if linger != nil && state.Rank < 0 {
			return
		}
	}
}

// stateOf returns the state to send to the worker.
func stateOf(view elastic.View, id string, minimum int, blocked bool) State {
	s := State{View: view, Rank: view.Rank(id)}
	switch {
	case view.Number == 0:
		s.Waiting = "no view yet"
	case s.Rank < 0:
		s.Waiting = "not in the view: joining, or standing by"
	case len(view.Members) < minimum:
		s.Waiting = fmt.Sprintf("%d of at least %d members", len(view.Members), minimum)
	case blocked:
		s.Waiting = "most members of the view are gone: no quorum"
	default:
		s.Ready = true
	}
	return s
}

// alive returns the members that gossip considers alive. memberlist keeps
// modifying the values that it returns.
func (m *membership) alive() []elastic.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.living))
}

// seek keeps looking for other agents, because gossip forgets members that are partitioned for long.
func (m *membership) seek(ctx context.Context) {
	ticker := time.NewTicker(seedEvery)
	defer ticker.Stop()
	for round := 0; ; round++ {
		if alone := m.gossip.NumMembers() < 2; len(m.config.Seeds) > 0 && (alone || round%10 == 0) {
			m.gossip.Join(m.config.Seeds) // who cannot be reached is retried
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// callRoll takes the roll while there is no quorum.
func (m *membership) callRoll(ctx context.Context) {
	ticker := time.NewTicker(rollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		view := m.blocked.Load()
		if view == nil {
			continue
		}
		hosts, err := m.config.RollCall(ctx)
		if err != nil {
			m.config.Log.Warn("the workers keep waiting", "error", err)
			continue
		}
		select {
		case m.rolls <- roll{*view, hosts}:
		case <-ctx.Done():
		}
	}
}

// send sends messages individually. The node resends lost ones.
func (m *membership) send(messages []agreement.Message) {
	if len(messages) == 0 {
		return
	}
	addresses := map[string]string{}
	for _, member := range append(m.alive(), m.node.View().Members...) {
		addresses[member.ID] = member.Gossip
	}
	for _, message := range messages {
		host, port, err := splitAddress(addresses[message.To])
		if err != nil {
			continue
		}
		to := &memberlist.Node{Name: message.To, Addr: net.ParseIP(host), Port: uint16(port)}
		select {
		case m.sending <- struct{}{}:
		default:
			continue // too many are under way
		}
		m.sends.Go(func() {
			defer func() { <-m.sending }()
			if err := m.gossip.SendReliable(to, agreement.Encode(message)); err != nil {
				select {
				case m.refused <- message.To:
				default:
				}
			}
		})
	}
}

// delegate is what memberlist calls.
type delegate struct{ *membership }

// NodeMeta is what every agent learns of this one.
func (d delegate) NodeMeta(limit int) []byte {
	data, err := json.Marshal(d.self)
	if err != nil || len(data) > limit {
		return nil
	}
	return data
}

// NotifyMsg takes a message of the agreement. Messages may be lost, so none is waited for.
func (d delegate) NotifyMsg(data []byte) {
	message, err := agreement.Decode(data)
	if err != nil {
		d.config.Log.Warn("ignored a message", "error", err)
		return
	}
	select {
	case d.received <- message:
	default:
	}
}

// GetBroadcasts, LocalState and MergeRemoteState add nothing to gossip.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState is empty.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores the state of others.
func (delegate) MergeRemoteState([]byte, bool) {}

// NotifyJoin says that somebody came.
func (d delegate) NotifyJoin(node *memberlist.Node) {
	var member elastic.Member
	known := json.Unmarshal(node.Meta, &member) == nil && member.Validate() == nil && member.ID == node.Name
	d.mu.Lock()
	delete(d.living, node.Name)
	if known {
		d.living[node.Name] = member
	}
	d.mu.Unlock()
	d.notice()
}

// NotifyLeave says that somebody went.
func (d delegate) NotifyLeave(node *memberlist.Node) {
	d.mu.Lock()
	delete(d.living, node.Name)
	d.mu.Unlock()
	d.notice()
}

// NotifyUpdate says that somebody changed.
func (d delegate) NotifyUpdate(node *memberlist.Node) { d.NotifyJoin(node) }

func (m *membership) notice() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}
