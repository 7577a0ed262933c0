// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdCommand serves a store of one member on Unix sockets in its directory.
func etcdCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:          "etcd",
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			nobody := url.URL{Scheme: "http", Host: "127.0.0.1:2380"} // the only member
			cfg := embed.NewConfig()
			cfg.Dir = filepath.Join(dir, "data")
			cfg.LogLevel = "warn"
			cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(dir, "client.sock")}}
			cfg.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(dir, "peer.sock")}}
			cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = []url.URL{nobody}, []url.URL{nobody}
			cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
			cfg.TickMs, cfg.ElectionMs = 20, 200
			server, err := embed.StartEtcd(cfg)
			if err != nil {
				return fmt.Errorf("cannot start etcd: %w", err)
			}
			defer server.Close()
			ctx, stop := untilSignal()
			defer stop()
			select {
			case <-ctx.Done():
				return nil
			case err := <-server.Err():
				return err
			}
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "directory of the data and the sockets")
	return command
}
