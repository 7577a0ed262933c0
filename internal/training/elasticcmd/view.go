// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/elastic/agent"
)

// viewCommand returns the command that shows an agent's state.
func viewCommand(streams Streams) *cobra.Command {
	var socket string
	var watch, asJSON bool
	command := &cobra.Command{
		Use:   "view",
		Short: "Show an agent's current view of who trains together",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return states(socket, func(s agent.State) (more bool, err error) {
				if asJSON {
					err = json.NewEncoder(streams.Out).Encode(s)
				} else {
					err = show(streams.Out, s)
				}
				return watch, err
			})
		},
	}
	socketFlag(command, &socket)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "keep running and show each change")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	return command
}

// hostsCommand returns the command that lists members as Horovod wants to have them from a host discovery script.
func hostsCommand(streams Streams) *cobra.Command {
	var socket string
	command := &cobra.Command{
		Use:   "hosts",
		Short: "List the hosts of the view, for Horovod's host discovery",
		Long: `Hosts prints HOST:SLOTS for each host of the view, in rank order. It is a host
discovery script for Horovod:

  horovodrun --host-discovery-script ./hosts.sh …    where hosts.sh is: diwan elastic hosts`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return states(socket, func(s agent.State) (bool, error) { return false, hosts(streams.Out, s) })
		},
	}
	socketFlag(command, &socket)
	return command
}

// states calls do with each state of an agent, until it wants no more.
func states(socket string, do func(agent.State) (more bool, err error)) error {
	network, address := "tcp", socket
	if path, ok := strings.CutPrefix(socket, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		return fmt.Errorf("cannot reach the agent: %w", err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(agent.Request{Watch: true}); err != nil {
		return fmt.Errorf("cannot query the agent: %w", err)
	}
	for decoder := json.NewDecoder(conn); ; {
		var reply agent.Reply
		if err := decoder.Decode(&reply); errors.Is(err, io.EOF) {
			return errors.New("lost the connection to the agent: it has exited")
		} else if err != nil {
			return fmt.Errorf("cannot read the agent's response: %w", err)
		}
		if reply.Error != "" {
			return errors.New(reply.Error)
		}
		if reply.State == nil {
			continue
		}
		if more, err := do(*reply.State); err != nil || !more {
			return err
		}
	}
}

// show prints a state for people.
func show(out io.Writer, s agent.State) error {
	status := "ready"
	if !s.Ready {
		status = s.Waiting
	}
	if _, err := fmt.Fprintf(out, "view %d: %s\n", s.View.Number, status); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for rank, m := range s.View.Members {
		self := ""
		if rank == s.Rank {
			self = "\tthis worker"
		}
		fmt.Fprintf(table, "%d\t%s\t%s%s\n", rank, m.Name, m.Address, self)
	}
	for _, id := range s.View.Left {
		fmt.Fprintf(table, "left\t%s\n", id)
	}
	for _, id := range s.View.Lost {
		fmt.Fprintf(table, "lost\t%s\n", id)
	}
	return table.Flush()
}

// hosts prints each host once, with the slots of all its members.
func hosts(out io.Writer, s agent.State) error {
	slots := map[string]int{}
	var order []string
	for _, m := range s.View.Members {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil {
			return fmt.Errorf("cannot list member %s: %w", m.ID, err)
		}
		if slots[host] == 0 {
			order = append(order, host)
		}
		slots[host] += max(1, m.Slots)
	}
	for _, host := range order {
		if _, err := fmt.Fprintf(out, "%s:%d\n", host, slots[host]); err != nil {
			return err
		}
	}
	return nil
}
