package top

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// press does what a key is for.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.mode == choosing:
		return m.choose(name)
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

// sortKeys are the columns by the keys that sort by them.
var sortKeys = map[string]string{"k": "key", "a": "age", "r": "region", "h": "holder", "l": "left"}

// choose does what a key is for while no text is typed.
func (m *model) choose(key string) tea.Cmd {
	m.message = ""
	switch key {
	case "q", "esc":
		return tea.Quit
	case "up":
		m.move(-1)
	case "down":
		m.move(1)
	case "pgup":
		m.move(-m.page())
	case "pgdown":
		m.move(m.page())
	case "home":
		m.move(-len(m.shown))
	case "end":
		m.move(len(m.shown))
	case "k", "a", "r", "h", "l":
		m.order = m.order.By(sortKeys[key])
		m.arrange()
	case "e":
		m.unexpired = !m.unexpired
		m.arrange()
	case "/":
		m.mode, m.input = searching, m.search
	case "space":
		m.paused = !m.paused
	case "u", "delete":
		m.ask()
	}
	return nil
}

// ask asks whether the selected row is to be removed.
func (m *model) ask() {
	if i := m.position(); i >= 0 {
		m.mode, m.input, m.asked, m.askedName = confirming, "", m.shown[i].Row, m.shown[i].Name()
	}
}
