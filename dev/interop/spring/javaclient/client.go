package javaclient

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Settings are the settings of a [Client]. A zero field means the default of Spring or Hikari.
type Settings struct {
	// DSN is a URL of PostgreSQL or a go-sql-driver DSN of MySQL.
	DSN string
	// Driver is the one for a DSN of MySQL. The default is MariaDB's.
	Driver Driver
	// Parameters are added to the JDBC URL.
	Parameters map[string]string

	TTL      time.Duration
	Idle     time.Duration // between tries
	Region   string
	ClientID string
	Pool     int // connections at most
	Capacity int // of the cache of locks
	// UpdateQuery replaces the statement by which a row is taken over.
	UpdateQuery string
}

// A Client is an application with a pool, a Spring context and a registry.
type Client struct {
	jvm  *JVM
	name string
}

// Open opens a client. It returns a [JavaError] if the Spring context does not start.
func (j *JVM) Open(ctx context.Context, s Settings) (*Client, error) {
	arguments, err := s.arguments()
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.next++
	name := "client" + strconv.Itoa(j.next)
	j.mu.Unlock()
	if _, err := j.call(ctx, name, "", "open", arguments...); err != nil {
		return nil, err
	}
	return &Client{jvm: j, name: name}, nil
}

func (s Settings) arguments() (arguments []string, err error) {
	url, user, password, err := jdbcOf(s)
	if err != nil {
		return nil, err
	}
	for _, setting := range [...]struct{ name, value string }{
		{"url", url},
		{"user", user},
		{"password", password},
		{"ttl", optional(s.TTL.Milliseconds())},
		{"idle", optional(s.Idle.Milliseconds())},
		{"region", s.Region},
		{"client", s.ClientID},
		{"pool", optional(int64(s.Pool))},
		{"capacity", optional(int64(s.Capacity))},
		{"update", s.UpdateQuery},
	} {
		if setting.value != "" {
			arguments = append(arguments, setting.name+"="+setting.value)
		}
	}
	return arguments, nil
}

func optional(number int64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatInt(number, 10)
}

// Thread returns the client's thread of that name. It is created at its first use, and runs one
// request after the other.
func (c *Client) Thread(name string) *Thread { return &Thread{client: c, name: name} }

// Close closes the Spring context and the pool: the repository deletes its rows.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.jvm.call(ctx, c.name, "close", "close")
	return err
}

// Status reports whether the key is acquired for the client's repository.
func (c *Client) Status(ctx context.Context, key string) (acquired bool, err error) {
	values, err := c.jvm.call(ctx, c.name, "status", "status", key)
	return boolean(values, err)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func boolean(values []string, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	return strconv.ParseBool(values[0])
}

func integers(values []string, want int) ([]int, error) {
	if len(values) != want {
		return nil, fmt.Errorf("%w: %d values, want %d", errProtocol, len(values), want)
	}
	numbers := make([]int, want)
	for i, value := range values {
		var err error
		if numbers[i], err = strconv.Atoi(value); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
