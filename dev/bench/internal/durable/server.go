// Package durable starts the servers of a benchmark: the servers of sqllock's tests, but with the
// settings of a production server. Commits are as durable as the server makes them by default.
// The servers of package dbtest do not wait for the disk, so they cannot be used for
// comparisons.
//
// Each server listens on 127.0.0.1 only, keeps its data in a given directory, and is killed when
// this process dies.
package durable

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The databases of a benchmark. The DSN of an embedded database is a directory.
const (
	Postgres    = "postgres"
	MariaDB     = "mariadb"
	Redis       = "redis"
	RedisAlways = "redis-always" // waits for the disk, as the SQL servers do
	SQLite      = "sqlite"
	File        = "file"
)

// A Server is a running server.
type Server struct {
	Kind string
	// Address is host:port.
	Address string
	// Log is the server's log file.
	Log string
	// Settings are the differences from the server's defaults.
	Settings []string

	dsn   func(address string) string
	quit  syscall.Signal
	cmd   *exec.Cmd
	ended chan struct{}
}

// DSN returns the DSN of the server, or of a proxy in front of it at another address.
func (s *Server) DSN(address string) string { return s.dsn(address) }

// A recipe describes how to create and run one kind of server.
type recipe struct {
	programs []string // that must be installed
	packages []string // Debian's packages of the programs
	account  string   // the user of the server if root starts it
	create   func(dir string) [][]string
	serve    func(dir string, port int) []string
	settings []string
	dsn      func(address string) string
	quit     syscall.Signal
}

// recipes are functions, because paths are known once the programs are
// installed.
var recipes = map[string]func() recipe{
	Postgres:    postgres,
	MariaDB:     mariadb,
	Redis:       redis,
	RedisAlways: redisAlways,
}

// Start starts a kind of server with its data in dir, which must not exist. It installs missing
// programs.
func Start(ctx context.Context, kind, dir string) (*Server, error) {
	r := recipes[kind]()
	if err := ensure(ctx, r.programs, r.packages); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	r = recipes[kind]()
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Kind: kind, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Log: filepath.Join(dir, "log"),
		Settings: r.settings, dsn: r.dsn, quit: r.quit,
	}
	credential, err := own(r.account, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	for _, command := range r.create(dir) {
		if err := s.launch(command, credential); err != nil {
			return nil, err
		}
		if <-s.ended; !s.cmd.ProcessState.Success() {
			return nil, s.failure("create")
		}
	}
	if err := s.launch(r.serve(dir, port), credential); err != nil {
		return nil, err
	}
	return s, s.await(ctx)
}

// own creates the directory, and returns the account of the server.
func own(account, dir string) (*syscall.Credential, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if account == "" || os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the caller
	}
	u, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid) //nolint:gosec // ids are small
}

// launch starts a command that is killed when this process dies.
func (s *Server) launch(command []string, as *syscall.Credential) error {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()                                //nolint:errcheck // the child has its own descriptor
	s.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // it is ended by Stop
	s.cmd.Dir = "/"
	s.cmd.Env = []string{"LC_ALL=C", "HOME=/", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: s.quit, Credential: as}
	s.ended = make(chan struct{})
	started := make(chan error)
	go s.run(started)
	return <-started
}

// run keeps its thread: for the kernel, the parent is the thread that has started the child.
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.cmd.Start()
	started <- err
	if err == nil {
		_ = s.cmd.Wait() // the state has the result
		close(s.ended)
	}
}

// await returns when the server accepts connections.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err := s.probe(ctx); err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return s.failure("start")
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.failure("start"), s.Stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errServer = errors.New("a server of the benchmark failed")

func (s *Server) failure(doing string) error {
	text, _ := os.ReadFile(s.Log) // a missing log is empty
	return fmt.Errorf("%w: %s %s: %s", errServer, doing, s.Kind, text[max(0, len(text)-2000):])
}

// Stop ends the server.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(s.quit); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(15 * time.Second):
		return errors.Join(s.failure("stop"), s.cmd.Process.Kill())
	}
}

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
