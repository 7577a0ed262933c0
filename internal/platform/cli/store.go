// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/observation/stores"
)

// storeVariable is the environment variable that stands for --store.
const storeVariable = "DIWAN_STORE"

// storeHelp explains --store in the long text of a command.
const storeHelp = `--store, or the variable DIWAN_STORE, says where the metrics of trials are kept:

  sqlite:PATH                                   a file
  postgres://USER:PASSWORD@HOST:PORT/DATABASE   PostgreSQL
  mysql://USER:PASSWORD@HOST:PORT/DATABASE      MySQL or MariaDB
  @FILE                                         the setting in the first line of a file
  katib:                                        the database in Katib's variables: DB_NAME, DB_USER, …

Other users can see command lines, so keep passwords in a file or in the variable.`

// addStore gives a command the flag --store. otherwise is what happens without it.
func (o *options) addStore(command *cobra.Command, otherwise string) {
	command.Flags().StringVar(&o.store, "store", "", "metrics store: sqlite:PATH, postgres://…, mysql://…, @FILE or katib: (default $"+storeVariable+", else "+otherwise+")")
	command.RegisterFlagCompletionFunc("store", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"sqlite:", "postgres://", "mysql://", "@", "katib:"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
}

// storeLocation is the location that --store or the variable names, "" where neither is set.
func (o *options) storeLocation() (string, error) {
	setting := cmp.Or(o.store, os.Getenv(storeVariable))
	if setting == "" {
		return "", nil
	}
	location, err := stores.Resolve(setting, os.Getenv)
	name := "--store"
	if o.store == "" {
		name = storeVariable
	}
	if errors.Is(err, stores.ErrLocation) {
		return "", Usagef("cannot use %s: %w", name, err)
	}
	return location, err
}
