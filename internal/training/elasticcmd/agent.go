// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/elastic/agent"
)

// agentCommand returns the command that runs an agent, by itself or with a worker.
func agentCommand(streams Streams) *cobra.Command {
	host, _ := os.Hostname()
	config := agent.DefaultConfig(host)
	var founder, keyFile, socket, roll string
	command := &cobra.Command{
		Use:   "agent [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run the agent beside a worker",
		Long: `Agent runs beside a worker, as a sidecar or, with a command, as its parent: then it exits
with the worker, with the same exit code. A worker finds its agent by the variable
` + Variable + ` and exchanges JSON Lines with it, as the Python package diwan.elastic does.

One worker of a job, the founder, creates the first view; the others join. A worker that is
partitioned from most others waits: the next view requires a quorum of the current members
or, with --roll-call, confirmation from Kubernetes that the missing ones are dead.`,
		Example: `  # Three workers on this machine.
  diwan elastic agent --name w0 --founder w0 --gossip 127.0.0.1:7946 -- python3 train.py
  diwan elastic agent --name w1 --seed 127.0.0.1:7946 --gossip 127.0.0.1:0 -- python3 train.py
  diwan elastic agent --name w2 --seed 127.0.0.1:7946 --gossip 127.0.0.1:0 -- python3 train.py

  # As a sidecar in an Indexed Job's Pods, with a headless Service.
  diwan elastic agent --founder digits-0 --seed digits:7946 --min 2 --roll-call job-name=digits`,
		RunE: func(_ *cobra.Command, args []string) error {
			config.Found = founder != "" && config.Name == founder
			config.Socket = socket
			config.Log = slog.New(slog.NewTextHandler(streams.Err, nil))
			if keyFile != "" {
				key, err := os.ReadFile(keyFile)
				if err != nil {
					return fmt.Errorf("cannot read the key: %w", err)
				}
				config.Key = bytes.TrimSpace(key)
			}
			if roll != "" {
				var err error
				if config.RollCall, err = rollCall(roll, accountDir); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				return runWith(config, args, streams)
			}
			return runAlone(config, streams)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Name, "name", host, "the worker's name, unique in the job and stable across restarts (default the host name)")
	flags.Lookup("name").DefValue = ""
	flags.StringVar(&config.Job, "job", config.Job, "the job's name; agents of different jobs ignore each other")
	flags.StringVar(&founder, "founder", "", "name of the worker that creates the first view; the same for all workers")
	flags.StringVar(&config.Gossip, "gossip", config.Gossip, "gossip address, HOST:PORT, TCP and UDP; port 0 picks a free one")
	flags.StringVar(&config.Advertise, "advertise", "", "address at which others reach this agent (default that of --gossip, else the machine's)")
	flags.StringSliceVar(&config.Seeds, "seed", nil, "address of another agent, HOST:PORT; preferably several, or a name that resolves to several")
	flags.StringVar(&keyFile, "key-file", "", "file with a key of 16, 24 or 32 bytes for encryption and authentication")
	flags.IntVar(&config.Minimum, "min", config.Minimum, "minimum number of members; workers wait until there are enough")
	flags.IntVar(&config.Maximum, "max", 0, "maximum number of members in a view; others stand by; 0 for no limit")
	flags.StringVar(&roll, "roll-call", "", "label selector for the Pods of all workers: without a quorum, continue once each of them has answered or ended")
	flags.DurationVar(&config.Force, "force-after", 0, "continue without a quorum after this time; partitioned workers then train separately; 0 for never")
	flags.DurationVar(&config.WorkerTimeout, "worker-timeout", config.WorkerTimeout, "time without a heartbeat after which a worker is removed")
	socketFlag(command, &socket)
	command.MarkFlagFilename("key-file")
	return command
}

// runAlone serves until a signal.
func runAlone(config agent.Config, streams Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a, err := agent.Listen(config)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(streams.Out, "ready at %s\n", a.Socket()); err != nil {
		return err
	}
	return a.Run(ctx)
}
