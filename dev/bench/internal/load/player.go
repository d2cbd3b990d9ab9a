package load

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
	"syscall"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// PlayCommand is the argument that makes this program a player.
const PlayCommand = "play"

// A player is another process of this program, with a session of a contender. It reads requests
// to lock and unlock a key from its standard input. It answers with the time of the machine's
// monotonic clock at which it had acquired the lock or began to release it.
type player struct {
	*proc.Process

	in      io.WriteCloser
	answers chan string
}

// A part is the configuration of a player.
type part struct {
	Contender string
	Place     contender.Place
	Entry     *entry // of a player in a contest, or nil
}

// longestAnswer is that of a contest.
const longestAnswer = 1 << 28

var (
	errSilent = errors.New("no answer in time")
	errPlayer = errors.New("a player says")
)

// enter starts a player, and returns after it has used its database once.
func enter(ctx context.Context, p part) (*player, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, PlayCommand, string(text)) //nolint:gosec // it is this program
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	entered := &player{in: in, answers: make(chan string, 1)}
	if entered.Process, err = proc.Start(cmd, syscall.SIGKILL, func() {
		defer close(entered.answers)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, longestAnswer)
		for lines.Scan() {
			entered.answers <- lines.Text()
		}
	}); err != nil {
		return nil, err
	}
	const start = time.Minute // Java processes take long
	_, err = entered.answer(start)
	return entered, err
}

func (p *player) ask(what string) { _, _ = io.WriteString(p.in, what+"\n") } // the answer has the error

// answer returns the time in the player's answer.
func (p *player) answer(limit time.Duration) (time.Duration, error) {
	line, err := p.line(limit)
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", errPlayer, line)
	}
	return time.Duration(ns), nil
}

// line returns the player's answer.
func (p *player) line(limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line := <-p.answers:
		return line, nil
	case <-timer.C:
		return "", errSilent
	}
}

// leave ends the player, even if it is waiting.
func (p *player) leave() {
	_ = p.in.Close()
	const timeout = 200 * time.Millisecond
	killer := time.AfterFunc(timeout, func() { _ = p.Cmd.Process.Kill() })
	for range p.answers { // read all answers
	}
	<-p.Ended
	killer.Stop()
}

// Play runs a player.
func Play(ctx context.Context, text string) (err error) {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	c, found := contender.Find(p.Contender)
	switch {
	case !found:
		return fmt.Errorf("%w: no contender %q", errPlayer, p.Contender)
	case p.Entry != nil:
		err = p.Entry.take(ctx, c, p.Place)
	default:
		err = during(ctx, c, p.Place, func(session contender.Session) error { return play(ctx, session) })
	}
	return errors.Join(err, contender.End())
}

func play(ctx context.Context, session contender.Session) error {
	if err := pair(ctx, session, "warm-"+strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	fmt.Println(proc.Now())
	var unlock contender.Unlock
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var err error
		var when int64
		switch strings.TrimSpace(lines.Text()) {
		case "lock":
			unlock, err = session.Lock(ctx, "ball")
			when = proc.Now()
		case "unlock":
			when = proc.Now()
			err = unlock(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Println(when)
	}
	return nil
}
