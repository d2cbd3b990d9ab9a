//go:build linux

// Stalls runs a command on a machine that stands still now and then:
//
//	go -C tools build -o /tmp/stalls ./stalls
//	/tmp/stalls -for 3s -every 10s make test
//
// It freezes the command and all processes that this has started, for a random time up to -for, then
// lets them run for a random time up to -every, and so on. Real clocks go on meanwhile, as they do on
// a virtual machine that gets no processor. A test whose verdict depends on that fails.
//
// It needs root and cgroup v2, which may be mounted beside version 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	still := flag.Duration("for", 3*time.Second, "stand still for up to this time")
	every := flag.Duration("every", 10*time.Second, "run for up to this time")
	flag.Parse()
	if flag.NArg() == 0 || *still <= 0 || *every <= 0 {
		fmt.Fprintln(os.Stderr, "usage: stalls [-for 3s] [-every 10s] COMMAND…")
		os.Exit(2)
	}
	code, err := run(flag.Args(), *still, *every)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stalls:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(command []string, still, every time.Duration) (code int, err error) {
	g, err := newGroup()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	dir, err := os.Open(string(g))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if exit := new(exec.ExitError); errors.As(err, &exit) {
				return exit.ExitCode(), nil
			}
			return 0, err
		case <-interrupted.Done():
			return 128 + int(syscall.SIGINT), nil
		case <-time.After(rand.N(every)):
		}
		if err := g.freeze(true); err != nil {
			return 0, err
		}
		time.Sleep(rand.N(still))
		if err := g.freeze(false); err != nil {
			return 0, err
		}
	}
}

// A group is the directory of a control group.
type group string

// newGroup makes a group below the mount point of cgroup v2.
func newGroup() (group, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			g := group(filepath.Join(fields[1], "stalls-"+strconv.Itoa(os.Getpid())))
			return g, os.Mkdir(string(g), 0o755)
		}
	}
	return "", errors.New("no cgroup v2 is mounted")
}

func (g group) freeze(frozen bool) error {
	value := map[bool]string{false: "0", true: "1"}[frozen]
	return os.WriteFile(filepath.Join(string(g), "cgroup.freeze"), []byte(value), 0o600)
}

// remove kills what is left of the command.
func (g group) remove() error {
	_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0o600) // kernels before 5.14 do not have it
	var err error
	for range 100 {
		if err = os.Remove(string(g)); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // until the last process has ended
	}
	return err
}
