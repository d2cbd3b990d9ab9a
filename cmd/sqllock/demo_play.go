package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An actor is a worker process as the demo sees it.
type actor struct {
	name  string
	child *child
	stdin io.Closer
	cmd   *exec.Cmd
}

// play starts the workers, follows what they tell, kills one of them while it holds
// the lock, and returns when all have ended.
func (d *demo) play(ctx context.Context, s *stage, screen *screen) (*story, error) {
	events := make(chan event)
	var readers sync.WaitGroup
	actors := make(map[string]*actor)
	defer func() {
		for _, a := range actors {
			_ = a.stdin.Close()
			<-a.child.ended
		}
	}()
	var complaints strings.Builder
	for i := range d.workers {
		a, err := d.cast(s, string(rune('A'+i)), events, &readers, &lockedWriter{w: &complaints})
		if err != nil {
			return nil, err
		}
		actors[a.name] = a
	}
	go func() {
		readers.Wait()
		close(events)
	}()
	story := newStory(d)
	if err := d.follow(ctx, s, actors, events, story, screen); err != nil {
		return nil, err
	}
	for _, a := range actors {
		<-a.child.ended
		if a.child.code != 0 && a.name != story.victim {
			return nil, fmt.Errorf("worker %s ended with code %d: %s", a.name, a.child.code, strings.TrimSpace(complaints.String()))
		}
	}
	return story, nil
}

// cast starts one worker. The DSN goes through the environment, where other users
// of the machine do not see it.
func (d *demo) cast(s *stage, name string, events chan<- event, readers *sync.WaitGroup, complaints io.Writer) (*actor, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	//nolint:noctx,gosec // it ends with its standard input; the program is this one
	cmd := exec.Command(program, "demo-worker", "--prefix", s.prefix, "--directory", s.dir, "--worker", name,
		"--rounds", strconv.Itoa(d.rounds), "--ttl", d.ttl.String(), "--without-lock="+strconv.FormatBool(d.withoutLock))
	cmd.Env = append(os.Environ(), dsnVariable+"="+s.dsn)
	cmd.Stderr = complaints
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // not StdoutPipe, which the end of the process closes unread
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	child, err := start(cmd)
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	readers.Go(func() {
		defer func() { _ = read.Close() }()
		for lines := bufio.NewScanner(read); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line of a killed worker may be torn
				events <- e
			}
		}
	})
	return &actor{name, child, stdin, cmd}, nil
}

// follow takes the events in until all workers have ended.
func (d *demo) follow(ctx context.Context, s *stage, actors map[string]*actor, events <-chan event, story *story, screen *screen) error {
	frames := time.NewTicker(screen.frame)
	defer frames.Stop()
	defer screen.leave(story)
	interrupted := ctx.Done()
	for {
		select {
		case e, more := <-events:
			if !more {
				return ctx.Err()
			}
			if err := d.direct(s, actors, e, story); err != nil {
				return err
			}
			screen.show(story, e)
		case <-frames.C:
			screen.draw(story)
		case <-interrupted:
			interrupted = nil
			for _, a := range actors {
				_ = a.stdin.Close()
			}
		}
	}
}

// direct takes one event in, asks for a victim when a third of the rounds is done,
// and kills it: it holds the lock.
func (d *demo) direct(s *stage, actors map[string]*actor, e event, story *story) error {
	story.take(e, time.Now())
	switch {
	case d.withoutLock:
	case e.What == wrote && !story.wanted && 3*story.writes >= d.rounds:
		story.wanted = true
		return os.WriteFile(s.stallPath(), nil, 0o600)
	case e.What == stalls:
		if err := actors[e.Worker].child.process.Kill(); err != nil {
			return err
		}
		<-actors[e.Worker].child.ended
		story.kill(e.Worker, time.Now())
	}
	return nil
}

// A lockedWriter lets several processes complain at once.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
