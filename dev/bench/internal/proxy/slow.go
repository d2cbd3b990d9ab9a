// Package proxy contains a TCP proxy that delays the network.
package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A Slow is a TCP proxy that delays the answers, as a longer way would.
type Slow struct {
	// Address is where it listens.
	Address string

	proxy *toxiproxy.Proxy
}

// NewSlow starts a proxy in front of the target. Each round trip takes delay
// longer through it.
func NewSlow(target string, delay time.Duration) (*Slow, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "slow", "127.0.0.1:0", target)
	if err := p.Start(); err != nil {
		return nil, err
	}
	toxic := fmt.Sprintf(`{"type": "latency", "stream": "downstream", "attributes": {"latency": %d}}`, delay.Milliseconds())
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		p.Stop()
		return nil, err
	}
	return &Slow{Address: p.Listen, proxy: p}, nil
}

// Close ends the proxy and its connections.
func (s *Slow) Close() { s.proxy.Stop() }
