//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// A network is a bridge on a host of its own with the nodes' hosts and this one.
type network struct {
	hub   *host
	hosts []*host
	// clients is the address of this host.
	clients string
}

// connecting is held until addresses are taken that were free before.
var connecting sync.Mutex

// newNetwork returns n hosts that reach each other, with the addresses .1, .2 and so on.
func newNetwork(ctx context.Context, n int) (*network, error) {
	connecting.Lock()
	defer connecting.Unlock()
	prefix, err := freePrefix()
	if err != nil {
		return nil, err
	}
	w := &network{clients: prefix + ".254"}
	if w.hub, err = newHost(); err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		w.close()
		return nil, err
	}
	for i := range n {
		if err := w.add(ctx, fmt.Sprintf("%s.%d", prefix, i+1)); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// freePrefix returns the first three numbers of addresses that this machine does not have.
func freePrefix() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for range 100 {
		//nolint:gosec // not a secret
		prefix := fmt.Sprintf("10.%d.%d", 200+rand.IntN(50), rand.IntN(256))
		if !reaches(addresses, net.ParseIP(prefix+".1")) {
			return prefix, nil
		}
	}
	return "", errors.New("this machine is in all networks that are tried")
}

func reaches(addresses []net.Addr, ip net.IP) bool {
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.Contains(ip) {
			return true
		}
	}
	return false
}

// connect makes the bridge and connects this host to it.
func (w *network) connect(ctx context.Context) error {
	link := fmt.Sprintf("sqll%x", rand.Uint32()) //nolint:gosec // not a secret
	return errors.Join(
		run(ctx, "ip", "link", "add", link, "type", "veth", "peer", "name", "uplink", "netns", fmt.Sprint(w.hub.pid())),
		run(ctx, "ip", "addr", "add", w.clients+"/24", "dev", link),
		run(ctx, "ip", "link", "set", link, "up"),
		w.hub.inNetwork(ctx, "ip", "link", "add", "bridge", "type", "bridge"),
		w.hub.inNetwork(ctx, "ip", "link", "set", "bridge", "up"),
		w.hub.inNetwork(ctx, "ip", "link", "set", "uplink", "master", "bridge", "up"),
	)
}

// add starts a host with the address.
func (w *network) add(ctx context.Context, ip string) error {
	h, err := newHost()
	if err != nil {
		return err
	}
	h.ip = ip
	w.hosts = append(w.hosts, h)
	port := fmt.Sprintf("port%d", len(w.hosts))
	return errors.Join(
		w.hub.inNetwork(ctx, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(h.pid())),
		w.hub.inNetwork(ctx, "ip", "link", "set", port, "master", "bridge", "up"),
		h.inNetwork(ctx, "ip", "addr", "add", ip+"/24", "dev", "eth0"),
		h.inNetwork(ctx, "ip", "link", "set", "eth0", "up"),
		h.inNetwork(ctx, "ip", "link", "set", "lo", "up"),
	)
}

// close ends all processes of all hosts.
func (w *network) close() {
	for _, h := range append(w.hosts, w.hub) {
		h.close()
	}
}

// cut makes two hosts drop what comes from each other. Nothing is refused: packets vanish.
func (w *network) cut(ctx context.Context, a, b *host) error {
	return errors.Join(a.drop(ctx, "INPUT", "-s", b.ip), b.drop(ctx, "INPUT", "-s", a.ip))
}

// cutFromClients makes a host drop what comes from this host and goes to it.
func (w *network) cutFromClients(ctx context.Context, h *host) error {
	return errors.Join(h.drop(ctx, "INPUT", "-s", w.clients), h.drop(ctx, "OUTPUT", "-d", w.clients))
}

func (h *host) drop(ctx context.Context, chain, which, ip string) error {
	return h.inNetwork(ctx, "iptables", "-w", "-A", chain, which, ip, "-j", "DROP")
}

// heal ends all cuts.
func (w *network) heal(ctx context.Context) (err error) {
	for _, h := range w.hosts {
		err = errors.Join(err, h.inNetwork(ctx, "iptables", "-w", "-F"))
	}
	return err
}
