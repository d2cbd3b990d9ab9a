package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// A terminal is where the user looks and types.
type terminal struct{ in, out *os.File }

// openTerminal reports whether both ends are a terminal.
func openTerminal(in io.Reader, out io.Writer) (terminal, bool) {
	from, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(from.Fd())) {
		return terminal{}, false
	}
	to, ok := out.(*os.File)
	return terminal{from, to}, ok && term.IsTerminal(int(to.Fd()))
}

// watch shows the table until the user quits or ctx ends.
func (t terminal) watch(ctx context.Context, locks table, o options) error {
	first := locks.read(ctx)
	if first.err != nil {
		return first.err // there is nothing to show yet
	}
	// The command ends with other signals already. These would leave the terminal as it is now.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(newModel(ctx, locks, first, o), tea.WithInput(t.in), tea.WithOutput(t.out),
		tea.WithoutSignalHandler(), tea.WithFilter(withSize))
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
	return err
}

// withSize gives a terminal that does not know its size the usual one.
func withSize(_ tea.Model, message tea.Msg) tea.Msg {
	if size, ok := message.(tea.WindowSizeMsg); ok && (size.Width <= 0 || size.Height <= 0) {
		return tea.WindowSizeMsg{Width: 80, Height: 24}
	}
	return message
}
