package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// startLimit limits a start whose context has no deadline. Recovery after a kill takes seconds
// on a busy machine.
const startLimit = 4 * time.Minute

// stopLimit is how long a clean stop may take before the server is killed.
const stopLimit = time.Minute

// ErrEnded is wrapped by the error of [Server.Stop] if the server had ended by itself before.
var ErrEnded = errors.New("ended by itself")

// A Recipe describes how to run one kind of server. Commands are argument lists that begin
// with the path of the program. dir is the absolute path of the server's directory.
type Recipe struct {
	// Name is used in messages and names the log file.
	Name string
	// Driver is the database/sql driver that understands DSN. A server is ready when a ping
	// through it succeeds. If there is no driver, it is ready when it accepts a connection.
	Driver string
	// If Unprivileged is true, the server refuses to run as root, so root starts it as another user.
	Unprivileged bool
	// Files are written into dir before all commands; nil for none.
	Files func(port int) map[string]string
	// Create creates the data directory; nil for a server without data.
	Create func(dir string) []string
	// Serve runs the server in the foreground.
	Serve func(dir string, port int) []string
	// DSN is the DSN for clients.
	DSN func(port int) string
	// Quit ends the server cleanly, without waiting for its clients to leave.
	Quit syscall.Signal
	// Orphaned is the signal that the kernel sends when the parent dies. It must end the
	// server quickly without leaving child processes or shared memory behind.
	Orphaned syscall.Signal
}

// A Server is a database server that runs as a child of this process. Its methods are safe for
// concurrent use.
type Server struct {
	recipe  Recipe
	account *account // nil is the caller's own
	dir     string
	port    int
	behind  []*Server // those that were started for it

	mu      sync.Mutex
	process *process // nil while the server is down
}

// startBy starts a server by the recipe for what is found on this machine, or installed.
func startBy(ctx context.Context, recipe func(context.Context) (Recipe, error), dir string) (*Server, error) {
	r, err := recipe(ctx)
	if err != nil {
		return nil, err
	}
	return Start(ctx, r, dir)
}

// Start creates a server's data in dir and returns when the server responds. It creates dir if
// necessary; the caller removes it.
func Start(ctx context.Context, r Recipe, dir string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	s := &Server{recipe: r, dir: dir, port: port}
	if r.Unprivileged {
		if s.account, err = unprivileged(); err != nil {
			return nil, fmt.Errorf("%s refuses to run as root: %w", r.Name, err)
		}
	}
	if err := s.create(ctx); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.Name, err)
	}
	if err := s.Restart(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) create(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(s.writeFiles(), s.account.own(s.dir)); err != nil {
		return err
	}
	if s.recipe.Create == nil {
		return nil
	}
	p, err := s.launch(s.recipe.Create(s.dir))
	if err != nil {
		return err
	}
	select {
	case <-p.Ended:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
	if p.Err != nil {
		return fmt.Errorf("%w; %s", p.Err, s.logEnd())
	}
	return nil
}

func (s *Server) writeFiles() error {
	if s.recipe.Files == nil {
		return nil
	}
	for name, content := range s.recipe.Files(s.port) {
		path := filepath.Join(s.dir, name)
		err := os.WriteFile(path, []byte(content), 0o600)
		if err := errors.Join(err, s.account.own(path)); err != nil {
			return err
		}
	}
	return nil
}

// DSN returns the server's DSN: a postgres:// URL, or a DSN of go-sql-driver/mysql. Its user has
// all rights. Restarts do not change it.
func (s *Server) DSN() string { return s.recipe.DSN(s.port) }

// Address returns its host:port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Log returns the path of the server's log file.
func (s *Server) Log() string { return filepath.Join(s.dir, s.recipe.Name+".log") }

// Stop shuts the server down cleanly and disconnects its clients, and then does so with the servers
// that were started for it. The data remain for [Server.Restart]. If the server is down, Stop does
// nothing. The error wraps [ErrEnded] if the server had crashed before.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.stop()}
	for _, behind := range s.behind {
		errs = append(errs, behind.Stop())
	}
	return errors.Join(errs...)
}

func (s *Server) stop() error {
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	if p.HasEnded() {
		return fmt.Errorf("stop %s: %w with %s; %s", s.recipe.Name, ErrEnded, p.exit(), s.logEnd())
	}
	if err := p.end(s.recipe.Quit, stopLimit); err != nil {
		return fmt.Errorf("stop %s: %w; %s", s.recipe.Name, err, s.logEnd())
	}
	return nil
}

// Kill kills all processes of the server with SIGKILL. For the database this is a crash, after
// which [Server.Restart] runs its crash recovery. If the server is down, Kill does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	if err := p.kill(); err != nil {
		return fmt.Errorf("kill %s: %w", s.recipe.Name, err)
	}
	return nil
}

// HasEnded reports whether the server has ended by itself.
func (s *Server) HasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.HasEnded()
}

// Processes returns the ids of its processes, if it is up.
func (s *Server) Processes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	pid := s.process.Cmd.Process.Pid
	return append([]int{pid}, childrenOf(pid)...)
}

// Restart stops the server, if it is up, and starts it on the same port with the same data. It
// returns when the server responds.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil && !errors.Is(err, ErrEnded) {
		return err
	}
	return s.restart(ctx)
}

// restart starts a server that is down.
func (s *Server) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := s.launch(s.recipe.Serve(s.dir, s.port))
	if err != nil {
		return fmt.Errorf("start %s: %w", s.recipe.Name, err)
	}
	if err := s.awaitReady(ctx, p); err != nil {
		return fmt.Errorf("start %s: %w; %s", s.recipe.Name, errors.Join(err, p.kill()), s.logEnd())
	}
	s.process = p
	return nil
}

// launch runs a command and appends its output to the server's log.
func (s *Server) launch(command []string) (*process, error) {
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	return launch(command, s.account, s.recipe.Orphaned, log)
}

// logEnd returns the end of the log for error messages: only the server's own messages explain
// why it did not start.
func (s *Server) logEnd() string {
	const enough = 2000
	text, err := os.ReadFile(s.Log())
	if err != nil {
		return fmt.Sprintf("no log: %v", err)
	}
	if len(text) == 0 {
		return "its log is empty"
	}
	return fmt.Sprintf("its log ends:\n%s", text[max(0, len(text)-enough):])
}
