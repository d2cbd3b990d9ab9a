package simulation

import (
	"database/sql/driver"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (w *World) note(who, format string, args ...any) {
	text := holderForm.ReplaceAllStringFunc(fmt.Sprintf(format, args...), w.alias)
	w.history.note(who, strings.ReplaceAll(text, thisPID, ""))
}

// thisPID is in the name of each process of a world, and another one each time that the world runs.
var thisPID = fmt.Sprintf(", pid %d", os.Getpid())

// holderForm finds the holders in a text. Their numbers are random.
var holderForm = regexp.MustCompile(`p[0-9]+\.[0-9]+-[0-9a-fk][0-9a-f]{10}`)

// alias returns a name for a holder that does not depend on its random number.
func (w *World) alias(holder string) string {
	if holder == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, ok := w.aliases[holder]; ok {
		return name
	}
	client := clientOf(holder)
	w.numbers[client]++
	name := client + "#" + strconv.Itoa(w.numbers[client])
	w.aliases[holder] = name
	return name
}

// clientOf returns the client id of a holder.
func clientOf(holder string) string {
	client, _, _ := strings.Cut(holder, "-")
	return client
}

// describe returns a statement as the history shows it.
func (w *World) describe(query string, args []driver.NamedValue) string {
	words := strings.Fields(query)
	text := strings.Join(words[:min(4, len(words))], " ")
	for _, arg := range args {
		value, ok := arg.Value.(string)
		switch {
		case !ok:
		case w.names[value] != "":
			text += " " + w.names[value]
		case holderForm.MatchString(value) && !strings.HasPrefix(value, "["):
			text += " " + value
		case strings.HasPrefix(value, "["):
			text += " " + w.describeMany(value)
		}
	}
	return text
}

// lockKeyForm finds the LOCK_KEYs in a list.
var lockKeyForm = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// mostNamed is how many keys the history names of one statement.
const mostNamed = 12

// describeMany returns the keys of a batch.
func (w *World) describeMany(list string) string {
	var keys []string
	for _, lockKey := range lockKeyForm.FindAllString(list, -1) {
		keys = append(keys, w.names[lockKey])
	}
	if len(keys) > mostNamed {
		return fmt.Sprintf("[%d keys]", len(keys))
	}
	slices.Sort(keys)
	return "[" + strings.Join(keys, " ") + "]"
}
