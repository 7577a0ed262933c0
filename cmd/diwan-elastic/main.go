// SPDX-License-Identifier: Apache-2.0

// Command diwan-elastic is `diwan elastic` alone, for images of workers: a tenth of the size.
package main

import (
	"errors"
	"fmt"
	"os"

	"diwan.dev/diwan/internal/elasticcmd"
)

func main() {
	root := elasticcmd.New(elasticcmd.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	root.Use, root.SilenceUsage, root.SilenceErrors = "diwan-elastic", true, true
	err := root.Execute()
	var exit *elasticcmd.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.Code)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
