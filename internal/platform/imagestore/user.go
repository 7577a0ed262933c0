// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
	// maxUserFile bounds an image's passwd and group files, maxGroups the groups of a user: the
	// kernel's limit (NGROUPS_MAX).
	maxUserFile = 1 << 20
	maxGroups   = 65536
)

// User is who a container's program runs as.
type User struct {
	// Name is the user's name in the image, "" if it has none there.
	Name string
	// UID and GID are at most 2³¹-1.
	UID, GID int64
	// Groups are the groups in which the image's /etc/group lists the user, sorted, without GID.
	Groups []int64
	// Home is the directory of the user in the image's /etc/passwd, "/" if it is not there.
	Home string
	// Numeric says that the user was given by number: whether a name is root is up to the image, so
	// runAsNonRoot refuses it.
	Numeric bool
}

// User finds who a specification means in the image: "", which is root, or the user, or user:group,
// each by name or number. The image's configuration and a Pod's runAsUser are such. A number need not be
// in the image's files; a name must be. As CRI runtimes do, the group of a user without one is that in
// /etc/passwd, or else 0.
func (i *Image) User(spec string) (User, error) {
	v, err := i.View()
	if err != nil {
		return User{}, err
	}
	defer v.Close()
	u, err := findUser(v, spec)
	if err != nil {
		return User{}, fmt.Errorf("cannot find the user %q in the image %s: %w", abbreviate(spec), i.asked.Name, err)
	}
	return u, nil
}

// fileReader reads the files of an image.
type fileReader interface {
	ReadFile(name string, limit int64) ([]byte, error)
}

func findUser(files fileReader, spec string) (User, error) {
	name, group, hasGroup := strings.Cut(spec, ":")
	if name == "" {
		if spec != "" {
			return User{}, errors.New("it has no user")
		}
		name = "0"
	}
	if hasGroup && group == "" {
		return User{}, errors.New("it has no group")
	}
	u := User{Home: "/"}
	uid, err := parseID(name)
	switch {
	case err == nil:
		u.UID, u.Numeric = uid, true
	case !errors.Is(err, strconv.ErrSyntax):
		return User{}, err
	}
	passwd, err := userLines(files, passwdFile, 7)
	if err != nil {
		return User{}, err
	}
	found := false
	for _, f := range passwd {
		id, err := parseID(f[2])
		if err != nil || (u.Numeric && id != u.UID) || (!u.Numeric && f[0] != name) {
			continue
		}
		gid, err := parseID(f[3])
		if err != nil {
			return User{}, fmt.Errorf("its group in %s: %w", passwdFile, err)
		}
		u.Name, u.UID, u.GID, found = f[0], id, gid, true
		if strings.HasPrefix(f[5], "/") {
			u.Home = f[5]
		}
		break
	}
	if !found && !u.Numeric {
		return User{}, fmt.Errorf("%s has no such user", passwdFile)
	}
	groups, err := userLines(files, groupFile, 4)
	if err != nil {
		return User{}, err
	}
	if hasGroup {
		if u.GID, err = findGroup(groups, group); err != nil {
			return User{}, err
		}
	}
	for _, f := range groups {
		if u.Name == "" || !slices.Contains(strings.Split(f[3], ","), u.Name) {
			continue
		}
		gid, err := parseID(f[2])
		if err != nil || gid == u.GID {
			continue
		}
		if u.Groups = append(u.Groups, gid); len(u.Groups) > maxGroups {
			return User{}, fmt.Errorf("it has more than %d groups", maxGroups)
		}
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	return u, nil
}

// findGroup finds a group by name or number.
func findGroup(groups [][]string, group string) (int64, error) {
	gid, err := parseID(group)
	if err == nil || !errors.Is(err, strconv.ErrSyntax) {
		return gid, err
	}
	for _, f := range groups {
		if f[0] == group {
			return parseID(f[2])
		}
	}
	return 0, fmt.Errorf("%s has no group %q", groupFile, abbreviate(group))
}

// parseID parses a user's or group's ID. A larger one would wrap around to root in places
// (CVE-2024-40635).
func parseID(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && errors.Is(err, strconv.ErrSyntax) {
		if strings.HasPrefix(s, "-") {
			return 0, fmt.Errorf("the ID %q is negative", abbreviate(s))
		}
		return 0, err
	}
	if err != nil || n > math.MaxInt32 {
		return 0, fmt.Errorf("the ID %s is larger than %d", abbreviate(s), math.MaxInt32)
	}
	return int64(n), nil
}

// userLines are the lines of a file that have at least so many fields. Other lines, comments among
// them, are skipped. A file that does not exist is empty.
func userLines(files fileReader, name string, fields int) ([][]string, error) {
	b, err := files.ReadFile(name, maxUserFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var lines [][]string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if f := strings.Split(line, ":"); !strings.HasPrefix(line, "#") && len(f) >= fields {
			lines = append(lines, f)
		}
	}
	return lines, nil
}
