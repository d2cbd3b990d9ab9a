package top

import (
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// An action is what a key does while no text is typed, with what the help says about it.
type action struct {
	key.Binding
	where place
	do    func(key string)
}

// A place is what is shown. An action may belong to several.
type place int

const (
	inTable place = 1 << iota
	inLock        // one lock, alone
	inHelp
	everywhere = inTable | inLock | inHelp
)

// actions returns all actions. The foot shows as many of them as fit, the first ones first.
func (m *model) actions() []action {
	bind := func(shown, does string, keys ...string) key.Binding {
		return key.NewBinding(key.WithHelp(shown, does), key.WithKeys(keys...))
	}
	scroll := func(lines int) func(string) { return func(string) { m.scrollBy(lines) } }
	all := max(len(m.shown), m.view.TotalLineCount())
	return []action{
		{bind("?", "help", "?"), inTable | inLock, func(string) { m.helping = true; m.view.GotoTop() }},
		{bind("q", "quit", "q"), inTable, func(string) { m.quitting = true }},
		{bind("Esc", "back", "esc", "q", "?"), inHelp, func(string) { m.back() }},
		{bind("Esc", "back", "esc", "q"), inLock, func(string) { m.back() }},
		{bind("Enter", "details", "enter"), inTable, func(string) { m.open() }},
		{bind("/", "search", "/"), inTable, func(string) { m.mode, m.input = searching, m.search }},
		{bind("u", "unlock", "u", "delete"), inTable | inLock, func(string) { m.ask() }},
		{bind("Space", "pause", "space"), everywhere, func(string) { m.paused = !m.paused }},
		{bind("e", "expired rows", "e"), inTable, func(string) { m.unexpired = !m.unexpired; m.arrange() }},
		{bind("n a r h l", "sort: name age region holder left", "n", "a", "r", "h", "l"), inTable, func(key string) { m.order = m.order.By(sortKeys[key]); m.arrange() }},
		{bind("k ↑", "up", "k", "up"), everywhere, func(string) { m.move(-1) }},
		{bind("j ↓", "down", "j", "down"), everywhere, func(string) { m.move(1) }},
		{bind("PgUp", "page up", "pgup"), everywhere, scroll(-m.page())},
		{bind("PgDn", "page down", "pgdown"), everywhere, scroll(m.page())},
		{bind("g", "first", "g", "home"), everywhere, scroll(-all)},
		{bind("G", "last", "G", "end"), everywhere, scroll(all)},
		{bind("Esc", "end the search", "esc"), inTable, func(string) { m.back() }},
	}
}

// sortKeys are the columns by the keys that sort by them.
var sortKeys = map[string]string{"n": "key", "a": "age", "r": "region", "h": "holder", "l": "left"}

// press does what a key is for.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.mode == choosing:
		m.message = ""
		if m.choose(k); m.quitting {
			return tea.Quit
		}
	case name == "enter":
		return m.enter()
	case name == "esc":
		m.cancel()
	case name == "backspace":
		letters := []rune(m.input)
		m.typed(string(letters[:max(len(letters)-1, 0)]))
	default:
		m.typed(m.input + k.Text)
	}
	return nil
}

// paste adds pasted text to what is typed. Keys that choose are not pasted.
func (m *model) paste(text string) {
	if m.mode != choosing {
		m.typed(m.input + strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, text))
	}
}

// typed has another input. A search has its effect at once.
func (m *model) typed(input string) {
	m.input = input
	if m.mode == searching {
		m.search = input
		m.arrange()
	}
}

// enter ends the input: the search stays, or the row is removed.
func (m *model) enter() tea.Cmd {
	confirmed := m.mode == confirming && m.input == "yes"
	if m.mode == confirming {
		m.message = "nothing was removed"
	}
	m.mode = choosing
	if !confirmed {
		return nil
	}
	m.message = "removing…"
	asked := m.asked
	return func() tea.Msg {
		deleted, err := m.table.remove(m.ctx, asked)
		return removal{asked, deleted, err}
	}
}

// cancel ends the input without effect: there is no search, and nothing is removed.
func (m *model) cancel() {
	if m.mode == confirming {
		m.message = "nothing was removed"
	} else {
		m.typed("")
	}
	m.mode = choosing
}

// choose does what a key is for while no text is typed.
func (m *model) choose(k tea.KeyPressMsg) {
	for _, a := range m.actions() {
		if a.where&m.place() != 0 && key.Matches(k, a.Binding) {
			a.do(k.String())
			return
		}
	}
}

// place returns what is shown.
func (m *model) place() place {
	switch {
	case m.helping:
		return inHelp
	case m.detail != nil:
		return inLock
	default:
		return inTable
	}
}

// back leaves the help, one lock, or the search. It never quits: Esc is pressed once too often.
func (m *model) back() {
	switch {
	case m.helping:
		m.helping = false
	case m.detail != nil:
		m.detail = nil
	case m.search != "":
		m.search = ""
		m.arrange()
	default:
		m.message = "q quits"
	}
}

// ask asks whether the selected row is to be removed.
func (m *model) ask() {
	if l, ok := m.target(); ok {
		m.mode, m.input, m.asked, m.askedName = confirming, "", l.Row, l.Name()
	}
}
