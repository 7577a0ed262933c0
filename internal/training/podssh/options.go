// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// DefaultPort is where sshd listens in the MPI operator's images, which needs no
// rights.
const DefaultPort = 2222

// options are the parsed options of either program.
type options struct {
	port    int
	config  string   // sshd's file of settings
	host    string   // ssh's first argument
	command []string // and the others
}

// Options that have a value; all other letters have none.
const (
	sshValues  = "BbcDEeFIiJLlmOoPpQRSWw"
	sshdValues = "bCcEfghkopu"
)

// parse reads a command line as getopt does: letters together, values in the same
// word or in the next. What is not understood is left aside, as settings are that
// have no meaning here. Options may stand after the host too.
func parse(args []string, values string) (options, error) {
	var o options
	args, err := o.read(args, values)
	if err != nil || len(args) == 0 {
		return o, err
	}
	o.host = args[0]
	o.command, err = o.read(args[1:], values)
	return o, err
}

// read reads the options at the beginning of a command line, and returns the rest.
func (o *options) read(args []string, values string) ([]string, error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for i := 1; i < len(word); i++ {
			if !strings.ContainsRune(values, rune(word[i])) {
				continue
			}
			value := word[i+1:]
			if value == "" {
				if len(args) == 0 {
					return nil, fmt.Errorf("option -%c needs a value", word[i])
				}
				value, args = args[0], args[1:]
			}
			if err := o.set(word[i], value); err != nil {
				return nil, err
			}
			break
		}
	}
	return args, nil
}

func (o *options) set(letter byte, value string) error {
	name, setting, _ := strings.Cut(value, "=")
	switch {
	case letter == 'p':
		return o.setPort(value)
	case letter == 'o' && strings.EqualFold(name, "port"):
		return o.setPort(setting)
	case letter == 'f':
		o.config = value
	}
	return nil
}

func (o *options) setPort(text string) error {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", text)
	}
	o.port = int(n)
	return nil
}

// listenPort is where sshd listens: as the command line says, or its file of
// settings, which need not be there.
func (o *options) listenPort() (int, error) {
	if o.port == 0 && o.config != "" {
		file, err := os.Open(o.config)
		if err == nil {
			defer file.Close()
			lines := bufio.NewScanner(file)
			for lines.Scan() {
				if words := strings.Fields(lines.Text()); len(words) == 2 && strings.EqualFold(words[0], "port") {
					if err := o.setPort(words[1]); err != nil {
						return 0, fmt.Errorf("%s: %w", o.config, err)
					}
					break
				}
			}
		}
	}
	if o.port == 0 {
		return DefaultPort, nil
	}
	return o.port, nil
}
