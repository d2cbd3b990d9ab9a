package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func addSystemHelpers(commands map[string]func()) {
	commands["as-reaper"] = asReaper
	commands["in-terminal"] = inTerminal
}

// asReaper runs a command that becomes the parent of all orphans among its descendants.
func asReaper() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	become(os.Args[1:])
}

// inTerminal runs a command in a new terminal, which is its standard input.
func inTerminal() {
	if err := runInTerminal(os.Args[1:]); err != nil {
		panic(err)
	}
}

func runInTerminal(command []string) error {
	master, terminal, err := Terminal()
	if err != nil {
		return err
	}
	defer func() { _, _ = master.Close(), terminal.Close() }()
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the test ends it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd.Run()
}

// Terminal returns both ends of a new terminal: that of its user, and that of a program.
func Terminal() (user, program *os.File, err error) {
	if user, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, user.Close())
	}
	return user, program, nil
}
