// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// connectTimeout bounds how long a server may take to accept a connection,
	// answerTimeout how long it may be silent.
	connectTimeout, answerTimeout = 5 * time.Second, 30 * time.Second
	defaultPort                   = "3306"
)

// parse parses a URL. name is the URL without secrets.
func parse(location string) (config *mysql.Config, name string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, "", errors.New("its URL is malformed")
	}
	shown := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User.Username() != "" {
		shown.User = url.User(u.User.Username())
	}
	name = shown.String()
	config, err = configure(u)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return config, name, nil
}

func configure(u *url.URL) (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	if c.DBName == "" || strings.Contains(c.DBName, "/") {
		return nil, errors.New("the URL specifies no database: want mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	c.Net, c.Addr = "tcp", u.Host
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), defaultPort)
	}
	c.Timeout, c.ReadTimeout, c.WriteTimeout = connectTimeout, answerTimeout, answerTimeout
	c.Collation = "utf8mb4_bin"
	c.InterpolateParams = true // one round trip a statement
	c.Logger = &mysql.NopLogger{}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the URL's parameters are malformed")
	}
	for key, values := range parameters {
		value := values[len(values)-1]
		switch key {
		case "socket":
			c.Net, c.Addr = "unix", value
		case "tls", "ca", "cert", "key":
		default:
			return nil, fmt.Errorf("unknown parameter %q: want socket, tls, ca, cert or key", key)
		}
	}
	if c.Net == "tcp" && u.Hostname() == "" {
		return nil, errors.New("the URL specifies neither a host nor a socket with ?socket=PATH")
	}
	return c, secure(c, parameters, u.Hostname())
}

// secure sets up TLS as the parameters ask for.
func secure(c *mysql.Config, parameters url.Values, host string) error {
	mode := parameters.Get("tls")
	switch mode {
	case "", "false":
		for _, file := range []string{"ca", "cert", "key"} {
			if parameters.Has(file) {
				return fmt.Errorf("parameter %s has no effect without tls=true", file)
			}
		}
		return nil
	case "true", "preferred", "skip-verify":
	default:
		return fmt.Errorf("tls=%s: want false, true, preferred or skip-verify", mode)
	}
	config := &tls.Config{ServerName: host, InsecureSkipVerify: mode != "true", MinVersion: tls.VersionTLS12}
	if file := parameters.Get("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("ca: %s has no PEM certificate", file)
		}
	}
	if cert, key := parameters.Get("cert"), parameters.Get("key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cannot read cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	c.TLS, c.AllowFallbackToPlaintext = config, mode == "preferred"
	return nil
}
