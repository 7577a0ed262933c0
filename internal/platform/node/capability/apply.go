// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"strings"
)

// every is the name for all capabilities in the lists of a securityContext.
const every = "ALL"

// Apply returns the set of a container that has s and whose securityContext adds and
// drops capabilities, by names with or without CAP_, in any case. As with a kubelet and
// containerd, the order of the lists does not count: ALL comes first, then what is added
// by name, then what is dropped by name. Errors name the field.
func (s Set) Apply(add, drop []string) (Set, error) {
	added, addAll, err := parse("securityContext.capabilities.add", add)
	if err != nil {
		return 0, err
	}
	dropped, dropAll, err := parse("securityContext.capabilities.drop", drop)
	if err != nil {
		return 0, err
	}
	if addAll {
		s = All
	}
	if dropAll {
		s = 0
	}
	return (s | added) &^ dropped, nil
}

// parse reads a list of names.
func parse(field string, list []string) (named Set, all bool, err error) {
	for i, name := range list {
		if strings.EqualFold(name, every) {
			all = true
			continue
		}
		one, ok := byName(name)
		if !ok {
			return 0, false, fmt.Errorf("%s[%d] is %q, which is no capability: use a name such as NET_ADMIN, or %s", field, i, name, every)
		}
		named |= one
	}
	return named, all, nil
}
